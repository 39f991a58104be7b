use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};

use super::{Findings, Pair, Part, Port, Setting};

pub const TESTS: usize = 5;

pub(super) struct Partners {
    /// Every end, with the index of one of its pairs.
    pub(super) ends: BTreeMap<Port, usize>,
    /// Judged ends without suspicion, by rail.
    good: BTreeMap<u32, Vec<Port>>,
    /// Ends that only low paths and the like name, by rail: a fallback.
    fair: BTreeMap<u32, Vec<Port>>,
    /// Partners that ends of the suspects' hosts were measured with.
    met: HashSet<(Port, Port)>,
}

impl Partners {
    pub(super) fn new(pairs: &[Pair], findings: &Findings) -> Self {
        // Few ends of a large cluster are suspects; the others' partners are not needed.
        let suspects = findings.suspects.iter().filter_map(|suspect| match suspect.part {
            Part::Host(host, _) | Part::Nic(Port { host, .. }, _) => Some(host),
            _ => None,
        });
        let suspects: HashSet<u32> = suspects.collect();
        let mut ends: HashMap<Port, usize> = HashMap::default();
        let mut met = HashSet::default();
        for (at, pair) in pairs.iter().enumerate() {
            for (end, other) in [(pair.from, pair.to), (pair.to, pair.from)] {
                ends.entry(end).or_insert(at);
                if suspects.contains(&end.host) {
                    met.insert((end, other));
                }
            }
        }
        let ends: BTreeMap<Port, usize> = ends.into_iter().collect();
        let mut hosts: HashSet<u32> = HashSet::default();
        let mut ports: HashSet<Port> = findings.unjudged.iter().copied().collect();
        let mut doubtful: HashSet<u32> = HashSet::default();
        for suspect in &findings.suspects {
            match &suspect.part {
                Part::Host(host, _) if suspect.latent => doubtful.extend([*host]),
                Part::Nic(port, _) if suspect.latent => doubtful.extend([port.host]),
                Part::Host(host, _) => hosts.extend([*host]),
                Part::Nic(port, _) => ports.extend([*port]),
                Part::Hosts(a, b) => doubtful.extend([*a, *b]),
                Part::Link(a, b, _) | Part::Paths(a, b, _) => doubtful.extend([a.host, b.host]),
                _ => ports.extend(suspect.evidence.pairs.iter().flat_map(|&at| [pairs[at].from, pairs[at].to])),
            }
        }
        let (mut good, mut fair): (BTreeMap<u32, Vec<Port>>, BTreeMap<u32, Vec<Port>>) = Default::default();
        for &port in ends.keys().filter(|port| !hosts.contains(&port.host) && !ports.contains(port)) {
            let to = if doubtful.contains(&port.host) { &mut fair } else { &mut good };
            to.entry(port.rail).or_default().push(port);
        }
        Self { ends, good, fair, met }
    }

    /// Good ends on the same rail of other hosts, new partners first. If one `kind` of pairs shows the end, those of that kind, if any.
    pub(super) fn of(&self, end: Port, kind: Option<bool>, setting: &Setting<'_>) -> Vec<Port> {
        let Some(between) = kind else { return self.among(end, |_| true) };
        let own = self.among(end, |port| setting.between(end, port) == between);
        if own.is_empty() { self.among(end, |_| true) } else { own }
    }

    fn among(&self, end: Port, fits: impl Fn(Port) -> bool) -> Vec<Port> {
        let of = |ends: &BTreeMap<u32, Vec<Port>>| -> Vec<Port> {
            let ends = ends.get(&end.rail).map_or(&[][..], Vec::as_slice);
            let others = spread(ends, end.host as usize).filter(|&port| port.host != end.host && fits(port));
            let (met, new): (Vec<Port>, Vec<Port>) = others.partition(|port| self.met.contains(&(end, *port)));
            [new, met].concat()
        };
        let mut all = of(&self.good);
        if all.len() < 2 {
            all.extend(of(&self.fair));
        }
        all.truncate(TESTS);
        all
    }
}

/// All of them, the first few from all over the list (steps of the golden section): neighbours often share a switch, and with all of them
/// beyond a slow trunk a good end would look bad.
fn spread(ends: &[Port], from: usize) -> impl Iterator<Item = Port> {
    let count = ends.len();
    let divides = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a > 1
    };
    let mut step = (count as f64 * 0.618).round() as usize;
    while divides(step, count) {
        step += 1;
    }
    (0..count).map(move |turn| ends[(from + turn * step) % count])
}
