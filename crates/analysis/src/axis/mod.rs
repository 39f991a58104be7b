//! The flows of a pass and the port counters of their hosts, on one time axis.
//!
//! A pass is what ran at the same time: the flows of a round in one cell and repeat. Agent times move to the
//! controller's clock as in a soak: by the clock of the record with the port readings of that host ([`watch`]).

mod watch;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use railgauge_model::{journal::event::Sample, schedule::Flow};
use railgauge_wire::{
    drivers::{Congestion, congestion},
    measure::Measurement,
    terms::Metric,
    unit::{Bytes, Nanoseconds, NanosecondsI64},
};
pub use watch::Watch;
use watch::{Placed, PortRows};

use super::{
    soak::{
        families::{Family, family, last_part},
        ports::PortName,
        span::Span,
    },
    together,
};
use crate::case::CaseResult;

/// Passes kept, worst first.
pub const LISTED: usize = 16;

#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    pub name: String,
    pub victim: bool,
    pub span: Span,
    /// Gb/s over the window; `None` where nothing was carried.
    pub mean: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    pub family: Family,
    /// Rise of each counter, by the last part of its name; a reading that extends beyond the time counts in proportion.
    pub counters: BTreeMap<String, f64>,
    /// Rises in a second of any reading.
    pub most: f64,
}

