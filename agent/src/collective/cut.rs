//! Division of a collective's timed operations into batches. As in nccl-tests, operations of a batch run back to back between two clock
//! readings; a batch of one, behind a barrier, is a latency. For a window by time, batches are grouped in stretches, and after each the
//! ranks exchange their elapsed times while no clock runs. The last batch is separate, so that its result can be verified.

use railgauge_wire::{CollectiveSpec, Failure, Nanoseconds, TestMetric, Window};

const BATCH: u64 = 20;
/// Minimum time of a batch: otherwise starting and ending it would count.
const SHORTEST: Nanoseconds = Nanoseconds::from_millis(1);
/// Minimum time of an operation, if the clock reads zero.
const LEAST: Nanoseconds = Nanoseconds(1);
const MOST: u64 = 20_000;
/// Most batches of a window; the account of each is sent to the controller.
const BATCHES: u64 = 50_000;
/// Approximate number of agreements in a window: a batch time estimate that is wrong by this factor doubles the window.
const STRETCHES: u64 = 10;
/// Operations of the second trial; the first has a single one.
const TRIAL: u64 = 5;
/// Maximum time of a trial, unless a single operation takes as long.
const SLOW: Nanoseconds = Nanoseconds::from_millis(200);

/// Equal on all ranks, since all have the same times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub batch: u64,
    extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Batches(u64),
    /// As many as fit `time`, with the estimate `guess` for one.
    Time {
        time: Nanoseconds,
        guess: Nanoseconds,
    },
}

impl Cut {
    /// `one` is the time of an operation.
    pub(crate) fn new(collective: &CollectiveSpec, one: Nanoseconds) -> Self {
        let one = one.max(LEAST);
        let single = collective.metric != TestMetric::Bandwidth;
        match collective.window {
            Window::Iterations(count) if single => Self { batch: 1, extent: Extent::Batches(count) },
            Window::Iterations(count) => {
                Self { batch: BATCH.min(count).max(1), extent: Extent::Batches(count.div_ceil(BATCH)) }
            }
            Window::Duration(time) | Window::Adaptive { at_most: time, .. } => {
                let wanted = SHORTEST.max(time / BATCHES * 2);
                // Slow operations get smaller batches, so that the window has several.
                let several = time / STRETCHES / one;
                let batch = if single { 1 } else { (wanted / one).clamp(BATCH, MOST).min(several).max(1) };
                Self { batch, extent: Extent::Time { time, guess: one.saturating_mul(batch) } }
            }
        }
    }

    /// Batches before the next agreement, after `done` timed batches and the time `elapsed` since the first began, at the slowest rank.
    /// At 0 only the last one remains.
    pub(crate) fn further(&self, done: u64, elapsed: Nanoseconds) -> u64 {
        match self.extent {
            Extent::Batches(count) => count.saturating_sub(done + 1),
            Extent::Time { time, guess } => {
                let each = if done > 0 { elapsed / done } else { guess }.max(LEAST);
                let left = time.saturating_sub(elapsed).saturating_sub(each);
                if left < each - each / 2 {
                    return 0;
                }
                (left.min(time / STRETCHES) / each).max(1).min((BATCHES - 1).saturating_sub(done))
            }
        }
    }
}

