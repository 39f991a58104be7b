use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashSet;

use super::{
    Findings, LOWER, Level, Pair, Part, Port, Setting, Suspect, Way,
    partners::{Partners, TESTS},
};

/// Tests over pairs that separate one possible part from another.
const APART: usize = 4;
const AT_ONCE: usize = 16;
/// Ends near one that are candidates for such pairs, and ends from all over a large cluster.
const NEAR: usize = 64;
/// Control tests of one suspect; fewer for many suspects, since all serve for all.
const CONTROLS: usize = 8;
const CONTROLS_OF_MANY: usize = 3;
const MANY: usize = 6;
const CONTROL_PAIRS: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Suspect,
    /// A good pair, measured in the same rounds: it shows what good pairs reach now.
    Control,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    pub suspect: usize,
    pub role: Role,
    pub from: Port,
    pub to: Port,
    pub path: u32,
    /// `Way::Both` where the suspect is not an end.
    pub way: Way,
    pub level: Level,
    /// The part of it that other suspects explain ([`Suspect::explained`]).
    pub explained: f64,
}

/// The tests that settle the findings: each suspect host or NIC with five good partners (fewer, but then repeatedly, in a small cluster),
/// each suspect way five times, each shared part with five of its pairs that have no host in common if possible and with pairs that
/// separate it from its alternatives. Each brings control pairs.
pub fn probes(pairs: &[Pair], findings: &Findings, setting: &Setting<'_>) -> Vec<Probe> {
    let partners = Partners::new(pairs, findings);
    let mut controls = [false, true].map(|kind| Controls::new(pairs, findings, setting, kind));
    let listed = findings.suspects.iter().filter(|suspect| !suspect.latent).count();
    let control = |suspect: usize, Ends { from, to, path, way }: Ends| {
        let level = level(findings, setting, from, to);
        Probe { suspect, role: Role::Control, from, to, path, way, level, explained: 0.0 }
    };
    let mut wanted = Vec::new();
    // Those first that many pairs must pass at once.
    let mut order: Vec<usize> = (0..findings.suspects.len()).collect();
    order.sort_by_key(|&number| !findings.suspects[number].part.is_shared());
    for number in order {
        let suspect = &findings.suspects[number];
        let mut ends = match &suspect.part {
            part if part.is_end() => with_partners(pairs, &partners, part, suspect, setting),
            part if part.is_link() => repeated(pairs, &suspect.evidence.pairs),
            _ => across(pairs, suspect, setting),
        };
        ends.extend(separating(pairs, suspect, setting));
        let ends = if matches!(suspect.part, Part::Cut(_)) { on_all_rails(pairs, &ends) } else { ends };
        let tests = match (suspect.latent, listed) {
            (true, _) => 0,
            (false, ..MANY) => CONTROLS,
            _ => CONTROLS_OF_MANY,
        };
        let probe = |ends: Ends| {
            let between = usize::from(setting.between(ends.from, ends.to));
            let shared = findings.suspects.iter().filter(|other| other.part.is_shared() && !other.latent);
            let passed = shared.filter(|other| other.part.passed(ends.from, ends.to, setting.groups));
            let takes = passed.map(|other| other.effects[between].unwrap_or(other.effect));
            // A known slow part on the way is not a fault of an end.
            let explained =
                if suspect.part.is_end() { takes.fold(suspect.explained, f64::min) } else { suspect.explained };
            let way = if ends.way == Way::Both { suspect.part.way_of(ends.from, setting.groups) } else { ends.way };
            Probe { role: Role::Suspect, way, explained, ..control(number, ends) }
        };
        // Alternating, so that the rounds of measurement hold both. What hosts share is low only if many pairs pass it at once.
        let mut good = matching(&mut controls, &ends, tests, setting).into_iter();
        let share = if suspect.part.is_shared() { 0 } else { tests.div_ceil(ends.len().max(1)) };
        for ends in ends {
            wanted.push(probe(ends));
            wanted.extend(good.by_ref().take(share).map(|ends| control(number, ends)));
        }
        wanted.extend(good.map(|ends| control(number, ends)));
    }
    // Suspects without controls may be the only ones of their kind.
    for kind in [false, true] {
        let of = |role: Role| {
            wanted.iter().filter(move |probe| probe.role == role && setting.between(probe.from, probe.to) == kind)
        };
        let Some(like) = of(Role::Suspect).next().copied() else { continue };
        let lacking = (CONTROLS / 2).saturating_sub(of(Role::Control).count());
        let more: Vec<Probe> =
            controls[usize::from(kind)].next(lacking).into_iter().map(|ends| control(like.suspect, ends)).collect();
        wanted.extend(more);
    }
    wanted
}

