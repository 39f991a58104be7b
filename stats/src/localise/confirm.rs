//! Few further tests settle what a suspect is.

use std::collections::{BTreeMap, HashSet};

use super::{
    Findings, Level, Pair, Part, Port, Setting, Suspect, Way,
    peel::{MEDIAN_ERROR, freedom},
};
use crate::{
    robust::median_in_place,
    shift::{Interval, paired_shift},
    student::t_quantile,
};

/// Tests of each suspect.
pub const TESTS: usize = 5;
/// Fewest of them that must have a result.
const FEWEST: usize = 3;
/// Probability that chance alone confirms: that of three standard deviations of a normal distribution.
pub(super) const FALSE_ALARM: f64 = 0.001_349_9;

/// Share of the suspect's effect that the probes must show.
pub(super) const LIKE: f64 = 1.0 / 3.0;

/// One test that helps to settle a suspect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Position of the suspect among the findings.
    pub suspect: usize,
    /// The sending end.
    pub from: Port,
    /// The receiving end.
    pub to: Port,
    /// The path to take.
    pub path: u32,
    /// Whether the suspect end sends or receives; `Way::Both` where the suspect is no end.
    pub way: Way,
    /// What a good result looks like.
    pub level: Level,
    /// What other suspects take from that ([`Suspect::explained`]).
    pub explained: f64,
}

/// What the probes say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judgement {
    /// Low again.
    Confirmed {
        /// Median difference from good pairs, as a difference of logarithms.
        effect: f64,
        /// 95 % interval; `None` below six results.
        interval: Option<Interval>,
        /// The direction that is low, where the probes went both ways and one of them is fine.
        way: Way,
        /// Results.
        n: usize,
    },
    /// Not low any more: a glitch, or bad only beside other traffic.
    Cleared {
        /// Median difference from good pairs, as a difference of logarithms.
        effect: f64,
        /// Results.
        n: usize,
    },
    /// Too few probes had a result.
    Open {
        /// Results.
        n: usize,
    },
}

/// The tests that settle the findings: each suspect host or NIC with five partners that are good (fewer, but then
/// repeatedly, in a small cluster), each suspect way five times, each shared part with five of its low pairs that have no
/// host in common if possible.
pub fn probes(pairs: &[Pair], findings: &Findings, setting: &Setting<'_>) -> Vec<Probe> {
    let partners = Partners::new(pairs, findings);
    let mut wanted = Vec::new();
    for (number, suspect) in findings.suspects.iter().enumerate() {
        let ends = match &suspect.part {
            part if part.is_end() => with_partners(pairs, &partners, part),
            part if part.is_link() => repeated(pairs, &suspect.evidence.pairs),
            _ => spread(pairs, &suspect.evidence.pairs),
        };
        wanted.extend(ends.into_iter().map(|Ends { from, to, path, way }| Probe {
            suspect: number,
            from,
            to,
            path,
            way,
            level: level(findings, setting, from, to),
            explained: suspect.explained,
        }));
    }
    wanted
}

/// The ends of a probe.
struct Ends {
    from: Port,
    to: Port,
    path: u32,
    way: Way,
}

fn level(findings: &Findings, setting: &Setting<'_>, from: Port, to: Port) -> Level {
    let group = |port: Port| setting.groups.get(port.host as usize);
    findings.levels[if findings.levels.len() == 1 { 0 } else { usize::from(group(from) != group(to)) }]
}

/// Each suspect end of a host or NIC with good partners in turn, alternating direction where both are suspect.
fn with_partners(pairs: &[Pair], partners: &Partners, part: &Part) -> Vec<Ends> {
    let (way, ends) = match *part {
        Part::Host(host, way) => (way, partners.ends.range(Port { host, rail: 0 }..=Port { host, rail: u32::MAX })),
        Part::Nic(port, way) => (way, partners.ends.range(port..=port)),
        _ => return Vec::new(),
    };
    let mut wanted = Vec::new();
    for (&end, &like) in ends {
        let good = partners.of(end);
        for (test, &partner) in good.iter().cycle().take(if good.is_empty() { 0 } else { TESTS }).enumerate() {
            let sends = match way {
                Way::Send => true,
                Way::Receive => false,
                Way::Both => test % 2 == 0,
            };
            let (from, to, way) = if sends { (end, partner, Way::Send) } else { (partner, end, Way::Receive) };
            wanted.push(Ends { from, to, path: pairs[like].path, way });
        }
    }
    wanted
}

/// Who can be measured with a suspect.
struct Partners {
    /// Every end, with the position of one of its pairs.
    ends: BTreeMap<Port, usize>,
    /// Ends that were judged and that no suspect names, by rail.
    good: BTreeMap<u32, Vec<Port>>,
    /// Who was measured with whom.
    met: HashSet<(Port, Port)>,
}

