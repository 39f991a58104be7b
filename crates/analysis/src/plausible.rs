//! Whether a sample has the values that its case needs, and whether they are possible.
//!
//! An agent may answer without a latency, with a window of no length, or with numbers that contradict each other, the
//! link's rate or the controller's clock. Missing and impossible values are distinguished: the first means "measure
//! again", the second "do not trust the host, the driver or railgauge".

mod clock;
mod counts;
mod group;
mod link;
mod outside;
mod pair;
mod times;
mod window;

use std::collections::BTreeMap;

use railgauge_model::{
    journal::event::{Sample, Started},
    plan::metrics_of,
};
use railgauge_wire::{HostFacts, Measurement, Nanoseconds, NanosecondsF64};

use super::{
    case::{Absent, CaseResult, Contradiction, Implausible, Impossible, Lack},
    ceiling,
    journal::HostUp,
    rows, together,
    value::{self, Direction},
};

use self::{
    clock::{CLOCK_ALLOWANCE, CLOCK_TOLERANCE},
    counts::responder_counts,
    outside::outside,
};

/// Checks the samples of a case for completeness, for contradictions, and against `hosts`: those that answered.
pub(super) fn lacks(result: &CaseResult<'_>, hosts: &BTreeMap<String, HostUp>) -> Implausible {
    let (rate, threads) = (rate(result, hosts), threads(result, hosts));
    let mut found = Implausible::default();
    if !result.samples.is_empty() {
        let flow = result.case.flow.hosts().into_iter();
        let strangers = flow.filter(|host| !hosts.contains_key(&***host));
        found.impossible.extend(strangers.map(|host| Impossible::Stranger { host: host.to_string() }));
    }
    for (repeat, sample) in &result.samples {
        let absent = absent(result, *repeat, sample);
        // A missing value cannot be impossible as well.
        if absent.is_empty() {
            found.impossible.extend(impossible(result, sample, rate, threads));
            found.impossible.extend(together::strays(result, sample).into_iter().map(Impossible::Stray));
        }
        found.absent.extend(absent);
    }
    in_order(&mut found.absent);
    in_order(&mut found.impossible);
    found
}

/// In the order of their words, each once.
pub(super) fn in_order<T: std::fmt::Display>(list: &mut Vec<T>) {
    list.sort_by_cached_key(T::to_string);
    list.dedup_by_key(|one| one.to_string());
}

/// Upper bound in Gb/s of the wire of a case in one direction, if known.
fn rate(result: &CaseResult<'_>, hosts: &BTreeMap<String, HostUp>) -> Option<f64> {
    let flow = &result.case.flow;
    let facts = |host: &str| -> Option<&HostFacts> { hosts.get(host).map(|up| &up.facts) };
    let link = result.link.filter(|_| flow.members.is_empty())?;
    ceiling::wire_rate(link, facts(&flow.from.host), facts(&flow.to.host))
}

fn threads(result: &CaseResult<'_>, hosts: &BTreeMap<String, HostUp>) -> [Option<u32>; 2] {
    let flow = &result.case.flow;
    [&flow.from.host, &flow.to.host].map(|host| hosts.get(&**host).map(|up| up.facts.cpu.threads))
}

fn absent(result: &CaseResult<'_>, repeat: u32, sample: &Sample) -> Vec<Absent> {
    let case = result.case;
    let at = |host: &str, what: Lack| Absent { host: host.to_owned(), what };
    let host = &*case.flow.from.host;
    let measured = &sample.initiator;
    if result.attempt(sample).is_some_and(|attempt| attempt.link.is_none()) {
        return vec![at(host, Lack::Link)];
    }
    // A group's bytes follow from its operations; a pair counts its bytes.
    let counted = !measured.bytes.is_zero() || !case.flow.members.is_empty();
    if measured.elapsed.is_zero() || measured.operations == 0 || !counted {
        let Measurement { elapsed, operations, bytes, .. } = *measured;
        return vec![at(host, Lack::Window { operations, bytes, elapsed })];
    }
    // Its window starts when the first bytes have arrived, and has no length if they are all.
    let arrived = sample.responder.as_ref().is_some_and(|end| end.operations > 0 && !end.bytes.is_zero());
    if responder_counts(result) && !arrived {
        return vec![at(&case.flow.to.host, Lack::Responder)];
    }
    if sample.initiator.latency.as_deref().is_some_and(|latency| latency.samples == 0) {
        return vec![at(host, Lack::LatencySamples)];
    }
    let direction = rows::direction(result, repeat, sample);
    // Whether flows at once ran together depends on all of them: `together` reports what is missing.
    if direction == Direction::Within(None) {
        return Vec::new();
    }
    let metrics =
        metrics_of(case.cell.metric, case.cell.op, None, None).into_iter().filter(|metric| !metric.is_optional());
    let missing = metrics.filter_map(|metric| {
        let value = match case.cell.manner {
            Some(_) => value::of_group(metric, sample, &case.cell, case.flow.ranks()),
            None => value::of(metric, sample, direction),
        };
        match value {
            // Nothing else may be zero: a window without bytes, a step without duration.
            Ok(Some(value)) if value > 0.0 || metric.may_be_zero() => None,
            Ok(Some(value)) => Some(at(host, Lack::AboveZero { metric, value })),
            Ok(None) => Some(at(host, Lack::Metric { metric })),
            Err(why) => Some(at(host, Lack::Sense { why })),
        }
    });
    missing.collect()
}

fn impossible(
    result: &CaseResult<'_>,
    sample: &Sample,
    rate: Option<f64>,
    threads: [Option<u32>; 2],
) -> Vec<Impossible> {
    let mut found: Vec<Contradiction> =
        sample.initiator.latency.as_deref().into_iter().flat_map(times::distribution).collect();
    found.extend(sample.alone.as_deref().into_iter().flat_map(times::distribution));
    found.extend(
        result
            .attempt(sample)
            .and_then(|attempt| attempt.link.as_deref())
            .iter()
            .flat_map(|link| link::contradictions(result, link)),
    );
    found.extend(too_long(result, sample));
    found.extend(no_time(result, sample));
    if result.case.flow.members.is_empty() {
        found.extend(window::contradictions(result, sample, threads));
        found.extend(pair::contradictions(result, sample, rate));
    } else {
        found.extend(group::contradictions(result, sample));
    }
    let host = &result.case.flow.from.host;
    let found = found.into_iter().map(|what| Impossible::Sample { host: host.to_string(), what });
    found.chain(counts::contradictions(result, sample)).collect()
}

fn no_time(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    match &result.attempt(sample)?.started_at {
        Started::NoTime(text) => Some(Contradiction::Start { started_at: text.to_string() }),
        Started::At(_) => None,
    }
}

fn too_long(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let (waited, measured) = (sample.waited?, &sample.initiator);
    // A group's window is the sum over its slowest ranks, which may overlap. A responder starts before the timed pass
    // and stops after it: its window may be longer.
    let window = if result.case.flow.members.is_empty() { measured.elapsed } else { Nanoseconds::ZERO };
    let took = measured.latency.as_ref().map_or(Nanoseconds::ZERO, |latency| latency.max).max(window);
    let longest = NanosecondsF64::from(waited) * CLOCK_TOLERANCE + CLOCK_ALLOWANCE;
    outside("time", (took.as_f64(), "ns"), "the controller waited", (0.0, longest.0))
}
