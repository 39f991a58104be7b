//! Clusters with faults: results of their pairs, and what localisation names once its probes were run.

use std::collections::BTreeSet;

use railgauge_stats::localise::{
    Findings, Judgement, MOST_BATCHES, Pair, Part, Port, Role, Setting, Way, judge, localise, probes, settle,
};

use super::Noise;

pub struct Cluster {
    pub hosts: u32,
    pub rails: u32,
    pub rounds: usize,
    /// Hosts a group; 0 for none.
    pub leaf: u32,
    pub noise: f64,
    /// Factors on the bandwidth of what passes a part.
    pub faults: Vec<(Part, f64)>,
    /// Share of pairs that are 20 % low for once.
    pub glitches: f64,
    /// What passes between groups, in parts of what passes within one; a fault costs nothing where it leaves more than that.
    pub taper: f64,
    /// Whether faults touch only what passes between groups.
    pub only_between: bool,
}

impl Cluster {
    pub fn healthy(hosts: u32, rounds: usize, noise: f64) -> Self {
        Self {
            hosts,
            rails: 1,
            rounds,
            leaf: 0,
            noise,
            faults: Vec::new(),
            glitches: 0.005,
            taper: 1.0,
            only_between: false,
        }
    }

    pub fn group(&self, port: Port) -> Option<u32> {
        (self.leaf > 0).then(|| port.host / self.leaf)
    }

    pub fn passes(&self, part: &Part, from: Port, to: Port) -> bool {
        let (a, b) = (self.group(from), self.group(to));
        match *part {
            Part::Rail(rail) => from.rail == rail,
            Part::Group(g) => a == Some(g) || b == Some(g),
            Part::GroupRail { group, rail } => (a == Some(group) || b == Some(group)) && from.rail == rail,
            Part::Uplink(g, way) => a != b && (way != Way::Receive && a == Some(g) || way != Way::Send && b == Some(g)),
            Part::Boundary(g, h, way) => {
                way != Way::Receive && (a, b) == (Some(g), Some(h)) || way != Way::Send && (a, b) == (Some(h), Some(g))
            }
            Part::Host(host, way) => way != Way::Receive && from.host == host || way != Way::Send && to.host == host,
            Part::Nic(port, way) => way != Way::Receive && from == port || way != Way::Send && to == port,
            Part::Hosts(x, y) => (from.host.min(to.host), from.host.max(to.host)) == (x, y),
            Part::Link(x, y, _) => (from.min(to), from.max(to)) == (x, y),
            Part::Cut(ref side) => side.contains(&from.host) != side.contains(&to.host),
            Part::Paths(..) => false,
        }
    }

    /// One result: the slowest thing on the way, times noise.
    pub fn measure(&self, from: Port, to: Port, noise: &mut Noise) -> f64 {
        let between = self.group(from) != self.group(to);
        let touched = self.faults.iter().filter(|(part, _)| self.passes(part, from, to));
        let slow = touched.filter(|_| between || !self.only_between).map(|(_, f)| *f);
        let way = if between { self.taper } else { 1.0 };
        let glitch = if noise.chance(self.glitches) { 0.8_f64.ln() } else { 0.0 };
        391.0_f64.ln() + slow.fold(way, f64::min).ln() + glitch + self.noise * noise.normal()
    }

    /// Results of some rounds of the circle method, hosts in random order, all rails at once, the initiator by chance.
    pub fn run(&self, noise: &mut Noise) -> Vec<Pair> {
        let n = self.hosts as usize;
        let mut order: Vec<u32> = (0..self.hosts).collect();
        noise.shuffle(&mut order);
        let mut pairs = Vec::new();
        for round in noise.choose(n - 1, self.rounds.min(n - 1)) {
            let at = |place: usize| if place == 0 { 0 } else { (place - 1 + round) % (n - 1) + 1 };
            for i in 0..n / 2 {
                let (mut a, mut b) = (order[at(i)], order[at(n - 1 - i)]);
                if noise.chance(0.5) {
                    (a, b) = (b, a);
                }
                for rail in 0..self.rails {
                    let (from, to) = (Port { host: a, rail }, Port { host: b, rail });
                    pairs.push(Pair { from, to, path: 0, value: self.measure(from, to, noise) });
                }
            }
        }
        pairs
    }
}

/// Names after the probes were run and judged; the second number counts the probes.
pub fn confirmed(
    cluster: &Cluster,
    setting: &Setting<'_>,
    pairs: &[Pair],
    noise: &mut Noise,
) -> (BTreeSet<Part>, usize, Findings) {
    let findings = localise(pairs, setting).unwrap();
    let wanted = probes(pairs, &findings, setting);
    let mut judged = Vec::new();
    for (number, suspect) in findings.suspects.iter().enumerate() {
        let mut results: Vec<_> = Vec::new();
        for _ in 0..MOST_BATCHES {
            let own = wanted.iter().filter(|probe| probe.suspect == number || probe.role == Role::Control);
            results.extend(own.map(|probe| (*probe, cluster.measure(probe.from, probe.to, noise))));
            if !judge(suspect, &results, setting).wants_more() {
                break;
            }
        }
        judged.push(settle(suspect, &results, setting));
    }
    let judgements: Vec<Judgement> = judged.iter().map(|settled| settled.judgement).collect();
    let bad = |judgement: &Judgement| matches!(judgement, Judgement::Confirmed { .. } | Judgement::Intermittent { .. });
    let named = |at: &usize| bad(&judgements[*at]) && findings.shows(*at, &judgements);
    let names = (0..judged.len()).filter(named).map(|at| judged[at].part.clone()).collect();
    (names, wanted.len(), findings)
}
