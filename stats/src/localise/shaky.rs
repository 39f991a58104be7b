//! Ends that are bad in some of their results.
//!
//! An end that is bad half of the time leaves some of its pairs low and others good. Its median may be good, and each low pair looks like
//! a bad path. The binomial distribution shows whether several of the few low pairs share an end by chance. An end of a single low pair
//! is also a suspect while few pairs are low: a few tests settle it, and otherwise a bad end would look like a path. So is an end without
//! any other pair: nothing shows that it is good.

use std::collections::BTreeMap;

use statrs::distribution::{Binomial, DiscreteCDF};

use super::{
    Part, Port, Probe, Way,
    cover::{Cover, Table, partners},
    links::Link,
};

/// Probability that chance makes any end of a run a suspect.
const FALSE_ALARM: f64 = 0.05;
/// Maximum share of low results of a good part, unless the controls show more.
pub(super) const GLITCHES: f64 = 0.05;
/// Below this probability of the low results at a host's other NICs, it is one NIC alone. Below it for the dependence on the way of an
/// end that is bad at times, its ways are bad.
pub(super) const ONE_OF_SEVERAL: f64 = 0.01;
/// Share of results that must be bad for the part to be bad throughout.
pub(super) const NEARLY_ALL: f64 = 0.8;
/// Most low paths whose ends are all checked again.
const FEW: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct Shaky {
    pub(super) part: Part,
    pub(super) cells: Vec<u32>,
    pub(super) share: f64,
    /// Whether it is more than the end of a single low path.
    pub(super) stands_out: bool,
    pub(super) links: Vec<usize>,
}

/// Ends of single low ways, by their number there. From the number `at_ends` on, a suspect end has them, and its other results are
/// good: that explains a low way, unless the other end has no good one.
pub(super) fn shaky(
    table: &Table,
    cover: &Cover,
    explained: &[(usize, Vec<u32>)],
    links: &[Link],
    at_ends: usize,
) -> Vec<Shaky> {
    let known: Vec<&Part> = explained.iter().map(|(part, _)| &cover.parts[*part]).collect();
    let at_suspect = |port: Port, any: bool| {
        known.iter().any(|part| match part {
            Part::Host(host, way) if any || *way == Way::Both => *host == port.host,
            Part::Nic(nic, way) if any || *way == Way::Both => *nic == port,
            _ => false,
        })
    };
    let mut hosts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (number, (_, cells)) in links.iter().enumerate() {
        let mut ends: Vec<Port> =
            cells.iter().flat_map(|&at| [table.cells[at as usize].from, table.cells[at as usize].to]).collect();
        ends.retain(|&port| !at_suspect(port, number >= at_ends));
        let mut of: Vec<u32> = ends.iter().map(|port| port.host).collect();
        of.sort_unstable();
        of.dedup();
        of.into_iter().for_each(|host| hosts.entry(host).or_default().push(number));
    }
    let mut low = vec![false; table.cells.len()];
    links.iter().flat_map(|(_, cells)| cells).for_each(|&at| low[at as usize] = true);
    let all_low = low.iter().filter(|low| **low).count();
    let numbers: BTreeMap<&Part, usize> = cover.parts.iter().enumerate().map(|(number, part)| (part, number)).collect();
    let ends = cover.parts.iter().filter(|part| matches!(part, Part::Host(_, Way::Both))).count();
    let mut found: Vec<Shaky> = Vec::new();
    for (host, links_here) in hosts {
        // Another NIC of the host is already bad, so it is the host.
        let other = known.iter().any(|part| matches!(part, Part::Nic(nic, _) if nic.host == host));
        let part = if other { Part::Host(host, Way::Both) } else { smallest(table, cover, host, links, &links_here) };
        let Some(&number) = numbers.get(&part) else { continue };
        let cells = &in_sight(table, &cover.cells[number], &low);
        let low_here: Vec<u32> = cells.iter().copied().filter(|&at| low[at as usize]).collect();
        let here = low_here.len();
        let elsewhere = (all_low - here + 1) as f64 / (table.cells.len() - cells.len() + 2) as f64;
        let by_chance = at_least(here, cells.len(), elsewhere);
        let partners = partners(table, &low_here, &Part::Host(host, Way::Both));
        let stands_out = partners >= 2 && by_chance < FALSE_ALARM / ends.max(1) as f64;
        let is_own = links_here.iter().any(|&link| link < at_ends);
        if is_own && (stands_out || links.len() <= FEW) || cells.len() == here {
            let taken = explained.iter().filter(|(part, _)| cover.parts[*part].is_end()).flat_map(|(_, cells)| cells);
            let taken = if other { taken.filter(|at| cells.binary_search(at).is_ok()).count() } else { 0 };
            let share = (here + taken / 2) as f64 / cells.len() as f64;
            found.push(Shaky { part, cells: cells.clone(), share, stands_out, links: links_here });
        }
    }
    found
}

