//! Effect of the order of runs in time if runs resemble their neighbours.
//!
//! Model: each side has one level and one standard deviation, and the noise of neighbours in time is correlated by r (a first-order
//! autoregressive series). The standard error of a difference of means, and its estimate from the spread within the sides, depend on r
//! and on the order: with all runs of one side first the difference is far less certain than its spread suggests; with alternating sides
//! it is more certain, but only if both sides have the same noise.

use serde::Serialize;

use super::Variant;
use crate::student::t_quantile;

/// Correlation of neighbouring runs that must do no harm: what a fabric keeps from run to run (temperature, placement, a neighbour's
/// job).
pub const NEIGHBOURS: f64 = 0.6;
/// Steps between correlations from 0 to [`NEIGHBOURS`].
const STEPS: usize = 3;
/// Alternating runs are worth at least this share of as many independent runs.
const IN_TURN: f64 = 0.9;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// All runs of one side before all of the other.
    OneSideFirst,
    Mixed,
    InTurn,
}

/// In the order of time, runs with a value only.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    counts: [usize; 2],
    /// For no correlation, and for those up to [`NEIGHBOURS`].
    effects: Vec<Effect>,
    worth: f64,
    worst: usize,
    changes: usize,
}

impl Order {
    /// `sides` has the side of each run; `None` is a run without a value, which keeps its place in time. Returns `None` without a run on
    /// both sides or below three in all.
    pub fn new(sides: &[Option<Variant>]) -> Option<Self> {
        let runs: Vec<(usize, usize)> =
            sides.iter().enumerate().filter_map(|(at, side)| Some((at, usize::from((*side)? == Variant::B)))).collect();
        let counts = [0, 1].map(|side| runs.iter().filter(|(_, one)| *one == side).count());
        if counts.contains(&0) || runs.len() < 3 {
            return None;
        }
        let tried = (0..=STEPS).map(|step| NEIGHBOURS * step as f64 / STEPS as f64);
        let effects: Vec<Effect> = tried.map(|r| Effect::new(&runs, counts, r)).collect();
        let worst = (0..effects.len()).max_by(|&a, &b| effects[a].cut().total_cmp(&effects[b].cut()))?;
        let most = effects.iter().map(|effect| effect.alike).fold(0.0, f64::max);
        Some(Self {
            counts,
            worth: effects[0].alike / most,
            worst,
            effects,
            changes: runs.windows(2).filter(|two| two[0].1 != two[1].1).count(),
        })
    }

    pub fn counts(&self) -> [usize; 2] {
        self.counts
    }

    pub(super) fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// Index of the most harmful one if both sides have the same noise.
    pub(super) fn worst(&self) -> usize {
        self.worst
    }

    /// Worst-case worth relative to independent runs if both sides have the same noise: 1 for alternating sides, about a quarter with one
    /// side first.
    pub fn worth(&self) -> f64 {
        self.worth
    }

    pub fn turns(&self) -> Turns {
        if self.worth >= IN_TURN {
            Turns::InTurn
        } else if self.changes <= 1 {
            Turns::OneSideFirst
        } else {
            Turns::Mixed
        }
    }
}

/// Effect of one correlation on the means of both sides in one order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effect {
    /// Variance of each side's mean over the expected variance within it.
    means: [f64; 2],
    /// Covariance of both means over the root of both of these expectations.
    common: f64,
    /// Degrees of freedom of the variance within each side (Satterthwaite 1946).
    freedom: [f64; 2],
    /// For sides with the same noise: variance of the difference of both means over the expected variance within the sides, and the
    /// degrees of freedom of the standard error.
    alike: f64,
    freedom_alike: f64,
}

impl Effect {
    /// `runs` are places in time and sides.
    fn new(runs: &[(usize, usize)], counts: [usize; 2], r: f64) -> Self {
        let raw = |i: usize, j: usize| r.powi(runs[i].0.abs_diff(runs[j].0) as i32);
        let n = runs.len();
        // Means of each row over either side, and of those over either side.
        let mut rows = vec![[0.0; 2]; n];
        for (i, row) in rows.iter_mut().enumerate() {
            (0..n).for_each(|j| row[runs[j].1] += raw(i, j) / counts[runs[j].1] as f64);
        }
        let mut all = [[0.0; 2]; 2];
        for (row, (_, side)) in rows.iter().zip(runs) {
            (0..2).for_each(|s| all[*side][s] += row[s] / counts[*side] as f64);
        }
        // Of the covariance of the residuals within each side: trace, and sum of squares.
        let (mut traces, mut squares) = ([0.0; 2], [0.0; 2]);
        for (i, &(_, side)) in runs.iter().enumerate() {
            for j in (0..n).filter(|&j| runs[j].1 == side) {
                let entry = raw(i, j) - rows[i][side] - rows[j][side] + all[side][side];
                squares[side] += entry * entry;
                traces[side] += if i == j { entry } else { 0.0 };
            }
        }
        let left = counts.map(|count| count as f64 - 1.0);
        // A single run has no spread.
        let seen = [0, 1].map(|side| if left[side] > 0.0 { traces[side] / left[side] } else { 1.0 });
        let mut effect = Self {
            means: [0, 1].map(|side| all[side][side] / seen[side]),
            common: all[0][1] / (seen[0] * seen[1]).sqrt(),
            freedom: [0, 1].map(|side| (traces[side].powi(2) / squares[side]).clamp(1.0, left[side].max(1.0))),
            alike: (all[0][0] + all[1][1] - 2.0 * all[0][1]) * (left[0] + left[1]) / (traces[0] + traces[1]),
            freedom_alike: 0.0,
        };
        effect.freedom_alike = effect.error([1.0; 2]).1;
        effect
    }

    /// Distance of 10⁻⁴ of the differences, which is about 5 % over some hundred cells, where names are made.
    fn cut(&self) -> f64 {
        t_quantile(1e-4, self.freedom_alike) * self.alike.sqrt()
    }

    /// Standard error of the difference of means from the variances within the sides, and its degrees of freedom
    /// (Satterthwaite 1946).
    pub(super) fn error(&self, variances: [f64; 2]) -> (f64, f64) {
        let common = self.common * (variances[0] * variances[1]).sqrt();
        let parts = [0, 1].map(|side| self.means[side] * variances[side] - common);
        let all = (parts[0] + parts[1]).max(0.0);
        let spread: f64 = (0..2).map(|side| parts[side].powi(2) / self.freedom[side]).sum();
        (all.sqrt(), if spread > 0.0 { (all * all / spread).max(1.0) } else { 1.0 })
    }

    /// Degrees of freedom for sides with the same noise.
    pub(super) fn freedom_alike(&self) -> f64 {
        self.freedom_alike
    }
}
