//! The young alert: a step within a level of few nights.

use std::sync::OnceLock;

use crate::{
    robust::{MAD_TO_SIGMA, median_in_place},
    student::t_quantile,
};

/// Most nights of a level that are looked at: beyond it the slow alert has twice the nights it needs.
pub const MOST: usize = 42;
/// Fewest nights before a step, and since it.
pub const FEWEST: (usize, usize) = (2, 3);
/// Nights from which on a side's value farthest from its median is moved to the next one.
const CLIPPED: usize = 4;
/// Nights to either side of the step that stands out most among which the best place is taken.
const NEARBY: usize = 2;
/// Weight, in nights, of the expectation that the deviation is that of the least effect.
const PRIOR: f64 = 2.0;
/// Chance of each one-sided test, by the nights before the step: 2, 3, 4, 5 to 7, more. Where few nights came before, more
/// of them would not come any more, so it must do with little; later steps have better evidence and can be asked for it.
const CHANCE: [(usize, f64); 5] = [(2, 4e-4), (3, 1e-4), (4, 2e-5), (5, 5e-6), (8, 1e-5)];
/// What the last of these is multiplied with: √((1 + r) / (1 − r)) at r = 0.3. The mean of many nights varies by so much more
/// where a night resembles the one before (Bartlett 1946).
const RESEMBLES: f64 = 1.363;
/// The chance is divided by this where fewer than [`PATIENT`] nights came since: more will come.
const HASTE: f64 = 10.0;
const PATIENT: usize = 7;
/// It is divided by this where more than [`LATE`] came: each further night tests the same few nights before once more, and most
/// false alerts of young levels came of that, while a step that can be told shows earlier.
const STALE: f64 = 10.0;
const LATE: usize = 12;
/// Standard deviations from the median of its side beyond which a night is a dip, and tells nothing of the level.
const DIP: f64 = 5.0;
/// Most nights before a step that one dip spoils.
const SPOILT: usize = 7;

/// A step found in a young level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Position of the first night of the new level.
    pub at: usize,
    /// Student's t over what it takes: beyond ± 1, positive if values rose.
    pub excess: f64,
}

/// The step that stands out most among all places of a young level, if any does: Student's t of the nights since against the
/// nights before, over the quantile that the place asks for. The largest residual of a side of four nights or more counts as
/// the second largest, so that one bad night hides no step and makes none; the deviation also rests on two imagined nights
/// that deviate by `least`. A quarter of a side's nights, one of three, is left out where it lies beyond 5 standard deviations
/// from the side's median; but not of 8 nights or more before the step. With fewer than 7 nights since, all of these lie beyond the middle.
///
/// Levels of fewer than 5 or more than [`MOST`] nights have none.
pub fn young(level: &[f64], least: f64) -> Option<Step> {
    let n = level.len();
    if n < FEWEST.0 + FEWEST.1 || n > MOST {
        return None;
    }
    // Where half of the nights are equal and every effect counts, nothing is a dip.
    let dip = Some(DIP * deviation(level).max(least)).filter(|dip| *dip > 0.0).unwrap_or(f64::INFINITY);
    let mut before = sides(level.iter().take(SPOILT), dip);
    // Of many nights before, dips show what else to expect since; and they spoil less.
    before.extend(sides(level.iter(), f64::INFINITY).into_iter().skip(before.len()));
    let since = sides(level.iter().rev(), dip);
    let at = |place: usize| {
        let (a, b) = (&before[place - 1], &since[n - place - 1]);
        let freedom = (a.nights + b.nights - 2) as f64;
        let variance = (a.squares + b.squares + PRIOR * least * least) / (freedom + PRIOR);
        let error = (variance * (1.0 / a.nights as f64 + 1.0 / b.nights as f64)).sqrt();
        let t = if error > 0.0 { (b.mean - a.mean) / error } else { 0.0 };
        Step { at: place, excess: t / cut(a.nights, b.nights) }
    };
    // A side too short to be clipped must lie beyond the middle with every night.
    let apart = |place: &usize| {
        let (a, b) = (&before[*place - 1], &since[n - *place - 1]);
        let beyond = |nights: &[f64], side: &Side| {
            let middle = (a.mean + b.mean) / 2.0;
            let counts = |v: &&f64| side.nights == nights.len() || (**v - side.median).abs() <= dip;
            side.nights >= CLIPPED || nights.iter().filter(counts).all(|v| (*v > middle) == (side.mean > middle))
        };
        // A night that is back where the level came from is no dip of a new level that is young itself.
        let middle = (a.mean + b.mean) / 2.0;
        let held = b.nights >= PATIENT || level[*place..].iter().all(|v| (*v > middle) == (b.mean > middle));
        held && b.nights >= FEWEST.1 && beyond(&level[..*place], a) && beyond(&level[*place..], b)
    };
    let all = (FEWEST.0..=n - FEWEST.1).filter(apart).map(at);
    let most = all.max_by(|a, b| a.excess.abs().total_cmp(&b.excess.abs())).filter(|step| step.excess.abs() > 1.0)?;
    // A side whose farthest night was moved may hold one of the other side: the place is where distances are smallest.
    let places = most.at.saturating_sub(NEARBY).max(FEWEST.0)..=(most.at + NEARBY).min(n - 1);
    let left = |at: &usize| distances(&level[..*at]) + distances(&level[*at..]);
    let at = places.min_by(|a, b| left(a).total_cmp(&left(b))).unwrap_or(most.at);
    Some(Step { at, ..most })
}