/// Cells of an end that may show a fault. Good pairs between groups do not if those within the group are low and the fabric gives less
/// between groups: as little as the end may give.
fn in_sight(table: &Table, cells: &[u32], low: &[bool]) -> Vec<u32> {
    let (within, between): (Vec<u32>, Vec<u32>) = cells.iter().partition(|&&at| table.cells[at as usize].stratum == 0);
    let count = |cells: &[u32]| cells.iter().filter(|&&at| low[at as usize]).count();
    let less = !table.pooled && table.levels[1].centre < table.levels[0].centre;
    if less && count(&within) > 0 && count(&between) == 0 { within } else { cells.to_vec() }
}

/// The NIC if all low pairs of a host are at one of several, else the host.
fn smallest(table: &Table, cover: &Cover, host: u32, links: &[Link], here: &[usize]) -> Part {
    let ports = here.iter().flat_map(|&link| &links[link].1).flat_map(|&at| {
        let cell = &table.cells[at as usize];
        [cell.from, cell.to].into_iter().filter(move |port| port.host == host)
    });
    let mut ports: Vec<Port> = ports.collect();
    ports.sort_unstable();
    ports.dedup();
    match ports[..] {
        [port] if cover.several_rails => Part::Nic(port, Way::Both),
        _ => Part::Host(host, Way::Both),
    }
}

pub(super) fn at_least(k: usize, n: usize, chance: f64) -> f64 {
    match (k, Binomial::new(chance.clamp(0.0, 1.0), n as u64)) {
        (0, _) | (_, Err(_)) => 1.0,
        (k, Ok(binomial)) => binomial.sf(k as u64 - 1),
    }
}

/// Whether an end's results (each with whether it is bad) depend on the way, so that the ways are bad: on each all are bad or none is,
/// except glitches, and those of one NIC differ. `Some(true)` if an end that is bad at times would hardly cause that.
pub(super) fn by_way<'a>(part: &Part, results: impl Iterator<Item = (&'a Probe, bool)>) -> Option<bool> {
    let is_own = |port: Port| match *part {
        Part::Host(host, _) => port.host == host,
        Part::Nic(nic, _) => port == nic,
        _ => false,
    };
    let mut ways: BTreeMap<[Port; 2], (usize, usize)> = BTreeMap::new();
    for (probe, is_bad) in results {
        let ends = if is_own(probe.from) { [probe.from, probe.to] } else { [probe.to, probe.from] };
        let count = ways.entry(ends).or_default();
        *count = (count.0 + 1, count.1 + usize::from(is_bad));
    }
    let are_bad = |from: Port| ways.iter().any(|(ends, (_, bad))| ends[0] == from && *bad > 0);
    let differ = ways.iter().any(|(ends, (_, bad))| *bad == 0 && are_bad(ends[0]));
    if !part.is_end() || !differ {
        return None;
    }
    if ways.values().all(|(n, bad)| *n < 2 || *bad == 0) {
        return Some(false);
    }
    let disagree: usize = ways.values().map(|&(n, bad)| bad.min(n - bad)).sum();
    let is_bad = |(n, bad): &(usize, usize)| *bad >= 2 && *bad as f64 >= NEARLY_ALL * *n as f64;
    let (of, bad) = ways.values().fold((0, 0), |(of, bad), way| (of + way.0, bad + way.1));
    if !ways.values().any(is_bad) || at_least(disagree, of, GLITCHES) <= ONE_OF_SEVERAL {
        return None;
    }
    let share = bad as f64 / of as f64;
    Some(agree_by_chance(ways.values().map(|(n, _)| *n), share, disagree) < ONE_OF_SEVERAL)
}

/// Probability that at most so many results differ from the majority of their group, with this chance of a hit.
fn agree_by_chance(groups: impl Iterator<Item = usize>, chance: f64, differ: usize) -> f64 {
    let mut so_far = vec![1.0];
    for n in groups {
        let exactly = |k: usize| at_least(k, n, chance) - if k < n { at_least(k + 1, n, chance) } else { 0.0 };
        let odd = |odd: usize| exactly(odd) + if 2 * odd == n { 0.0 } else { exactly(n - odd) };
        let mut sum = vec![0.0; so_far.len() + n / 2];
        for (a, p) in so_far.iter().enumerate() {
            (0..=n / 2).for_each(|b| sum[a + b] += p * odd(b));
        }
        so_far = sum;
    }
    so_far.iter().take(differ + 1).sum()
}
