//! Threads with names.

use std::{
    io,
    sync::mpsc::{Receiver, channel},
    thread::{Builder, JoinHandle},
    time::Duration,
};

/// Starts a thread. All work has one type here: for each type the compiler would repeat the standard library's code that starts a
/// thread.
pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let work: Box<dyn FnOnce() + Send> = Box::new(work);
    Builder::new().name(name.to_owned()).spawn(work)
}

/// What a thread finds out, for as long as the caller waits for it.
pub(crate) struct Asked<T>(Receiver<T>);

/// Finds something out in a thread that may hang.
pub(crate) fn ask<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Asked<T> {
    let (answer, answered) = channel();
    // Without a thread, or after a panic, the channel is closed. Where the answer took too long, its receiver is gone.
    let _ = start(name, move || _ = answer.send(work()));
    Asked(answered)
}

impl<T> Asked<T> {
    /// What the thread found; `None` if that takes longer than `limit`, or cannot be done.
    pub(crate) fn within(self, limit: Duration) -> Option<T> {
        self.0.recv_timeout(limit).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_and_a_panic_or_a_thread_that_hangs_brings_none() {
        let long = Duration::from_secs(60);
        assert_eq!(ask("right", || 7).within(long), Some(7));
        assert_eq!(ask("wrong", || -> u8 { panic!("no answer") }).within(long), None);
        let (_held, hangs) = channel::<()>();
        assert_eq!(ask("hangs", move || hangs.recv()).within(Duration::ZERO), None);
    }
}
