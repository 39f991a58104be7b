//! For how long ports were watched, and when nobody looked.

use std::collections::BTreeSet;

use railgauge_wire::unit::Nanoseconds;
use serde::Serialize;

use super::{
    ports::{HOLE, Port, PortName},
    span::{Span, before},
    traffic::Traffic,
};

/// How long a port of the soak's flows was watched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PortCoverage {
    pub port: PortName,
    /// For how long of the soak, in nanoseconds.
    pub watched: Nanoseconds,
    /// The same in percent of the soak.
    pub percent: f64,
    /// Longest time between two looks while it was watched, in nanoseconds.
    pub longest_gap: Nanoseconds,
    /// Why it could not be looked at, the last time that it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A time in which nobody looked at some ports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hole {
    #[serde(flatten)]
    pub span: Span,
    pub ports: usize,
    /// The first of them.
    pub port: PortName,
}

/// Every port of the soak's flows, the worst watched first.
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
    let mut found: Vec<PortCoverage> = never
        .into_iter()
        .map(|port| PortCoverage {
            port: port.clone(),
            watched: Nanoseconds::ZERO,
            percent: 0.0,
            longest_gap: Nanoseconds::ZERO,
            failure: None,
        })
        .collect();
    found.extend(watched.into_iter().map(|place| {
        let port = &ports[place];
        let watched = port.watched.min(lasted);
        PortCoverage {
            port: port.name.clone(),
            watched,
            percent: percent(watched),
            longest_gap: port.longest_gap,
            failure: port.failure.clone(),
        }
    }));
    found.sort_by(|a, b| a.watched.cmp(&b.watched).then_with(|| a.port.cmp(&b.port)));
    found
}

/// Whether two times are as good as one: agents are asked one after another.
fn near(a: Nanoseconds, b: Nanoseconds) -> bool {
    a.max(b) - a.min(b) <= HOLE
}

/// Times in which nobody looked at ports, up to a moment, in the order of time. Those of several ports are one where they begin and end
/// together: one port that was not watched for long says nothing of those that were watched meanwhile.
///
/// Only those of ports that flows of the soak use: nobody asks for how long others were watched.
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
