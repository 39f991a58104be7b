//! Ports by the levels that makers publish ([`Levels`]).
//!
//! An error rate is errors ÷ (rate of the link × time of port-up): a port receives at its rate also when it is idle. So NVIDIA computes it,
//! github.com/Mellanox/ufm_sdk_3.0, plugins/pdr_deterministic_plugin/README.md: three symbol errors in 125 minutes of 400 Gb/s are 1e-15.
//! A time of port-up ends with a break, with a lower rate and where nothing watched the port: what was before is not counted with what
//! came after.

use railgauge_model::plan::model::{Level, Levels, LinkValue, Links};
use railgauge_wire::Nanoseconds;
use serde::Serialize;

use super::{
    hit::listed,
    ports::{Port, PortName},
    span::{SHORT, Span},
};
use crate::{journal::Journal, words::lasting};

const DAY: Nanoseconds = Nanoseconds::from_secs(24 * 3600);

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfLevel {
    pub of: LinkValue,
    pub warning: Option<f64>,
    pub error: Option<f64>,
    pub source: &'static str,
    pub ports: usize,
    /// Worst first.
    #[serde(serialize_with = "listed")]
    pub judged: Vec<PortValue>,
    /// With the reason.
    #[serde(serialize_with = "listed")]
    pub unjudged: Vec<(PortName, Unjudged)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PortValue {
    pub port: PortName,
    pub value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Unjudged {
    #[error("no level is published for such a link and rate")]
    OtherLink,
    #[error("no counter of it can be read")]
    NotCounted,
    /// It was watched for less than the level needs; for a rate, its longest time of port-up.
    #[error("watched for {} at most, and {} are needed", lasting(*.watched), lasting(*.needed))]
    Early { watched: Nanoseconds, needed: Nanoseconds },
}

pub(super) fn of_ports(journal: &Journal, levels: Levels, ports: &[Port]) -> Vec<OfLevel> {
    let of = |level: &Level| {
        let (mut judged, mut unjudged) = (Vec::new(), Vec::new());
        for port in ports {
            let name = port.name.clone();
            match value(journal, level, port) {
                Ok(value) => judged.push(PortValue { port: name, value }),
                Err(why) => unjudged.push((name, why)),
            }
        }
        judged.sort_by(|a, b| b.value.total_cmp(&a.value));
        let Level { of, warning, error, source, .. } = *level;
        OfLevel { of, warning, error, source, ports: ports.len(), judged, unjudged }
    };
    levels.table().iter().map(of).collect()
}

fn value(journal: &Journal, level: &Level, port: &Port) -> Result<f64, Unjudged> {
    let value = match level.of {
        LinkValue::PostFecBer | LinkValue::SymbolErrors => return error_rate(journal, level, port),
        LinkValue::LinkDowns => link_downs(port) as f64,
        LinkValue::Outage => port.outages.iter().map(|down| down.length().seconds()).fold(0.0, f64::max),
    };
    let is_reached = level.warning.or(level.error).is_some_and(|lowest| value >= lowest);
    let is_early = port.watched.as_f64() < (1.0 - SHORT) * level.after.as_f64();
    let early = Unjudged::Early { watched: port.watched, needed: level.after };
    if is_early && !is_reached { Err(early) } else { Ok(value) }
}

fn error_rate(journal: &Journal, level: &Level, port: &Port) -> Result<f64, Unjudged> {
    let rate = port.best.filter(|_| is_of(journal, level.links, port)).ok_or(Unjudged::OtherLink)?.0;
    let of = |up: &Span| Some(port.errors.within(level.of, up)? as f64 / (rate * 1e9 * up.length().seconds()));
    let long = || port.up.iter().filter(|up| up.length() >= level.after);
    let longest = port.up.iter().map(Span::length).max().unwrap_or_default();
    port.errors.within(level.of, &Span::default()).ok_or(Unjudged::NotCounted)?;
    let worst = long()
        .filter_map(of)
        .max_by(f64::total_cmp)
        .ok_or(Unjudged::Early { watched: longest, needed: level.after })?;
    // A counter at its largest value hides later errors.
    let hidden = port.is_saturated(level.of) && level.error.is_none_or(|error| worst < error);
    if hidden { Err(Unjudged::NotCounted) } else { Ok(worst) }
}

fn is_of(journal: &Journal, links: Links, port: &Port) -> bool {
    let Links::InfiniBandLanes(lane) = links else { return true };
    let facts = journal.hosts.get(&port.name.host).map(|host| &host.facts);
    let device = facts.and_then(|facts| facts.rdma.iter().find(|device| device.name == port.name.device));
    let of = device.and_then(|device| device.ports.iter().find(|one| one.number == port.name.port));
    let infiniband = of.is_some_and(|of| of.link_layer.as_deref() == Some("InfiniBand"));
    infiniband && port.best.is_some_and(|(rate, lanes)| (rate / f64::from(lanes.max(1)) - lane).abs() < 1.0)
}

/// The most in any 24 hours, of those that looks or counters saw begin.
fn link_downs(port: &Port) -> u64 {
    let seen = port.outages.iter().filter(|down| down.begin.seen).map(|down| (down.begin.at, 1));
    let mut downs: Vec<(Nanoseconds, u64)> =
        seen.chain(port.breaks.iter().map(|one| (one.span.until, one.breaks))).collect();
    downs.sort_unstable();
    let (mut most, mut first, mut sum) = (0, 0, 0_u64);
    for (at, downs_here) in &downs {
        sum = sum.saturating_add(*downs_here);
        while at.saturating_sub(downs[first].0) > DAY {
            sum = sum.saturating_sub(downs[first].1);
            first += 1;
        }
        most = most.max(sum);
    }
    most
}
