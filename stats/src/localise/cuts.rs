//! Partitions of the hosts by low results: trunks between switches that no plan names.

use std::collections::BTreeSet;

use super::{
    Level, Part,
    cover::{Cell, Table},
};
use crate::robust::median_in_place;

/// Standard deviations below the level from which a result is low.
const LOW: f64 = 3.0;
const FEWEST: usize = 4;
/// Steps of the power iteration: few measured pairs need many.
const STEPS: [usize; 2] = [60, 600];
const WORK: usize = 2_000_000;
const REFINED: usize = 6;

/// Partitions by the signs of all results: two leading eigenvectors of the graph whose edges are good (+1) and low (−1) pairs, refined
/// host by host, and the connected parts of the good pairs (spectral partitioning: Fiedler 1973). Each side has at least two hosts. Low
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
        let edge = |(at, cell): (usize, &Cell)| {
            (place(cell.from.host), place(cell.to.host), if is_bad(at) { -1.0 } else { 1.0 })
        };
        table.cells.iter().enumerate().map(edge).filter(|(a, b, _)| a != b).collect()
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

/// Two hosts, and +1 for a good pair, −1 for a low one.
type Edge = (usize, usize, f64);

fn add_sides(n: usize, edges: &[Edge], sides: &mut BTreeSet<Vec<bool>>) {
    let times = |vector: &[f64]| {
        let mut product = vec![0.0; n];
        for &(a, b, sign) in edges {
            product[a] += sign * vector[b];
            product[b] += sign * vector[a];
        }
        product
    };
    let mut degrees = vec![0.0_f64; n];
    edges.iter().for_each(|&(a, b, _)| [a, b].iter().for_each(|&end| degrees[end] += 1.0));
    let shift = degrees.iter().copied().fold(0.0, f64::max);
    let steps = (WORK / edges.len().max(1)).clamp(STEPS[0], STEPS[1]);
    let mut leading: Vec<Vec<f64>> = Vec::new();
    for number in 0..2 {
        // Any start that is not orthogonal to an eigenvector.
        let mut vector: Vec<f64> =
            (0..n).map(|at| ((at * 7919 + number * 104_729 + 13) % 1009) as f64 - 504.0).collect();
        for _ in 0..steps {
            let product = times(&vector);
            vector = vector.iter().zip(product).map(|(old, new)| new + shift * old).collect();
            for known in &leading {
                let along: f64 = vector.iter().zip(known).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(known).for_each(|(value, known)| *value -= along * known);
            }
            let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            vector.iter_mut().for_each(|value| *value /= length);
        }
        let mut side: Vec<f64> = vector.iter().map(|value| if *value > 0.0 { 1.0 } else { -1.0 }).collect();
        for _ in 0..REFINED {
            let next = times(&side);
            side = side.iter().zip(next).map(|(old, new)| if new == 0.0 { *old } else { new.signum() }).collect();
        }
        sides.insert(side.iter().map(|value| *value > 0.0).collect());
        leading.push(vector);
    }
    let mut part: Vec<usize> = (0..n).collect();
    loop {
        let mut changed = false;
        for &(a, b, sign) in edges {
            let least = part[a].min(part[b]);
            if sign > 0.0 && (part[a] != least || part[b] != least) {
                (part[a], part[b], changed) = (least, least, true);
            }
        }
        if !changed {
            break;
        }
    }
    let numbers: BTreeSet<usize> = part.iter().copied().collect();
    sides.extend(numbers.iter().take(8).map(|number| part.iter().map(|part| part == number).collect::<Vec<bool>>()));
}
