//! The stop rule of a timed pass, its slices, and its account.
//!
//! The confidence interval uses batch means: consecutive slices are correlated, so they are joined into 20 to 39 batches that grow with
//! the window. The batches are nearly independent, and the mean has a Student interval with batches − 1 degrees of freedom (Schmeiser,
//! "Batch size effects in the analysis of simulation output", Operations Research 30, 1982: 10 to 30 batches are enough, more gain
//! little).

use railgauge_wire::{BitsPerSecond, Bytes, Measurement, Nanoseconds, SLICE, step};

#[derive(Debug)]
pub(crate) struct Window {
    rule: step::Window,
    size: Bytes,
    started: Nanoseconds,
    operations: u64,
    slices: Slices,
    /// The next time at which there is something to decide; compared with on every call.
    pub(crate) mark: Nanoseconds,
    pub(crate) running: bool,
    interval: Option<f64>,
}

impl Window {
    /// Starts a window at `now`; `size` is the payload of one operation.
    pub(crate) fn begin(rule: step::Window, size: Bytes, now: Nanoseconds) -> Self {
        let mut window = Self::ready(rule, size);
        window.start(now);
        window
    }

    /// A window with its memory, to be started by [`start`](Self::start).
    pub(crate) fn ready(rule: step::Window, size: Bytes) -> Self {
        let (zero, slices) = (Nanoseconds::ZERO, Slices::new(Nanoseconds::ZERO));
        Self { rule, size, started: zero, operations: 0, slices, mark: zero, running: true, interval: None }
    }

    /// Starts it at `now`. A latency loop uses the same reading for the start of its first operation: a delay between two readings (the
    /// host may run something else for milliseconds) would be in the window and in no time.
    pub(crate) fn start(&mut self, now: Nanoseconds) {
        self.started = now;
        self.slices.start(now);
        self.set_mark();
    }

    /// Operations each queue pair may post in all.
    pub(crate) fn quota(&self) -> u64 {
        match self.rule {
            step::Window::Iterations(n) => n,
            step::Window::Duration(_) | step::Window::Adaptive { .. } => u64::MAX,
        }
    }

    /// Counts operations that completed by `now`. Call it with zero now and then while nothing completes.
    #[inline]
    pub(crate) fn completed(&mut self, now: Nanoseconds, operations: u64) {
        if now >= self.mark {
            self.decide(now);
        }
        self.slices.add(now, operations);
        self.operations += operations;
    }

    #[cold]
    fn decide(&mut self, now: Nanoseconds) {
        self.slices.add(now, 0);
        let so_far = now - self.started;
        match self.rule {
            step::Window::Duration(wanted) => self.running = so_far < wanted,
            step::Window::Iterations(_) => {}
            // Once stopped, what still completes belongs to the window but no longer to its rule.
            step::Window::Adaptive { relative, at_least, at_most } if self.running => {
                self.interval = interval(&self.slices.full);
                let sure = self.interval.is_some_and(|half| half <= relative);
                self.running = so_far < at_most && !(sure && so_far >= at_least);
            }
            step::Window::Adaptive { .. } => {}
        }
        self.set_mark();
    }

    fn set_mark(&mut self) {
        let end = match self.rule {
            _ if !self.running => Nanoseconds::MAX,
            step::Window::Duration(wanted) => self.started.saturating_add(wanted),
            step::Window::Adaptive { at_most, .. } => self.started.saturating_add(at_most).min(self.slices.mark),
            step::Window::Iterations(_) => Nanoseconds::MAX,
        };
        self.mark = end;
    }

    /// Ends the window; `last` is when the last operation completed. The time ends there, whatever the rule says.
    pub(crate) fn finish(self, last: Nanoseconds) -> Measurement {
        Measurement {
            started: self.started,
            elapsed: last - self.started,
            operations: self.operations,
            bytes: self.size * self.operations,
            slices: self.slices.finish(last).into_iter().map(|operations| self.size * operations).collect(),
            interval: self.interval.map(Box::new),
            ..Measurement::default()
        }
    }
}

/// Length of a fine slice. Ten of them make one slice of a record.
pub(super) const FINE: Nanoseconds = Nanoseconds::from_millis(10);

const _: () = assert!(FINE.0 * 10 == SLICE.0);

