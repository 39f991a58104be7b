use super::Order;
use crate::{
    robust::{MAD_TO_SIGMA, mad, median_in_place},
    shift::Interval,
    student::{t_quantile, t_tail},
};

/// Values beyond this many standard deviations from the centre count no further in [`steady`].
const REACH: f64 = 2.0;
const STEPS: usize = 10;

/// Sides count as equally noisy if the ratio of variances is within this many standard errors.
const ALIKE: f64 = 3.0;

#[derive(Debug, Clone)]
pub(super) struct Means {
    pub difference: f64,
    /// Standard error and degrees of freedom for each tried correlation of neighbours; the first is zero.
    errors: Vec<(f64, f64)>,
    /// Decides p: the same or, between equally noisy sides, less: no correlation and the most harmful one, with the degrees of freedom
    /// known without these values.
    decisive: Vec<(f64, f64)>,
}

impl Means {
    pub(super) fn of_differences(differences: &[f64]) -> Self {
        let n = differences.len() as f64;
        let errors = vec![((variance(differences) / n).sqrt(), (n - 1.0).max(1.0))];
        Self { difference: mean(differences), decisive: errors.clone(), errors }
    }

    /// Separate variances (Welch 1947); runs may resemble their neighbours in this order.
    pub(super) fn new(before: &[f64], after: &[f64], order: &Order) -> Self {
        let variances = [before, after].map(variance);
        // The variance of the logarithm of a normal sample's variance is 2 / degrees of freedom.
        let chance: f64 = order.counts().iter().map(|n| 2.0 / (*n as f64 - 1.0).max(1.0)).sum();
        let alike = (variances[0] / variances[1]).ln().abs() <= ALIKE * chance.sqrt();
        let errors: Vec<(f64, f64)> = order.effects().iter().map(|effect| effect.error(variances)).collect();
        let known = |at: usize| (errors[at].0, order.effects()[at].freedom_alike());
        let decisive = if alike { vec![known(0), known(order.worst())] } else { errors.clone() };
        Self { difference: mean(after) - mean(before), decisive, errors }
    }

    pub(super) fn independent(&self) -> Self {
        Self { errors: self.errors[..1].to_vec(), decisive: self.decisive[..1].to_vec(), ..*self }
    }

    /// The largest upper tail of a distance from a bound.
    fn tail(&self, distance: f64) -> f64 {
        let of = |&(error, freedom): &(f64, f64)| match (error > 0.0, distance) {
            (true, _) => t_tail(distance / error, freedom),
            (false, distance) if distance > 0.0 => 0.0,
            _ => 1.0,
        };
        self.decisive.iter().map(of).fold(0.0, f64::max)
    }

    pub(super) fn p_change(&self) -> f64 {
        (2.0 * self.tail(self.difference.abs())).min(1.0)
    }

    /// The larger of two one-sided tests of lying outside ± `margin`.
    pub(super) fn p_equivalent(&self, margin: f64) -> f64 {
        self.tail(margin - self.difference.abs())
    }

    /// The widest one; a single point if the values do not differ at all.
    pub(super) fn interval(&self) -> Interval {
        // Computed only if no other error is larger with fewer degrees of freedom, since a quantile takes time.
        let most = |one: &&(f64, f64)| !self.errors.iter().any(|other| other.0 > one.0 && other.1 <= one.1);
        let widths = self.errors.iter().filter(most).map(|(error, freedom)| t_quantile(0.025, *freedom) * error);
        let half = widths.fold(0.0, f64::max);
        Interval { low: self.difference - half, high: self.difference + half, level: 0.95 }
    }
}

/// Values whose mean is Huber's estimate (1964) of the centre, and whose variance is that of this estimate times their number: the
/// pseudo-values centre + ψ(distance) / mean of ψ'. Single bad runs hardly move them.
pub(super) fn steady(values: &[f64]) -> Vec<f64> {
    // Correction of the MAD for few normal values (Croux & Rousseeuw 1992).
    let n = values.len() as f64;
    let reach = REACH * MAD_TO_SIGMA * mad(values).unwrap_or_default() * n / (n - 0.8);
    if reach <= 0.0 {
        return values.to_vec();
    }
    let mut centre = median_in_place(&mut values.to_vec());
    let inside = |centre: f64| values.iter().filter(|v| (*v - centre).abs() <= reach).count().max(1) as f64 / n;
    for _ in 0..STEPS {
        centre += mean(&values.iter().map(|v| (v - centre).clamp(-reach, reach)).collect::<Vec<_>>()) / inside(centre);
    }
    let inside = inside(centre);
    // Huber's correction for few values (1981, section 7.6).
    let stretch = (1.0 + (1.0 - inside) / (inside * n)) / inside;
    values.iter().map(|v| centre + stretch * (v - centre).clamp(-reach, reach)).collect()
}

pub(super) fn mean(side: &[f64]) -> f64 {
    side.iter().sum::<f64>() / side.len() as f64
}

/// With divisor n − 1; 0 for a single value.
pub(super) fn variance(side: &[f64]) -> f64 {
    let mean = mean(side);
    side.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (side.len() as f64 - 1.0).max(1.0)
}