#[derive(Clone, Copy)]
struct Ends {
    from: Port,
    to: Port,
    path: u32,
    way: Way,
}

impl Ends {
    fn of(pair: &Pair) -> Self {
        Self { from: pair.from, to: pair.to, path: pair.path, way: Way::Both }
    }
}

fn level(findings: &Findings, setting: &Setting<'_>, from: Port, to: Port) -> Level {
    findings.levels[usize::from(findings.levels.len() > 1 && setting.between(from, to))]
}

fn on_all_rails(pairs: &[Pair], ends: &[Ends]) -> Vec<Ends> {
    let rails: BTreeSet<u32> = pairs.iter().map(|pair| pair.from.rail).collect();
    let on = |rail: u32| {
        ends.iter().map(move |Ends { from, to, path, way }| {
            let on = |port: &Port| Port { rail, ..*port };
            Ends { from: on(from), to: on(to), path: *path, way: *way }
        })
    };
    rails.into_iter().flat_map(on).collect()
}

/// At most so many; those first that share no host with any before.
fn disjoint<T>(all: impl IntoIterator<Item = T>, hosts: impl Fn(&T) -> [u32; 2], most: usize) -> Vec<T> {
    let mut used: HashSet<u32> = HashSet::default();
    let mut is_new = |of: &T| {
        let of = hosts(of);
        let is_new = !of.iter().any(|host| used.contains(host));
        used.extend(of.into_iter().filter(|_| is_new));
        is_new
    };
    all.into_iter().filter(|of| is_new(of)).take(most).collect()
}

/// Controls of the kinds of the probes, in the same proportion, three at least of each kind.
fn matching(controls: &mut [Controls; 2], ends: &[Ends], tests: usize, setting: &Setting<'_>) -> Vec<Ends> {
    if tests == 0 || ends.is_empty() {
        return Vec::new();
    }
    let across = ends.iter().filter(|ends| setting.between(ends.from, ends.to)).count();
    let share = (tests * across).div_ceil(ends.len());
    let few = CONTROLS_OF_MANY;
    let wanted = match across {
        0 => [tests, 0],
        _ if across == ends.len() => [0, tests],
        _ => [(tests - share).max(few), share.max(few)],
    };
    let [within, between] = controls;
    let wanted = match (within.pairs.is_empty(), between.pairs.is_empty()) {
        (true, false) => [0, tests],
        (false, true) => [tests, 0],
        _ => wanted,
    };
    [within.next(wanted[0]), between.next(wanted[1])].concat()
}

/// Good pairs in an order that spreads them over hosts.
struct Controls {
    pairs: Vec<Ends>,
    next: usize,
}

