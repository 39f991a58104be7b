//! Holds a sender back to a rate: a token bucket, read by the loop's own clock.

use railgauge_wire::unit::{BitsPerSecond, Bytes, Nanoseconds};

/// What may be sent at once after a time in which less than the rate was sent: so much time's worth, one message at least. A loop
/// that sleeps between two looks makes up for its sleep; a link that was down for seconds does not send faster after it.
const BURST: Nanoseconds = Nanoseconds::from_millis(5);

/// How many messages of one queue pair or stream may have been sent by a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pacer {
    /// Nanoseconds that one message stands for.
    per_message: f64,
    /// Messages that may be sent at once.
    burst: u64,
    /// From when on messages are counted.
    from: f64,
}

impl Pacer {
    /// A pacer from `now` on for messages of `size`; `None` where there is no rate to hold.
    pub(crate) fn new(rate: Option<BitsPerSecond>, size: Bytes, now: Nanoseconds) -> Option<Self> {
        let rate = rate.filter(|rate| rate.0.is_finite() && rate.0 > 0.0)?;
        let per_message = size.0 as f64 * 8.0 * 1e9 / rate.0;
        let burst = (BURST.0 as f64 / per_message) as u64;
        Some(Self { per_message, burst: burst.max(1), from: now.0 as f64 })
    }

    /// Messages that may have been sent in all by `now`, where `sent` have been; never fewer than those.
    pub(crate) fn allowed(&mut self, now: Nanoseconds, sent: u64) -> u64 {
        let due = ((now.0 as f64 - self.from).max(0.0) / self.per_message) as u64 + 1;
        let most = sent.saturating_add(self.burst);
        if due > most {
            // What was not sent in time is not sent any more.
            self.from += (due - most) as f64 * self.per_message;
        }
        due.clamp(sent, most)
    }

    /// How long the next message has to wait, where `sent` have been sent.
    pub(crate) fn wait(&mut self, now: Nanoseconds, sent: u64) -> Nanoseconds {
        if self.allowed(now, sent) > sent {
            return Nanoseconds::ZERO;
        }
        let at = self.from + sent as f64 * self.per_message;
        Nanoseconds((at - now.0 as f64).max(1.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Nanoseconds = Nanoseconds::from_millis(1);

    /// Messages sent by a loop that looks every `step` for `time`, and sends whatever it may.
    fn sent(pacer: &mut Pacer, time: Nanoseconds, step: Nanoseconds) -> u64 {
        let (mut now, mut sent) = (Nanoseconds::ZERO, 0);
        while now < time {
            sent = pacer.allowed(now, sent);
            now += step;
        }
        sent
    }

    #[test]
    fn a_rate_is_held_by_spinning_and_by_sleeping_loops() {
        for step in [Nanoseconds(500), MS * 2] {
            // 1 Gb/s in messages of 1,250 bytes: one in 10 µs.
            let mut pacer = Pacer::new(Some(BitsPerSecond(1e9)), Bytes(1_250), Nanoseconds::ZERO).unwrap();
            let sent = sent(&mut pacer, MS * 1_000, step);
            assert!((99_700..=100_001).contains(&sent), "{sent}");
        }
    }

    #[test]
    fn large_messages_go_one_by_one() {
        // One in 80 ms.
        let mut pacer = Pacer::new(Some(BitsPerSecond(1e8)), Bytes(1_000_000), Nanoseconds::ZERO).unwrap();
        assert_eq!(pacer.allowed(Nanoseconds::ZERO, 0), 1);
        assert_eq!(pacer.allowed(MS * 79, 1), 1);
        assert_eq!(pacer.wait(MS * 79, 1), MS);
        assert_eq!(pacer.allowed(MS * 80, 1), 2);
    }

    #[test]
    fn after_a_stall_nothing_is_made_up_for() {
        let mut pacer = Pacer::new(Some(BitsPerSecond(1e9)), Bytes(1_250), Nanoseconds::ZERO).unwrap();
        let before = sent(&mut pacer, MS * 100, MS);
        let after = pacer.allowed(MS * 5_000, before);
        assert_eq!(after, before + 500, "five milliseconds' worth");
        assert_eq!(pacer.allowed(MS * 5_000 + Nanoseconds(10_000), after), after + 1);
    }

    #[test]
    fn no_rate_is_no_pacer() {
        for rate in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
            assert!(Pacer::new(rate.map(BitsPerSecond), Bytes(64), Nanoseconds::ZERO).is_none());
        }
    }

    proptest! {
        #[test]
        fn no_more_than_the_rate_and_a_burst_is_ever_sent(
            rate in 1e3..1e12f64, size in 1..1u64 << 30, steps in prop::collection::vec(0..1_000_000_000u64, 1..60),
        ) {
            let mut pacer = Pacer::new(Some(BitsPerSecond(rate)), Bytes(size), Nanoseconds::ZERO).unwrap();
            let (burst, per_message) = (pacer.burst, pacer.per_message);
            let (mut now, mut sent) = (Nanoseconds::ZERO, 0);
            for step in steps {
                now += Nanoseconds(step);
                let allowed = pacer.allowed(now, sent);
                prop_assert!(allowed >= sent && allowed - sent <= burst);
                prop_assert!(allowed as f64 <= now.0 as f64 / per_message + burst as f64 + 2.0);
                sent = allowed;
            }
        }
    }
}