/// Sum of the distances from the median.
fn distances(values: &[f64]) -> f64 {
    let centre = median_in_place(&mut values.to_vec());
    values.iter().map(|v| (v - centre).abs()).sum()
}

/// The t that a step after so many nights and since so many has to exceed.
fn cut(before: usize, since: usize) -> f64 {
    static CUTS: OnceLock<Vec<f64>> = OnceLock::new();
    let when = if since < PATIENT {
        1
    } else if since > LATE {
        2
    } else {
        0
    };
    let kind = (CHANCE.partition_point(|(from, _)| *from <= before) - 1) * 3 + when;
    let cuts = CUTS.get_or_init(|| {
        let cut = |freedom: usize, kind: usize| {
            let fewer = [1.0, HASTE, STALE][kind % 3];
            let many = if kind / 3 + 1 == CHANCE.len() { RESEMBLES } else { 1.0 };
            many * t_quantile(CHANCE[kind / 3].1 / fewer, freedom as f64)
        };
        (1..=MOST).flat_map(|freedom| (0..3 * CHANCE.len()).map(move |kind| cut(freedom, kind))).collect()
    });
    cuts[(before + since - 3) * 3 * CHANCE.len() + kind]
}

/// About the smallest step that is found after ten nights in most cases if it comes now: what alerts and a standard error.
pub(super) fn sees(level: &[f64], least: f64) -> Option<f64> {
    found(level, least, 10, 1.0)
}

/// Whether half the rate is so little beside the noise that it would not be found within a week in 95 of 100 cases: what
/// alerts and 1.645 standard errors exceed it.
pub(super) fn is_blind(level: &[f64], least: f64) -> bool {
    found(level, least, PATIENT, 1.645).is_some_and(|step| step > std::f64::consts::LN_2)
}

/// Standard deviation of the nights that half the rate is looked for among.
pub(super) fn noise(level: &[f64], least: f64) -> Option<f64> {
    spread(level, least, PATIENT).map(|(_, variance)| variance.sqrt())
}

/// The last nights of a level that so many nights of a new one are held against, and their variance.
fn spread(level: &[f64], least: f64, nights: usize) -> Option<(usize, f64)> {
    let n = level.len().min(MOST - nights);
    if n < FEWEST.0 {
        return None;
    }
    let all = sides(level[level.len() - n..].iter(), f64::INFINITY).pop()?;
    Some((n, (all.squares + PRIOR * least * least) / (n as f64 - 1.0 + PRIOR)))
}

/// What alerts after so many nights of a new level, and so many standard errors.
fn found(level: &[f64], least: f64, nights: usize, errors: f64) -> Option<f64> {
    let (n, variance) = spread(level, least, nights)?;
    let error = (variance * (1.0 / n as f64 + 1.0 / nights as f64)).sqrt();
    Some((error * (cut(n, nights) + errors)).max(least))
}

/// Standard deviation of a night whatever steps there are: 1.4826 · MAD of the differences of neighbours, over √2.
fn deviation(level: &[f64]) -> f64 {
    let mut differences: Vec<f64> = level.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    MAD_TO_SIGMA * median_in_place(&mut differences) / std::f64::consts::SQRT_2
}

/// Nights of a side without dips, their mean and sum of squares; the median of all.
struct Side {
    nights: usize,
    median: f64,
    mean: f64,
    squares: f64,
}

/// The sides that end after the first night, the second, and so on.
fn sides<'a>(nights: impl Iterator<Item = &'a f64>, dip: f64) -> Vec<Side> {
    let mut sorted: Vec<f64> = Vec::with_capacity(MOST);
    nights
        .map(|&value| {
            sorted.insert(sorted.partition_point(|&other| other < value), value);
            side(&sorted, dip)
        })
        .collect()
}

fn side(all: &[f64], dip: f64) -> Side {
    let median = middle(all);
    // Dips are few: where more nights lie apart, none of them is left out.
    let most = if all.len() == CLIPPED - 1 { 1 } else { all.len() / CLIPPED };
    let start = all.partition_point(|value| *value < median - dip);
    let end = all.partition_point(|value| *value <= median + dip);
    let sorted = if start + all.len() - end <= most { &all[start..end] } else { all };
    let n = sorted.len();
    let moments = |value: &dyn Fn(usize) -> f64| {
        let mean = (0..n).map(value).sum::<f64>() / n as f64;
        Side { nights: n, median, mean, squares: (0..n).map(|i| (value(i) - mean).powi(2)).sum() }
    };
    if n < CLIPPED {
        return moments(&|i| sorted[i]);
    }
    let median = middle(sorted);
    let (low, high) = (median - sorted[0], sorted[n - 1] - median);
    // The farthest is at one of the ends; the second farthest beside it or at the other.
    let (farthest, second) =
        if low > high { (0, (median - sorted[1]).max(high)) } else { (n - 1, (sorted[n - 2] - median).max(low)) };
    let moved = if low > high { median - second } else { median + second };
    moments(&|i| if i == farthest { moved } else { sorted[i] })
}

fn middle(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
}
