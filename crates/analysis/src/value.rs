//! One sample's value of one metric.
//!
//! Bandwidth and message rate of one direction are the smaller of both ends' counts, because posted bytes may not arrive. For flows at once
//! only the time in which all of them ran counts. For both directions at once, the bytes of both are divided by the time from the first
//! start to the last end, so that windows that overlap badly never give a higher number.

use railgauge_model::{
    journal::event::{FlowAccount, Sample},
    schedule::Cell,
};
use railgauge_wire::{
    Bytes, Collective, Latency, Measurement, Metric, Nanoseconds, NanosecondsI64, Overlap, Reads, Side,
};

use serde::Serialize;

use super::{flows, nics};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    One,
    /// Both at once; the offset to subtract from the responder's clock to get the initiator's.
    Both(Option<NanosecondsI64>),
    /// One of several flows at once: only the time in which all of them ran counts, if known.
    Within(Option<Spans>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spans {
    pub here: (Nanoseconds, Nanoseconds),
    pub there: (Nanoseconds, Nanoseconds),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Senseless {
    #[error("{metric} came out as {value}, which is not a measurement")]
    NoNumber { metric: Metric, value: f64 },
    #[error("the initiator reports a window in which nothing was completed")]
    EmptyWindow,
    #[error("both directions were asked for, but the responder did not measure")]
    OneDirection,
    #[error("it is not known when all flows of the round ran, so nothing can be counted")]
    NoCommonTime,
    #[error("the hosts' clocks were not compared, so the two directions cannot be laid over each other")]
    ClocksUnknown,
}

/// In the metric's unit; `Ok(None)` if the sample does not have this metric.
///
/// # Errors
/// The expected value is missing or impossible.
pub(super) fn of(metric: Metric, sample: &Sample, direction: Direction) -> Result<Option<f64>, Senseless> {
    let here = &sample.initiator;
    let there = sample.responder.as_deref().filter(|end| !end.elapsed.is_zero() && end.operations > 0);
    let value = match metric.reads() {
        Reads::Rate(amount) => Some(rate(here, there, direction, amount)?),
        Reads::Each => here.each.as_deref().copied(),
        Reads::Latency(read) => {
            let enough = |latency: &&Latency| latency.samples.max(1) >= metric.fewest();
            here.latency.as_deref().filter(enough).map(read)
        }
        Reads::Spent(Side::Initiator, read) => read(here, here.bytes),
        // A passive responder counts no bytes; its cost is per byte of the initiator.
        Reads::Spent(Side::Responder, read) => {
            sample.responder.as_deref().filter(|end| !end.elapsed.is_zero()).and_then(|end| read(end, here.bytes))
        }
        // Belongs to a group, see [`of_group`], or to a whole round, see [`super::together`].
        Reads::Collective(_) | Reads::Round => None,
    };
    match value {
        Some(value) if !value.is_finite() => Err(Senseless::NoNumber { metric, value }),
        value => Ok(value),
    }
}

/// For a collective among `ranks` ranks. Algorithm bandwidth is the size over the median time of the slowest rank;
/// nccl-tests' factor converts it to bus bandwidth.
///
/// # Errors
/// As [`of`].
pub(super) fn of_group(metric: Metric, sample: &Sample, cell: &Cell, ranks: u32) -> Result<Option<f64>, Senseless> {
    let Reads::Collective(read) = metric.reads() else { return of(metric, sample, Direction::One) };
    let median = |latency: &Option<Box<Latency>>| latency.as_ref().map(|latency| latency.p50);
    let training = cell.manner.as_ref().and_then(|manner| manner.training.as_ref());
    Ok(read(&Collective {
        op: cell.op,
        ranks,
        size: cell.size,
        time: median(&sample.initiator.latency).filter(|time| !time.is_zero()),
        compute: training.map(|step| step.compute),
        alone: median(&sample.alone),
        nic_balance: nics::worst(sample).map(|(_, balance)| balance),
        over_alone: flows::worst(sample, FlowAccount::over_alone).map(|(_, percent)| percent),
        over_share: flows::worst(sample, FlowAccount::over_share).map(|(_, percent)| percent),
        overlap_loss: sample.overlap.as_deref().and_then(Overlap::loss),
        overlap_loss_other: sample.overlap.as_deref().and_then(Overlap::loss_of_other),
    }))
}

/// Per nanosecond: the smaller of both ends for one direction, both over the common window for two.
fn rate(
    here: &Measurement,
    there: Option<&Measurement>,
    direction: Direction,
    amount: fn(&Measurement) -> f64,
) -> Result<f64, Senseless> {
    if here.elapsed.is_zero() || here.operations == 0 {
        return Err(Senseless::EmptyWindow);
    }
    let own = amount(here) / here.elapsed.as_f64();
    match (direction, there) {
        (Direction::One, None) => Ok(own),
        (Direction::One, Some(there)) => Ok(own.min(amount(there) / there.elapsed.as_f64())),
        (Direction::Both(_), None) => Err(Senseless::OneDirection),
        (Direction::Within(None), _) => Err(Senseless::NoCommonTime),
        (Direction::Within(Some(spans)), there) => {
            let own = within(here, spans.here, amount);
            Ok(there.map_or(own, |there| own.min(within(there, spans.there, amount))))
        }
        (Direction::Both(None), Some(_)) => Err(Senseless::ClocksUnknown),
        (Direction::Both(Some(offset)), Some(there)) => {
            let start = here.started.as_f64();
            let other = there.started.as_f64() - offset.as_f64();
            let end = (start + here.elapsed.as_f64()).max(other + there.elapsed.as_f64());
            Ok((amount(here) + amount(there)) / (end - start.min(other)))
        }
    }
}

/// Per nanosecond, between two moments on the end's clock.
fn within(end: &Measurement, (from, until): (Nanoseconds, Nanoseconds), amount: fn(&Measurement) -> f64) -> f64 {
    let share = end.bytes_within(from, until) / end.bytes.max(Bytes(1)).as_f64();
    amount(end) * share / until.saturating_sub(from).max(Nanoseconds(1)).as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(started: u64, elapsed: u64, bytes: u64) -> Measurement {
        let (started, elapsed) = (Nanoseconds(started), Nanoseconds(elapsed));
        Measurement {
            started,
            elapsed,
            bytes: Bytes(bytes),
            operations: bytes / 1000,
            cpu: elapsed,
            ..Measurement::default()
        }
    }

    fn sample(initiator: Measurement, responder: Option<Measurement>) -> Sample {
        Sample { initiator, responder: responder.map(Box::new), ..Sample::default() }
    }

    #[test]
    fn one_direction_is_the_smaller_of_both_ends() {
        let fast = end(0, 1_000_000_000, 1_250_000_000);
        let slow = end(0, 1_000_000_000, 1_000_000_000);
        let both = sample(fast.clone(), Some(slow));
        assert_eq!(of(Metric::Bandwidth, &both, Direction::One), Ok(Some(8.0)));
        assert_eq!(of(Metric::Bandwidth, &sample(fast.clone(), None), Direction::One), Ok(Some(10.0)));
        assert_eq!(of(Metric::MessageRate, &sample(fast, None), Direction::One), Ok(Some(1.25)));
    }

    #[test]
    fn windows_that_miss_each_other_never_add_up() {
        let first = end(0, 1_000_000_000, 1_000_000_000);
        let second = end(6_000_000_000, 1_000_000_000, 1_000_000_000);
        let apart = sample(first, Some(second));
        let value = |offset: Option<i64>| of(Metric::Bandwidth, &apart, Direction::Both(offset.map(NanosecondsI64)));
        assert_eq!(value(Some(5_000_000_000)), Ok(Some(8.0)));
        assert_eq!(value(Some(6_000_000_000)), Ok(Some(16.0)));
        assert!(value(None).is_err());
    }

    #[test]
    fn of_flows_at_once_only_the_common_time_counts() {
        // 100, 200, 300 and 400 MB in slices of 100 ms, and 10 MB in the 50 ms after them.
        let slices = (1..=4).map(|n| Bytes(n * 100_000_000)).collect();
        let here = Measurement { slices, bytes: Bytes(1_010_000_000), ..end(1_000, 450_000_000, 1_010_000_000) };
        let span = |(from, until)| (Nanoseconds(from), Nanoseconds(until));
        let value = |sample: &Sample, here, there| {
            let (here, there) = (span(here), span(there));
            of(Metric::Bandwidth, sample, Direction::Within(Some(Spans { here, there }))).unwrap().unwrap()
        };
        let alone = sample(here.clone(), None);
        let close = |value: f64, wanted: f64| assert!((value / wanted - 1.0).abs() < 1e-9, "{value} is not {wanted}");
        // Half of the second slice and all of the third: 400 MB in 150 ms.
        close(value(&alone, (150_001_000, 300_001_000), (0, 1)), 400e6 * 8.0 / 150e6);
        // All of it is the value without other flows.
        close(value(&alone, (1_000, 450_001_000), (0, 1)), 1.01e9 * 8.0 / 450e6);
        // The tail after the last whole slice.
        close(value(&alone, (400_001_000, 450_001_000), (0, 1)), 10e6 * 8.0 / 50e6);
        // The other end counted less in the same time.
        let there = Measurement { bytes: Bytes(500_000_000), ..end(5_000, 500_000_000, 500_000_000) };
        close(value(&sample(here, Some(there)), (1_000, 450_001_000), (5_000, 450_005_000)), 8.0);
        assert!(of(Metric::Bandwidth, &alone, Direction::Within(None)).is_err());
    }

    #[test]
    fn an_empty_window_is_an_error_and_no_number() {
        assert!(of(Metric::Bandwidth, &sample(end(0, 0, 0), None), Direction::One).is_err());
        assert!(of(Metric::MessageRate, &sample(end(0, 1, 0), None), Direction::One).is_err());
        assert_eq!(of(Metric::LatencyP50, &sample(end(0, 1, 1), None), Direction::One), Ok(None));
    }
}
