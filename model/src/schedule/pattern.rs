//! Patterns as rounds of host pairs. A host is its index in the plan.

use std::collections::{HashMap, HashSet};

use super::{
    ScheduleError,
    at_once::{self, Pair},
    circle, colour, draw,
};
use crate::plan::{AtOnce, Cut, Pattern, Plan, Test, Victim};

#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    seed: u64,
    turn: Option<u64>,
}

impl Draw {
    pub(super) fn of(plan: &Plan) -> Self {
        Self { seed: plan.seed, turn: plan.rotate }
    }

    /// `wanted` different rounds of `count`. With a turn, the seed orders all rounds, and each turn takes the next ones: neighbouring turns
    /// share no round where there are twice as many, and all rounds are used after as few turns as possible.
    fn rounds(self, count: usize, wanted: usize) -> Vec<usize> {
        let Some(turn) = self.turn else { return draw::distinct(count, wanted, self.seed) };
        let order = draw::distinct(count, count, self.seed);
        let wanted = wanted.min(count);
        let start = (turn % count.max(1) as u64) as usize * wanted % count.max(1);
        order.iter().cycle().skip(start).take(wanted).copied().collect()
    }

    pub(super) fn seed(self, draws: u32) -> u64 {
        self.seed.wrapping_add(self.turn.unwrap_or_default().wrapping_mul(u64::from(draws)))
    }
}

pub(super) struct Directory<'a> {
    plan: &'a Plan,
    hosts: HashMap<&'a str, u32>,
}

impl<'a> Directory<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        Self { plan, hosts: (0..).zip(&plan.hosts).map(|(index, host)| (host.name.as_str(), index)).collect() }
    }

    /// The hosts that take part in `test`, in its order, unique. [`rounds`] reports unknown names.
    pub(super) fn members(&self, test: &Test) -> Vec<u32> {
        let mut seen = HashSet::new();
        let hosts = test.hosts.iter().filter_map(|name| self.hosts.get(name.as_str()).copied());
        hosts.filter(|host| seen.insert(*host)).collect()
    }

    pub(super) fn groups(&self, members: &[u32]) -> Vec<Vec<u32>> {
        let of = |names: &Vec<String>| {
            let hosts = names.iter().filter_map(|name| self.hosts.get(name.as_str()).copied());
            hosts.filter(|host| members.contains(host)).collect()
        };
        self.plan.groups.values().map(of).collect()
    }

    fn group(&self, test: &Test, name: &str, members: &HashSet<u32>) -> Result<Vec<u32>, ScheduleError> {
        let names = self
            .plan
            .groups
            .get(name)
            .ok_or_else(|| ScheduleError::UnknownGroup { test: test.name.clone(), group: name.to_owned() })?;
        let hosts = names.iter().filter_map(|name| self.hosts.get(name.as_str()).copied());
        Ok(hosts.filter(|host| members.contains(host)).collect())
    }
}

