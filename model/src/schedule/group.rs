use std::sync::Arc;

use railgauge_wire::Bytes;

use super::{Flow, ScheduleError, circle, pattern::Directory};
use crate::plan::{
    Collective, Grouping, Test,
    traffic::{Matrix, equal_parts},
};

/// Rounds of groups: in a round a host is in at most one group. Rank r of a group is the r-th member of its flow: ranks of one host are
/// adjacent, hosts in the plan's order, and a port's rail is the rank's number on its host.
pub(super) fn rounds(
    test: &Test,
    collective: &Collective,
    directory: &Directory<'_>,
    names: &[Arc<str>],
) -> Result<Vec<Vec<Flow>>, ScheduleError> {
    let hosts = directory.members(test);
    let groups: Vec<Vec<Vec<u32>>> = match collective.grouping {
        Grouping::All => vec![vec![hosts]],
        Grouping::Each => disjoint(directory.groups(&hosts)),
        Grouping::Pairs => (0..circle::rounds(hosts.len()))
            .map(|round| circle::round(hosts.len(), round).map(|(a, b)| sorted(hosts[a], hosts[b])).collect())
            .collect(),
        Grouping::Halves => vec![hosts.chunks(hosts.len().div_ceil(2).max(1)).map(<[u32]>::to_vec).collect()],
        Grouping::Every(size) => vec![hosts.chunks(size.max(1) as usize).map(<[u32]>::to_vec).collect()],
    };
    let flow = |group: &Vec<u32>| {
        let hosts: Vec<Arc<str>> = group.iter().map(|host| names[*host as usize].clone()).collect();
        Flow::group(&hosts, collective.ranks_per_host)
    };
    let mut rounds: Vec<Vec<Flow>> =
        groups.iter().map(|round| round.iter().filter_map(flow).collect::<Vec<_>>()).collect();
    rounds.retain(|round| !round.is_empty());
    if rounds.is_empty() {
        let why = "its groups have one rank at most".to_owned();
        return Err(ScheduleError::NoPairs { test: test.name.clone(), why });
    }
    Ok(rounds)
}

/// Elements of `width` bytes between the ranks of a group: their traffic if the group is the whole test, else equal parts. `None` for
/// operations that are equal for all ranks.
pub fn blocks(test: &Test, ranks: usize, size: Bytes, width: Bytes) -> Option<Matrix> {
    let collective = test.collective.as_ref()?;
    let traffic = collective.traffic.as_ref()?;
    let all = test.hosts.len() * collective.ranks_per_host as usize;
    Some(match u32::try_from(all) {
        Ok(all) if all as usize == ranks => traffic.blocks(all, size, width),
        _ => equal_parts(ranks, size, width),
    })
}

/// How many flows of a group are also measured alone: none unless it is the whole test.
pub fn alone(test: &Test, ranks: usize) -> usize {
    let whole = |collective: &&Collective| test.hosts.len() * collective.ranks_per_host as usize == ranks;
    test.collective.as_ref().filter(whole).map_or(0, |collective| collective.alone as usize)
}

fn sorted(a: u32, b: u32) -> Vec<u32> {
    vec![a.min(b), a.max(b)]
}

/// Spreads groups over rounds, each into the first in which all of its hosts are free.
fn disjoint(groups: Vec<Vec<u32>>) -> Vec<Vec<Vec<u32>>> {
    let mut rounds: Vec<Vec<Vec<u32>>> = Vec::new();
    for group in groups.into_iter().filter(|group| !group.is_empty()) {
        let free = |round: &&mut Vec<Vec<u32>>| !round.iter().flatten().any(|host| group.contains(host));
        match rounds.iter_mut().find(free) {
            Some(round) => round.push(group),
            None => rounds.push(vec![group]),
        }
    }
    rounds
}
