//! Limits of what a plan may request. The reader of plans checks them, and [`beyond`] checks plans from elsewhere, such as a journal: their
//! author must not choose how much time and memory they take.

use std::collections::{BTreeMap, HashSet};

use railgauge_wire::Op;

use super::{
    AtOnce, Collective, Cut, Grouping, Pattern, Plan, Rails, Test,
    grammar::{hostlist, sweep},
};

/// Measurements of one test, and of one run with everything that hosts reported: a journal beyond ten million lines is useless.
pub const MEASUREMENTS: u64 = 10_000_000;
pub const TESTS: usize = 1000;
pub const QPS: u64 = 1024;
/// Connections alongside a flow in each direction.
pub const NEIGHBOURS: u64 = 64;
/// Numbers of such connections in a test.
pub const BESIDE: usize = 16;
/// Values of a test's `configure`.
pub const VALUES: usize = 64;
/// Characters of such a value, which is in every row.
pub const VALUE: usize = 64;
/// Threads at an end, and ranks of a collective on a host.
pub const THREADS: u64 = 64;
pub const REPEATS: u64 = 1000;
pub const ROUNDS: u64 = 65_536;
pub const ENVIRONMENTS: usize = 1000;
/// Largest number of a rail: no host has more devices.
pub const LAST_RAIL: u64 = 255;

type Groups = BTreeMap<String, Vec<String>>;

pub fn beyond(plan: &Plan) -> Option<String> {
    let over = |found: u128, most: u128, what: &str| {
        (found > most).then(|| format!("{found} {what}, and at most {most} can be"))
    };
    let of_plan = over(plan.hosts.len() as u128, hostlist::MOST as u128, "hosts")
        .or_else(|| over(plan.tests.len() as u128, TESTS as u128, "tests"))
        .map(|what| format!("the plan has {what}"));
    of_plan.or_else(|| {
        plan.tests.iter().find_map(|test| {
            let rounds = match &test.pattern {
                Pattern::Random(rounds)
                | Pattern::AtOnce(AtOnce::Permutation(rounds) | AtOnce::Bisection(Cut::Drawn(rounds))) => *rounds,
                Pattern::AtOnce(AtOnce::Victim(victim)) => victim.draws,
                _ => 0,
            };
            let rails = if let Rails::Only(rails) = &test.rails { rails.as_slice() } else { &[] };
            let ranks = test.collective.as_ref().map_or(0, |collective| collective.ranks_per_host);
            let environments = test.collective.as_ref().map_or(0, |collective| collective.env.len());
            let numbers = test.beside.as_ref().map(|beside| beside.flows.as_slice()).unwrap_or_default();
            let (beside, neighbours) = (numbers.len(), numbers.iter().copied().max().unwrap_or_default());
            let qps = test.qps.iter().copied().max().unwrap_or_default();
            let what = [
                over(test.hosts.len() as u128, hostlist::MOST as u128, "hosts"),
                over(test.sizes.len() as u128, sweep::MOST as u128, "sizes"),
                over(test.qps.len() as u128, QPS.into(), "numbers of queue pairs"),
                over(qps.into(), QPS.into(), "queue pairs"),
                over(test.threads.into(), THREADS.into(), "threads"),
                over(ranks.into(), THREADS.into(), "ranks on a host"),
                over(environments as u128, ENVIRONMENTS as u128, "environments"),
                over(test.repeats.into(), REPEATS.into(), "repeats"),
                over(beside as u128, BESIDE as u128, "numbers of neighbours"),
                over(test.values().len() as u128, VALUES as u128, "values"),
                over(neighbours.into(), NEIGHBOURS.into(), "neighbours"),
                over(rounds.into(), ROUNDS.into(), "rounds"),
                over(rails.len() as u128, u128::from(LAST_RAIL) + 1, "rails"),
                over(least(&plan.groups, test), MEASUREMENTS.into(), "measurements at least"),
            ];
            what.into_iter().flatten().next().map(|what| format!("test `{}` has {what}", test.name))
        })
    })
}

/// The fewest measurements of a test: those with one rail per host.
pub fn least(groups: &Groups, test: &Test) -> u128 {
    flows(groups, test).saturating_mul(cells(test)).saturating_mul(test.repeats.into())
}

pub fn cells(test: &Test) -> u128 {
    let product = |lengths: &[usize]| lengths.iter().fold(1_u128, |all, &one| all.saturating_mul(one as u128));
    // Once alone, and once with each number of neighbours.
    let beside = test.beside.as_ref().map_or(1, |beside| beside.flows.len().saturating_add(1));
    let values = test.values().len().max(1);
    match &test.collective {
        Some(Collective { env, datatypes, reductions, algorithms, .. }) => {
            product(&[env.len(), datatypes.len(), reductions.len().max(1), algorithms.len(), test.sizes.len(), values])
        }
        None if test.op.is_atomic() => product(&[test.qps.len(), beside, values]),
        None => product(&[test.qps.len(), test.sizes.len(), beside, values]),
    }
}

pub fn within(op: Op, parts: u128) -> u128 {
    // One part alone has no other: its case says so.
    let others = if op == Op::GpuToGpu { parts.saturating_sub(1).max(1) } else { 1 };
    parts.saturating_mul(others)
}

/// The fewest flows of a test: those with one rail per host.
pub fn flows(groups: &Groups, test: &Test) -> u128 {
    let hosts: HashSet<&str> = test.hosts.iter().map(String::as_str).collect();
    let n = hosts.len() as u128;
    let pairs = n * n.saturating_sub(1) / 2;
    if let Some(collective) = &test.collective {
        return if collective.grouping == Grouping::Pairs { pairs } else { 0 };
    }
    let of_group = |name: &String| -> HashSet<&str> {
        let members = groups.get(name).into_iter().flatten().map(String::as_str);
        members.filter(|host| hosts.contains(host)).collect()
    };
    match &test.pattern {
        Pattern::Tournament => pairs,
        Pattern::Random(rounds) => u128::from(*rounds).min(n.saturating_sub(1)) * (n / 2),
        Pattern::Between(left, right) => {
            let (left, right) = (of_group(left), of_group(right));
            // A pair of two hosts of both groups is kept once, and a host is never paired with itself.
            let both = left.intersection(&right).count() as u128;
            left.len() as u128 * right.len() as u128 - both * (both + 1) / 2
        }
        Pattern::Ring | Pattern::AtOnce(AtOnce::Ring) if n > 2 => n,
        Pattern::Neighbours => n / 2,
        Pattern::OneToMany(_)
        | Pattern::ManyToOne(_)
        | Pattern::AtOnce(AtOnce::Incast(Some(_)) | AtOnce::Outcast(Some(_))) => n.saturating_sub(1),
        Pattern::AtOnce(AtOnce::AllToAll | AtOnce::Incast(None) | AtOnce::Outcast(None)) => 2 * pairs,
        Pattern::AtOnce(AtOnce::Permutation(rounds)) => u128::from(*rounds) * n,
        Pattern::AtOnce(AtOnce::Bisection(Cut::Drawn(rounds))) => u128::from(*rounds) * (n / 2) * 2,
        Pattern::AtOnce(AtOnce::Victim(victim)) => u128::from(victim.draws) * n.saturating_sub(1),
        Pattern::Within => n.saturating_mul(match &test.rails {
            Rails::Only(parts) => within(test.op, parts.iter().collect::<HashSet<_>>().len() as u128),
            _ => 1,
        }),
        _ => 0,
    }
}
