//! A difference of means with its standard error.

use super::{Effect, Order};
use crate::{
    shift::Interval,
    student::{t_quantile, t_tail},
};

/// A difference of means. Single bad runs move it and widen its interval, which ranks do not feel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    pub difference: f64,
    error: f64,
    freedom: f64,
}

impl Means {
    /// Of differences that are drawn independently.
    pub(super) fn of_differences(differences: &[f64]) -> Self {
        let n = differences.len() as f64;
        let freedom = (n - 1.0).max(1.0);
        Self { difference: mean(differences), error: (squares(differences) / freedom / n).sqrt(), freedom }
    }

    /// Upper tail of a distance from a bound.
    fn tail(&self, distance: f64) -> f64 {
        match (self.error > 0.0, distance) {
            (true, _) => t_tail(distance / self.error, self.freedom),
            (false, distance) if distance > 0.0 => 0.0,
            _ => 1.0,
        }
    }

    /// Two-sided p of no difference.
    pub(super) fn p_change(&self) -> f64 {
        (2.0 * self.tail(self.difference.abs())).min(1.0)
    }

    /// p of lying outside ± `margin`: the larger of two one-sided tests.
    pub(super) fn p_equivalent(&self, margin: f64) -> f64 {
        self.tail(margin - self.difference.abs())
    }

    /// The 95 % interval.
    pub(super) fn interval(&self) -> Interval {
        around(self.difference, t_quantile(0.025, self.freedom) * self.error)
    }
}

/// A difference of means of runs in an order: if they do not resemble their neighbours, and if they do in the way that does
/// most harm. That is decided far out in the tails, where changes are named; nearer by, it may still be worse if they do not.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtWorst {
    pub independent: Means,
    pub worst: Means,
    /// The wider 95 % interval.
    pub interval: Interval,
}

impl AtWorst {
    pub(super) fn new(before: &[f64], after: &[f64], order: &Order) -> Self {
        let left = (before.len() + after.len()).saturating_sub(2).max(1) as f64;
        let pooled = (squares(before) + squares(after)) / left;
        let difference = mean(after) - mean(before);
        let of =
            |effect: Effect| Means { difference, error: (pooled * effect.variance).sqrt(), freedom: effect.freedom };
        Self {
            independent: of(order.independent()),
            worst: of(order.worst()),
            interval: around(difference, order.half_of_means() * pooled.sqrt()),
        }
    }

    /// The larger [`Means::p_equivalent`].
    pub(super) fn p_equivalent(&self, margin: f64) -> f64 {
        self.independent.p_equivalent(margin).max(self.worst.p_equivalent(margin))
    }
}

/// A 95 % interval: a single point where the values do not differ at all.
fn around(centre: f64, half: f64) -> Interval {
    Interval { low: centre - half, high: centre + half, level: 0.95 }
}

fn mean(side: &[f64]) -> f64 {
    side.iter().sum::<f64>() / side.len() as f64
}

/// Squares of the distances from the mean.
fn squares(side: &[f64]) -> f64 {
    let mean = mean(side);
    side.iter().map(|v| (v - mean).powi(2)).sum()
}
