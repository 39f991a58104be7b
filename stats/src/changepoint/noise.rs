use crate::{
    rank::{normal_cdf, normal_quantile},
    robust::median_in_place,
};

/// Lags of compared nights, each for series of this many times its length.
const LAGS: [usize; 4] = [1, 2, 3, 6];
const LENGTH: usize = 10;
/// A difference counts as at most so many standard deviations, and beyond the second it is a dip and does not count.
const REACH: (f64, f64) = (2.5, 4.0);
/// Ratio of the largest variance over several lags to each, by chance.
const CHANCE: f64 = 1.1;
/// A larger growth of differences with the lag marks a wandering series; it counts twice.
const WANDERS: f64 = 1.6;
const DIPS: usize = 4;
/// One dip in so many nights of a few.
const DIP: usize = 6;
/// Weight, in nights, of the prior that the deviation is that of the least effect.
const PRIOR: f64 = 2.0;
/// Share, over the nights, by which their deviation is raised where they are few: two levels fit them closer than one does.
const FEW: f64 = 3.0;

/// Standard deviation of a night, independent of steps: that of the differences of neighbours over √2 (von Neumann 1941). If more distant
/// nights differ by more, neighbours resemble each other, and the mean of several nights varies more than one night shows: the largest
/// variance over lags of 1 to 6 nights counts, weighted by its excess over that of neighbours.
///
/// A step and a dip spoil three differences, which is many of a few nights: these are compared with the medians of one or two levels,
/// whichever are nearest.
pub(super) fn noise(series: &[f64], least: f64) -> f64 {
    let n = series.len();
    if n < 2 {
        return least;
    }
    let variance = if n < enough(LAGS[1]) {
        let levels = |at: usize| {
            let mut sizes: Vec<f64> = [&series[..at], &series[at..]].into_iter().flat_map(from_median).collect();
            sizes.sort_unstable_by(f64::total_cmp);
            let kept = n - n.div_ceil(DIP);
            let share = kept as f64 / n as f64;
            let squares: f64 = sizes[..kept].iter().map(|size| size * size).sum();
            squares / kept as f64 / (within(normal_quantile((1.0 + share) / 2.0)) / share)
        };
        (2..n - 1).map(levels).fold(levels(0), f64::min) * (1.0 + FEW / n as f64).powi(2)
    } else {
        let at = |lag: usize| {
            spread((lag..n).map(|t| (series[t] - series[t - lag]).abs()).collect(), lag + DIPS, least) / 2.0
        };
        let neighbours = at(1);
        let lags = LAGS.into_iter().skip(1).take_while(|lag| n >= enough(*lag));
        let most = lags.map(|lag| at(lag) / CHANCE).fold(neighbours, f64::max);
        most * (most / neighbours / WANDERS).max(1.0)
    };
    let nights = n as f64 - 1.0;
    ((variance * nights + PRIOR * least * least) / (nights + PRIOR)).sqrt()
}

/// Nights from which a lag is compared.
fn enough(lag: usize) -> usize {
    LENGTH * lag + 2
}

fn from_median(level: &[f64]) -> Vec<f64> {
    let mut sizes = level.to_vec();
    if !sizes.is_empty() {
        let centre = median_in_place(&mut sizes);
        sizes.iter_mut().for_each(|value| *value = (*value - centre).abs());
    }
    sizes
}

/// Variance of absolute differences without the `out` largest, which steps and dips spoil.
fn spread(mut sizes: Vec<f64>, out: usize, least: f64) -> f64 {
    let all = sizes.len();
    // Rounded values: equal ones show nothing of the noise while they are the majority.
    let unlike = sizes.iter().filter(|size| **size > 0.0).count();
    if unlike > 0 && 2 * unlike <= all {
        sizes.retain(|size| *size > 0.0);
    }
    sizes.sort_unstable_by(f64::total_cmp);
    let out = out.min(sizes.len() / 2);
    let share = 1.0 - out as f64 / sizes.len() as f64;
    let kept = &sizes[..sizes.len() - out];
    let middle = (kept[(kept.len() - 1) / 2] + kept[kept.len() / 2]) / 2.0;
    let rough = (middle / normal_quantile((1.0 + share / 2.0) / 2.0)).max(least / 4.0);
    let near = &kept[..kept.partition_point(|size| *size <= REACH.1 * rough).max(1)];
    let squares: f64 = near.iter().map(|size| size.min(REACH.0 * rough).powi(2)).sum();
    // Normal differences beyond the bound are omitted, or count as much as the bound.
    let bound = if out == 0 { REACH.0 } else { normal_quantile((1.0 + share) / 2.0).min(REACH.0) };
    let tail = if bound < REACH.0 { 0.0 } else { 2.0 * normal_cdf(-bound) * bound * bound };
    let normal = if bound < REACH.0 { within(bound) / share } else { within(bound) + tail };
    squares / near.len() as f64 / normal
}

/// Part of a normal variance that is from values within the bound.
fn within(bound: f64) -> f64 {
    1.0 - 2.0 * normal_cdf(-bound) - 2.0 * bound * (-bound * bound / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// Number of the last nights of a level, and their standard deviation about the median; the farthest counts as the second farthest, so
/// that one night is not noise.
pub(super) fn scatter(level: &[f64], nights: usize, least: f64) -> Option<(usize, f64)> {
    let mut last = level[level.len().saturating_sub(nights)..].to_vec();
    let n = last.len();
    if n < 2 {
        return None;
    }
    let centre = median_in_place(&mut last);
    last.iter_mut().for_each(|value| *value = (*value - centre).powi(2));
    last.sort_unstable_by(f64::total_cmp);
    last[n - 1] = last[n - 2];
    Some((n, ((last.iter().sum::<f64>() + PRIOR * least * least) / (n as f64 - 1.0 + PRIOR)).sqrt()))
}
