//! A queue between threads. It does what `std::sync::mpsc` does for one kind of channel, and is a tenth of its code for every type that
//! passes through it.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        mpsc::{RecvError, RecvTimeoutError, SendError},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    senders: usize,
    has_receiver: bool,
}

/// Puts in.
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// Takes out, in the order in which it was put in.
pub(crate) struct Receiver<T>(Arc<Shared<T>>);

/// A queue without bound.
pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { waiting: VecDeque::new(), senders: 1, has_receiver: true };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Sender<T> {
    /// Puts one in.
    ///
    /// # Errors
    /// The receiver is gone; the error has what was not sent.
    pub(crate) fn send(&self, value: T) -> Result<(), SendError<T>> {
        let mut state = self.0.state.lock();
        if !state.has_receiver {
            return Err(SendError(value));
        }
        state.waiting.push_back(value);
        self.0.changed.notify_one();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.state.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.lock().senders -= 1;
        self.0.changed.notify_one();
    }
}

impl<T> Receiver<T> {
    /// Waits for the next one.
    ///
    /// # Errors
    /// None is waiting, and all senders are gone.
    pub(crate) fn recv(&self) -> Result<T, RecvError> {
        self.next(None).map_err(|_| RecvError)
    }

    /// Waits for the next one for so long.
    ///
    /// # Errors
    /// None came in time, or all senders are gone.
    pub(crate) fn recv_timeout(&self, limit: Duration) -> Result<T, RecvTimeoutError> {
        self.next(Instant::now().checked_add(limit))
    }

    fn next(&self, until: Option<Instant>) -> Result<T, RecvTimeoutError> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(value) = state.waiting.pop_front() {
                return Ok(value);
            }
            if state.senders == 0 {
                return Err(RecvTimeoutError::Disconnected);
            }
            match until {
                None => self.0.changed.wait(&mut state),
                Some(until) if Instant::now() >= until => return Err(RecvTimeoutError::Timeout),
                Some(until) => _ = self.0.changed.wait_until(&mut state, until),
            }
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.has_receiver = false;
        // Their drops may send something, which needs the lock.
        let left = std::mem::take(&mut state.waiting);
        drop(state);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_arrive_in_their_order_and_then_the_queue_is_closed() {
        let (to, from) = channel();
        let other = to.clone();
        let sending = std::thread::spawn(move || (0..1000).for_each(|n| other.send(n).unwrap()));
        let got: Vec<u32> = (0..1000).map(|_| from.recv().unwrap()).collect();
        assert!(got.is_sorted());
        sending.join().unwrap();
        assert_eq!(from.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout));
        to.send(7).unwrap();
        drop(to);
        assert_eq!((from.recv(), from.recv()), (Ok(7), Err(RecvError)));
    }

    #[test]
    fn what_nobody_receives_comes_back_and_what_waits_is_dropped() {
        let (to, from) = channel();
        let held = Arc::new(());
        to.send(Arc::clone(&held)).unwrap();
        drop(from);
        assert_eq!(Arc::strong_count(&held), 1);
        assert_eq!(to.send(held).unwrap_err().0, Arc::new(()));
    }
}