/// Warms up for the collective's time, and returns the time of one operation. `trial` does so many operations and returns their time at
/// the slowest rank. Trials grow: the last one counts, when caches, connections and processors are warm.
pub(crate) fn warm_up(
    collective: &CollectiveSpec,
    mut trial: impl FnMut(u64) -> Result<Nanoseconds, Failure>,
) -> Result<Nanoseconds, Failure> {
    let timed = !matches!(collective.window, Window::Iterations(_));
    let mut spent = trial(1)?;
    let mut one = spent.max(LEAST);
    let mut operations = TRIAL;
    loop {
        operations = operations.min((SLOW / one).max(1));
        let took = trial(operations)?.max(LEAST);
        spent = spent.saturating_add(took);
        one = (took / operations).max(LEAST);
        let telling = !timed || took >= SHORTEST || operations >= MOST;
        if spent >= collective.warm_up && telling {
            return Ok(one);
        }
        let rest = collective.warm_up.saturating_sub(spent).max(SHORTEST * 2);
        operations = (2 * operations).min(rest / one).max(1);
    }
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{Bytes, CollectiveOptions, Datatype, Op};

    use super::*;

    const SECOND: Nanoseconds = Nanoseconds::from_secs(1);

    fn collective(metric: TestMetric, window: Window, warm_up: Nanoseconds) -> CollectiveSpec {
        let options = CollectiveOptions {
            datatype: Datatype::F32,
            reduction: None,
            in_place: false,
            graph: false,
            ranks_per_host: 1,
            algorithm: None,
            env: [].into(),
            training: None,
        };
        CollectiveSpec {
            op: Op::Broadcast,
            metric,
            size: Bytes(4),
            options,
            exchange: None,
            beside: None,
            window,
            warm_up,
            verify: true,
            seed: 0,
        }
    }

    /// Batches and their time, for a real time `took` and an estimate `one` in nanoseconds.
    fn measured(metric: TestMetric, window: Window, one: u64, took: impl Fn(u64) -> u64) -> (Cut, u64, Nanoseconds) {
        let cut = Cut::new(&collective(metric, window, Nanoseconds::ZERO), Nanoseconds(one));
        let (mut done, mut elapsed) = (0, Nanoseconds::ZERO);
        let mut add = |batches: u64| {
            for _ in 0..batches {
                elapsed += Nanoseconds(cut.batch * took(done));
                done += 1;
            }
            (done, elapsed)
        };
        let (mut so_far, mut agreed) = (add(0), 0);
        while let further @ 1.. = cut.further(so_far.0, so_far.1) {
            so_far = add(further);
            agreed += 1;
            assert!(agreed < 1_000, "no end");
        }
        (done, elapsed) = add(1);
        (cut, done, elapsed)
    }

    #[test]
    fn a_window_lasts_as_long_as_it_was_asked_for_whatever_the_trials_said() {
        let window = Window::Duration(SECOND);
        for one in [1_000, 50_000, 1_000_000, 30_000_000] {
            for wrong in [1, 3, 10] {
                let steady = measured(TestMetric::Bandwidth, window, one * wrong, |_| one).2;
                let lasts = steady.seconds();
                assert!((0.9..1.1).contains(&lasts), "{one} believed to be {wrong} times that: {lasts} s");
                let slower = measured(TestMetric::Bandwidth, window, one, |_| one * wrong);
                let lasts = slower.2.seconds();
                // A single batch may be longer than the window.
                let single = Nanoseconds(slower.0.batch * one * wrong).seconds();
                assert!((0.9..1.1 + 2.0 * single).contains(&lasts), "{one}, in truth {wrong} times that: {lasts} s");
            }
        }
        // Ten times slower from the middle of the window on.
        let turned =
            measured(TestMetric::Latency, window, 100_000, |done| if done < 5_000 { 100_000 } else { 1_000_000 });
        assert!((SECOND * 9 / 10..SECOND * 2).contains(&turned.2), "{turned:?}");
    }

    #[test]
    fn batches_are_long_enough_to_time_and_as_many_as_were_asked_for() {
        let cut = |metric, window, one| Cut::new(&collective(metric, window, Nanoseconds::ZERO), Nanoseconds(one));
        let second = Window::Duration(SECOND);
        let batches = |metric, window, one| cut(metric, window, one).batch;
        assert_eq!(batches(TestMetric::Bandwidth, second, 10_000), 100);
        assert_eq!(batches(TestMetric::Bandwidth, second, 4_000_000), 20);
        assert_eq!(batches(TestMetric::Bandwidth, second, 30_000_000), 3);
        assert_eq!(batches(TestMetric::Bandwidth, second, 5_000_000_000), 1);
        assert_eq!(batches(TestMetric::Bandwidth, Window::Duration(SECOND * 3_600), 10_000), 14_400);
        assert_eq!(batches(TestMetric::Latency, second, 50_000), 1);
        // The account of an hour of latencies would be too long.
        assert_eq!(measured(TestMetric::Latency, Window::Duration(SECOND * 3_600), 50_000, |_| 50_000).1, BATCHES);
        let counted = |metric, count| measured(metric, Window::Iterations(count), 1, |_| 1);
        let (cut, batches, _) = counted(TestMetric::Bandwidth, 50);
        assert_eq!((cut.batch, batches), (20, 3));
        let (cut, batches, _) = counted(TestMetric::Latency, 50);
        assert_eq!((cut.batch, batches), (1, 50));
        assert_eq!(counted(TestMetric::Bandwidth, 1).1, 1);
    }

    #[test]
    fn the_warm_up_lasts_and_its_end_tells_the_time() {
        let warmed = |window, warm_up, took: &dyn Fn(u64) -> u64| {
            let (mut spent, mut operations) = (Nanoseconds::ZERO, 0);
            let one = warm_up_of(window, warm_up, &mut |many| {
                let time = (0..many).map(|k| Nanoseconds(took(operations + k))).sum();
                (spent, operations) = (spent + time, operations + many);
                time
            });
            (one, spent, operations)
        };
        let window = Window::Duration(SECOND);
        // The first operations are a hundred times slower than the rest.
        let cold = |k: u64| if k < 20 { 1_000_000 } else { 10_000 };
        let (one, spent, _) = warmed(window, Nanoseconds::from_millis(300), &cold);
        assert_eq!(one, Nanoseconds(10_000));
        assert!((Nanoseconds::from_millis(300)..Nanoseconds::from_millis(330)).contains(&spent), "{spent}");
        // Without a time the trials are still long enough for timing.
        let (_, spent, operations) = warmed(window, Nanoseconds::ZERO, &|_| 10_000);
        assert!(spent >= SHORTEST && operations >= 100, "{spent} {operations}");
        assert_eq!(warmed(window, Nanoseconds::ZERO, &|_| 3 * SECOND.0), (SECOND * 3, SECOND * 6, 2));
        assert_eq!(warmed(Window::Iterations(7), Nanoseconds::ZERO, &|_| 10).2, 1 + TRIAL);
    }

    fn warm_up_of(window: Window, time: Nanoseconds, trial: &mut dyn FnMut(u64) -> Nanoseconds) -> Nanoseconds {
        warm_up(&collective(TestMetric::Bandwidth, window, time), |operations| Ok(trial(operations))).unwrap()
    }
}
