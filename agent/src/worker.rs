//! Threads that own a link, a rank or a command, and run requests in order. A panic breaks only what they own: every request is answered.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, Builder, JoinHandle, ScopedJoinHandle},
};

use railgauge_wire::{Failure, Kind, Stage, remedy};

/// All work has one type: the compiler would repeat the standard library's code that starts a thread for each.
pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let work: Box<dyn FnOnce() + Send> = Box::new(work);
    Builder::new().name(name.to_owned()).spawn(work)
}

/// Runs a query in a thread that may hang. Without a thread, or after a panic, the channel is closed.
pub(crate) fn ask<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (answer, answered) = channel();
    // After a timeout the receiver is gone.
    let _ = start(name, move || _ = answer.send(work()));
    answered
}

type Work<T> = Box<dyn FnOnce(&mut Result<T, Failure>) + Send>;

/// Sends to the owner thread of a `T`. The thread ends when this is dropped and all passed work is done.
pub(crate) struct Worker<T>(Sender<Work<T>>);

impl<T: 'static> Worker<T> {
    /// `open` runs on the new thread.
    pub(crate) fn start(
        name: &str,
        open: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (work, inbox) = channel::<Work<T>>();
        let thread = start(name, move || {
            let mut owned = caught(Stage::Open, open).flatten();
            inbox.iter().for_each(|work| work(&mut owned));
            // The drop may panic.
            drop(caught(Stage::Converse, || drop(owned)));
        })?;
        Ok((Self(work), thread))
    }

    /// `false` if the thread has ended.
    pub(crate) fn pass(&self, work: impl FnOnce(&mut Result<T, Failure>) + Send + 'static) -> bool {
        self.0.send(Box::new(work)).is_ok()
    }
}

/// Broken by a panic, and dropped after the report: that may take long, and panic again.
pub(crate) struct Broken<T>(Option<T>);

impl<T> Drop for Broken<T> {
    fn drop(&mut self) {
        let _ = caught(Stage::Converse, || drop(self.0.take()));
    }
}

/// A panic breaks the owned value: from then on only its failure is left.
pub(crate) fn with<T, R>(
    owned: &mut Result<T, Failure>,
    stage: Stage,
    work: impl FnOnce(&mut T) -> Result<R, Failure>,
) -> (Result<R, Failure>, Broken<T>) {
    let open = match owned {
        Ok(open) => open,
        Err(failure) => return (Err(failure.clone()), Broken(None)),
    };
    match caught(stage, || work(open)) {
        Ok(outcome) => (outcome, Broken(None)),
        Err(failure) => (Err(failure.clone()), Broken(std::mem::replace(owned, Err(failure)).ok())),
    }
}

/// One thread each; waits for all.
pub(crate) fn on_each<I: Send, R: Send>(
    name: &str,
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> Result<R, Failure> + Sync,
) -> Vec<Result<R, Failure>> {
    let work = &work;
    thread::scope(|scope| {
        let start = |item| Builder::new().name(name.to_owned()).spawn_scoped(scope, move || work(item));
        let running: Vec<_> = items.into_iter().map(start).collect();
        let outcome = |thread: io::Result<ScopedJoinHandle<'_, Result<R, Failure>>>| {
            let none =
                |error| Failure::new(Stage::Open, Kind::Internal, format!("no thread could be started: {error}"));
            let panicked = |_| Failure::new(Stage::Measure, Kind::Internal, "a thread of the agent panicked");
            thread.map_err(none)?.join().map_err(panicked).flatten()
        };
        running.into_iter().map(outcome).collect()
    })
}

/// The outer error is a panic, as text; then what `work` touched must not be used again.
pub(crate) fn caught<T>(stage: Stage, work: impl FnOnce() -> T) -> Result<T, Failure> {
    // After a panic, callers drop what `work` borrowed.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let words = panic.downcast_ref::<&str>().map(ToString::to_string);
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Failure::new(stage, Kind::Internal, format!("the agent panicked: {words}")).remedy(remedy::REPORT_DEFECT)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_answer_comes_and_a_panic_or_a_thread_that_hangs_brings_none() {
        let long = Duration::from_secs(60);
        assert_eq!(ask("right", || 7).recv_timeout(long), Ok(7));
        assert!(ask("wrong", || -> u8 { panic!("no answer") }).recv_timeout(long).is_err());
        let (_held, hangs) = channel::<()>();
        assert!(ask("hangs", move || hangs.recv()).recv_timeout(Duration::ZERO).is_err());
    }

    #[test]
    fn a_panic_is_a_failure_with_its_words_and_breaks_what_is_owned() {
        assert_eq!(caught(Stage::Open, || 1), Ok(1));
        let mut owned = Ok(1);
        let (failure, _broken) =
            with(&mut owned, Stage::Open, |_| -> Result<(), _> { panic!("index {} out of range", 7) });
        let failure = failure.unwrap_err();
        assert!(failure.cause.contains("index 7 out of range"), "{failure}");
        assert_eq!(
            (owned.clone(), with(&mut owned, Stage::Open, |one| Ok(*one)).0),
            (Err(failure.clone()), Err(failure))
        );
    }
}