impl Counted {
    pub fn sum(&self) -> f64 {
        self.counters.values().copied().fold(0.0, f64::max)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    pub round: u32,
    pub size: Bytes,
    /// Distinguishes it from other passes of the same size; mostly empty.
    pub variant: String,
    /// From 0.
    pub repeat: u32,
    pub span: Span,
    /// Error of times of one host against those of another.
    pub error: Nanoseconds,
    /// Largest loss of a flow alongside an incast, in percent.
    pub loss: Option<f64>,
    /// Victims first, then the slowest.
    pub flows: Vec<Carried>,
    /// By port, gravest first; only ports that counted something.
    pub ports: Vec<(PortName, Vec<Counted>)>,
    pub quiet: usize,
    /// Hosts with a port without a reading in it, and hosts without a watched port.
    pub unread: BTreeSet<String>,
    hosts: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OfTest {
    /// The [`LISTED`] worst passes with a rise: by the victims' loss, then by the gravest counter.
    pub passes: Vec<Pass>,
    pub counting: usize,
    pub placed: usize,
    pub partly: usize,
    pub unwatched: usize,
    pub unplaced: usize,
    pub ports: usize,
    pub with: BTreeMap<Congestion, usize>,
}

type Key = (u32, Bytes, String, u32, Option<Nanoseconds>);

/// `None` where the test measured no flow.
pub fn of_test(watch: &Watch<'_>, results: &[&CaseResult<'_>]) -> Option<OfTest> {
    let mut groups: BTreeMap<Key, Vec<(&CaseResult<'_>, &Sample)>> = BTreeMap::new();
    // Ranks of a collective are not flows between two ports.
    for result in results.iter().filter(|result| result.case.flow.members.is_empty()) {
        for (repeat, sample) in &result.samples {
            let start = sample.together.as_ref().map(|together| together.start);
            let key = (result.case.round, result.case.cell.size, result.variant(), *repeat, start);
            groups.entry(key).or_default().push((result, sample));
        }
    }
    let (mut passes, mut unplaced) = (Vec::new(), 0);
    for (key, members) in groups {
        let placed: Vec<_> = members.iter().map(|(result, sample)| watch.place(&result.case.flow, sample)).collect();
        unplaced += placed.iter().filter(|place| place.is_none()).count();
        passes.extend(pass(watch, key, &members, &placed));
    }
    if passes.is_empty() && unplaced == 0 {
        return None;
    }
    let all = passes.len();
    passes.retain(|pass| pass.unread.len() < pass.hosts.len());
    let (placed, partly) = (passes.len(), passes.iter().filter(|pass| !pass.unread.is_empty()).count());
    let hosts: BTreeSet<String> = passes.iter().flat_map(|pass| pass.hosts.iter().cloned()).collect();
    let (mut ports, mut with) = (0, BTreeMap::from(Congestion::ALL.map(|kind| (kind, 0))));
    for port in watch.ports_of(&hosts) {
        ports += 1;
        let kinds: BTreeSet<Congestion> = port.names().filter_map(congestion).collect();
        kinds.into_iter().for_each(|kind| *with.entry(kind).or_default() += 1);
    }
    passes.retain(|pass| !pass.ports.is_empty());
    let counting = passes.len();
    passes.sort_by(|a, b| {
        let loss = |pass: &Pass| pass.loss.unwrap_or(f64::NEG_INFINITY);
        let worst = |pass: &Pass| pass.ports.first().map(|(_, lines)| gravest(lines));
        loss(b).total_cmp(&loss(a)).then(worst(a).cmp(&worst(b))).then(a.span.cmp(&b.span))
    });
    passes.truncate(LISTED);
    Some(OfTest { passes, counting, placed, partly, unwatched: all - placed, unplaced, ports, with })
}

/// With its most rises in a second.
fn gravest(lines: &[Counted]) -> (Option<Family>, Reverse<u64>) {
    let first = lines.iter().min_by_key(|line| (line.family, Reverse(line.most as u64)));
    (first.map(|line| line.family), Reverse(first.map_or(0, |line| line.most as u64)))
}

/// `None` if no flow has a known time.
fn pass(
    watch: &Watch<'_>,
    (round, size, variant, repeat, _): Key,
    members: &[(&CaseResult<'_>, &Sample)],
    placed: &[Option<Placed>],
) -> Option<Pass> {
    let members = members.iter().zip(placed).filter_map(|(member, place)| Some((member, place.as_ref()?)));
    let mut flows: Vec<Carried> = Vec::new();
    let (mut hosts, mut error, mut loss) = (BTreeSet::new(), Nanoseconds::ZERO, None::<f64>);
    for ((result, sample), place) in members {
        flows.extend(carried(result, sample, place));
        hosts.extend(result.case.flow.hosts().into_iter().map(|host| host.to_string()));
        error = error.max(place.error);
        let lost = together::sum(result, repeat, Metric::VictimLoss).filter(|lost| lost.is_finite());
        loss = lost.map_or(loss, |lost| Some(loss.map_or(lost, |known| known.max(lost))));
    }
    let mean = |flow: &Carried| flow.mean.unwrap_or(-1.0);
    flows.sort_by(|a, b| b.victim.cmp(&a.victim).then(mean(a).total_cmp(&mean(b))));
    let span = flows.iter().map(|flow| flow.span).reduce(|a, b| Span::new(a.from.min(b.from), a.until.max(b.until)))?;
    let (mut ports, mut quiet) = (Vec::new(), 0);
    let mut unread: BTreeSet<String> = hosts.clone();
    for port in watch.ports_of(&hosts).filter(|port| port.within(&span).next().is_some()) {
        unread.remove(&port.name.host);
        error = error.max(port.error);
        match counted(port, &span) {
            lines if lines.is_empty() => quiet += 1,
            lines => ports.push((port.name.clone(), lines)),
        }
    }
    ports.sort_by(|(a, lines), (b, others)| gravest(lines).cmp(&gravest(others)).then_with(|| a.cmp(b)));
    Some(Pass { round, size, variant, repeat, span, error, loss, flows, ports, quiet, unread, hosts })
}

fn carried(result: &CaseResult<'_>, sample: &Sample, place: &Placed) -> Vec<Carried> {
    let flow = &result.case.flow;
    let victim = result.part.as_ref().is_some_and(|part| part.alone.is_some()) && result.test.has_victim();
    let one = |name: String, end: &Measurement, clock: NanosecondsI64| {
        let from = end.started.saturating_add_signed(clock);
        let until = from.saturating_add(end.elapsed);
        let mean = (!end.bytes.is_zero() && !end.elapsed.is_zero()).then(|| end.bytes.bits() / end.elapsed.as_f64());
        Carried { name, victim, span: Span::new(from, until), mean }
    };
    let mut flows = vec![one(flow.name(), &sample.initiator, place.here)];
    let back = sample.responder.as_deref().filter(|end| result.test.bidirectional && !end.elapsed.is_zero());
    if let Some((end, clock)) = back.zip(place.there) {
        let against = Flow { from: flow.to.clone(), to: flow.from.clone(), ..flow.clone() };
        flows.push(one(against.name(), end, clock));
    }
    flows
}

/// Gravest first. Excludes corrected errors, which always occur on PAM4 links.
fn counted(port: &PortRows<'_>, time: &Span) -> Vec<Counted> {
    let mut found: BTreeMap<(Family, bool), Counted> = BTreeMap::new();
    for row in port.within(time) {
        let span = Span::new(row.from, row.until);
        let length = span.length().as_f64().max(1.0);
        for (name, rise) in row.counted.iter().filter(|(_, rise)| **rise > 0) {
            let Some(of) = family(name).filter(|of| !of.is_normal()) else { continue };
            let none = Counted { family: of, counters: BTreeMap::new(), most: 0.0 };
            let line = found.entry((of, row.is_of_statistics())).or_insert(none);
            let (mean, share) = (*rise as f64 * 1e9 / length, span.common(time).length().as_f64() / length);
            // A peak covers at least a second; readings joined from shorter ones include it.
            let most = row.peaks.get(name).copied().filter(|peak| peak.is_finite()).map_or(mean, |peak| peak.max(mean));
            *line.counters.entry(last_part(name).to_owned()).or_default() += *rise as f64 * share;
            line.most = line.most.max(most);
        }
    }
    found.into_values().collect()
}
