//! The flows of a pass and what the ports of their hosts counted meanwhile, on one axis of time.
//!
//! A pass is what ran at the same time: the flows of a round in one cell and repeat. Its time is that of the controller's clock, on
//! which agents' times are placed as those of a soak are: by the clock of the record that tells what the ports of the same host did.
//!
//! | file | does |
//! | --- | --- |
//! | `watch` | what agents saw of their ports, by port and time |
//! | `flows` | what flows carried, placed in time |
//! | `counted` | what a port counted in a time, by family |
//! | `kinds` | counters of congestion that nobody has, or that stood still |

mod counted;
mod flows;
mod kinds;
mod watch;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use railgauge_model::journal::event::Sample;
use railgauge_wire::{
    terms::Metric,
    unit::{Bytes, Nanoseconds},
};

pub use counted::Counted;
pub use flows::Carried;
pub use kinds::{Kind, OfKind};
pub use watch::Watch;

use super::{
    results::CaseResult,
    soak::{families::Family, ports::PortName, span::Span},
    together,
};

/// Passes that are drawn, the worst first.
pub const DRAWN: usize = 3;
/// Passes that are listed.
pub const LISTED: usize = 16;

/// A value that holds for a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// When.
    pub span: Span,
    /// The mean over that time: Gb/s of a flow, rises per second of a counter.
    pub mean: f64,
    /// The highest that is known of any part of it.
    pub most: f64,
}

/// What ran at the same time, and what was counted meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// Number of the round.
    pub round: u32,
    /// Message size.
    pub size: Bytes,
    /// What sets it apart from other passes of the same size, in words; empty for most.
    pub variant: String,
    /// Repeat, counted from 0.
    pub repeat: u32,
    /// From the first begin of a flow to the last end.
    pub span: Span,
    /// How far off times of one host may be against those of another.
    pub error: Nanoseconds,
    /// Loss of a flow beside an incast in percent, the largest; `None` where there is none, or it is not known.
    pub loss: Option<f64>,
    /// Its flows: victims first, then the slowest.
    pub flows: Vec<Carried>,
    /// Hosts of its flows.
    pub hosts: BTreeSet<String>,
    /// What was counted, by port; ports that counted nothing are left out. The gravest first.
    pub ports: Vec<(PortName, Vec<Counted>)>,
    /// Watched ports of its hosts that counted nothing.
    pub quiet: usize,
    /// Watched ports of its hosts of which no reading reaches into it.
    pub unread: usize,
    /// Hosts of which no reading of any port reaches into it.
    pub blind: usize,
}

/// The passes of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct OfTest {
    /// Passes in which something was counted, the worst first: first those whose victims lost most, then by the gravest counter. Those
    /// behind the first [`DRAWN`] have no pieces.
    pub passes: Vec<Pass>,
    /// All passes that have a place in time and into which a reading reaches.
    pub placed: usize,
    /// Those of them in which no port of some host was read.
    pub blind: usize,
    /// Passes into which no reading of any port reaches.
    pub unwatched: usize,
    /// Flows of which it is not known when they ran.
    pub unplaced: usize,
    /// Watched ports of the hosts of these passes.
    pub ports: usize,
    /// Those of them of whose drivers' statistics no reading reaches into any pass.
    pub without_statistics: usize,
    /// Ports of which something could not be read, and why for the first of them.
    pub failures: (usize, Option<(PortName, String)>),
    /// Counters of congestion, and who has them.
    pub kinds: Vec<OfKind>,
    /// Largest share of a processor that watching took, and the host.
    pub cost: Option<(f64, String)>,
    /// Mean times between readings in the drawn passes: of counters in files, and of drivers' statistics.
    pub paces: [Option<Nanoseconds>; 2],
}

/// What tells passes of a test apart: round, size, variant, repeat, planned start.
type Key = (u32, Bytes, String, u32, Option<Nanoseconds>);

