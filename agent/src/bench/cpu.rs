//! CPU time of the measuring threads.

use crate::system::time;

/// CPU time the calling thread has used so far, user and system, in nanoseconds.
pub fn thread() -> u64 {
    time::read(time::THREAD)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sleeping_costs_nothing_and_spinning_does() {
        let before = super::thread();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let asleep = super::thread() - before;
        while super::thread() - before - asleep < 5_000_000 {}
        assert!(asleep < 5_000_000, "{asleep} ns asleep");
    }
}
