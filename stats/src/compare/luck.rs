//! How much neighbouring runs resemble each other, from the runs themselves.

use super::{
    Variant,
    order::{MOST, NEIGHBOURS, Order},
};

/// Step in which correlations are tried.
const STEP: f64 = 0.025;
/// Standard errors on either side of the estimate.
const ERRORS: f64 = 2.0;
/// An interval is called right, and not only wide enough, if all plausible correlations stretch it alike up to this
/// factor: 12 % of a 95 % interval's width are 2 points of its coverage.
const ALIKE: f64 = 1.12;

/// Below as many independent cells no correlation is believed or ruled out: a few series of twenty runs say next to nothing
/// of it.
const FEWEST: f64 = 20.0;

/// Correlation of neighbouring runs, learned from all cells together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Luck {
    /// Estimate, 0 to 0.9.
    pub r: f64,
    /// Smallest plausible correlation.
    pub low: f64,
    /// Largest plausible correlation.
    pub high: f64,
    /// As many independent cells tell as much of it; cells that share the luck of their runs count once.
    pub cells: f64,
}

/// By how much an interval is stretched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Factor of the width of the interval of independent runs.
    pub factor: f64,
    /// Whether the interval may be wider than its level says, because the correlation is not known well enough.
    pub at_least: bool,
}

impl Luck {
    /// Nothing is known: anything up to [`NEIGHBOURS`].
    pub const UNKNOWN: Self = Self { r: 0.0, low: 0.0, high: NEIGHBOURS, cells: 0.0 };

    /// Learns from cells that have a value in every run of `order`, in that order. Each is taken less its side's mean, so
    /// that changes do not matter, and over its own spread. The share of products of neighbours in the sum of squares is
    /// compared with what a correlation is expected to make of it. How sure that is depends on how many cells tell
    /// different things: the mean squared correlation between cells says so.
    pub fn learn(order: &Order, cells: &[Vec<f64>]) -> Self {
        let n = order.counts().iter().sum::<usize>();
        let sides: Vec<Variant> = order.places().map(|(_, side)| side).collect();
        let (mut gram, mut products, mut used) = (vec![0.0; n * n], 0.0, 0_usize);
        for cell in cells.iter().filter(|cell| cell.len() == n) {
            let Some(z) = residuals(cell, &sides, order.counts()) else { continue };
            used += 1;
            products += z.windows(2).map(|two| two[0] * two[1]).sum::<f64>();
            for (i, a) in z.iter().enumerate() {
                z.iter().enumerate().for_each(|(j, b)| gram[i * n + j] += a * b);
            }
        }
        if used == 0 || n < 4 {
            return Self::UNKNOWN;
        }
        let steps = (MOST / STEP).round() as usize;
        let tried: Vec<(f64, f64, f64)> = (0..=steps)
            .map(|step| {
                let r = step as f64 * STEP;
                let (share, deviation) = order.residuals(r).neighbours();
                (r, share, deviation)
            })
            .collect();
        let count = used as f64;
        let seen = products / count;
        let r = solve(&tried, seen);
        let effective = {
            // Cells that have nothing in common still have this mean squared correlation.
            let chance = 1.0 / order.residuals(r).freedom().max(1.0);
            let squares = gram.iter().map(|g| g * g).sum::<f64>();
            let pairs = count * (count - 1.0);
            let alike = if used > 1 { (squares - count) / pairs } else { 1.0 };
            let shared = if chance < 1.0 { ((alike - chance) / (1.0 - chance)).clamp(0.0, 1.0) } else { 1.0 };
            count / (1.0 + (count - 1.0) * shared)
        };
        let nearest = |r: f64| tried.get((r / STEP).round() as usize).map_or(0.0, |(_, _, deviation)| *deviation);
        if effective < FEWEST {
            return Self { r, low: 0.0, high: NEIGHBOURS, cells: effective };
        }
        let error = ERRORS * nearest(r) / effective.sqrt();
        Self { r, low: solve(&tried, seen - error), high: solve(&tried, seen + error), cells: effective }
    }

    /// The largest correlation that must do no harm: [`NEIGHBOURS`], or more where the runs prove more.
    pub fn at_most(&self) -> f64 {
        NEIGHBOURS.max(self.low)
    }

    /// What this makes of an interval in an order: the stretch of the estimate where all plausible correlations stretch
    /// alike, else the largest of theirs.
    pub fn stretch(&self, order: &Order) -> Stretch {
        let plausible =
            [self.low, f64::midpoint(self.low, self.r), self.r, f64::midpoint(self.r, self.high), self.high];
        let all = plausible.map(|r| order.stretch(r));
        let (least, most) = (all.iter().copied().fold(f64::MAX, f64::min), all.iter().copied().fold(0.0, f64::max));
        let at_least = most > ALIKE * all[2] || all[2] > ALIKE * least;
        Stretch { factor: if at_least { most } else { all[2] }, at_least }
    }
}

/// A cell's values less their side's mean, with a sum of squares of 1; `None` without spread.
fn residuals(cell: &[f64], sides: &[Variant], counts: [usize; 2]) -> Option<Vec<f64>> {
    let mut means = [0.0; 2];
    let at = |side: &Variant| usize::from(*side == Variant::B);
    cell.iter().zip(sides).for_each(|(v, side)| means[at(side)] += v / counts[at(side)] as f64);
    let mut z: Vec<f64> = cell.iter().zip(sides).map(|(v, side)| v - means[at(side)]).collect();
    let length = z.iter().map(|v| v * v).sum::<f64>().sqrt();
    if length <= 0.0 || !length.is_finite() {
        return None;
    }
    z.iter_mut().for_each(|v| *v /= length);
    Some(z)
}

/// The correlation at which the expected share is what was seen; the ends of the range beyond it.
fn solve(tried: &[(f64, f64, f64)], seen: f64) -> f64 {
    let Some(above) = tried.iter().position(|(_, share, _)| *share >= seen) else {
        return tried.last().map_or(0.0, |(r, _, _)| *r);
    };
    if above == 0 {
        return 0.0;
    }
    let ((r0, s0, _), (r1, s1, _)) = (tried[above - 1], tried[above]);
    if s1 > s0 { r0 + (r1 - r0) * (seen - s0) / (s1 - s0) } else { r1 }
}
