//! What a pass came to, from the accounts of its threads.
//!
//! A byte counts when the receiver has it: the initiator's window ends when the peer has said that every byte arrived
//! (or, where the initiator receives, with its own last byte), and both ends must have counted the same bytes. With both directions
//! at once each end's account is of what it sent, and has what it received alongside.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    measure::{Lane, Measurement},
    terms::TestMetric,
    unit::{Bytes, Nanoseconds},
};

use super::{
    conduct::PassRecord,
    ping,
    shared::{Flow, Shared},
};

fn internal(cause: String) -> Failure {
    Failure::new(Stage::Measure, Kind::Internal, cause)
}

pub(super) fn sinks(shared: &Shared<'_>) -> Result<Measurement, Failure> {
    let flows = shared.sinks.flows();
    complete(shared, &flows)?;
    let started =
        flows.iter().map(|flow| flow.first).filter(|first| *first > Nanoseconds::ZERO).min().unwrap_or_default();
    let last = flows.iter().map(|flow| flow.last).max().unwrap_or(started).max(started);
    let bytes = flows.iter().map(|flow| flow.bytes).sum();
    let cpu = flows.iter().map(|flow| flow.cpu).sum();
    let lanes = flows.iter().map(|flow| Lane { bytes: flow.bytes, source_port: None }).collect();
    let slices = flows
        .into_iter()
        .filter_map(|flow| flow.slices)
        .map(|slices| slices.finish(last).into_iter().map(Bytes).collect());
    let slices = slices.reduce(|sum: Vec<Bytes>, more| added(&sum, &more)).unwrap_or_default();
    let operations = operations(shared, bytes);
    Ok(Measurement {
        started,
        elapsed: last - started,
        operations,
        bytes,
        cpu,
        slices: slices.into(),
        lanes,
        ..Measurement::default()
    })
}

/// The account of a pass at this end. `conducting` is the CPU time of the link's own thread.
pub(super) fn measurement(
    shared: &Shared<'_>,
    record: PassRecord,
    conducting: Nanoseconds,
) -> Result<Measurement, Failure> {
    let mut sources = shared.sources.flows();
    if record.theirs.is_some() {
        complete(shared, &sources)?;
    }
    let sent: Bytes = sources.iter().map(|flow| flow.bytes).sum();
    let cpu = conducting + sources.iter().map(|flow| flow.cpu).sum();
    if let Some(theirs) = record.theirs.as_ref().filter(|theirs| theirs.bytes != sent) {
        return Err(internal(format!("{sent} bytes were sent, the peer counted {}", theirs.bytes)));
    }
    if let Some((tally, latency)) = sources.first_mut().and_then(|flow| flow.latency.take()) {
        let measurement = tally.measurement(cpu);
        return Ok(Measurement { latency: Some(Box::new(latency)), ..measurement });
    }
    let received = record.theirs.as_ref().and(record.ours.as_ref()).map(|ours| ours.bytes);
    let ours = record.ours.unwrap_or_default();
    // The initiator's clock runs from the gate to the peer's last word, the responder's over what its threads saw.
    let begun =
        [record.started.unwrap_or_default(), ours.started].into_iter().filter(|time| *time > Nanoseconds::ZERO).min();
    let begun = begun.unwrap_or_default();
    let ended = record.ended.unwrap_or_default().max(ours.started + ours.elapsed).max(begun);
    let (cpu, Measurement { bytes, slices, lanes, .. }) = (cpu + ours.cpu, record.theirs.unwrap_or(ours));
    Ok(Measurement {
        started: begun,
        elapsed: ended - begun,
        operations: operations(shared, bytes),
        bytes,
        received,
        cpu,
        slices,
        interval: record.interval.map(Box::new),
        lanes,
        ..Measurement::default()
    })
}

fn complete(shared: &Shared<'_>, flows: &[Flow]) -> Result<(), Failure> {
    let streams = if shared.pass.metric == TestMetric::Latency { 1 } else { shared.lanes.len() };
    match flows.len() == streams {
        true => Ok(()),
        false => Err(internal(format!("{} of {streams} streams have an account", flows.len()))),
    }
}

/// Of a latency the messages that came, which of reads are requests.
fn operations(shared: &Shared<'_>, bytes: Bytes) -> u64 {
    let each = if shared.pass.metric == TestMetric::Latency {
        ping::there_and_back(&shared.pass).0 as u64
    } else {
        shared.pass.size.0
    };
    bytes.0.checked_div(each).unwrap_or(0)
}

/// Sum of two series that begin together; where only one goes on, its values stand.
fn added(one: &[Bytes], other: &[Bytes]) -> Vec<Bytes> {
    let at = |series: &[Bytes], i: usize| series.get(i).copied().unwrap_or_default();
    (0..one.len().max(other.len())).map(|i| at(one, i) + at(other, i)).collect()
}