impl Partners {
    fn new(pairs: &[Pair], findings: &Findings) -> Self {
        let mut ends = BTreeMap::new();
        let mut met = HashSet::with_capacity(2 * pairs.len());
        for (at, pair) in pairs.iter().enumerate() {
            ends.entry(pair.from).or_insert(at);
            ends.entry(pair.to).or_insert(at);
            met.insert((pair.from, pair.to));
            met.insert((pair.to, pair.from));
        }
        let mut hosts: HashSet<u32> = HashSet::new();
        let mut ports: HashSet<Port> = findings.unjudged.iter().copied().collect();
        for suspect in &findings.suspects {
            match &suspect.part {
                Part::Host(host, _) => hosts.extend([*host]),
                Part::Nic(port, _) => ports.extend([*port]),
                Part::Hosts(a, b) => hosts.extend([*a, *b]),
                Part::Link(a, b, _) | Part::Paths(a, b, _) => ports.extend([*a, *b]),
                _ => ports.extend(suspect.evidence.pairs.iter().flat_map(|&at| [pairs[at].from, pairs[at].to])),
            }
        }
        let mut good: BTreeMap<u32, Vec<Port>> = BTreeMap::new();
        for &port in ends.keys().filter(|port| !hosts.contains(&port.host) && !ports.contains(port)) {
            good.entry(port.rail).or_default().push(port);
        }
        Self { ends, good, met }
    }

    /// Good ends on the same rail of other hosts, those first that the end was not measured with.
    fn of(&self, end: Port) -> Vec<Port> {
        let good = self.good.get(&end.rail).map_or(&[][..], Vec::as_slice);
        let others = good.iter().copied().filter(|port| port.host != end.host);
        let (met, new): (Vec<Port>, Vec<Port>) = others.partition(|&port| self.met.contains(&(end, port)));
        new.into_iter().chain(met).take(TESTS).collect()
    }
}

/// The low pairs again, in turn.
fn repeated(pairs: &[Pair], evidence: &[usize]) -> Vec<Ends> {
    let mut different: Vec<&Pair> = evidence.iter().map(|&at| &pairs[at]).collect();
    different.sort_unstable_by_key(|pair| (pair.from, pair.to, pair.path));
    different.dedup_by_key(|pair| (pair.from, pair.to, pair.path));
    let tests = if different.is_empty() { 0 } else { TESTS.max(different.len()) };
    let again = |pair: &&Pair| Ends { from: pair.from, to: pair.to, path: pair.path, way: Way::Both };
    different.iter().cycle().take(tests).map(again).collect()
}

/// Some of the low pairs, with as many different hosts as possible.
fn spread(pairs: &[Pair], evidence: &[usize]) -> Vec<Ends> {
    let mut used: HashSet<u32> = HashSet::new();
    let mut chosen: Vec<usize> = Vec::new();
    for &at in evidence {
        let hosts = [pairs[at].from.host, pairs[at].to.host];
        if chosen.len() < TESTS && hosts.iter().all(|host| !used.contains(host)) {
            used.extend(hosts);
            chosen.push(at);
        }
    }
    repeated(pairs, &chosen)
}

/// Judges a suspect by its probes: `results` are pairs of a probe and the natural logarithm of its result, without those
/// that failed. Confirmed if the median difference lies below −c · 1.2533 s / √n, where c is 3, and more where s rests on
/// few pairs (Student's t), and is larger than the least effect and than a third of what made it a suspect (a glitch that
/// was followed by chance is not); open with fewer than three results.
pub fn judge(suspect: &Suspect, results: &[(Probe, f64)], setting: &Setting<'_>) -> Judgement {
    let n = results.len();
    if n < FEWEST || results.iter().any(|(_, value)| !value.is_finite()) {
        return Judgement::Open { n };
    }
    let all = Outcome::new(results, Way::Both);
    let one_way = |way: Way| Some(Outcome::new(results, way)).filter(|outcome| setting.directed && outcome.n >= 2);
    // One direction is fine if it is closer to good pairs than to the other direction.
    let (way, found) = match (one_way(Way::Send), one_way(Way::Receive)) {
        (Some(send), Some(receive)) if send.low && receive.effect > send.effect / 2.0 => (Way::Send, send),
        (Some(send), Some(receive)) if receive.low && send.effect > receive.effect / 2.0 => (Way::Receive, receive),
        _ => (Way::Both, all),
    };
    let enough = ((suspect.effect - suspect.explained) * LIKE).min(-setting.least);
    if found.low && found.effect < enough {
        let interval = paired_shift(&found.residuals, 0.95).ok().and_then(|shift| shift.interval);
        Judgement::Confirmed { effect: found.effect, interval, way, n }
    } else {
        Judgement::Cleared { effect: found.effect, n }
    }
}

/// Results of probes in one direction, or in both.
struct Outcome {
    residuals: Vec<f64>,
    effect: f64,
    low: bool,
    n: usize,
}

impl Outcome {
    fn new(results: &[(Probe, f64)], way: Way) -> Self {
        let chosen: Vec<&(Probe, f64)> =
            results.iter().filter(|(probe, _)| way == Way::Both || probe.way == way).collect();
        let n = chosen.len();
        let residuals: Vec<f64> =
            chosen.iter().map(|(probe, value)| value - probe.level.centre - probe.explained).collect();
        if n == 0 {
            return Self { residuals, effect: 0.0, low: false, n };
        }
        let mut scores: Vec<f64> = chosen.iter().zip(&residuals).map(|((p, _), r)| r / p.level.scale).collect();
        let basis = chosen.iter().map(|(probe, _)| probe.level.n).min().unwrap_or_default();
        let cut = t_quantile(FALSE_ALARM, freedom(basis));
        let low = median_in_place(&mut scores) < -cut * MEDIAN_ERROR / (n as f64).sqrt();
        Self { effect: median_in_place(&mut residuals.clone()), residuals, low, n }
    }
}