/// Counts per 10 ms, in whatever unit the caller adds.
#[derive(Debug, Clone)]
pub(crate) struct Slices {
    origin: Nanoseconds,
    mark: Nanoseconds,
    current: u64,
    full: Vec<u64>,
}

impl Slices {
    /// Starts at `origin`. Has room for a minute before it allocates.
    pub(crate) fn new(origin: Nanoseconds) -> Self {
        Self { origin, mark: origin + FINE, current: 0, full: Vec::with_capacity(6_000) }
    }

    pub(crate) fn start(&mut self, origin: Nanoseconds) {
        (self.origin, self.mark) = (origin, origin + FINE);
    }

    /// Adds what was completed by `now`. `now` never runs backwards.
    #[inline]
    pub(crate) fn add(&mut self, now: Nanoseconds, amount: u64) {
        if now >= self.mark {
            self.turn(now);
        }
        self.current += amount;
    }

    #[cold]
    fn turn(&mut self, now: Nanoseconds) {
        let passed = (now - self.mark) / FINE + 1;
        self.full.push(std::mem::take(&mut self.current));
        // Time without completions gives slices of zero.
        self.full.extend(std::iter::repeat_n(0, passed as usize - 1));
        self.mark += FINE * passed;
    }

    /// The slices of a window that ended at `end`, 100 ms each; an incomplete last one is dropped.
    pub(crate) fn finish(mut self, end: Nanoseconds) -> Vec<u64> {
        self.full.push(self.current);
        let whole = end.saturating_sub(self.origin) / SLICE;
        (0..whole as usize).map(|i| self.full.iter().skip(i * 10).take(10).sum()).collect()
    }
}

pub(super) const BATCHES: usize = 20;

/// Half width of the 95 % interval of the mean over the mean; `None` with fewer than [`BATCHES`] slices or without completions.
pub(super) fn interval(slices: &[u64]) -> Option<f64> {
    let per_batch = slices.len() / BATCHES;
    if per_batch == 0 {
        return None;
    }
    // The oldest slices are omitted if the batches are uneven.
    let uneven = slices.len() % per_batch;
    let batches: Vec<f64> = slices[uneven..].chunks(per_batch).map(|batch| batch.iter().sum::<u64>() as f64).collect();
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean > 0.0).then(|| t975(n - 1.0) * (variance / n).sqrt() / mean)
}

/// 97.5 % quantile of Student's t, by the expansion of Abramowitz and Stegun 26.7.5; exact to 0.0001 for 19 or more degrees of freedom.
fn t975(degrees: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    let power = |n| Z.powi(n);
    let g1 = (power(3) + Z) / 4.0;
    let g2 = (5.0 * power(5) + 16.0 * power(3) + 3.0 * Z) / 96.0;
    let g3 = (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * Z) / 384.0;
    Z + g1 / degrees + g2 / degrees.powi(2) + g3 / degrees.powi(3)
}

/// Time that may be made up at once after a pause, one message at least. A loop that sleeps between two looks makes up for its sleep; a
/// link that was down for seconds does not send faster afterwards.
const BURST: Nanoseconds = Nanoseconds::from_millis(5);

