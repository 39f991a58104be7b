//! E-divisive with windows: where a series changed.

use crate::{
    refusal::{Refusal, demand},
    student::welch,
};

/// Values a window holds.
const WINDOW: usize = 50;

/// A place where a series changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// First position of the new regime.
    pub at: usize,
    /// Mean after minus mean before, up to the neighbouring change points.
    pub effect: f64,
    /// Welch's p for that difference. Because the place was searched for, it is no rate of false alarms.
    pub p: f64,
}

/// Change points of a series, by the energy statistic of Matteson & James 2014 with a t test in place of permutations and
/// overlapping windows of 50 values (Fleming et al. 2023): in each window, the split that maximises
/// Q = 2/(m+n) Σ|Xᵢ−Yⱼ| − 2m/((m+n)(n−1)) Σ|Xᵢ−Xₖ| − 2n/((m+n)(m−1)) Σ|Yⱼ−Yₖ| for n values X before and m values Y after it,
/// over all places and ends, is kept while its t test stays below ten times `p`; then the weakest are dropped until all
/// stay below `p`. Unlike the published code the variances have divisor n − 1.
///
/// For use on a clipped series ([`winsorise`](crate::robust::winsorise)), where a single low value makes no two change
/// points. Series shorter than four values have none.
///
/// # Errors
/// A value that is not finite, or `p` outside (0, 0.1].
pub fn change_points(series: &[f64], p: f64) -> Result<Vec<ChangePoint>, Refusal> {
    demand(series, 0)?;
    if !(p > 0.0 && p <= 0.1) {
        return Err(Refusal::Parameter("the p of change points lies between 0 and 0.1"));
    }
    let mut places: Vec<usize> = Vec::new();
    let mut start = 0;
    while start < series.len() {
        let end = (start + WINDOW).min(series.len());
        let found = split(&series[start..end], 10.0 * p);
        places.extend(found.iter().map(|at| start + at));
        if end == series.len() {
            break;
        }
        start = found.last().map_or(0, |at| start + at).max(start + WINDOW / 2);
    }
    places.sort_unstable();
    places.dedup();
    Ok(merge(series, places, p))
}

/// Weak change points of one window.
fn split(window: &[f64], p: f64) -> Vec<usize> {
    let distances = Distances::new(window);
    let mut places: Vec<usize> = Vec::new();
    // The best candidate of each interval, computed once for each interval.
    let mut intervals = vec![(0, window.len(), distances.best(0, window.len()))];
    loop {
        let best = intervals
            .iter()
            .enumerate()
            .filter_map(|(i, (_, _, found))| found.map(|(at, q)| (i, at, q)))
            .max_by(|a, b| a.2.total_cmp(&b.2));
        let Some((interval, at, _)) = best else { break };
        let (start, end, _) = intervals[interval];
        if test(&window[start..at], &window[at..end]).is_none_or(|(_, found)| found > p) {
            break;
        }
        places.push(at);
        intervals[interval] = (start, at, distances.best(start, at));
        intervals.push((at, end, distances.best(at, end)));
    }
    places.sort_unstable();
    places
}

/// Drops the weakest of the places until all stay below `p`.
fn merge(series: &[f64], mut places: Vec<usize>, p: f64) -> Vec<ChangePoint> {
    loop {
        let bounds = |i: usize| {
            let before = if i == 0 { 0 } else { places[i - 1] };
            (before, places.get(i + 1).copied().unwrap_or(series.len()))
        };
        let tested: Vec<ChangePoint> = (0..places.len())
            .map(|i| {
                let (start, end) = bounds(i);
                let at = places[i];
                let (effect, p) = test(&series[start..at], &series[at..end]).unwrap_or((0.0, 1.0));
                ChangePoint { at, effect, p }
            })
            .collect();
        match tested.iter().enumerate().max_by(|a, b| a.1.p.total_cmp(&b.1.p)) {
            Some((weakest, point)) if point.p > p => _ = places.remove(weakest),
            _ => return tested,
        }
    }
}

/// Difference of means and Welch's p; `None` where there are too few values. Two different constants differ for certain.
fn test(before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
    match welch(after, before) {
        Ok(difference) => Some((difference.estimate, difference.p_two_sided())),
        Err(Refusal::NoSpread) => {
            let effect = after[0] - before[0];
            Some((effect, if effect == 0.0 { 1.0 } else { 0.0 }))
        }
        Err(_) => None,
    }
}

/// Sums of distances within any stretch of a window, from two-dimensional prefix sums.
struct Distances {
    /// `sums[i * (n + 1) + j]`: distances between the first i and the first j values.
    sums: Vec<f64>,
    width: usize,
}

impl Distances {
    fn new(values: &[f64]) -> Self {
        let width = values.len() + 1;
        let mut sums = vec![0.0; width * width];
        for (i, a) in values.iter().enumerate() {
            let mut row = 0.0;
            for (j, b) in values.iter().enumerate() {
                row += (a - b).abs();
                sums[(i + 1) * width + j + 1] = sums[i * width + j + 1] + row;
            }
        }
        Self { sums, width }
    }

    /// Sum over all pairs of positions in `start..end`, each pair once.
    fn within(&self, start: usize, end: usize) -> f64 {
        let at = |i: usize, j: usize| self.sums[i * self.width + j];
        (at(end, end) - at(start, end) - at(end, start) + at(start, start)) / 2.0
    }

    /// The place in `start..end` with the largest Q over all ends, and that Q; `None` if no place has two values a side.
    fn best(&self, start: usize, end: usize) -> Option<(usize, f64)> {
        let mut best: Option<(usize, f64)> = None;
        for at in start + 2..end.saturating_sub(1) {
            let n = (at - start) as f64;
            let before = self.within(start, at);
            for stop in at + 2..=end {
                let m = (stop - at) as f64;
                let after = self.within(at, stop);
                let between = self.within(start, stop) - before - after;
                let q = 2.0 / (m + n) * between
                    - 2.0 * m / ((m + n) * (n - 1.0)) * before
                    - 2.0 * n / ((m + n) * (m - 1.0)) * after;
                if best.is_none_or(|(_, most)| q > most) {
                    best = Some((at, q));
                }
            }
        }
        best
    }
}
