//! Whether a sample holds the values that its case was measured for, and whether they can be true.
//!
//! A sample that exists is no measurement yet: an agent may answer without a latency, with a window of no length, or with
//! numbers that contradict each other, the link's rate or the controller's own clock. What is missing and what cannot be
//! true is told apart, because the first says "measure again" and the second "do not trust the host, the driver or us".

use railgauge_wire::{
    measure::{Latency, Measurement},
    terms::{Aim, Fabric, Metric},
};

use super::{ceiling, results::CaseResult, rows, value};
use crate::{plan::metrics_of, run::event::Sample};

/// Bandwidth above the link's rate that is put down to clocks and rounding: both ends' crystals differ by less than
/// 100 ppm, and the rate itself is exact (IEEE 802.3, clause 4A).
const RATE_TOLERANCE: f64 = 1.01;
/// What an agent's clock may run faster than the controller's. Far more than crystals differ, because virtual machines
/// that were stopped catch up.
const CLOCK_TOLERANCE: f64 = 1.02;
/// Nanoseconds that may be added to that.
const CLOCK_ALLOWANCE: f64 = 10e6;

/// What is wrong with the samples of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lacks {
    /// Values that its metrics need and that are not there, each once.
    pub absent: Vec<String>,
    /// Values that cannot be true, each once.
    pub impossible: Vec<String>,
}

/// Holds the samples of a case against what its metrics need and against each other. `rate` is the link's rate in Gb/s
/// and direction, where one is known that nothing can exceed.
pub(super) fn lacks(result: &CaseResult<'_>, rate: Option<f64>) -> Lacks {
    let mut found = Lacks::default();
    for (repeat, sample) in &result.samples {
        let absent = absent(result, *repeat, sample);
        // What is not there cannot be impossible as well.
        if absent.is_empty() {
            found.impossible.extend(impossible(result, sample, rate));
        }
        found.absent.extend(absent);
    }
    for list in [&mut found.absent, &mut found.impossible] {
        list.sort_unstable();
        list.dedup();
    }
    found
}

/// The rate that the wire of a case cannot exceed in one direction.
pub(super) fn rate(
    result: &CaseResult<'_>,
    (from, to): (Option<&railgauge_wire::facts::HostFacts>, Option<&railgauge_wire::facts::HostFacts>),
) -> Option<f64> {
    let one_link = result.case.flow.members.is_empty();
    result.link.filter(|_| one_link).and_then(|link| ceiling::wire_rate(link, from, to))
}

/// Metrics of the case without a value.
fn absent(result: &CaseResult<'_>, repeat: u32, sample: &Sample) -> Vec<String> {
    let (case, host) = (result.case, &result.case.flow.from.host);
    let measured = &sample.initiator;
    // What a group moved follows from its operations; a pair counts its bytes.
    let counted = measured.bytes > 0 || !case.flow.members.is_empty();
    if measured.elapsed == 0 || measured.operations == 0 || !counted {
        let Measurement { elapsed, operations, bytes, .. } = measured;
        return vec![format!(
            "{host}: measure: the window holds no measurement ({operations} operations, {bytes} B, {elapsed} ns)"
        )];
    }
    // What arrived is counted where it arrives: by the sockets of a responder over TCP.
    let counts = case.cell.fabric == Fabric::Tcp && case.cell.aim == Aim::Bandwidth && case.flow.members.is_empty();
    let arrived = sample.responder.as_ref().is_some_and(|end| end.elapsed > 0 && end.operations > 0 && end.bytes > 0);
    if counts && !arrived {
        return vec![format!("{}: measure: the responder counted nothing", case.flow.to.host)];
    }
    if sample.initiator.latency.as_ref().is_some_and(|latency| latency.samples == 0) {
        return vec![format!("{host}: measure: the latency has no samples")];
    }
    // Whether flows at once have a value depends on all of them: `together` says what is missing there.
    if result.part.is_some() {
        return Vec::new();
    }
    let metrics = metrics_of(case.cell.aim, case.cell.op, false).iter().filter(|metric| is_needed(**metric));
    let missing = metrics.filter_map(|metric| {
        let value = match case.cell.manner {
            Some(_) => value::of_group(*metric, sample, &case.cell, case.flow.ranks()),
            None => value::of(*metric, sample, rows::direction(result, repeat, sample)),
        };
        match value {
            // Nothing else may be zero: a window without bytes, a step that took no time.
            Ok(Some(value)) if value > 0.0 || may_be_zero(*metric) => None,
            Ok(Some(value)) => Some(format!("{host}: measure: a {metric} of {value}")),
            Ok(None) => Some(format!("{host}: measure: the sample holds no {metric}")),
            Err(why) => Some(format!("{host}: measure: {why}")),
        }
    });
    missing.collect()
}

/// Whether a case without this metric is not measured. CPU time is told beside a bandwidth where an end counts it.
const fn is_needed(metric: Metric) -> bool {
    !matches!(metric, Metric::CpuTimePerGib | Metric::CpuTimePerGibRemote)
}

