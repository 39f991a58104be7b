//! The slow alert: the last nights against the nights before.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    refusal::{Refusal, demand},
    robust::{Level, MAD_TO_SIGMA, median, quantile_sorted},
    shift::pseudomedian,
};

/// Nights that [`rank_max`] looks at.
const RANKED: usize = 60;
/// Fewest and most of them that count as recent.
const RECENT: (usize, usize) = (3, 14);
/// Nights whose median [`recent_median`] takes.
const MEDIAN_OF: usize = 8;
/// Nights before these that it compares with.
const HISTORY: usize = 120;
/// Fewest nights before, for either.
pub(super) const FEWEST: usize = 20;
/// Part of the spread of one side that must be exceeded by the scale of both: half of the nights know it half as well.
const WIDER: f64 = 0.87;
/// How much farther than the median of the last nights their pseudomedian may count.
const BURST: f64 = 1.2;
/// Beyond this [`rank_max`] alerts.
pub(super) const RANK_CUT: f64 = 4.5;
/// Beyond this [`recent_median`] alerts.
pub(super) const MEDIAN_CUT: f64 = 1.85;
/// Correlation of neighbouring nights that needs no correction.
const ORDINARY: f64 = 0.3;
/// Nights that stay together when a series is drawn anew.
const BLOCK: usize = 5;

/// What the slow rules say of the last night of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slow {
    /// [`rank_max`]: standard errors of a rank sum.
    pub rank: f64,
    /// How many of the last nights it found different.
    pub nights: usize,
    /// [`recent_median`]: standard deviations of a night.
    pub median: f64,
}

impl Slow {
    /// The larger of both in multiples of what alerts: beyond ± 1 is an alert, positive if values rose.
    pub fn excess(&self) -> f64 {
        let (rank, median) = (self.rank / RANK_CUT, self.median / MEDIAN_CUT);
        if rank.abs() > median.abs() { rank } else { median }
    }
}

/// Both slow rules at the end of a series; `floor` as in [`recent_median`].
///
/// # Errors
/// Fewer than 28 values, or one that is not finite.
pub fn slow(series: &[f64], floor: f64) -> Result<Slow, Refusal> {
    let (rank, nights) = rank_max(series)?;
    Ok(Slow { rank, nights, median: recent_median(series, floor)? })
}

/// Largest standardised rank sum of the last k of 60 values, k = 3 … 14, and its k:
/// (Rₖ − k (n + 1) / 2) / √(k (n − k) (n + 1) / 12), midranks and the usual correction for ties (Pettitt 1979, restricted to
/// recent changes). Positive if values rose. Independent of the distribution, and slow to be impressed: no single night
/// moves it far.
///
/// # Errors
/// Fewer than 23 values, or one that is not finite.
pub fn rank_max(series: &[f64]) -> Result<(f64, usize), Refusal> {
    demand(series, FEWEST + RECENT.0)?;
    let window = &series[series.len().saturating_sub(RANKED)..];
    let n = window.len();
    let mut order: Vec<(f64, usize)> = window.iter().copied().zip(0..).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = [0.0; RANKED];
    let (mut start, mut ties) = (0, 0.0);
    while start < n {
        let mut end = start + 1;
        while end < n && order[end].0 == order[start].0 {
            end += 1;
        }
        let midrank = (start + end + 1) as f64 / 2.0;
        order[start..end].iter().for_each(|&(_, at)| ranks[at] = midrank);
        let group = (end - start) as f64;
        ties += group * group * group - group;
        start = end;
    }
    let all = n as f64;
    let spread = (all + 1.0 - ties / (all * (all - 1.0))) / 12.0;
    let (mut best, mut sum) = ((0.0_f64, RECENT.0), 0.0);
    for k in 1..=RECENT.1.min(n - FEWEST) {
        sum += ranks[n - k];
        let variance = (k * (n - k)) as f64 * spread;
        if k < RECENT.0 || variance <= 0.0 {
            continue;
        }
        let z = (sum - k as f64 * (all + 1.0) / 2.0) / variance.sqrt();
        if z.abs() > best.0.abs() {
            best = (z, k);
        }
    }
    Ok(best)
}

