//! Watched ports over time: outages, counters, optics, and times without a look.
//!
//! Reads [`Journal::watched`] once. Nothing here is specific to a soak: it fits any watched traffic.

mod breaks;
mod counted;
mod errors;
mod state;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use railgauge_model::plan::model::LinkValue;
use railgauge_wire::{Nanoseconds, PortSeen, watch::LONG_GAP};
use serde::Serialize;

pub use breaks::Hidden;
pub use counted::{Counted, Kept, Range};
pub use errors::Errors;
pub use state::{Down, Edge, Lower};

use super::span::{self, Span};
use crate::journal::{Journal, Seen};

/// A longer time without a look was not watched: that of [`LONG_GAP`].
pub const HOLE: Nanoseconds = Nanoseconds(LONG_GAP.as_nanos() as u64);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PortName {
    pub host: String,
    pub device: String,
    /// 1 for an interface.
    pub port: u8,
}

impl PortName {
    /// As in plans: `mlx5_0`, `mlx5_0:2`.
    pub fn device(&self) -> String {
        match self.port {
            1 => self.device.clone(),
            number => format!("{}:{number}", self.device),
        }
    }
}

/// `gpu031 mlx5_3`.
impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.host, self.device())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    pub name: PortName,
    pub watched: Nanoseconds,
    /// Times without a look longer than [`HOLE`], in order.
    pub holes: Vec<Span>,
    pub longest_gap: Nanoseconds,
    /// In order of time.
    pub outages: Vec<Down>,
    /// Breaks seen only in a counter, in order of time.
    pub breaks: Vec<Hidden>,
    /// Times below its usual rate or width, in order.
    pub lower: Vec<Lower>,
    /// Whether its rate or lanes are ever known.
    pub has_speed: bool,
    pub counters: BTreeMap<String, Counted>,
    pub gauges: BTreeMap<String, Range>,
    pub errors: Errors,
    /// Times of port-up at its best rate, watched without a break, in order.
    pub up: Vec<Span>,
    /// Best rate in Gb/s, with the lanes; `None` without both.
    pub best: Option<(f64, u8)>,
    pub failure: Option<String>,
}

impl Port {
    /// Whether a counter of this value is stuck at its largest value.
    pub fn is_saturated(&self, of: LinkValue) -> bool {
        let counters = self.counters.keys().filter(|name| Errors::of(name) == Some(of));
        counters.into_iter().any(|name| self.gauges.contains_key(&format!("saturated/{name}")))
    }
}

/// Every watched port in these times, which are disjoint and in order. By name.
///
/// Keeps counters that belong to a family, or that `also` wants.
pub fn over_time(journal: &Journal, times: &[Span], also: &dyn Fn(&str) -> bool) -> Vec<Port> {
    let mut kept = Kept::new(also);
    let mut known: HashMap<(&str, &str, u8), usize> = HashMap::new();
    let mut folds: Vec<Fold<'_>> = Vec::new();
    for (number, seen) in in_order(journal) {
        for port in &seen.seen.ports {
            let at = *known.entry((&seen.host, &port.device, port.port)).or_insert_with(|| {
                folds.push(Fold::of(seen, port));
                folds.len() - 1
            });
            folds[at].take((number, seen), port, times, &mut kept);
        }
    }
    let mut ports: Vec<Port> = folds.into_iter().map(|fold| fold.finish(times)).collect();
    ports.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    ports
}

/// In order of time, numbered.
fn in_order(journal: &Journal) -> impl Iterator<Item = (usize, &Seen)> {
    let mut order: Vec<usize> = (0..journal.watched.len()).collect();
    order.sort_by_key(|at| journal.watched[*at].seen.from);
    order.into_iter().map(|at| &journal.watched[at]).enumerate()
}

struct Fold<'j> {
    host: &'j str,
    port: &'j PortSeen,
    watched: Nanoseconds,
    longest_gap: Nanoseconds,
    /// End of the last span and its uncertainty; `None` before the first.
    last: Option<(Nanoseconds, Nanoseconds)>,
    first: Nanoseconds,
    holes: Vec<Span>,
    gaps: Vec<Span>,
    state: state::Watch,
    rises: breaks::Rises,
    counters: BTreeMap<String, Counted>,
    gauges: BTreeMap<String, Range>,
    errors: Errors,
    failure: Option<String>,
}

impl<'j> Fold<'j> {
    fn of(seen: &'j Seen, port: &'j PortSeen) -> Self {
        Self {
            host: &seen.host,
            port,
            watched: Nanoseconds::ZERO,
            longest_gap: Nanoseconds::ZERO,
            last: None,
            first: seen.seen.from,
            holes: Vec::new(),
            gaps: Vec::new(),
            state: state::Watch::default(),
            rises: breaks::Rises::default(),
            counters: BTreeMap::new(),
            gauges: BTreeMap::new(),
            errors: Errors::default(),
            failure: None,
        }
    }

