//! CPU time of the measuring threads.

use railgauge_wire::unit::Nanoseconds;

use crate::system::time;

/// CPU time the calling thread has used so far, user and system.
pub(crate) fn thread() -> Nanoseconds {
    time::read(time::THREAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE_MS: Nanoseconds = Nanoseconds::from_millis(5);

    #[test]
    fn sleeping_costs_nothing_and_spinning_does() {
        let before = thread();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let asleep = thread() - before;
        while thread() - before - asleep < FIVE_MS {}
        assert!(asleep < FIVE_MS, "{asleep} ns asleep");
    }
}