/// Pseudomedian of the last 8 values (Hodges & Lehmann 1963), less the centre of up to 120 values before them, over their
/// standard deviation; both of these robust and reweighted ([`Level`]). A bad night or two do not move it far, and it wastes
/// less of the others than a median over a median absolute deviation: its cut can be lower for as few false alerts.
///
/// A deviation below `floor` counts as `floor`: where values are whole nanoseconds, half of them may be equal, and the
/// next one would be almost infinitely far away.
///
/// # Errors
/// Fewer than 28 values, or one that is not finite.
pub fn recent_median(series: &[f64], floor: f64) -> Result<f64, Refusal> {
    demand(series, FEWEST + MEDIAN_OF)?;
    let (before, last) = series.split_at(series.len() - MEDIAN_OF);
    let before = &before[before.len().saturating_sub(HISTORY)..];
    let mut sorted = before.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let scale = Level::of_sorted(&sorted, floor).scale;
    let centre = quantile_sorted(&sorted, 0.5)?;
    let (most, half) = (pseudomedian(last)? - centre, BURST * (median(last)? - centre));
    // A few very bad nights move the pseudomedian, and hardly the median: they are no new level.
    let away = if most * half <= 0.0 { 0.0 } else { most.signum() * most.abs().min(half.abs()) };
    // Where noise is skewed, one side is wider than what the shortest half shows.
    let quartile = quantile_sorted(&sorted, if away < 0.0 { 0.25 } else { 0.75 })?;
    let wide = WIDER * MAD_TO_SIGMA * (quartile - centre).abs();
    Ok(if away == 0.0 { 0.0 } else { away / scale.max(wide) })
}

/// How much farther a series that wanders must go to alert: √((1 + r) / (1 − r)), where r is by how much the correlation of
/// neighbouring nights exceeds 0.3; 1 for all others. Correlation makes the mean of a week vary as if it were fewer
/// nights (Bartlett 1946). Up to 0.3 the cuts leave room for it, and a correction for an estimate that is off by 0.1
/// would only cost sight.
///
/// # Errors
/// Fewer than 28 values, or one that is not finite.
pub fn wandering(history: &[f64]) -> Result<f64, Refusal> {
    demand(history, FEWEST + MEDIAN_OF)?;
    let n = history.len() as f64;
    let centre = history.iter().sum::<f64>() / n;
    let squares: f64 = history.iter().map(|v| (v - centre).powi(2)).sum();
    if squares <= 0.0 {
        return Ok(1.0);
    }
    let products: f64 = history.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum();
    let plain = products / squares;
    // Kendall 1954: the estimate is low by (1 + 3 r) / n.
    let r = (plain + (1.0 + 3.0 * plain) / n - ORDINARY).clamp(0.0, 0.9);
    Ok(((1.0 + r) / (1.0 - r)).sqrt())
}

/// How often chance would do the same: the share of `draws` series, drawn in blocks of five nights from `history`, whose
/// [`Slow::excess`] is at least `excess` in size (moving block bootstrap, Künsch 1989). Blocks keep what neighbouring
/// nights have in common, so a series that wanders by itself raises fewer alarms. Stops as soon as the share is certain to
/// exceed `enough`; `floor` as in [`recent_median`].
///
/// # Errors
/// Fewer than 28 values, or one that is not finite.
pub fn by_chance(
    history: &[f64],
    excess: f64,
    enough: f64,
    floor: f64,
    draws: usize,
    seed: u64,
) -> Result<f64, Refusal> {
    demand(history, FEWEST + MEDIAN_OF)?;
    let length = history.len().min(HISTORY + MEDIAN_OF);
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut series = Vec::with_capacity(length + BLOCK);
    let mut reached = 0;
    for draw in 1..=draws {
        series.clear();
        while series.len() < length {
            let start = dice.random_range(0..=history.len() - BLOCK);
            series.extend_from_slice(&history[start..start + BLOCK]);
        }
        series.truncate(length);
        reached += usize::from(slow(&series, floor)?.excess().abs() >= excess.abs());
        if reached as f64 > enough * draws as f64 {
            return Ok(reached as f64 / draw as f64);
        }
    }
    Ok(reached as f64 / draws as f64)
}
