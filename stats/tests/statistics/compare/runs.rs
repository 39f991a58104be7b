//! Made-up runs and blocks, and how they are compared.

use railgauge_stats::compare::{
    Comparison, Judged, LEVEL, Margin, RunSet, Variant, Verdict, block_difference, block_orders, margin, verdicts,
};

use crate::generators::Noise;

/// Never used while the rules were made; development used 577215664.
pub const FRESH: u64 = 299_792_458;
/// Comparisons of each kind of noise.
pub const COMPARISONS: usize = 2_000;

/// Only every so many comparisons have a headline, whose bootstrap takes longest.
pub const HEADLINES: usize = 5;

/// A series of logarithms of spread 1 % in which nothing changes.
pub fn series(kind: &str, n: usize, noise: &mut Noise) -> Vec<f64> {
    let mut last = noise.normal();
    let mut slow = false;
    (0..n)
        .map(|_| {
            0.01 * match kind {
                "normal" => noise.normal(),
                "log-normal" => noise.normal().exp() / 2.16,
                "autocorrelated .3" | "autocorrelated .6" => {
                    let r = if kind.ends_with(".3") { 0.3_f64 } else { 0.6 };
                    last = r * last + (1.0 - r * r).sqrt() * noise.normal();
                    last
                }
                // Two states, a tenth of the time the slower one, in which a link tends to stay.
                "bimodal" => {
                    if noise.chance(if slow { 0.3 } else { 0.033 }) {
                        slow = !slow;
                    }
                    0.5 * noise.normal() - if slow { 3.0 } else { 0.0 }
                }
                other => panic!("no noise called {other}"),
            }
        })
        .collect()
}

pub const KINDS: [&str; 5] = ["normal", "log-normal", "autocorrelated .3", "autocorrelated .6", "bimodal"];

pub fn blocks(series: &[f64], seed: u64) -> Vec<f64> {
    let orders = block_orders(series.len() / 4, seed);
    let difference = |(values, order): (&[f64], &[Variant; 4])| {
        let side =
            |which| -> Vec<f64> { values.iter().zip(order).filter(|(_, v)| **v == which).map(|(x, _)| *x).collect() };
        block_difference(&side(Variant::A), &side(Variant::B)).unwrap()
    };
    series.chunks_exact(4).zip(&orders).map(difference).collect()
}

/// Orders of ten runs a side: one side first, by chance, in turn.
pub fn orders(noise: &mut Noise) -> [Vec<Variant>; 3] {
    let first = [[Variant::A; 10], [Variant::B; 10]].concat();
    let mut shuffled = first.clone();
    noise.shuffle(&mut shuffled);
    [first, shuffled, [Variant::A, Variant::B].repeat(10)]
}

pub fn within(value: f64) -> Margin {
    margin(Some(value), 0.0)
}

/// Cells, each of runs in the order of time, as they are compared.
pub fn compared(cells: &[Vec<f64>], order: &[Variant], margin: Margin) -> Vec<Comparison> {
    let cells: Vec<Vec<Option<f64>>> = cells.iter().map(|runs| runs.iter().map(|v| Some(*v)).collect()).collect();
    let mut runs = RunSet::new(order.to_vec());
    cells.iter().map(|cell| runs.compare(cell, margin).unwrap()).collect()
}

pub fn words(cells: &[Vec<f64>], order: &[Variant], margin: Margin) -> Vec<Judged> {
    let compared: Vec<_> = compared(cells, order, margin).into_iter().map(|cell| (cell, true)).collect();
    verdicts(&compared).unwrap()
}

pub fn is_change(judged: &Judged) -> bool {
    matches!(judged.verdict, Verdict::Improved | Verdict::Regressed)
}

/// Two sides of runs, in turn as long as both have some; `first` is the side of the first.
pub fn sides(first: Variant, one: &[f64], other: &[f64], margin: Margin) -> Comparison {
    let second = if first == Variant::A { Variant::B } else { Variant::A };
    let (mut order, mut runs) = (Vec::new(), Vec::new());
    for i in 0..one.len().max(other.len()) {
        for (side, values) in [(first, one), (second, other)] {
            if let Some(value) = values.get(i) {
                order.push(side);
                runs.push(*value);
            }
        }
    }
    compared(&[runs], &order, margin)[0]
}

pub fn judged(runs: &[f64], order: &[Variant]) -> Comparison {
    compared(&[runs.to_vec()], order, margin(None, 0.0))[0]
}

/// Two standard errors above a share of 5 %.
pub fn five_percent() -> f64 {
    LEVEL + 2.0 * (LEVEL * (1.0 - LEVEL) / COMPARISONS as f64).sqrt()
}