/// Lays the flows of a test and what ports counted over each other; `None` where it measured no flow.
pub fn of_test(watch: &Watch<'_>, results: &[&CaseResult<'_>]) -> Option<OfTest> {
    let mut groups: BTreeMap<Key, Vec<(&CaseResult<'_>, &Sample)>> = BTreeMap::new();
    // Ranks of a collective are no flows between two ports.
    for result in results.iter().filter(|result| result.case.flow.members.is_empty()) {
        for (repeat, sample) in &result.samples {
            let start = sample.together.as_ref().map(|together| together.start);
            let key = (result.case.round, result.case.cell.size, result.variant(), *repeat, start);
            groups.entry(key).or_default().push((result, sample));
        }
    }
    let (mut passes, mut unplaced, mut unwatched, mut blind) = (Vec::new(), 0, 0, 0);
    let mut hosts: BTreeSet<String> = BTreeSet::new();
    let mut times = Vec::new();
    for (key, members) in groups {
        let placed: Vec<_> = members.iter().map(|(result, sample)| watch.place(&result.case.flow, sample)).collect();
        unplaced += placed.iter().filter(|place| place.is_none()).count();
        let Some(pass) = pass(watch, key, &members, &placed) else { continue };
        if pass.blind == pass.hosts.len() {
            unwatched += 1;
            continue;
        }
        blind += usize::from(pass.blind + pass.unread > 0);
        hosts.extend(pass.hosts.iter().cloned());
        times.push((pass.span, pass.hosts.clone()));
        passes.push(pass);
    }
    if passes.is_empty() && unplaced + unwatched == 0 {
        return None;
    }
    let placed = passes.len();
    passes.retain(|pass| !pass.ports.is_empty());
    passes.sort_by(|a, b| {
        let loss = |pass: &Pass| pass.loss.unwrap_or(f64::NEG_INFINITY);
        loss(b).total_cmp(&loss(a)).then_with(|| worst(b).cmp_to(&worst(a))).then_with(|| a.span.cmp(&b.span))
    });
    let drawn: Vec<(Span, BTreeSet<String>)> =
        passes.iter().take(DRAWN).map(|pass| (pass.span, pass.hosts.clone())).collect();
    // What is not drawn needs no points: a test may have thousands of passes.
    for pass in passes.iter_mut().skip(DRAWN) {
        pass.flows.iter_mut().for_each(|flow| flow.pieces = Vec::new());
        pass.ports.iter_mut().flat_map(|(_, lines)| lines).for_each(|line| line.pieces = Vec::new());
    }
    let failed = || watch.ports_of(&hosts).filter_map(|port| Some((&port.name, port.failure?)));
    Some(OfTest {
        failures: (failed().count(), failed().next().map(|(port, why)| (port.clone(), why.to_owned()))),
        placed,
        blind,
        unwatched,
        unplaced,
        ports: watch.ports_of(&hosts).count(),
        without_statistics: watch.without_statistics(&hosts, &times),
        kinds: kinds::of(watch, &hosts, &times),
        cost: watch.cost(&hosts),
        paces: watch.paces(&drawn),
        passes,
    })
}

/// How bad the worst of a pass is: the gravest family, and its largest rise in a second.
struct Worst(Reverse<Option<Family>>, f64);

impl Worst {
    fn cmp_to(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0).then(self.1.total_cmp(&other.1))
    }
}

fn worst(pass: &Pass) -> Worst {
    let lines = pass.ports.iter().flat_map(|(_, lines)| lines);
    let gravest = lines.min_by(|a, b| a.family.cmp(&b.family).then(b.most.total_cmp(&a.most)));
    gravest.map_or(Worst(Reverse(None), 0.0), |line| Worst(Reverse(Some(line.family)), line.most))
}

/// One pass; `None` if none of its flows has a place in time.
fn pass(
    watch: &Watch<'_>,
    (round, size, variant, repeat, _): Key,
    members: &[(&CaseResult<'_>, &Sample)],
    placed: &[Option<watch::Placed>],
) -> Option<Pass> {
    let members = members.iter().zip(placed).filter_map(|(member, place)| Some((member, place.as_ref()?)));
    let mut flows: Vec<Carried> = Vec::new();
    let (mut hosts, mut error, mut loss) = (BTreeSet::new(), Nanoseconds::ZERO, None::<f64>);
    for ((result, sample), place) in members {
        flows.extend(flows::carried(result, sample, place));
        hosts.extend(result.case.flow.hosts().into_iter().map(|host| host.to_string()));
        error = error.max(place.error);
        let lost = together::sum(result, repeat, Metric::VictimLoss).filter(|lost| lost.is_finite());
        loss = lost.map_or(loss, |lost| Some(loss.map_or(lost, |known| known.max(lost))));
    }
    let mean = |flow: &Carried| flow.mean.unwrap_or(-1.0);
    flows.sort_by(|a, b| b.victim.cmp(&a.victim).then(mean(a).total_cmp(&mean(b))));
    let span = flows.iter().map(|flow| flow.span).reduce(|a, b| Span::new(a.from.min(b.from), a.until.max(b.until)))?;
    let (mut ports, mut quiet, mut unread, mut read) = (Vec::new(), 0, 0, BTreeSet::new());
    for port in watch.ports_of(&hosts) {
        if port.within(&span).next().is_none() {
            unread += 1;
            continue;
        }
        read.insert(port.name.host.as_str());
        error = error.max(port.error);
        match counted::counted(port, &span) {
            lines if lines.is_empty() => quiet += 1,
            lines => ports.push((port.name.clone(), lines)),
        }
    }
    let gravest = |lines: &[Counted]| lines.iter().map(|line| line.family).min();
    ports.sort_by(|(a, lines), (b, others)| gravest(lines).cmp(&gravest(others)).then_with(|| a.cmp(b)));
    let blind = hosts.len() - read.len();
    Some(Pass { round, size, variant, repeat, span, error, loss, flows, hosts, ports, quiet, unread, blind })
}
