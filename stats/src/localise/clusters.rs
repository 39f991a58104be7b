//! Detects two unexplained clusters in the values of a test.

use std::collections::BTreeSet;

use super::{
    TwoClusters,
    cover::Table,
    model::{Explanation, FEW_BETTER},
    split::{FEWEST_FOR_SPLIT, split},
};
use crate::{robust::median_in_place, student::t_quantile};

/// Fewest results of a kind for two clusters: fewer are far apart by chance too often, and have to be farther.
const MANY: usize = 16;
/// Probability that chance moves any of a few results this far.
const FEW_APART: f64 = 0.005;
/// Least standard deviations between the centres for the same: twice the distance for many results, for tails that are not normal.
const FAR_APART: f64 = 8.0;

/// Distance ratio of a few values to all others beyond which they are not a tail: for Student's t with 3 degrees of freedom the largest
/// value exceeds it in one of a thousand.
const NO_TAIL: f64 = 10.0;

/// Whether two clusters are farther apart than by chance (Student's t of two samples; Bonferroni over the cut), and by the least effect at
/// least. Few results that are a little better than the others are not a cluster.
fn far_apart(low: &[f64], high: &[f64], least: f64) -> bool {
    let (n, [a, b]) = ((low.len() + high.len()) as f64, [low, high].map(|side| side.len() as f64));
    let means = [low, high].map(|side| side.iter().sum::<f64>() / side.len() as f64);
    let squares = |(side, mean): (&[f64], f64)| side.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let scale = ([low, high].into_iter().zip(means).map(squares).sum::<f64>() / (n - 2.0)).sqrt();
    let (apart, error) = (means[1] - means[0], scale * (1.0 / a + 1.0 / b).sqrt());
    // The quantile last: it takes the longest.
    apart > (FAR_APART * scale).max(least).max(FEW_BETTER) && apart > t_quantile(FEW_APART / n, n - 2.0) * error
}

/// Start of the upper cluster of many sorted values if it has hardly any: a fault removes bandwidth and adds none, so one pair far above
/// all others means that those are low.
fn few_above(sorted: &[f64], least: f64) -> Option<f64> {
    let n = sorted.len();
    let above = |upper: &usize| {
        let (low, high) = sorted.split_at(n - upper);
        let away = |value: f64| value - sorted[n / 2];
        away(high[0]) > NO_TAIL * away(low[low.len() - 1]) && far_apart(low, high, least)
    };
    (1..=n / 10).find(above).map(|upper| sorted[n - upper])
}

/// Difference of a few results with unknown noise that makes two clusters: two thirds of that of a pair at half the rate, which must be
/// detected.
const FAR_OF_TWO: f64 = 2.0 / 3.0 * std::f64::consts::LN_2;

/// Start of the upper cluster of two to five sorted values, by the widest gap: which of two is odd is unknown.
fn gap(sorted: &[f64], table: &Table) -> Option<f64> {
    let far = if table.noise > 0.0 { (FAR_APART * table.noise).max(table.least) } else { FAR_OF_TWO };
    let at = (1..sorted.len()).max_by(|a, b| (sorted[*a] - sorted[a - 1]).total_cmp(&(sorted[*b] - sorted[b - 1])))?;
    let wide = (sorted[at - 1] - sorted[0]).max(sorted[sorted.len() - 1] - sorted[at]);
    (sorted[at] - sorted[at - 1] > far.max(FAR_APART * wide)).then_some(sorted[at])
}

/// The clusters if a share of all ways is low: these low cells and good ones.
fn of_share(table: &Table, low: &BTreeSet<u32>) -> Option<TwoClusters> {
    // Explained cells are in neither.
    let is_good = |at: u32| table.live[at as usize].then(|| !low.contains(&at));
    let centre = |good: bool| {
        let of = (0..table.cells.len()).filter(|&at| is_good(at as u32) == Some(good));
        let mut values: Vec<f64> = of.map(|at| table.cells[at].value).collect();
        (!values.is_empty()).then(|| median_in_place(&mut values))
    };
    let (good, bad) = (centre(true)?, centre(false)?);
    // Mixed results of the same way are in between.
    let between = |at: u32| {
        let from_good = (good - table.cells[at as usize].value) / (good - bad);
        (1.0 / 3.0..2.0 / 3.0).contains(&from_good)
    };
    let is_good = table.cell_of.iter().map(|&at| is_good(at).filter(|_| !between(at))).collect();
    Some(TwoClusters { good, bad, is_good })
}

/// `None` if there is one cluster or something separates them.
pub(super) fn two_clusters(explanation: &Explanation) -> Option<TwoClusters> {
    let table = &explanation.table;
    let sorted = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    if !explanation.share.is_empty() {
        return of_share(table, &explanation.share);
    }
    let left = explanation.unexplained();
    // The kinds do not count as clusters.
    let one_kind = table.cells.iter().all(|cell| cell.stratum == table.cells[0].stratum);
    let (from, stratum) = (0..2).find_map(|stratum| {
        let of = |at: &usize| table.cells[*at].stratum == stratum;
        let values = sorted((0..left.len()).filter(of).map(|at| left[at]).collect());
        if values.len() < FEWEST_FOR_SPLIT {
            return gap(&values, table).map(|from| (from, stratum));
        }
        let few = values.len() < MANY;
        let Some(split) = split(&values, if few { 1 } else { 3 }) else {
            // With two kinds, the tail of one is not a separate level.
            return few_above(&values, table.least).filter(|_| one_kind).map(|from| (from, stratum));
        };
        let below = values.partition_point(|value| *value < split.from);
        let (low, high) = values.split_at(below);
        if few && !far_apart(low, high, table.least) {
            return None;
        }
        (10 * below.min(values.len() - below) >= values.len()).then_some((split.from, stratum))
    })?;
    // Explained cells are in neither.
    let free = |at: &usize| table.cells[*at].stratum == stratum && left[*at] == table.residual(*at);
    let centre = |good: bool| {
        let of = (0..left.len()).filter(free).filter(|&at| (left[at] >= from) == good);
        let mut values: Vec<f64> = of.map(|at| table.cells[at].value).collect();
        (!values.is_empty()).then(|| median_in_place(&mut values))
    };
    let (good, bad) = (centre(true)?, centre(false)?);
    let is_good = |at: usize| free(&at).then_some(left[at] >= from);
    let is_good = table.cell_of.iter().map(|&at| is_good(at as usize)).collect();
    // Closer than the least effect they are one, however narrow each is.
    (good - bad >= table.least).then_some(TwoClusters { good, bad, is_good })
}