/// Whether zero is a value of this metric, or is told of as one that cannot be true.
const fn may_be_zero(metric: Metric) -> bool {
    use Metric::{LatencyMax, LatencyMin, LatencyP50, LatencyP90, LatencyP99, LatencyP999, LatencyStdev, StepExposed};
    matches!(
        metric,
        LatencyMin | LatencyP50 | LatencyP90 | LatencyP99 | LatencyP999 | LatencyMax | LatencyStdev | StepExposed
    )
}

/// Values that contradict each other, the size, the link's rate or the controller's clock.
fn impossible(result: &CaseResult<'_>, sample: &Sample, rate: Option<f64>) -> Vec<String> {
    let (case, host) = (result.case, &result.case.flow.from.host);
    let (cell, measured) = (&case.cell, &sample.initiator);
    let pair = case.flow.members.is_empty();
    let mut found: Vec<String> = Vec::new();
    let mut say = |what: String| found.push(format!("{host}: measure: {what}"));
    if let Some(latency) = &measured.latency {
        for what in distribution(latency) {
            say(what);
        }
    }
    if let Some(waited) = sample.waited {
        let longest = waited as f64 * CLOCK_TOLERANCE + CLOCK_ALLOWANCE;
        // The window of a group is the sum over its slowest ranks, which may overlap. A responder is armed before the pass that
        // is waited for and stopped after it: its account may be longer.
        let windows = [measured].into_iter().filter(|_| pair);
        let operations = measured.latency.iter().map(|latency| latency.max);
        let took = windows.map(|end| end.elapsed).chain(operations).max().unwrap_or_default();
        if took as f64 > longest {
            let (took, waited) = (took as f64 / 1e9, waited as f64 / 1e9);
            say(format!("something took {took:.3} s, of which the controller waited {waited:.3} s"));
        }
    }
    if pair {
        let size = i128::from(cell.size);
        // Of one direction the responder's own count may end inside any message; of two it counts as the initiator does.
        let both = sample.responder.as_ref().filter(|_| result.test.bidirectional);
        for end in [Some(measured), both].into_iter().flatten() {
            let off = i128::from(end.bytes) - i128::from(end.operations) * size;
            // Each queue pair or stream may be inside one message when the window begins, and inside one when it ends.
            if off.abs() > 2 * size * i128::from(cell.qps.max(1)) {
                say(format!("{} B in {} operations of {size} B", end.bytes, end.operations));
            }
        }
        // A pass before and one after the window, over every queue pair; buffers are filled in words of eight bytes.
        let most = 2 * u128::from(cell.qps.max(1)) * u128::from(cell.size.max(8));
        if u128::from(sample.checked.verified) > most {
            say(format!("{} B verified, of {most} B at most", sample.checked.verified));
        }
        if let Some(rate) = rate.filter(|_| cell.aim == Aim::Bandwidth) {
            // Of both directions, each end counts its own.
            for end in [Some(measured), sample.responder.as_ref()].into_iter().flatten().filter(|end| end.elapsed > 0) {
                let gbps = end.bytes as f64 * 8.0 / end.elapsed as f64;
                if gbps > rate * RATE_TOLERANCE {
                    say(format!("{gbps:.1} Gb/s over a link of {rate} Gb/s"));
                }
            }
        }
    }
    found
}

/// What is wrong with a distribution of times.
fn distribution(latency: &Latency) -> Vec<String> {
    let Latency { samples, min, p50, p90, p99, p999, max, mean, stdev, histogram, .. } = latency;
    let mut found = Vec::new();
    if *min == 0 {
        found.push("an operation took 0 ns".to_owned());
    }
    let steps = [("minimum", min), ("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("maximum", max)];
    for pair in steps.windows(2) {
        let [(lower, low), (upper, high)] = [pair[0], pair[1]];
        if low > high {
            found.push(format!("a {lower} of {low} ns above a {upper} of {high} ns"));
        }
    }
    if !(mean.is_finite() && *mean >= *min as f64 && *mean <= *max as f64) {
        found.push(format!("a mean of {mean} ns outside of {min} to {max} ns"));
    }
    if *stdev == 0.0 && min < max {
        found.push(format!("a standard deviation of 0 of values from {min} to {max} ns"));
    }
    // No sample lies farther from the mean than the range is wide.
    if !(stdev.is_finite() && *stdev >= 0.0 && *stdev <= (max - min.min(max)) as f64) {
        found.push(format!("a standard deviation of {stdev} ns of values from {min} to {max} ns"));
    }
    let counted: u128 = histogram.iter().map(|(_, count)| u128::from(*count)).sum();
    if !histogram.is_empty() && counted != u128::from(*samples) {
        found.push(format!("{samples} samples, and {counted} in the histogram"));
    }
    if histogram.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        found.push("a histogram whose edges do not rise".to_owned());
    }
    found
}
