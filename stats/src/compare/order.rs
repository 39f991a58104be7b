//! What the order of runs in time makes of runs that resemble their neighbours.
//!
//! Values of one cell are taken as one level a side plus noise whose neighbours in time are correlated by r (a
//! first-order autoregressive series). The standard error of a difference of means and what the spread within the sides
//! tells of it then both depend on r and on the order: with all runs of one side first the difference is far less
//! certain than its spread suggests, and in turn it is more certain.

use super::Variant;
use crate::student::t_quantile;

/// Correlation of neighbouring runs that must do no harm: what a fabric keeps from run to run (temperature, placement, a
/// neighbour's job).
pub const NEIGHBOURS: f64 = 0.6;
/// Largest correlation that is worked with: runs that resemble each other more are one run.
pub(super) const MOST: f64 = 0.9;
/// Steps in which correlations from 0 to [`NEIGHBOURS`] are tried for the worst.
const STEPS: usize = 6;
/// Tail at which "the worst" is decided: about 5 % over some hundred cells, where names are made.
const TAIL: f64 = 1e-4;
/// Runs in turn are worth at least this share of as many independent runs.
const IN_TURN: f64 = 0.9;

/// How the runs of both sides lie in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turns {
    /// All runs of one side before all of the other.
    OneSideFirst,
    /// Between the two: a part of what the runs could tell is lost.
    Mixed,
    /// So well mixed that neighbours which resemble each other do no harm.
    InTurn,
}

/// What a correlation of neighbours does to a difference of means in one order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The correlation.
    pub r: f64,
    /// Variance of the difference of both means over what the pooled variance within the sides is expected to be.
    pub variance: f64,
    /// Degrees of freedom of that pooled variance (Satterthwaite 1946).
    pub freedom: f64,
}

/// The runs of both sides that have a value of a cell, in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Place in time and side of each run.
    runs: Vec<(usize, Variant)>,
    counts: [usize; 2],
    worst: Effect,
    plain: Effect,
    /// See [`Self::half_of_means`].
    half_of_means: f64,
    /// See [`Self::both_edges`].
    both_edges: f64,
}

impl Order {
    /// The order of runs of which `sides` names the side; `None` is a run without a value, which keeps its place in time.
    /// `at_most` is the largest correlation that must do no harm, [`NEIGHBOURS`] at least. `None` without a run on both
    /// sides or below three in all.
    pub fn new(sides: &[Option<Variant>], at_most: f64) -> Option<Self> {
        let runs: Vec<(usize, Variant)> =
            sides.iter().enumerate().filter_map(|(at, side)| Some((at, (*side)?))).collect();
        let count = |side| runs.iter().filter(|(_, one)| *one == side).count();
        let counts = [count(Variant::A), count(Variant::B)];
        if counts.contains(&0) || runs.len() < 3 {
            return None;
        }
        let plain = effect(&runs, counts, 0.0);
        let at_most = at_most.clamp(NEIGHBOURS, MOST);
        let tried = (1..=STEPS).map(|step| effect(&runs, counts, at_most * step as f64 / STEPS as f64));
        let worst = tried.fold(plain, |worst, one| if cut(&one, TAIL) > cut(&worst, TAIL) { one } else { worst });
        Some(Self {
            counts,
            worst,
            plain,
            half_of_means: cut(&worst, 0.025).max(cut(&plain, 0.025)),
            both_edges: both_edges(runs.len() - 2),
            runs,
        })
    }

    /// Runs of either side.
    pub fn counts(&self) -> [usize; 2] {
        self.counts
    }

    /// The correlation up to [`NEIGHBOURS`] that does most harm in this order, and what it does.
    pub fn worst(&self) -> Effect {
        self.worst
    }

    /// Half of the 95 % interval of a difference of means over the pooled standard deviation that is seen: that of the worst
    /// correlation, or of independent runs where this is more. The worst is decided far out in the tails.
    pub(super) fn half_of_means(&self) -> f64 {
        self.half_of_means
    }

    /// [`both_edges`] of these runs.
    pub(super) fn both_edges(&self) -> f64 {
        self.both_edges
    }

    /// What runs that do not resemble their neighbours tell in this order.
    pub fn independent(&self) -> Effect {
        self.plain
    }

    /// By how much the 95 % interval of independent runs must be stretched if neighbours are correlated by `r`: above 1
    /// with one side first, below 1 in turn.
    pub fn stretch(&self, r: f64) -> f64 {
        cut(&effect(&self.runs, self.counts, r.clamp(0.0, MOST)), 0.025) / cut(&self.plain, 0.025)
    }

    /// The share of independent runs that these are worth at worst: 1 in turn, about a quarter with one side first.
    pub fn worth(&self) -> f64 {
        (self.plain.variance / self.worst.variance).min(1.0)
    }

