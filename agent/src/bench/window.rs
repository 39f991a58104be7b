//! The stop rule of a timed pass, and the account of it.

use railgauge_wire::{measure::Measurement, step};

use super::{Slices, steady};

/// A timed pass while it runs.
#[derive(Debug)]
pub struct Window {
    rule: step::Window,
    size: u64,
    started: u64,
    operations: u64,
    slices: Slices,
    /// The next time at which there is something to decide; compared with on every call.
    mark: u64,
    running: bool,
    interval: Option<f64>,
}

/// What a window came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// Start, on the agent's clock.
    pub started: u64,
    /// Nanoseconds from the start to the last completion.
    pub elapsed: u64,
    /// Operations completed.
    pub operations: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// Bytes per 100 ms.
    pub slices: Vec<u64>,
    /// Half width of the 95 % interval over the mean, where the rule wanted one and there was enough to compute it.
    pub interval: Option<f64>,
}

impl Window {
    /// Starts a window at `now`; `size` is the payload of one operation in bytes.
    pub fn begin(rule: step::Window, size: u64, now: u64) -> Self {
        let mut window = Self::ready(rule, size);
        window.start(now);
        window
    }

    /// A window with its memory, to be started by [`start`](Self::start).
    pub fn ready(rule: step::Window, size: u64) -> Self {
        let slices = Slices::new(0);
        Self { rule, size, started: 0, operations: 0, slices, mark: 0, running: true, interval: None }
    }

    /// Starts it at `now`. A latency loop takes the same reading for the start of its first operation: whatever happens
    /// between two readings (the host may run something else for milliseconds) would be in the window and in no time.
    pub fn start(&mut self, now: u64) {
        self.started = now;
        self.slices.start(now);
        self.set_mark();
    }

    /// Operations each queue pair may post in all.
    pub fn quota(&self) -> u64 {
        match self.rule {
            step::Window::Iterations(n) => n,
            step::Window::Duration(_) | step::Window::Adaptive { .. } => u64::MAX,
        }
    }

    /// Whether more may be posted, as of the last call of [`completed`](Self::completed).
    #[inline]
    pub fn running(&self) -> bool {
        self.running
    }

    /// When [`completed`](Self::completed) wants to be called next, whatever completes; `u64::MAX` if never.
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Counts operations that completed by `now`. To be called with zero now and then while nothing completes.
    #[inline]
    pub fn completed(&mut self, now: u64, operations: u64) {
        if now >= self.mark {
            self.decide(now);
        }
        self.slices.add(now, operations);
        self.operations += operations;
    }

    #[cold]
    fn decide(&mut self, now: u64) {
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
            _ if !self.running => u64::MAX,
            step::Window::Duration(wanted) => self.started.saturating_add(wanted),
            step::Window::Adaptive { at_most, .. } => self.started.saturating_add(at_most).min(self.slices.mark()),
            step::Window::Iterations(_) => u64::MAX,
        };
        self.mark = end;
    }

    /// Ends the window; `last` is when the last operation completed.
    pub fn finish(self, last: u64) -> Tally {
        let slices = self.slices.finish(last).into_iter().map(|operations| operations * self.size).collect();
        Tally {
            started: self.started,
            elapsed: last - self.started,
            operations: self.operations,
            bytes: self.operations * self.size,
            slices,
            interval: self.interval,
        }
    }
}

impl Tally {
    /// The tally as a measurement without latency; `cpu` in nanoseconds.
    pub fn measurement(self, cpu: u64) -> Measurement {
        Measurement {
            started: self.started,
            elapsed: self.elapsed,
            operations: self.operations,
            bytes: self.bytes,
            cpu,
            slices: self.slices,
            latency: None,
            interval: self.interval,
            moved: None,
            lanes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// Runs a window on a made-up clock with one completion of `n(i)` operations per millisecond.
    fn run(rule: step::Window, n: impl Fn(u64) -> u64) -> Tally {
        let mut window = Window::begin(rule, 8, 7);
        let mut now = 7;
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
        let tally = run(step::Window::Duration(250 * MS), |_| 3);
        assert_eq!((tally.elapsed, tally.operations, tally.bytes), (250 * MS, 750, 6_000));
        assert_eq!(tally.slices, [99 * 3 * 8, 100 * 3 * 8]);
        assert_eq!(tally.interval, None);
    }

    #[test]
    fn iterations_end_by_their_quota() {
        let tally = run(step::Window::Iterations(10), |_| 1);
        assert_eq!((tally.elapsed, tally.operations), (10 * MS, 10));
    }

    #[test]
    fn steady_ends_early_and_noisy_at_the_cap() {
        let rule = step::Window::Adaptive { relative: 0.02, at_least: 300 * MS, at_most: 2_000 * MS };
        let steady = run(rule, |_| 100);
        assert!(steady.elapsed < 320 * MS && steady.interval.unwrap() < 0.02, "{steady:?}");
        let noisy = run(rule, |i| if i / 100 % 2 == 0 { 10 } else { 200 });
        assert!(noisy.elapsed == 2_000 * MS && noisy.interval.unwrap() > 0.02, "{noisy:?}");
    }

    #[test]
    fn nothing_completed_ends_too() {
        let rule = step::Window::Adaptive { relative: 0.02, at_least: 10 * MS, at_most: 500 * MS };
        let tally = run(rule, |_| 0);
        assert_eq!((tally.operations, tally.interval, tally.elapsed), (0, None, 500 * MS));
    }

    proptest! {
        #[test]
        fn slices_never_hold_more_than_was_completed(gaps in prop::collection::vec((0..300 * MS, 0..9u64), 1..50)) {
            let mut window = Window::begin(step::Window::Duration(1_000 * MS), 1, 0);
            let mut now = 0;
            for (gap, n) in gaps {
                now += gap;
                window.completed(now, n);
            }
            let tally = window.finish(now);
            prop_assert_eq!(tally.slices.len() as u64, now / (100 * MS));
            prop_assert!(tally.slices.iter().sum::<u64>() <= tally.bytes);
        }
    }
}
