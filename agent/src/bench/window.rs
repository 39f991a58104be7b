//! The stop rule of a timed pass, and the account of it.

use railgauge_wire::{
    measure::Measurement,
    step,
    unit::{Bytes, Nanoseconds},
};

use super::{Slices, steady};

#[derive(Debug)]
pub(crate) struct Window {
    rule: step::Window,
    size: Bytes,
    started: Nanoseconds,
    operations: u64,
    slices: Slices,
    /// The next time at which there is something to decide; compared with on every call.
    mark: Nanoseconds,
    running: bool,
    interval: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    pub started: Nanoseconds,
    /// From the start to the last completion.
    pub elapsed: Nanoseconds,
    pub operations: u64,
    pub bytes: Bytes,
    /// Payload per 100 ms.
    pub slices: Vec<Bytes>,
    /// Half width of the 95 % interval over the mean, where the rule wanted one and there was enough to compute it.
    pub interval: Option<f64>,
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

    /// Starts it at `now`. A latency loop takes the same reading for the start of its first operation: whatever happens
    /// between two readings (the host may run something else for milliseconds) would be in the window and in no time.
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

    /// Whether more may be posted, as of the last call of [`completed`](Self::completed).
    #[inline]
    pub(crate) fn running(&self) -> bool {
        self.running
    }

    /// When [`completed`](Self::completed) wants to be called next, whatever completes; [`Nanoseconds::MAX`] if never.
    pub(crate) fn mark(&self) -> Nanoseconds {
        self.mark
    }

    /// Counts operations that completed by `now`. To be called with zero now and then while nothing completes.
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
                self.interval = steady::interval(self.slices.fine());
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
            step::Window::Adaptive { at_most, .. } => self.started.saturating_add(at_most).min(self.slices.mark()),
            step::Window::Iterations(_) => Nanoseconds::MAX,
        };
        self.mark = end;
    }

    /// Ends the window; `last` is when the last operation completed.
    pub(crate) fn finish(self, last: Nanoseconds) -> Tally {
        let slices = self.slices.finish(last).into_iter().map(|operations| self.size * operations).collect();
        Tally {
            started: self.started,
            elapsed: last - self.started,
            operations: self.operations,
            bytes: self.size * self.operations,
            slices,
            interval: self.interval,
        }
    }
}

impl Tally {
    pub fn measurement(self, cpu: Nanoseconds) -> Measurement {
        Measurement {
            started: self.started,
            elapsed: self.elapsed,
            operations: self.operations,
            bytes: self.bytes,
            cpu,
            slices: self.slices.into(),
            interval: self.interval.map(Box::new),
            ..Measurement::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Nanoseconds = Nanoseconds::from_millis(1);

    /// Runs a window on a made-up clock with one completion of `n(i)` operations per millisecond.
    fn run(rule: step::Window, n: impl Fn(u64) -> u64) -> Tally {
        let mut window = Window::begin(rule, Bytes(8), Nanoseconds(7));
        let mut now = Nanoseconds(7);
        for i in 0.. {
            if !window.running() || window.operations >= window.quota() {
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
        assert!(steady.elapsed < MS * 320 && steady.interval.unwrap() < 0.02, "{steady:?}");
        let noisy = run(rule, |i| if i / 100 % 2 == 0 { 10 } else { 200 });
        assert!(noisy.elapsed == MS * 2_000 && noisy.interval.unwrap() > 0.02, "{noisy:?}");
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
}
