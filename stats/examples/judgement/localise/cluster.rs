//! A cluster that is drawn, measured, and asked again until nothing more is asked for.

use railgauge_stats::localise::{
    Doubt, Findings, Judgement, MOST_BATCHES, Pair, Part, Port, Probe, Role, Setting, Way, localise, probes, settle,
};

use crate::noise::{Kind, Noise};

/// A fault: the part, the factor on what passes it, and the share of results in which it is bad.
pub type Fault = (Part, f64, f64);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    Rounds,
    Ring,
    /// Every host of the first half with every one of the second.
    Bipartite,
}

/// What lies between some hosts and all others, and is shared by the flows that cross it at once.
pub struct Trunk {
    pub side: Vec<u32>,
    /// What it carries, in parts of what a NIC does.
    pub carries: f64,
    /// Standard deviation of the logarithms of the flows' weights.
    pub uneven: f64,
}

pub struct Cluster {
    noise: Noise,
    hosts: u32,
    rails: u32,
    groups: Vec<u32>,
    sigma: f64,
    pub pattern: Pattern,
    /// How many times as noisy each host is, where they are not alike.
    pub noisy: Vec<f64>,
    /// What passes between leaves, in parts of what passes within one.
    pub between: f64,
    /// Whether faults are rates, of which the least on the way counts, and not shares of what the way gives.
    pub caps: bool,
    /// Whether what lies between leaves carries less beside no other traffic, too.
    pub always: bool,
    /// Whether faults touch only what passes between leaves.
    pub only_between: bool,
    /// Share of ways that are low by a factor, whichever their ends.
    pub random: Option<(f64, f64)>,
    /// A part that is faster than all others, by a factor.
    pub fast: Option<(Part, f64)>,
    pub faults: Vec<Fault>,
    pub trunk: Option<Trunk>,
    tested: Vec<Pair>,
    salt: u64,
}

#[derive(Debug, Clone)]
pub struct Name {
    pub part: Part,
    pub alternatives: Vec<Part>,
}

impl Name {
    /// Whether this part is meant, or one of those that pairs do not tell from it.
    pub fn may_be(&self, part: &Part) -> bool {
        let is = |named: &Part| match (named, part) {
            (Part::Link(a, b, _), Part::Link(c, d, _)) => (a.min(b), a.max(b)) == (c.min(d), c.max(d)),
            (named, part) => named == part,
        };
        is(&self.part) || self.alternatives.iter().any(is)
    }
}

#[derive(Debug, Default)]
pub struct Said {
    pub named: Vec<Name>,
    pub open: Vec<(Part, Option<Doubt>)>,
    /// Whether the results fall into two clusters that nothing separates.
    pub scattered: bool,
}

impl Said {
    pub fn names(&self, part: &Part) -> bool {
        self.named.iter().any(|named| named.may_be(part))
    }

    pub fn is_nothing(&self) -> bool {
        self.named.is_empty() && self.open.is_empty() && !self.scattered
    }
}

impl Cluster {
    pub fn new(seed: u64, hosts: u32, rails: u32, kind: Kind, sigma: f64) -> Self {
        let noise = Noise::new(kind, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            noise,
            hosts,
            rails,
            groups: Vec::new(),
            sigma,
            pattern: Pattern::Rounds,
            noisy: Vec::new(),
            between: 1.0,
            caps: false,
            always: false,
            only_between: false,
            random: None,
            fast: None,
            faults: Vec::new(),
            trunk: None,
            tested: Vec::new(),
            salt: seed,
        }
    }

    /// Puts the hosts under so many leaves, as evenly as it goes.
    pub fn leaves(&mut self, leaves: u32) {
        self.groups = (0..self.hosts).map(|host| host * leaves / self.hosts).collect();
    }

    pub fn below(&mut self, n: u32) -> u32 {
        self.noise.below(n as usize) as u32
    }

    /// So many different numbers below `n`.
    pub fn choose(&mut self, n: u32, k: usize) -> Vec<u32> {
        let mut all: Vec<u32> = (0..n).collect();
        self.shuffle(&mut all);
        all.truncate(k);
        all
    }

    fn shuffle(&mut self, items: &mut [u32]) {
        for i in (1..items.len()).rev() {
            let j = self.noise.below(i + 1);
            items.swap(i, j);
        }
    }

    /// The pairs of the pattern, all rails at once.
    fn pairs(&mut self, rounds: usize) -> Vec<Pair> {
        let (hosts, half) = (self.hosts, self.hosts / 2);
        let ends: Vec<(u32, u32)> = match self.pattern {
            Pattern::Rounds => return self.screen(rounds),
            Pattern::Ring => (0..hosts).map(|host| (host, (host + 1) % hosts)).collect(),
            Pattern::Bipartite => (0..half).flat_map(|a| (half..hosts).map(move |b| (a, b))).collect(),
        };
        let ends =
            ends.into_iter().flat_map(|(a, b)| (0..self.rails).map(move |rail| [a, b].map(|host| Port { host, rail })));
        let ends: Vec<[Port; 2]> = ends.collect();
        ends.into_iter().map(|[from, to]| Pair { from, to, path: 0, value: self.measure(from, to, true) }).collect()
    }

