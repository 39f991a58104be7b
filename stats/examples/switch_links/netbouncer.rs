//! The other method: a fit in the manner of NetBouncer (Tan et al., NSDI 2019), adapted from success rates to ratios.
//!
//! A path's ratio to a good path is taken as the product of its links' values x. The squared error plus λ Σ x (1 − x), which
//! draws every value to one of both ends, is lowered link by link (coordinate descent; the minimum along one coordinate has a
//! closed form). Devices come first: a switch none of whose paths is good is named and set aside with its paths. Each direction
//! is a link of its own, as there; both directions of a cable below the limit are that cable. Of λ = 0.0001 to 0.1 and limits of
//! 0.97 to 0.985 those were chosen that did best at 1,024 cables, −3 to −10 % and no fault, with the noise of the benchmark, on seeds that
//! it does not draw by itself (900 and 901).

use railgauge_stats::{
    fabric::{Part, Test},
    robust::Level,
};

use crate::tree::Tree;

const WEIGHT: f64 = 0.1;
const LIMIT: f64 = 0.98;
const GOOD: f64 = 0.96;
const SWEEPS: usize = 100;
/// A sweep that changes no value by more ends the descent.
const SETTLED: f64 = 1e-6;

pub fn named(tree: &Tree, tests: &[Test]) -> Vec<Part> {
    let values: Vec<f64> = tests.iter().filter_map(|test| test.value).collect();
    let Ok(level) = Level::of(&values, 0.0) else { return Vec::new() };
    let ratios: Vec<f64> =
        tests.iter().map(|t| t.value.map_or(0.0, |value| (value - level.centre).exp().min(1.0))).collect();
    let mut of_link: Vec<Vec<usize>> = vec![Vec::new(); tree.fabric.links().len()];
    for (at, test) in tests.iter().enumerate() {
        test.routes[0].iter().for_each(|&link| of_link[link as usize].push(at));
    }
    let mut named = Vec::new();
    let mut gone = vec![false; tests.len()];
    for &switch in &tree.switches {
        let part = Part::Device(switch);
        let mut paths: Vec<usize> =
            tree.fabric.links_of(&part).iter().flat_map(|&link| of_link[link as usize].clone()).collect();
        paths.dedup();
        if !paths.is_empty() && paths.iter().all(|&at| ratios[at] < GOOD) {
            named.push(part);
            paths.iter().for_each(|&at| gone[at] = true);
        }
    }
    of_link.iter_mut().for_each(|of| of.retain(|&at| !gone[at]));
    let x = descend(tests, &ratios, &of_link);
    let low = |link: u32| !of_link[link as usize].is_empty() && x[link as usize] < LIMIT;
    for link in (0..x.len() as u32).filter(|&link| low(link)) {
        match tree.fabric.cable(link) {
            Part::Cable(a, b) if low(a) && low(b) => named.extend((link == a).then_some(Part::Cable(a, b))),
            _ => named.push(Part::Link(link)),
        }
    }
    named
}

/// Coordinate descent from the mean of each link's paths.
fn descend(tests: &[Test], ratios: &[f64], of_link: &[Vec<usize>]) -> Vec<f64> {
    let mean = |of: &Vec<usize>| of.iter().map(|&at| ratios[at]).sum::<f64>() / of.len().max(1) as f64;
    let mut x: Vec<f64> = of_link.iter().map(mean).collect();
    for _ in 0..SWEEPS {
        let mut moved = 0.0_f64;
        for link in 0..x.len() {
            let (mut cross, mut square) = (0.0, 0.0);
            for &at in &of_link[link] {
                let others = tests[at].routes[0].iter().filter(|&&other| other as usize != link);
                let others: f64 = others.map(|&other| x[other as usize]).product();
                cross += ratios[at] * others;
                square += others * others;
            }
            let cost = |value: f64| value * value * square - 2.0 * value * cross + WEIGHT * value * (1.0 - value);
            let inner = ((2.0 * cross - WEIGHT) / (2.0 * (square - WEIGHT))).clamp(0.0, 1.0);
            let best = [0.0, 1.0, inner].into_iter().filter(|value| value.is_finite());
            let Some(best) = best.min_by(|a, b| cost(*a).total_cmp(&cost(*b))) else { continue };
            if of_link[link].is_empty() {
                continue;
            }
            moved = moved.max((best - x[link]).abs());
            x[link] = best;
        }
        if moved < SETTLED {
            break;
        }
    }
    x
}