    /// How both sides lie in time.
    pub fn turns(&self) -> Turns {
        let changes = self.runs.windows(2).filter(|two| two[0].1 != two[1].1).count();
        if self.worth() >= IN_TURN {
            Turns::InTurn
        } else if changes <= 1 {
            Turns::OneSideFirst
        } else {
            Turns::Mixed
        }
    }

    /// Noise whose neighbours are correlated by `r`, less its mean in each side.
    pub(super) fn residuals(&self, r: f64) -> Residuals {
        Residuals::new(&self.runs, self.counts, r)
    }

    /// Places in time.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, Variant)> {
        self.runs.iter().copied()
    }
}

/// The quantiles of Student's t that two one-sided tests of 2.5 % and their success in 90 % of cases need, added up.
pub(super) fn both_edges(freedom: usize) -> f64 {
    [0.025, 0.05].map(|tail| t_quantile(tail, freedom.max(1) as f64)).iter().sum()
}

/// Half of an interval over the standard deviation that is seen.
fn cut(effect: &Effect, tail: f64) -> f64 {
    t_quantile(tail, effect.freedom) * effect.variance.sqrt()
}

fn effect(runs: &[(usize, Variant)], counts: [usize; 2], r: f64) -> Effect {
    let residuals = Residuals::new(runs, counts, r);
    let left = (runs.len() - 2) as f64;
    let seen = residuals.trace() / left;
    Effect { r, variance: residuals.truth / seen, freedom: residuals.freedom().clamp(1.0, left.max(1.0)) }
}

/// Covariance of the residuals within the sides, in units of the noise's own variance.
pub(super) struct Residuals {
    n: usize,
    covariance: Vec<f64>,
    /// Variance of the difference of both sides' means.
    truth: f64,
}

impl Residuals {
    fn new(runs: &[(usize, Variant)], counts: [usize; 2], r: f64) -> Self {
        let n = runs.len();
        let side = |at: usize| usize::from(runs[at].1 == Variant::B);
        let mut powers = vec![1.0];
        let longest = runs[n - 1].0 - runs[0].0;
        (0..longest).for_each(|lag| powers.push(powers[lag] * r));
        let raw = |i: usize, j: usize| powers[runs[i].0.abs_diff(runs[j].0)];
        // Means of each row over either side, and of those over either side.
        let mut rows = vec![[0.0; 2]; n];
        for (i, row) in rows.iter_mut().enumerate() {
            (0..n).for_each(|j| row[side(j)] += raw(i, j) / counts[side(j)] as f64);
        }
        let mut all = [[0.0; 2]; 2];
        for (i, row) in rows.iter().enumerate() {
            (0..2).for_each(|s| all[side(i)][s] += row[s] / counts[side(i)] as f64);
        }
        let entry = |i: usize, j: usize| raw(i, j) - rows[i][side(j)] - rows[j][side(i)] + all[side(i)][side(j)];
        let covariance = (0..n * n).map(|at| entry(at / n, at % n)).collect();
        Self { n, covariance, truth: all[0][0] + all[1][1] - 2.0 * all[0][1] }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.covariance[i * self.n + j]
    }

    pub(super) fn trace(&self) -> f64 {
        (0..self.n).map(|i| self.at(i, i)).sum()
    }

    /// Of the sum of squares.
    pub(super) fn freedom(&self) -> f64 {
        self.trace().powi(2) / self.covariance.iter().map(|c| c * c).sum::<f64>()
    }

    /// Expected share of the products of neighbours in the sum of squares of one series, x'Qx / x'x with Q = ½ beside the
    /// diagonal, and its standard deviation. Both by the delta method; the mean to second order, because the ratio is taken
    /// of each cell and then averaged.
    pub(super) fn neighbours(&self) -> (f64, f64) {
        let trace = self.trace();
        let ratio = (1..self.n).map(|i| self.at(i - 1, i)).sum::<f64>() / trace;
        let product = |i: usize, j: usize| {
            let above = if i > 0 { self.at(i - 1, j) } else { 0.0 };
            let below = if i + 1 < self.n { self.at(i + 1, j) } else { 0.0 };
            0.5 * (above + below)
        };
        // Traces of (Q − ratio) P twice, of QPP and of PP.
        let (mut spread, mut mixed, mut squares) = (0.0, 0.0, 0.0);
        for i in 0..self.n {
            for j in 0..self.n {
                let (there, back) = (product(i, j), product(j, i));
                spread += (there - ratio * self.at(i, j)) * (back - ratio * self.at(j, i));
                mixed += there * self.at(j, i);
                squares += self.at(i, j).powi(2);
            }
        }
        let share = ratio + 2.0 * (ratio * squares - mixed) / trace.powi(2);
        (share, (2.0 * spread.max(0.0)).sqrt() / trace)
    }
}