/// The rounds of `test`, every wanted pair in exactly one of them. In a round no host is used twice, unless the pattern is one of
/// simultaneous flows.
pub(super) fn rounds(
    test: &Test,
    directory: &Directory<'_>,
    draw: Draw,
    notes: &mut Vec<String>,
) -> Result<Vec<Vec<Pair>>, ScheduleError> {
    if let Some(name) = test.hosts.iter().find(|name| !directory.hosts.contains_key(name.as_str())) {
        return Err(ScheduleError::UnknownHost { test: test.name.clone(), host: name.clone() });
    }
    let hosts = directory.members(test);
    let members: HashSet<u32> = hosts.iter().copied().collect();
    let member = |name: &str| {
        let host = directory.hosts.get(name).copied().filter(|host| members.contains(host));
        host.ok_or_else(|| ScheduleError::UnknownHost { test: test.name.clone(), host: name.to_owned() })
    };
    let named = |name: &Option<String>| name.as_deref().map(member).transpose();
    let none = |why: String| Err(ScheduleError::NoPairs { test: test.name.clone(), why });
    if hosts.len() < 2 {
        return none(format!("{} of the plan's hosts takes part", hosts.len()));
    }
    let all = directory.plan.hosts.len();
    let rounds = match &test.pattern {
        Pattern::Tournament => tournament(&hosts, 0..circle::rounds(hosts.len())),
        Pattern::Random(wanted) => {
            let count = circle::rounds(hosts.len());
            let wanted = *wanted as usize;
            if wanted > count {
                notes.push(format!(
                    "test `{}`: {wanted} random rounds are asked for, and {} hosts have {count}: all {count} are run",
                    test.name,
                    hosts.len(),
                ));
            }
            tournament(&hosts, draw.rounds(count, wanted).into_iter())
        }
        Pattern::Ring => {
            let next = hosts.iter().copied().cycle().skip(1);
            colour::first_fit(hosts.iter().copied().zip(next), all)
        }
        Pattern::Neighbours => {
            if hosts.len() % 2 == 1 {
                let name = test.hosts.last().map_or("", String::as_str);
                notes.push(format!(
                    "test `{}`: host `{name}` is the last of an odd number and has no neighbour",
                    test.name
                ));
            }
            vec![hosts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()]
        }
        Pattern::OneToMany(name) => {
            let one = member(name)?;
            hosts.iter().filter(|&&host| host != one).map(|&host| vec![(one, host)]).collect()
        }
        Pattern::ManyToOne(name) => {
            let one = member(name)?;
            hosts.iter().filter(|&&host| host != one).map(|&host| vec![(host, one)]).collect()
        }
        Pattern::Between(left, right) => {
            let left_hosts = directory.group(test, left, &members)?;
            let right_hosts = directory.group(test, right, &members)?;
            let rounds = colour::first_fit(between(&left_hosts, &right_hosts).into_iter(), all);
            if rounds.is_empty() {
                return none(format!("groups `{left}` and `{right}` have no two different hosts in this test"));
            }
            rounds
        }
        Pattern::Pairs(pairs) => {
            let mut seen = HashSet::new();
            let mut wanted = Vec::with_capacity(pairs.len());
            for (from, to) in pairs {
                let pair = (member(from)?, member(to)?);
                if pair.0 == pair.1 {
                    return Err(ScheduleError::SelfPair { test: test.name.clone(), host: from.clone() });
                }
                if seen.insert(pair) {
                    wanted.push(pair);
                } else {
                    notes.push(format!("test `{}`: pair `{from}` to `{to}` is listed twice and run once", test.name));
                }
            }
            colour::first_fit(wanted.into_iter(), all)
        }
        Pattern::Fabric(_) => Vec::new(),
        Pattern::Within => Vec::new(),
        Pattern::AtOnce(AtOnce::Incast(one)) => at_once::incast(&hosts, named(one)?),
        Pattern::AtOnce(AtOnce::Outcast(one)) => at_once::outcast(&hosts, named(one)?),
        Pattern::AtOnce(AtOnce::AllToAll) => vec![at_once::all_to_all(&hosts)],
        Pattern::AtOnce(AtOnce::Ring) => vec![at_once::ring(&hosts)],
        Pattern::AtOnce(AtOnce::Permutation(rounds)) => at_once::permutations(&hosts, *rounds, draw.seed(*rounds)),
        Pattern::AtOnce(AtOnce::Victim(Victim { flow, to, draws })) => {
            let flow = flow.as_ref().map(|(from, to)| Ok((member(from)?, member(to)?))).transpose()?;
            if hosts.len() < Victim::HOSTS {
                return none(format!(
                    "{} hosts take part, and a victim of an incast needs {}",
                    hosts.len(),
                    Victim::HOSTS
                ));
            }
            at_once::victims(&hosts, (flow, named(to)?), *draws, draw.seed(*draws))
        }
        Pattern::AtOnce(AtOnce::Bisection(Cut::Drawn(rounds))) => {
            if hosts.len() % 2 == 1 {
                notes.push(format!(
                    "test `{}`: {} hosts have no halves of one size: one is idle in each round",
                    test.name,
                    hosts.len()
                ));
            }
            at_once::halves(&hosts, *rounds, draw.seed(*rounds))
        }
        Pattern::AtOnce(AtOnce::Bisection(Cut::Groups(left, right))) => {
            let left_hosts = directory.group(test, left, &members)?;
            let right_hosts = directory.group(test, right, &members)?;
            if left_hosts.len() != right_hosts.len() {
                notes.push(format!(
                    "test `{}`: {} hosts of `{left}` and {} of `{right}`: the rest of the larger group is idle",
                    test.name,
                    left_hosts.len(),
                    right_hosts.len()
                ));
            }
            vec![at_once::across(&left_hosts, &right_hosts)]
        }
    };
    if rounds.iter().all(Vec::is_empty) { none("its pattern is empty".to_owned()) } else { Ok(rounds) }
}

/// The chosen rounds of the tournament of `hosts`. Roles alternate between rounds, so that no host is always the initiator.
fn tournament(hosts: &[u32], chosen: impl Iterator<Item = usize>) -> Vec<Vec<Pair>> {
    let turn = |position: usize, (a, b): Pair| if position.is_multiple_of(2) { (a, b) } else { (b, a) };
    chosen
        .enumerate()
        .map(|(position, round)| {
            let pairs = circle::round(hosts.len(), round).map(|(a, b)| (hosts[a], hosts[b]));
            pairs.map(|pair| turn(position, pair)).collect()
        })
        .collect()
}

/// Every host of `left` with every host of `right`, in the order of a round robin: host i of the left meets host i + k of the right in
/// round k. A pair that two overlapping groups have in both directions is kept once.
///
/// For disjoint groups first fit produces exactly these rounds: the smaller group is busy in every one of them, so nothing fits earlier.
fn between(left: &[u32], right: &[u32]) -> Vec<Pair> {
    let rounds = left.len().max(right.len());
    let shared = right.iter().any(|host| left.contains(host));
    let mut seen = HashSet::new();
    let mut pairs = Vec::with_capacity(left.len() * right.len());
    for shift in 0..rounds {
        for (index, &a) in left.iter().enumerate() {
            let Some(&b) = right.get((index + shift) % rounds) else { continue };
            if a != b && (!shared || seen.insert((a.min(b), a.max(b)))) {
                pairs.push((a, b));
            }
        }
    }
    pairs
}
