//! Work that takes long on a large cluster, done on a thread of its own, so that an interrupt is heard meanwhile.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    thread,
    time::Duration,
};

use tokio::{sync::oneshot, time::sleep};

use super::spine::Spine;

/// As the main thread has on Linux.
const STACK: usize = 8 << 20;

/// What `work` comes to; `None` if the run is asked to end and `patience` passes before. The work then goes on until the
/// process ends, and nobody hears of it.
///
/// # Errors
/// There can be no further thread.
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
    use std::time::Instant;

    use super::*;
    use crate::run::spine::Halt;

    #[tokio::test]
    async fn work_is_waited_for_until_the_run_is_to_end() {
        let spine = Spine::unrecorded(true, false);
        let long = |time| move || thread::sleep(time);
        let (short, longer) = (Duration::from_millis(200), Duration::from_secs(60));
        assert_eq!(aside(&spine, Duration::ZERO, long(short)).await.unwrap(), Some(()));
        let begun = Instant::now();
        let halted = spine.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            halted.halt(Halt::Interrupted);
        });
        assert_eq!(aside(&spine, Duration::ZERO, long(longer)).await.unwrap(), None);
        // What takes no longer than the patience is had even then.
        assert_eq!(aside(&spine, longer, long(short)).await.unwrap(), Some(()));
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
