//! Single ways between two ends that are lower than the ends and shared parts explain.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};

use super::{Part, Port, Setting, Way, cover::Table};

/// With its low cells.
pub(super) type Link = (Part, Vec<u32>);

pub(super) struct Links {
    pub(super) found: Vec<Link>,
    /// By cell, the effect of suspect ends and shared parts.
    pub(super) explained: Vec<f64>,
    pub(super) scales: Vec<f64>,
}

/// Assigns every low cell once, joined into ways: paths of two NICs, rails of two hosts. At a suspect end a cell is low if it is as far
/// below what the end explains.
pub(super) fn links(
    table: &Table,
    cut: [f64; 2],
    setting: &Setting<'_>,
    (explained, scales): (Vec<f64>, Vec<f64>),
) -> Links {
    let is_low = |at: usize| {
        let left = table.residual(at) - explained[at];
        left < -cut[table.cells[at].stratum] * scales[at] && left < -setting.least
    };
    Links { found: ways(table, 0..table.cells.len(), is_low), explained, scales }
}

/// Ways with low cells, without duplicates.
pub(super) fn ways(table: &Table, of: impl Iterator<Item = usize>, is_low: impl Fn(usize) -> bool) -> Vec<Link> {
    let ends = |at: usize| {
        let cell = &table.cells[at];
        (cell.from.min(cell.to), cell.from.max(cell.to))
    };
    let cells: Vec<usize> = of.collect();
    // Few ways have low cells; of the others only the number between those hosts counts.
    let mut low: HashSet<(Port, Port)> = HashSet::default();
    low.extend(cells.iter().filter(|&&at| is_low(at)).map(|&at| ends(at)));
    let of_low: HashSet<(u32, u32)> = low.iter().map(|&(a, b)| hosts(a, b)).collect();
    if low.is_empty() {
        return Vec::new();
    }
    let is_near = |&at: &usize| {
        let (a, b) = ends(at);
        of_low.contains(&hosts(a, b))
    };
    let mut near: Vec<usize> = cells.into_iter().filter(is_near).collect();
    near.sort_by_cached_key(|&at| ends(at));
    let mut found: Vec<Link> = Vec::new();
    let mut tested: HashMap<(u32, u32), usize> = HashMap::default();
    for cells in near.chunk_by(|&a, &b| ends(a) == ends(b)) {
        let (a, b) = ends(cells[0]);
        *tested.entry(hosts(a, b)).or_default() += 1;
        let low: Vec<usize> = cells.iter().copied().filter(|&at| is_low(at)).collect();
        if !low.is_empty() {
            found.push((name(table, a, b, cells, &low), low.iter().map(|&at| at as u32).collect()));
        }
    }
    join_rails(&tested, found)
}

/// The part of the low cells among all cells between two NICs.
fn name(table: &Table, a: Port, b: Port, cells: &[usize], low: &[usize]) -> Part {
    let paths = |cells: &[usize]| {
        let mut paths: Vec<u32> = cells.iter().map(|&at| table.cells[at].path).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    };
    let (all_paths, low_paths) = (paths(cells), paths(low));
    if low_paths.len() < all_paths.len() {
        return Part::Paths(a, b, low_paths);
    }
    let starts_at = |cells: &[usize], end: Port| cells.iter().any(|&at| table.cells[at].from == end);
    let both_measured = starts_at(cells, a) && starts_at(cells, b);
    match (both_measured, starts_at(low, a), starts_at(low, b)) {
        (true, true, false) => Part::Link(a, b, Way::Send),
        (true, false, true) => Part::Link(b, a, Way::Send),
        _ => Part::Link(a, b, Way::Both),
    }
}

fn hosts(a: Port, b: Port) -> (u32, u32) {
    (a.host.min(b.host), a.host.max(b.host))
}

/// Low ways between the same hosts on every tested rail, two rails at least: the way between the hosts. `tested` counts the ways between
/// two hosts.
fn join_rails(tested: &HashMap<(u32, u32), usize>, found: Vec<Link>) -> Vec<Link> {
    let mut of_hosts: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for (at, (part, _)) in found.iter().enumerate() {
        if let Part::Link(a, b, Way::Both) = part {
            of_hosts.entry(hosts(*a, *b)).or_default().push(at);
        }
    }
    let mut gone = vec![false; found.len()];
    let mut joined: Vec<Link> = Vec::new();
    for (pair, links) in of_hosts {
        if links.len() >= 2 && tested.get(&pair) == Some(&links.len()) {
            let cells = links.iter().flat_map(|&at| found[at].1.iter().copied()).collect();
            links.iter().for_each(|&at| gone[at] = true);
            joined.push((Part::Hosts(pair.0, pair.1), cells));
        }
    }
    joined.extend(found.into_iter().zip(gone).filter(|(_, gone)| !gone).map(|(link, _)| link));
    joined
}