impl Controls {
    fn new(pairs: &[Pair], findings: &Findings, setting: &Setting<'_>, between: bool) -> Self {
        let (mut shaky, mut latent): (HashSet<u32>, HashSet<u32>) = Default::default();
        for suspect in &findings.suspects {
            let hosts = if suspect.latent { &mut latent } else { &mut shaky };
            match suspect.part {
                Part::Host(host, _) => hosts.extend([host]),
                Part::Nic(port, _) => hosts.extend([port.host]),
                _ => {}
            }
        }
        let at = |pair: &Pair, hosts: &HashSet<u32>| hosts.contains(&pair.from.host) || hosts.contains(&pair.to.host);
        let all = findings.controls.iter().map(|&at| &pairs[at]);
        let all: Vec<&Pair> = all.filter(|pair| setting.between(pair.from, pair.to) == between).collect();
        let best: Vec<&Pair> = all.iter().copied().filter(|pair| !at(pair, &shaky) && !at(pair, &latent)).collect();
        let fair: Vec<&Pair> = all.iter().copied().filter(|pair| !at(pair, &shaky)).collect();
        let few = best.len() < CONTROLS_OF_MANY;
        let from = [best, fair, all].into_iter().find(|pairs| !pairs.is_empty()).unwrap_or_default();
        // Pairs without a host in common first, taken from all over the list.
        let step = (from.len() / 64).max(1);
        let (mut used, mut first, mut later) = (HashSet::default(), Vec::new(), Vec::new());
        for pair in from.iter().step_by(step) {
            let hosts = [pair.from.host, pair.to.host];
            let new = hosts.iter().all(|host| !used.contains(host));
            if new {
                used.extend(hosts);
            }
            (if new { &mut first } else { &mut later }).push(Ends::of(pair));
        }
        first.extend(later);
        if few {
            let hosts = |port: Port| shaky.contains(&port.host) || latent.contains(&port.host);
            first.extend(fresh(pairs, findings, setting, between, hosts));
        }
        Self { pairs: first, next: 0 }
    }

    fn next(&mut self, tests: usize) -> Vec<Ends> {
        if self.pairs.is_empty() || tests == 0 {
            return Vec::new();
        }
        let different = CONTROL_PAIRS.min(self.pairs.len());
        let chosen: Vec<Ends> = (0..different).map(|at| self.pairs[(self.next + at) % self.pairs.len()]).collect();
        self.next = (self.next + different) % self.pairs.len();
        chosen.iter().cycle().take(tests).copied().collect()
    }
}

/// Unmeasured pairs of a kind between ends with good pairs: with few measured pairs within groups, a suspect of that kind would have no
/// controls.
fn fresh(
    pairs: &[Pair],
    findings: &Findings,
    setting: &Setting<'_>,
    between: bool,
    doubtful: impl Fn(Port) -> bool,
) -> Vec<Ends> {
    let good = findings.controls.iter().flat_map(|&at| [pairs[at].from, pairs[at].to]);
    let good: BTreeSet<Port> = good.filter(|&port| !doubtful(port)).collect();
    let parts: Vec<&Part> =
        findings.suspects.iter().map(|suspect| &suspect.part).filter(|part| part.is_shared()).collect();
    let mut of_rail: BTreeMap<u32, Vec<Port>> = BTreeMap::new();
    good.iter().for_each(|port| of_rail.entry(port.rail).or_default().push(*port));
    let met: HashSet<(Port, Port)> = pairs.iter().flat_map(|p| [(p.from, p.to), (p.to, p.from)]).collect();
    let of_ends = |ends: &Vec<Port>, at: usize| ends[at + 1..].iter().map(|to| (ends[at], *to)).collect::<Vec<_>>();
    let all = of_rail.values().flat_map(|ends| (0..ends.len()).flat_map(move |at| of_ends(ends, at)));
    let fits = |&(from, to): &(Port, Port)| {
        setting.between(from, to) == between
            && !met.contains(&(from, to))
            && !parts.iter().any(|part| part.passed(from, to, setting.groups))
    };
    let chosen = disjoint(all.filter(fits), |(from, to)| [from.host, to.host], CONTROL_PAIRS).into_iter();
    chosen.map(|(from, to)| Ends { from, to, path: pairs[0].path, way: Way::Both }).collect()
}