    pub fn is_tested(&self, part: &Part) -> bool {
        self.tested.iter().any(|pair| part.passed(pair.from, pair.to, &self.groups))
    }

    /// How many different ways between two ends the tests took over the part.
    pub fn tests_of(&self, part: &Part) -> usize {
        let over = self.tested.iter().filter(|pair| part.passed(pair.from, pair.to, &self.groups));
        over.map(|pair| (pair.from, pair.to)).collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Whether the tests crossed the part within a leaf.
    pub fn is_tested_within(&self, part: &Part) -> bool {
        let within = |pair: &&Pair| self.groups[pair.from.host as usize] == self.groups[pair.to.host as usize];
        self.tested.iter().filter(within).any(|pair| part.passed(pair.from, pair.to, &self.groups))
    }

    /// Whether a pair was tested, between leaves or within one, that passes nothing bad.
    pub fn shows_good(&self, between: bool) -> bool {
        let leaf = |port: Port| self.groups[port.host as usize];
        let of_kind = |pair: &&Pair| (leaf(pair.from) != leaf(pair.to)) == between;
        let bad = |pair: &Pair| self.faults.iter().any(|(part, ..)| part.passed(pair.from, pair.to, &self.groups));
        self.tested.iter().filter(of_kind).any(|pair| !bad(pair))
    }

    fn is_slow_by_chance(&self, from: Port, to: Port) -> bool {
        let ends = (from.min(to), from.max(to));
        let number = u64::from(ends.0.host) << 40 | u64::from(ends.1.host) << 16 | u64::from(from.rail);
        let hash = (number ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.random.is_some_and(|(share, _)| ((hash >> 11) as f64) < share * (1_u64 << 53) as f64)
    }

    /// The hosts all of whose ways are slow by chance, which look like slow hosts, and their NICs.
    pub fn ends_without_a_good_way(&self) -> Vec<Part> {
        let slow = |port: Port| {
            let others = (0..self.hosts).filter(|host| *host != port.host);
            others.into_iter().all(|host| self.is_slow_by_chance(port, Port { host, ..port }))
        };
        let ways = [Way::Both, Way::Send, Way::Receive];
        let mut ends = Vec::new();
        for host in 0..self.hosts {
            let ports: Vec<Port> = (0..self.rails).map(|rail| Port { host, rail }).filter(|port| slow(*port)).collect();
            if ports.len() == self.rails as usize {
                ends.extend(ways.map(|way| Part::Host(host, way)));
            }
            ends.extend(ports.iter().flat_map(|port| ways.map(|way| Part::Nic(*port, way))));
        }
        ends
    }

    /// The slowest thing on the way, times noise. What lies between leaves carries less only beside other traffic.
    fn measure(&mut self, from: Port, to: Port, loaded: bool) -> f64 {
        let group = |port: Port| self.groups.get(port.host as usize);
        let between = group(from) != group(to);
        let mut slowest = 0.0_f64;
        for (part, factor, share) in self.faults.clone() {
            let passes = part.passed(from, to, &self.groups) && (between || !self.only_between);
            if passes && (share >= 1.0 || self.noise.uniform() < share) {
                slowest = slowest.min(factor.ln());
            }
        }
        if let Some((_, factor)) = self.random
            && self.is_slow_by_chance(from, to)
        {
            slowest = slowest.min(factor.ln());
        }
        if let Some((part, factor)) = &self.fast
            && part.passed(from, to, &self.groups)
        {
            slowest += factor.ln();
        }
        let fabric = if between && (loaded || self.always) { self.between.ln() } else { 0.0 };
        let way = if self.caps { fabric.min(slowest) } else { fabric + slowest };
        let noisy = |port: Port| self.noisy.get(port.host as usize).copied().unwrap_or(1.0);
        let sigma = self.sigma * noisy(from).max(noisy(to));
        391.0_f64.ln() + way + sigma * self.noise.next()
    }

    /// Some rounds of the circle method, hosts in random order, all rails at once, the initiator by chance.
    fn screen(&mut self, rounds: usize) -> Vec<Pair> {
        let even = self.hosts as usize + self.hosts as usize % 2;
        let mut order: Vec<u32> = (0..even as u32).collect();
        self.shuffle(&mut order);
        let rounds = self.choose(even as u32 - 1, rounds.min(even - 1));
        let mut pairs = Vec::new();
        for round in rounds {
            let at = |place: usize| if place == 0 { 0 } else { (place - 1 + round as usize) % (even - 1) + 1 };
            let start = pairs.len();
            for i in 0..even / 2 {
                let (mut a, mut b) = (order[at(i)], order[at(even - 1 - i)]);
                if self.noise.uniform() < 0.5 {
                    (a, b) = (b, a);
                }
                if a.max(b) >= self.hosts {
                    continue;
                }
                for rail in 0..self.rails {
                    let (from, to) = (Port { host: a, rail }, Port { host: b, rail });
                    pairs.push(Pair { from, to, path: 0, value: self.measure(from, to, true) });
                }
            }
            self.divide(&mut pairs[start..]);
        }
        pairs
    }

    /// Divides the trunk among the flows that cross it at once, by their weights, none of which gets more than its NIC carries.
    fn divide(&mut self, flows: &mut [Pair]) {
        let Some(Trunk { side, carries, uneven }) = &self.trunk else { return };
        let (mut left, uneven) = (*carries, *uneven);
        let crosses = |flow: &&mut Pair| side.contains(&flow.from.host) != side.contains(&flow.to.host);
        let mut open: Vec<&mut Pair> = flows.iter_mut().filter(crosses).collect();
        let mut weights: Vec<f64> = open.iter().map(|_| (uneven * self.noise.normal()).exp()).collect();
        loop {
            let unit = left / weights.iter().sum::<f64>();
            let Some(full) = weights.iter().position(|weight| weight * unit >= 1.0) else {
                open.iter_mut().zip(weights).for_each(|(flow, weight)| flow.value += (weight * unit).ln());
                return;
            };
            open.swap_remove(full);
            weights.swap_remove(full);
            left -= 1.0;
        }
    }

    /// Values of probes, those at once whose ports are free.
    fn measure_again(&mut self, probes: &[Probe]) -> Vec<f64> {
        let measured = probes.iter().map(|probe| {
            let (from, to) = (probe.from, probe.to);
            Pair { from, to, path: 0, value: self.measure(from, to, false) }
        });
        let mut measured: Vec<Pair> = measured.collect();
        let mut open: Vec<usize> = (0..measured.len()).filter(|_| self.trunk.is_some()).collect();
        while !open.is_empty() {
            let mut busy = std::collections::HashSet::new();
            let is_free = |at: &usize| {
                let ports = [measured[*at].from, measured[*at].to];
                let free = !ports.iter().any(|port| busy.contains(port));
                busy.extend(ports.into_iter().filter(|_| free));
                free
            };
            let (now, later): (Vec<usize>, Vec<usize>) = open.into_iter().partition(is_free);
            let mut flows: Vec<Pair> = now.iter().map(|at| measured[*at]).collect();
            self.divide(&mut flows);
            now.iter().zip(flows).for_each(|(at, flow)| measured[*at] = flow);
            open = later;
        }
        measured.into_iter().map(|pair| pair.value).collect()
    }

    pub fn run(&mut self, rounds: usize, directed: bool) -> Said {
        self.tested = self.pairs(rounds);
        let (pairs, groups) = (self.tested.clone(), self.groups.clone());
        let setting = Setting { groups: &groups, directed, ..Setting::default() };
        let Ok(findings) = localise(&pairs, &setting) else { return Said::default() };
        let mut results: Vec<(Probe, f64)> = Vec::new();
        let wanted = probes(&pairs, &findings, &setting);
        for batch in 0..MOST_BATCHES {
            let more = |number: usize, results: &[(Probe, f64)]| {
                batch == 0 || self::settled(&findings, number, results, &setting).wants_more()
            };
            let open: Vec<bool> = (0..findings.suspects.len()).map(|number| more(number, &results)).collect();
            let again: Vec<Probe> = wanted.iter().filter(|probe| open[probe.suspect]).copied().collect();
            let values = self.measure_again(&again);
            results.extend(again.into_iter().zip(values));
        }
        say(&findings, &results, &setting)
    }
}

fn of(number: usize, results: &[(Probe, f64)]) -> Vec<(Probe, f64)> {
    results.iter().filter(|(probe, _)| probe.role == Role::Control || probe.suspect == number).copied().collect()
}

fn settled(findings: &Findings, number: usize, results: &[(Probe, f64)], setting: &Setting<'_>) -> Judgement {
    settle(&findings.suspects[number], &of(number, results), setting).judgement
}

fn say(findings: &Findings, results: &[(Probe, f64)], setting: &Setting<'_>) -> Said {
    let scattered = findings.two_clusters.is_some();
    let mut said = Said { scattered, ..Said::default() };
    let judged: Vec<_> = findings
        .suspects
        .iter()
        .enumerate()
        .map(|(number, suspect)| settle(suspect, &of(number, results), setting))
        .collect();
    let judgements: Vec<Judgement> = judged.iter().map(|settled| settled.judgement).collect();
    for (number, settled) in judged.iter().enumerate() {
        let shown = findings.shows(number, &judgements);
        if !shown {
            continue;
        }
        match settled.judgement {
            Judgement::Confirmed { way, .. } => {
                let part = match settled.part.clone() {
                    Part::Host(host, Way::Both) => Part::Host(host, way),
                    Part::Nic(port, Way::Both) => Part::Nic(port, way),
                    part => part,
                };
                said.named.push(Name { part, alternatives: settled.alternatives.clone() });
            }
            Judgement::Intermittent { .. } => {
                said.named.push(Name { part: settled.part.clone(), alternatives: settled.alternatives.clone() });
            }
            Judgement::Open { doubt, .. } => said.open.push((settled.part.clone(), Some(doubt))),
            Judgement::Ways { .. } => said.open.push((settled.part.clone(), None)),
            Judgement::Cleared { .. } => {}
        }
    }
    said
}
