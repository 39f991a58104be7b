//! Partitions of the hosts by low results: trunks between switches that no plan names.

use std::collections::{BTreeMap, BTreeSet};

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use super::{
    Level, Part,
    cover::{Cell, Table},
};
use crate::robust::median_in_place;

/// Standard deviations below the level from which a result is low.
const LOW: f64 = 3.0;
pub(super) const FEWEST: usize = 3;
/// Spanning trees that a search starts from, fewer of large graphs.
const STARTS: [usize; 2] = [8, 64];
const WORK: usize = 200_000;
const REFINED: usize = 12;
/// Most partitions of a search, and most unconnected parts of the graph that are combined in every way.
const KEPT: usize = 6;
const UNCONNECTED: usize = 4;

/// Partitions by the signs of all results: those that agree with most edges of the graph of good (+1) and low (−1) pairs (correlation
/// clustering with two clusters: Bansal et al. 2004), and the connected parts of the good pairs. Each side has at least two hosts. Low
/// means half of the loss of low pairs, and, for parts with unequal shares, any low result.
pub(super) fn cuts(table: &Table, levels: [Level; 2]) -> Vec<Part> {
    let left = table.left(levels);
    let low = |at: &usize| left[*at] < -(LOW * levels[table.cells[*at].stratum].scale).max(table.least);
    let mut lows: Vec<f64> = (0..left.len()).filter(low).map(|at| left[at]).collect();
    let mut hosts: Vec<u32> = table.cells.iter().flat_map(|cell| [cell.from.host, cell.to.host]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let n = hosts.len();
    if lows.len() < FEWEST || n < 4 {
        return Vec::new();
    }
    let limit = median_in_place(&mut lows) / 2.0;
    let place = |host: u32| hosts.binary_search(&host).unwrap_or_default();
    let edges = |is_bad: &dyn Fn(usize) -> bool| -> Vec<Edge> {
        let mut edges: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (at, Cell { from, to, .. }) in table.cells.iter().enumerate().filter(|(_, c)| c.from.host != c.to.host) {
            let (a, b) = (place(from.host), place(to.host));
            *edges.entry((a.min(b), a.max(b))).or_default() += if is_bad(at) { -1.0 } else { 1.0 };
        }
        edges.into_iter().map(|((a, b), sign)| (a, b, sign)).collect()
    };
    let mut sides: BTreeSet<Vec<bool>> = BTreeSet::new();
    add_sides(n, &edges(&|at| left[at] < limit), &mut sides);
    if (0..left.len()).any(|at| low(&at) && left[at] >= limit) {
        add_sides(n, &edges(&|at| low(&at)), &mut sides);
    }
    let smaller = |side: Vec<bool>| {
        let is = side.iter().filter(|is| **is).count();
        // Of two halves the one without the first host.
        let wanted = 2 * is < n || 2 * is == n && !side[0];
        let side: Vec<u32> = hosts.iter().zip(&side).filter(|(_, is)| **is == wanted).map(|(host, _)| *host).collect();
        (side.len() >= 2).then_some(Part::Cut(side))
    };
    let found: BTreeSet<Part> = sides.into_iter().filter_map(smaller).collect();
    found.into_iter().collect()
}

/// Two hosts, and how many more of their pairs are good than low.
type Edge = (usize, usize, f64);

fn add_sides(n: usize, edges: &[Edge], sides: &mut BTreeSet<Vec<bool>>) {
    let mut near: Vec<Vec<(usize, f64)>> = vec![Vec::new(); n];
    for &(a, b, sign) in edges {
        near[a].push((b, sign));
        near[b].push((a, sign));
    }
    let mut found: BTreeMap<Vec<bool>, f64> = BTreeMap::new();
    let (mut order, mut random) = (edges.to_vec(), ChaCha8Rng::seed_from_u64(0));
    for start in 0..(WORK / edges.len().max(1)).clamp(STARTS[0], STARTS[1]) {
        order.shuffle(&mut random);
        if start % 2 == 0 {
            // A low pair may be the only sure one, where a trunk is not always full.
            order.sort_by_key(|edge| edge.2 >= 0.0);
        }
        let (mut side, _) = spanned(n, order.iter().copied());
        let agree = |side: &[bool], host: usize| -> f64 {
            near[host].iter().map(|&(other, sign)| if side[other] == side[host] { sign } else { -sign }).sum()
        };
        for _ in 0..REFINED {
            let before = side.clone();
            (0..n).for_each(|host| side[host] ^= agree(&side, host) < 0.0);
            if side == before {
                break;
            }
        }
        let score = (0..n).map(|host| agree(&side, host)).sum();
        found.insert(side, score);
    }
    let mut found: Vec<(Vec<bool>, f64)> = found.into_iter().collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    // How unconnected parts of the graph belong together is unknown.
    let parts = spanned(n, edges.iter().copied()).1;
    let numbers: BTreeSet<usize> = parts.iter().copied().collect();
    let others: Vec<usize> = numbers.into_iter().skip(1).take(UNCONNECTED).collect();
    for (side, _) in found.iter().take(KEPT) {
        for turned in 0..1_usize << others.len() {
            let is_turned =
                |part: usize| others.iter().position(|other| *other == part).is_some_and(|at| turned >> at & 1 == 1);
            sides.insert(side.iter().zip(&parts).map(|(side, part)| *side ^ is_turned(*part)).collect());
        }
    }
    let good = spanned(n, edges.iter().copied().filter(|edge| edge.2 > 0.0)).1;
    let numbers: BTreeSet<usize> = good.iter().copied().collect();
    sides.extend(numbers.iter().take(8).map(|number| good.iter().map(|part| part == number).collect::<Vec<bool>>()));
}

/// The sides of the hosts by the first edges that connect them, and the connected part of each.
fn spanned(n: usize, edges: impl Iterator<Item = Edge>) -> (Vec<bool>, Vec<usize>) {
    let mut members: Vec<Vec<usize>> = (0..n).map(|host| vec![host]).collect();
    let (mut side, mut part) = (vec![false; n], (0..n).collect::<Vec<usize>>());
    for (a, b, sign) in edges.filter(|edge| edge.2 != 0.0) {
        let (to, from) = (part[a].min(part[b]), part[a].max(part[b]));
        if to != from {
            let is_turned = (side[a] == side[b]) != (sign > 0.0);
            let moved = std::mem::take(&mut members[from]);
            moved.iter().for_each(|&host| (part[host], side[host]) = (to, side[host] ^ is_turned));
            members[to].extend(moved);
        }
    }
    (side, part)
}