/// Each suspect end of a host or NIC with good partners, alternating direction where both are suspect.
fn with_partners(
    pairs: &[Pair],
    partners: &Partners,
    part: &Part,
    suspect: &Suspect,
    setting: &Setting<'_>,
) -> Vec<Ends> {
    let (way, ends) = match *part {
        Part::Host(host, way) => (way, partners.ends.range(Port { host, rail: 0 }..=Port { host, rail: u32::MAX })),
        Part::Nic(port, way) => (way, partners.ends.range(port..=port)),
        _ => return Vec::new(),
    };
    let kind = shows_in(suspect);
    // A direction, or a share of the results, is one of the end only if each partner shows it in both directions: otherwise those beyond a
    // slow trunk could be the ones that it sends to.
    let both_ways = setting.directed && way != Way::Both || suspect.share.is_some();
    let tests = if both_ways { 2 * TESTS } else { TESTS };
    let mut wanted = Vec::new();
    for (&end, &like) in ends {
        let good = partners.of(end, kind, setting);
        for (test, &partner) in good.iter().cycle().take(if good.is_empty() { 0 } else { tests }).enumerate() {
            // Both ways and each partner, whatever the suspicion: these tests decide which direction is bad.
            let turn = test % good.len() + test / good.len();
            let sends = turn % 2 == usize::from(way == Way::Receive);
            let (from, to, way) = if sends { (end, partner, Way::Send) } else { (partner, end, Way::Receive) };
            wanted.push(Ends { from, to, path: pairs[like].path, way });
        }
    }
    wanted
}

/// The kind of pairs that shows a suspect end, where only one does or one does more: a good pair of the other kind would not clear the
/// end.
fn shows_in(suspect: &Suspect) -> Option<bool> {
    match suspect.effects {
        [Some(within), Some(between)] if within < LOWER * between => Some(false),
        [Some(within), Some(between)] if between < LOWER * within => Some(true),
        [Some(_), None] => Some(false),
        [None, Some(_)] => Some(true),
        _ => None,
    }
}

fn repeated(pairs: &[Pair], evidence: &[usize]) -> Vec<Ends> {
    let mut different: Vec<&Pair> = evidence.iter().map(|&at| &pairs[at]).collect();
    different.sort_unstable_by_key(|pair| (pair.from, pair.to, pair.path));
    different.dedup_by_key(|pair| (pair.from, pair.to, pair.path));
    let tests = if different.is_empty() { 0 } else { TESTS.max(different.len()) };
    different.iter().cycle().take(tests).map(|pair| Ends::of(pair)).collect()
}

/// Pairs of a shared part: others than before, where these may be low for their hosts.
fn across(pairs: &[Pair], suspect: &Suspect, setting: &Setting<'_>) -> Vec<Ends> {
    let fresh = |part: &Part| match part {
        Part::Boundary(..) | Part::Cut(_) => fresh_across(pairs, part, suspect, setting),
        _ => Vec::new(),
    };
    let own = fresh(&suspect.part);
    if own.is_empty() {
        return repeated(pairs, &spread(pairs, &suspect.evidence.pairs));
    }
    let tests = own.len().max(TESTS + 1);
    own.into_iter().cycle().take(tests).chain(suspect.alternatives.iter().flat_map(fresh)).collect()
}