    fn take(&mut self, (number, seen): (usize, &Seen), port: &PortSeen, times: &[Span], kept: &mut Kept<'_>) {
        let span = Span::new(seen.seen.from, seen.seen.until);
        let hole = self.last.filter(|(until, error)| {
            span.from.saturating_sub(*until) > HOLE.saturating_add(*error).saturating_add(seen.error)
        });
        if let Some((until, _)) = hole {
            self.holes.push(Span::new(until, span.from));
        }
        self.gaps.extend(port.gaps.iter().map(|gap| Span::new(gap.from, gap.until)));
        self.state.take(&state::Look { number, error: seen.error, span, hole: hole.is_some(), last: self.last }, port);
        // Spans of two processes may overlap by the error of their clocks; no time counts twice.
        let from = self.last.map_or(span.from, |(until, _)| until.max(span.from));
        let asked = span::within(times, &Span::new(from, span.until));
        self.watched = self.watched.saturating_add(share(asked, span.length(), looked(&span, port)));
        self.longest_gap = self.longest_gap.max(port.longest_gap);
        for row in &port.rows {
            let of_row = Span::new(row.from, row.until);
            if span::meeting(times, &of_row).next().is_some() {
                self.rises.take(row, port.longest_gap, seen.error);
                self.errors.take(row);
                counted::take(row, kept, &mut self.counters, &mut self.gauges);
            }
        }
        if port.failure.is_some() {
            self.failure.clone_from(&port.failure);
        }
        let until = self.last.map_or(span.until, |(until, _)| until.max(span.until));
        self.last = Some((until, seen.error));
    }

    fn finish(mut self, times: &[Span]) -> Port {
        let asked = span::hull(times);
        let mut cuts = self.holes.clone();
        if let (Some(asked), Some((until, error))) = (asked, self.last) {
            self.holes.insert(0, Span::new(asked.from, self.first));
            self.holes.push(Span::new(until, asked.until));
            let common = |holes: &[Span]| holes.iter().map(|hole| hole.common(&asked)).collect::<Vec<_>>();
            self.holes = common(&self.holes);
            self.holes.retain(|hole| hole.length() > HOLE.saturating_add(error));
            // Both times are of one clock, whose error changes no length.
            self.holes.extend(common(&self.gaps).into_iter().filter(|gap| !gap.length().is_zero()));
            self.holes = span::union(std::mem::take(&mut self.holes));
        }
        let has_speed = self.state.has_speed();
        let (mut outages, mut lower, best) = self.state.finish(self.last.unwrap_or_default());
        let breaks = self.rises.hidden(&outages);
        cuts.extend(outages.iter().map(Down::span));
        cuts.extend(breaks.iter().map(|one| one.span));
        cuts.extend(lower.iter().map(|one| one.span));
        let watched = Span::new(self.first, self.last.map_or(self.first, |(until, _)| until));
        let up = asked.map_or_else(Vec::new, |asked| span::without(&asked.common(&watched), cuts));
        let is_asked = |span: &Span| span::meeting(times, span).next().is_some();
        outages.retain(|down| is_asked(&down.span()));
        lower.retain(|lower| is_asked(&lower.span));
        Port {
            name: PortName { host: self.host.to_owned(), device: self.port.device.clone(), port: self.port.port },
            watched: self.watched,
            holes: self.holes,
            longest_gap: self.longest_gap,
            outages,
            breaks,
            lower,
            has_speed,
            counters: self.counters,
            gauges: self.gauges,
            errors: self.errors,
            up,
            best,
            failure: self.failure,
        }
    }
}

/// The watched part of a span: without its long gaps. Older journals only have the longest one. If there were too few
/// looks, each covers at most the longest time that counts as watched.
fn looked(span: &Span, port: &PortSeen) -> Nanoseconds {
    let gaps = span::union(port.gaps.iter().map(|gap| Span::new(gap.from, gap.until)).collect());
    let missed = match gaps.as_slice() {
        [] if port.longest_gap > HOLE => port.longest_gap,
        gaps => span::within(gaps, span),
    };
    span.length().saturating_sub(missed).min(HOLE.saturating_mul(port.looks))
}

/// `time` × `part` / `whole`.
fn share(time: Nanoseconds, whole: Nanoseconds, part: Nanoseconds) -> Nanoseconds {
    if part >= whole || whole.is_zero() {
        return if part.is_zero() { Nanoseconds::ZERO } else { time };
    }
    Nanoseconds((time.as_f64() * (part.as_f64() / whole.as_f64())) as u64)
}

#[cfg(test)]
mod tests;
