//! How long ports were watched, and times without a watch.

use std::collections::BTreeSet;

use railgauge_wire::Nanoseconds;
use serde::Serialize;

use super::{
    ports::{HOLE, Port, PortName},
    span::{Span, before},
    traffic::Traffic,
};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PortCoverage {
    pub port: PortName,
    /// Of the soak, in nanoseconds.
    pub watched: Nanoseconds,
    /// In percent of the soak.
    pub percent: f64,
    /// Between two looks while it was watched, in nanoseconds.
    pub longest_gap: Nanoseconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hole {
    #[serde(flatten)]
    pub span: Span,
    pub ports: usize,
    /// The first of them.
    pub port: PortName,
}

/// Worst watched first.
pub(super) fn of_ports(traffic: &Traffic<'_>, ports: &[Port], lasted: Nanoseconds) -> Vec<PortCoverage> {
    let mut watched: BTreeSet<usize> = BTreeSet::new();
    let mut never: BTreeSet<&PortName> = BTreeSet::new();
    for end in traffic.ends.values().flatten() {
        match end.watched {
            Some(port) => drop(watched.insert(port)),
            None => never.extend(&end.port),
        }
    }
    let percent = |time: Nanoseconds| if lasted.is_zero() { 0.0 } else { 100.0 * time.as_f64() / lasted.as_f64() };
    let never = never.into_iter().map(|port| (port, Nanoseconds::ZERO, Nanoseconds::ZERO, None));
    let watched = watched.into_iter().map(|place| {
        let port = &ports[place];
        (&port.name, port.watched.min(lasted), port.longest_gap, port.failure.clone())
    });
    let of_port = |(port, watched, longest_gap, failure): (&PortName, Nanoseconds, Nanoseconds, Option<String>)| {
        PortCoverage { port: port.clone(), watched, percent: percent(watched), longest_gap, failure }
    };
    let mut found: Vec<PortCoverage> = never.chain(watched).map(of_port).collect();
    found.sort_by(|a, b| a.watched.cmp(&b.watched).then_with(|| a.port.cmp(&b.port)));
    found
}

/// Within tolerance, because agents are asked one after another.
fn near(a: Nanoseconds, b: Nanoseconds) -> bool {
    a.max(b) - a.min(b) <= HOLE
}

/// Times without a watch of ports, up to a moment, in order. Those of several ports are one if they start and end
/// together: a port that was not watched for long is independent of others.
///
/// Only covers ports of the soak's flows.
pub(super) fn holes(traffic: &Traffic<'_>, ports: &[Port], until: Nanoseconds) -> Vec<Hole> {
    let used: BTreeSet<usize> = traffic.ends.values().flatten().filter_map(|end| end.watched).collect();
    let is_one = move |hole: &Span| hole.until < until || hole.length() > HOLE;
    let known = |port: &Port| before(&port.holes, until).into_iter().filter(is_one);
    let mut all: Vec<(Span, &PortName)> =
        used.into_iter().flat_map(|place| known(&ports[place]).map(move |hole| (hole, &ports[place].name))).collect();
    all.sort_unstable();
    let mut found: Vec<(Span, BTreeSet<&PortName>)> = Vec::new();
    for (span, port) in all {
        let begins = |one: &&mut (Span, BTreeSet<&PortName>)| near(one.0.from, span.from);
        match found.iter_mut().rev().take_while(begins).find(|(one, _)| near(one.until, span.until)) {
            Some((one, of)) => {
                one.until = one.until.max(span.until);
                of.insert(port);
            }
            None => found.push((span, BTreeSet::from([port]))),
        }
    }
    let hole =
        |(span, of): (Span, BTreeSet<&PortName>)| Some(Hole { span, ports: of.len(), port: (*of.first()?).clone() });
    found.into_iter().filter_map(hole).collect()
}