/// Pairs that pass some of a part and its alternatives and not others.
fn separating(pairs: &[Pair], suspect: &Suspect, setting: &Setting<'_>) -> Vec<Ends> {
    let parts: Vec<&Part> = [&suspect.part].into_iter().chain(&suspect.alternatives).collect();
    let mut wanted = Vec::new();
    if parts.len() == 1 {
        return wanted;
    }
    let kind = shows_in(suspect).filter(|_| suspect.part.is_end());
    let directed =
        parts.iter().any(|part| matches!(part, Part::Uplink(_, way) | Part::Boundary(_, _, way) if *way != Way::Both));
    // One rail is enough, and limits the pairs to those of the hosts.
    let rail = pairs[suspect.evidence.pairs[0]].from.rail;
    let ports: BTreeSet<Port> =
        pairs.iter().flat_map(|pair| [pair.from, pair.to]).filter(|port| port.rail == rail).collect();
    let ports: Vec<Port> = ports.into_iter().collect();
    // In large clusters those near an end, which have most in common with it, and some from elsewhere.
    let step = (ports.len() / NEAR).max(1);
    let mut separating: Vec<(Vec<bool>, Ends)> = Vec::new();
    for (at, &from) in ports.iter().enumerate() {
        let near = (1..ports.len()).take(if step > 1 { NEAR } else { ports.len() });
        let all_over = (NEAR + 1..ports.len()).step_by(step).filter(|_| step > 1);
        for to in near.chain(all_over).map(|by| ports[(at + by) % ports.len()]) {
            let passes: Vec<bool> = parts.iter().map(|part| part.passed(from, to, setting.groups)).collect();
            let is_seen = kind.is_none_or(|kind| setting.between(from, to) == kind);
            if is_seen && passes.contains(&true) && (directed || from.host < to.host) {
                separating.push((passes, Ends { from, to, path: pairs[0].path, way: Way::Both }));
            }
        }
    }
    // Those first that separate most parts not separated yet, without a host in common where possible.
    let mut separated = vec![vec![0_usize; parts.len()]; parts.len()];
    let mut used: HashSet<u32> = HashSet::default();
    loop {
        let new = |passes: &[bool]| -> usize {
            let with = |one: usize| {
                (0..one).filter(|&other| passes[one] != passes[other] && separated[one][other] < APART).count()
            };
            (1..parts.len()).map(with).sum()
        };
        let free = |ends: &Ends| !used.contains(&ends.from.host) && !used.contains(&ends.to.host);
        let count = |at: usize| (new(&separating[at].0), separating[at].0.iter().filter(|pass| **pass).count());
        let best = (0..separating.len())
            .filter(|&at| free(&separating[at].1))
            .max_by_key(|&at| (count(at), std::cmp::Reverse(at)));
        let Some(at) = best else {
            if used.is_empty() || !(0..separating.len()).any(|at| count(at).0 > 0) {
                break;
            }
            used.clear();
            continue;
        };
        let (passes, ends) = separating.swap_remove(at);
        used.extend([ends.from.host, ends.to.host]);
        for one in 1..parts.len() {
            (0..one).filter(|&other| passes[one] != passes[other]).for_each(|other| separated[one][other] += 1);
        }
        wanted.push(ends);
    }
    wanted
}

/// Pairs of a boundary other than those that made it a suspect, of other hosts if possible: these are low only if the boundary is bad.
fn fresh_across(pairs: &[Pair], part: &Part, suspect: &Suspect, setting: &Setting<'_>) -> Vec<Ends> {
    let rail = pairs[suspect.evidence.pairs[0]].from.rail;
    let ends = |pair: &Pair| [pair.from, pair.to];
    let ports: BTreeSet<Port> = pairs.iter().flat_map(ends).filter(|port| port.rail == rail).collect();
    let measured: BTreeSet<(u32, u32)> = suspect
        .evidence
        .pairs
        .iter()
        .map(|&at| (pairs[at].from.host.min(pairs[at].to.host), pairs[at].from.host.max(pairs[at].to.host)))
        .collect();
    let times = |host: u32| measured.iter().filter(|(a, b)| *a == host || *b == host).count();
    let ports: Vec<Port> = ports.into_iter().collect();
    let mut fresh: Vec<(usize, Port, Port)> = Vec::new();
    for (at, &one) in ports.iter().enumerate() {
        for &other in &ports[at + 1..] {
            let ways = [(one, other), (other, one)];
            let passes = ways.into_iter().find(|&(from, to)| part.passed(from, to, setting.groups));
            if let Some((from, to)) = passes
                && !measured.contains(&(one.host, other.host))
            {
                fresh.push((times(from.host) + times(to.host), from, to));
            }
        }
    }
    fresh.sort_unstable();
    // All at once load a trunk.
    let most = if matches!(part, Part::Cut(_)) { AT_ONCE } else { APART };
    let chosen = disjoint(fresh, |(_, from, to)| [from.host, to.host], most).into_iter();
    let ends = |(at, (_, from, to)): (usize, (usize, Port, Port))| {
        // Both ways alternately, where both count.
        let turned = setting.directed && at % 2 == 1 && part.passed(to, from, setting.groups);
        let (from, to) = if turned { (to, from) } else { (from, to) };
        Ends { from, to, path: pairs[0].path, way: Way::Both }
    };
    chosen.enumerate().map(ends).collect()
}

/// Some of the low pairs, with as many different hosts as possible.
fn spread(pairs: &[Pair], evidence: &[usize]) -> Vec<usize> {
    disjoint(evidence.iter().copied(), |&at| [pairs[at].from.host, pairs[at].to.host], TESTS)
}
