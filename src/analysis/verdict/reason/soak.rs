//! Grounds of the verdicts on the soak.

use std::fmt;

use railgauge_wire::{
    failure::Failure,
    unit::{Bytes, Nanoseconds},
};
use serde::Serialize;

use super::{Degraded, SoakEvent, flows_and_more, ports_were};
use crate::analysis::{
    gpus::Bad,
    soak::{
        span::{lasting, moment},
        stalls::LostHost,
    },
    words::{amount, count, number},
};

/// One ground of a verdict on the soak. Times are in nanoseconds, moments in nanoseconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OfSoak {
    /// How long it lasted, where that is enough.
    SoakLasted {
        /// So long.
        lasted: Nanoseconds,
        /// Flows that had traffic.
        flows: usize,
    },
    /// It did not last long enough.
    SoakShort {
        /// How long it lasted.
        lasted: Nanoseconds,
        /// What is missing.
        missing: Nanoseconds,
        /// What comes next of it.
        #[serde(flatten)]
        next: Next,
    },
    /// No part of it was recorded.
    SoakNothing {
        /// What comes next of it.
        #[serde(flatten)]
        next: Next,
    },
    /// Planned flows of which no window was measured.
    SoakIdleFlows {
        /// How many.
        flows: usize,
        /// The first of them.
        first: String,
    },
    /// Ports were watched nearly all the time.
    SoakWatched {
        /// How many.
        ports: usize,
        /// The least watched of them.
        port: String,
        /// For how much of the time, in percent.
        percent: f64,
    },
    /// Ports were not watched long enough.
    SoakNotWatched {
        /// How many.
        ports: usize,
        /// Of so many.
        of: usize,
        /// The least watched of them.
        port: String,
        /// For how much of the time, in percent.
        percent: f64,
        /// Why it could not be looked at, the last time that it could not.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// Ends of flows of which the device is not known.
    SoakUnknownEnds {
        /// How many.
        ends: usize,
    },
    /// No agent has told yet what it saw of its ports.
    SoakNotTold,
    /// Nobody looked at some ports.
    SoakHole {
        /// Since when.
        from: Nanoseconds,
        /// For how long.
        length: Nanoseconds,
        /// How many ports.
        ports: usize,
        /// The first of them.
        port: String,
    },
    /// Something was down, or stalled, for longer than is allowed.
    SoakTooLong(SoakEvent),
    /// It is not known whether something was down, or stalled, for longer than is allowed.
    SoakPerhapsTooLong(SoakEvent),
    /// More of such events.
    SoakMoreEvents {
        /// How many.
        events: usize,
    },
    /// Outages and stalls that are not longer than is allowed.
    SoakShorter {
        /// How many.
        events: usize,
        /// The longest of them.
        longest: SoakEvent,
    },
    /// Nothing was down and nothing stalled.
    SoakNoOutage {
        /// Ports that were watched.
        ports: usize,
        /// Flows that had traffic.
        flows: usize,
        /// Whether all of the soak was seen; else nobody knows of the rest.
        is_all: bool,
    },
    /// A port ran at less than its best for longer than is allowed.
    SoakDegraded(Degraded),
    /// It is not known whether that was longer than is allowed.
    SoakPerhapsDegraded(Degraded),
    /// More of such times.
    SoakMoreDegraded {
        /// How many.
        times: usize,
    },
    /// Times at less than the best that are not longer than is allowed.
    SoakDegradedShorter {
        /// How many.
        times: usize,
        /// The longest of them.
        longest: Degraded,
    },
    /// Ports that never ran at less than their best.
    SoakFullRate {
        /// How many.
        ports: usize,
    },
    /// Ports that tell neither rate nor lanes.
    SoakUnknownRate {
        /// How many.
        ports: usize,
        /// Of so many.
        of: usize,
    },
    /// A counter rose faster than its limit allows.
    SoakOverLimit {
        /// Ports at which it did.
        ports: usize,
        /// The counter that rose fastest.
        counter: String,
        /// Its port.
        port: String,
        /// Rises per second of that reading.
        per_second: f64,
        /// When.
        at: Nanoseconds,
    },
    /// A counter kept its limit.
    SoakLimitKept {
        /// Ports that count it.
        counted_by: usize,
        /// Ports that were watched.
        ports: usize,
        /// Most rises per second; 0 where it never rose.
        per_second: f64,
        /// Where that was; absent where it never rose.
        #[serde(skip_serializing_if = "Option::is_none")]
        port: Option<String>,
    },
    /// No port counts what a limit is about, as far as the records tell.
    SoakNotCounted {
        /// Ports that count it, and have not come to its largest value.
        counted_by: usize,
        /// Ports that were watched.
        ports: usize,
    },
    /// Wrong bytes arrived.
    SoakWrongBytes {
        /// Flows with wrong bytes.
        flows: usize,
        /// The first of them.
        first: String,
        /// How many bytes were wrong.
        wrong: Bytes,
        /// The only host that all of several such flows share.
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    /// Windows failed, and no outage of their flow's ports explains it.
    SoakFailed {
        /// How many.
        windows: u64,
        /// Of how many flows.
        flows: usize,
        /// The first of them.
        first: String,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Box<Failure>>,
        /// The host of all these flows that was lost, where they failed for that.
        #[serde(skip_serializing_if = "Option::is_none")]
        lost: Option<Box<LostHost>>,
    },
    /// Windows that failed and that an outage of their flow's ports explains.
    SoakFailedInOutages {
        /// How many.
        windows: u64,
    },
    /// Flows of which no byte was verified although the plan asks for it.
    SoakNotVerified {
        /// How many.
        flows: usize,
        /// The first of them.
        first: String,
    },
    /// A GPU had an error.
    SoakGpuError {
        /// Its host.
        host: String,
        /// The GPU.
        gpu: String,
        /// What it was.
        error: Bad,
        /// In how many parts.
        parts: usize,
    },
    /// A window failed because a GPU is ill.
    SoakGpuFailed {
        /// The first flow of which one did.
        flow: String,
        /// Why.
        failure: Box<Failure>,
    },
    /// More GPUs like those named before.
    SoakMoreGpus {
        /// How many.
        gpus: usize,
    },
    /// GPUs that were read too little.
    SoakGpusUnread {
        /// How many.
        gpus: usize,
        /// The first of them.
        first: String,
        /// Windows in which that one was not read.
        unread: u64,
        /// Of so many.
        windows: u64,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// GPUs that tell neither counters of errors nor Xids.
    SoakGpusBlind {
        /// How many.
        gpus: usize,
        /// The first of them.
        first: String,
    },
    /// Hosts that tell of no GPU although their flows used some.
    SoakGpusUntold {
        /// How many.
        hosts: usize,
        /// The first of them.
        first: String,
    },
    /// GPUs without an error.
    SoakGpusWell {
        /// How many.
        gpus: usize,
    },
    /// GPUs whose Xids could not be seen, or not always.
    SoakWithoutXids {
        /// How many.
        gpus: usize,
    },
    /// A GPU was slower than it can be; that fails nothing.
    SoakGpuSlowed {
        /// Its host.
        host: String,
        /// The GPU.
        gpu: String,
        /// By what.
        slowed: Bad,
        /// In how many parts.
        parts: usize,
    },
    /// All bytes that were verified were right.
    SoakVerified {
        /// How many; `None` where the plan switches verification off.
        verified_bytes: Option<Bytes>,
        /// Windows that were measured.
        windows: u64,
    },
}

/// Rises per second, in the unit in which they are a number to read: `12/s`, `3/min`, `0.5/h`.
pub fn frequency(per_second: f64) -> String {
    match per_second {
        rate if rate >= 1.0 || rate == 0.0 => format!("{}/s", short(rate)),
        rate if rate * 60.0 >= 1.0 => format!("{}/min", short(rate * 60.0)),
        rate => format!("{}/h", short(rate * 3600.0)),
    }
}

/// A number without zeros behind its point.
fn short(value: f64) -> String {
    let text = number(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The first of several: `a → b and 3 more`.
fn and_more(first: &str, all: usize) -> String {
    match all {
        0 | 1 => first.to_owned(),
        _ => format!("{first} and {} more", all - 1),
    }
}

fn windows(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// What comes next of a soak that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Next {
    /// Whether the run is still going on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub running: bool,
    /// Whether its plan must be changed first: a run that is taken up again would end in the same way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prevented: bool,
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self { running: true, .. } => "the run is still going on",
            Self { prevented: true, .. } => "nothing but a run of a changed plan can have it",
            Self { .. } => "`railgauge run --resume DIR` goes on with it",
        })
    }
}

impl fmt::Display for OfSoak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SoakLasted { lasted, flows } => {
                write!(f, "{} of traffic, {}", lasting(*lasted), count(*flows, "flow"))
            }
            Self::SoakShort { lasted, missing, next } => {
                write!(f, "{} of traffic, {} are missing: {next}", lasting(*lasted), lasting(*missing))
            }
            Self::SoakNothing { next } => {
                write!(f, "no traffic of the soak was recorded: {next}")
            }
            Self::SoakIdleFlows { flows, first } => {
                write!(f, "no window of {} was measured: {}", count(*flows, "planned flow"), and_more(first, *flows))
            }
            Self::SoakWatched { ports, port, percent } => {
                write!(f, "{} watched, the least {} ({} % of the time)", count(*ports, "port"), port, share(*percent))
            }
            Self::SoakNotWatched { ports, of, port, percent, failure } => {
                write!(
                    f,
                    "{ports} of {} not watched long enough, the least {port} ({} % of the time)",
                    count(*of, "port"),
                    share(*percent)
                )?;
                failure.as_ref().map_or(Ok(()), |failure| write!(f, ": {failure}"))
            }
            Self::SoakUnknownEnds { ends } => {
                write!(
                    f,
                    "the device of {} is not known, so nobody knows whether its port was watched",
                    count(*ends, "end")
                )
            }
            Self::SoakNotTold => f.write_str("no agent has told yet what it saw of its ports"),
            Self::SoakHole { from, length, ports, port } => {
                write!(f, "{} not watched for {} from {}", ports_were(port, *ports), lasting(*length), moment(*from))
            }
            Self::SoakTooLong(event) => event.fmt(f),
            Self::SoakPerhapsTooLong(event) => write!(f, "perhaps too long: {event}"),
            Self::SoakMoreEvents { events } => write!(f, "and {}", count(*events, "more event")),
            Self::SoakShorter { events, longest } => {
                write!(f, "{} not longer than allowed, the longest: {longest}", count(*events, "event"))
            }
            Self::SoakNoOutage { ports, flows, is_all } => {
                let (ports, flows) = (count(*ports, "watched port"), count(*flows, "flow"));
                match is_all {
                    true => write!(f, "{ports} stayed up and {flows} never stalled"),
                    false => write!(f, "in what was seen {ports} stayed up and {flows} never stalled"),
                }
            }
            Self::SoakDegraded(time) => time.fmt(f),
            Self::SoakPerhapsDegraded(time) => write!(f, "perhaps too long: {time}"),
            Self::SoakMoreDegraded { times } => write!(f, "and {}", count(*times, "more time")),
            Self::SoakDegradedShorter { times, longest } => {
                write!(f, "{} not longer than allowed, the longest: {longest}", count(*times, "time"))
            }
            Self::SoakFullRate { ports } => {
                write!(f, "{} kept their rate and lanes", count(*ports, "watched port"))
            }
            Self::SoakUnknownRate { ports, of } => {
                write!(f, "{ports} of {} tell neither rate nor lanes", count(*of, "watched port"))
            }
            Self::SoakOverLimit { ports, counter, port, per_second, at } => {
                write!(f, "{counter} of {port}: {} at {}", frequency(*per_second), moment(*at))?;
                if *ports > 1 {
                    write!(f, "; and {} more over the limit", count(*ports - 1, "port"))?;
                }
                Ok(())
            }
            Self::SoakLimitKept { counted_by, ports, per_second, port } => {
                match port {
                    Some(port) => write!(f, "{} at most, at {port}", frequency(*per_second))?,
                    None => f.write_str("it never rose")?,
                }
                write!(f, "; {counted_by} of {} count it", count(*ports, "watched port"))
            }
            Self::SoakNotCounted { counted_by: 0, ports } => {
                write!(f, "no port counts it ({} watched)", count(*ports, "port"))
            }
            Self::SoakNotCounted { counted_by, ports } => {
                write!(f, "only {counted_by} of {} count it", count(*ports, "watched port"))
            }
            Self::SoakWrongBytes { flows, first, wrong, host } => {
                write!(f, "{} in {}", count(windows(wrong.0), "wrong byte"), flows_and_more(first, *flows))?;
                host.as_ref().map_or(Ok(()), |host| write!(f, ", all of them with {host}"))
            }
            Self::SoakGpuError { host, gpu, error: bad, parts }
            | Self::SoakGpuSlowed { host, gpu, slowed: bad, parts } => {
                write!(f, "{host} {gpu}: {bad}")?;
                if *parts > 1 { write!(f, ", in {}", count(*parts, "part")) } else { Ok(()) }
            }
            Self::SoakGpuFailed { flow, failure } => write!(f, "a window of {flow} failed: {failure}"),
            Self::SoakMoreGpus { gpus } => write!(f, "and {}", count(*gpus, "more GPU")),
            Self::SoakGpusUnread { gpus, first, unread, windows: all, failure } => {
                let first = and_more(first, *gpus);
                write!(f, "{first} not read in {unread} of {}", count(windows(*all), "window"))?;
                failure.as_ref().map_or(Ok(()), |failure| write!(f, ": {failure}"))
            }
            Self::SoakGpusBlind { gpus, first } => {
                write!(f, "{}: neither errors nor Xids can be seen of {}", count(*gpus, "GPU"), and_more(first, *gpus))
            }
            Self::SoakGpusUntold { hosts, first } => {
                write!(f, "nothing was told of the GPUs of {}: {}", count(*hosts, "host"), and_more(first, *hosts))
            }
            Self::SoakGpusWell { gpus } => write!(f, "{} had no error", count(*gpus, "GPU")),
            Self::SoakWithoutXids { gpus } => {
                write!(f, "Xids of {} could not be seen in every window", count(*gpus, "GPU"))
            }
            Self::SoakFailed { windows: failed, flows, first, lost: Some(lost), .. } => {
                let failed = count(windows(*failed), "window");
                write!(f, "{}: its agent was lost at {}, and ", lost.host, moment(lost.at))?;
                let why = lost.failure.clone().unnamed();
                write!(f, "{failed} of {} failed: {why}", and_more(first, *flows))
            }
            Self::SoakFailed { windows: failed, flows, first, failure, lost: None } => {
                let failed = count(windows(*failed), "window");
                write!(f, "{failed} of {} failed, and no outage of their ports explains it", and_more(first, *flows))?;
                failure.as_ref().map_or(Ok(()), |failure| write!(f, ": {failure}"))
            }
            Self::SoakFailedInOutages { windows: failed } => {
                write!(f, "{} failed in outages of their ports", count(windows(*failed), "window"))
            }
            Self::SoakNotVerified { flows, first } => {
                write!(f, "no byte of {} was verified", and_more(first, *flows))
            }
            Self::SoakVerified { verified_bytes, windows: measured } => {
                let measured = count(windows(*measured), "window");
                match verified_bytes {
                    Some(bytes) => write!(f, "{} verified in {measured}", amount(*bytes)),
                    None => write!(f, "{measured}; the plan switches verification off"),
                }
            }
        }
    }
}

/// A share in percent that is not rounded to the whole where it is not the whole.
fn share(percent: f64) -> String {
    match percent {
        p if p >= 100.0 => "100".to_owned(),
        p => format!("{:.2}", (p * 100.0).floor() / 100.0),
    }
}
