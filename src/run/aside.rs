//! Long work on a thread of its own, so that interrupts are handled meanwhile.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    thread,
    time::Duration,
};

use tokio::{sync::oneshot, time::sleep};

use super::spine::Spine;

const STACK: usize = 8 << 20;

/// The result of `work`; `None` if the run is asked to end and `patience` passes before. The work then continues until the process ends,
/// and its result is dropped.
pub(crate) async fn aside<T: Send + 'static>(
    spine: &Spine,
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (send, done) = oneshot::channel();
    thread::Builder::new().stack_size(STACK).spawn(move || send.send(catch_unwind(AssertUnwindSafe(work))))?;
    let no_longer = async {
        spine.halting().await;
        sleep(patience).await;
    };
    tokio::select! {
        biased;
        done = done => match done {
            Ok(Err(panic)) => resume_unwind(panic),
            done => Ok(done.ok().and_then(Result::ok)),
        },
        () = no_longer => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::run::spine::Halt;

    #[tokio::test]
    async fn work_is_waited_for_until_the_run_is_to_end() {
        let spine = Spine::unrecorded(true, false);
        let short = || thread::sleep(Duration::from_millis(50));
        assert_eq!(aside(&spine, Duration::ZERO, short).await.unwrap(), Some(()));
        let (hold, held) = mpsc::channel::<()>();
        let halted = spine.clone();
        let hangs = move || {
            halted.halt(Halt::Interrupted);
            held.recv()
        };
        assert_eq!(aside(&spine, Duration::ZERO, hangs).await.unwrap(), None);
        drop(hold);
        assert_eq!(aside(&spine, Duration::from_secs(60), short).await.unwrap(), Some(()));
    }
}