/// Limits a sender's rate by a token bucket on the loop's own clock, per queue pair or stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pacer {
    /// Nanoseconds per message.
    per_message: f64,
    /// Messages that may be sent at once.
    burst: u64,
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
            // What was not sent in time is forfeited.
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
    use proptest::prelude::*;

    use super::*;

    const MS: Nanoseconds = Nanoseconds::from_millis(1);

    /// Runs a window on a made-up clock with one completion of `n(i)` operations per millisecond.
    fn run(rule: step::Window, n: impl Fn(u64) -> u64) -> Measurement {
        let mut window = Window::begin(rule, Bytes(8), Nanoseconds(7));
        let mut now = Nanoseconds(7);
        for i in 0.. {
            if !window.running || window.operations >= window.quota() {
                break;
            }
            now += MS;
            window.completed(now, n(i));
        }
        window.finish(now)
    }

    #[test]
    fn a_duration_counts_the_whole_of_it() {
        let tally = run(step::Window::Duration(MS * 250), |_| 3);
        assert_eq!((tally.elapsed, tally.operations, tally.bytes), (MS * 250, 750, Bytes(6_000)));
        assert_eq!(tally.slices, [99 * 3 * 8, 100 * 3 * 8].map(Bytes));
        assert_eq!(tally.interval, None);
    }

    #[test]
    fn iterations_end_by_their_quota() {
        let tally = run(step::Window::Iterations(10), |_| 1);
        assert_eq!((tally.elapsed, tally.operations), (MS * 10, 10));
    }

    #[test]
    fn steady_ends_early_and_noisy_at_the_cap() {
        let rule = step::Window::Adaptive { relative: 0.02, at_least: MS * 300, at_most: MS * 2_000 };
        let steady = run(rule, |_| 100);
        assert!(steady.elapsed < MS * 320 && *steady.interval.as_deref().unwrap() < 0.02, "{steady:?}");
        let noisy = run(rule, |i| if i / 100 % 2 == 0 { 10 } else { 200 });
        assert!(noisy.elapsed == MS * 2_000 && *noisy.interval.as_deref().unwrap() > 0.02, "{noisy:?}");
    }

    #[test]
    fn nothing_completed_ends_too() {
        let rule = step::Window::Adaptive { relative: 0.02, at_least: MS * 10, at_most: MS * 500 };
        let tally = run(rule, |_| 0);
        assert_eq!((tally.operations, tally.interval, tally.elapsed), (0, None, MS * 500));
    }

    proptest! {
        #[test]
        fn slices_never_hold_more_than_was_completed(gaps in prop::collection::vec((0..300 * MS.0, 0..9u64), 1..50)) {
            let mut window = Window::begin(step::Window::Duration(MS * 1_000), Bytes(1), Nanoseconds::ZERO);
            let mut now = Nanoseconds::ZERO;
            for (gap, n) in gaps {
                now += Nanoseconds(gap);
                window.completed(now, n);
            }
            let tally = window.finish(now);
            prop_assert_eq!(tally.slices.len() as u64, now / (MS * 100));
            prop_assert!(tally.slices.iter().copied().sum::<Bytes>() <= tally.bytes);
        }
    }

    #[test]
    fn a_silence_is_slices_of_zero() {
        let origin = Nanoseconds(1_000);
        let mut slices = Slices::new(origin);
        slices.add(origin, 5);
        slices.add(origin + SLICE * 3, 7);
        assert_eq!(slices.clone().finish(origin + SLICE * 4), [5, 0, 0, 7]);
        assert_eq!(slices.finish(origin + SLICE * 4 - Nanoseconds(1)), [5, 0, 0]);
    }

    proptest! {
        #[test]
        fn every_amount_lands_in_the_slice_of_its_time(steps in prop::collection::vec((0..3 * SLICE.0, 0..100u64), 0..40)) {
            let mut slices = Slices::new(Nanoseconds::ZERO);
            let mut now = Nanoseconds::ZERO;
            let mut wanted = vec![0; 120];
            for (step, amount) in steps {
                now += Nanoseconds(step);
                slices.add(now, amount);
                wanted[(now / SLICE) as usize] += amount;
            }
            let end = SLICE * (now / SLICE + 1);
            wanted.truncate((end / SLICE) as usize);
            prop_assert_eq!(slices.finish(end), wanted);
        }
    }

    #[test]
    fn quantiles_agree_with_printed_tables() {
        for (degrees, wanted) in [(19.0, 2.0930), (24.0, 2.0639), (29.0, 2.0452), (38.0, 2.0244)] {
            assert!((t975(degrees) - wanted).abs() < 1e-4, "{degrees}: {}", t975(degrees));
        }
    }

    #[test]
    fn too_few_slices_or_none_completed_give_no_interval() {
        assert_eq!(interval(&[5; BATCHES - 1]), None);
        assert_eq!(interval(&[0; 50]), None);
        assert_eq!(interval(&[5; 50]), Some(0.0));
    }

    #[test]
    fn the_interval_of_known_numbers() {
        // 1 to 20: mean 10.5, standard deviation 5.9161, so 2.0930 × 5.9161 / √20 / 10.5 = 0.26370.
        let slices: Vec<u64> = (1..=20).collect();
        assert!((interval(&slices).unwrap() - 0.26370).abs() < 1e-4);
    }

    #[test]
    fn slow_waves_are_not_taken_for_certainty() {
        // One wave over the whole window: neighbouring slices are almost equal, the mean is not known.
        let slices: Vec<u64> = (0..400).map(|i| (1000.0 + 500.0 * (f64::from(i) / 63.7).sin()) as u64).collect();
        assert!(interval(&slices).unwrap() > 0.1);
    }

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
