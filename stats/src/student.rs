//! Means and normal theory: Student's and Welch's t, and two one-sided tests for equivalence.

use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

use crate::{
    refusal::{Refusal, demand, demand_probability},
    shift::Interval,
};

/// A difference of means with what is needed to judge it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Mean of the first minus mean of the second.
    pub estimate: f64,
    /// Standard error of the estimate.
    pub error: f64,
    /// Degrees of freedom; not a whole number after Welch.
    pub freedom: f64,
}

impl Difference {
    /// Estimate over its standard error.
    pub fn t(&self) -> f64 {
        self.estimate / self.error
    }

    /// Two-sided p of "no difference".
    pub fn p_two_sided(&self) -> f64 {
        (2.0 * self.upper_tail(self.t().abs())).min(1.0)
    }

    /// Interval with this confidence level.
    ///
    /// # Errors
    /// A level outside (0, 1).
    pub fn interval(&self, level: f64) -> Result<Interval, Refusal> {
        demand_probability(level, "a confidence level lies between 0 and 1")?;
        let half = t_quantile((1.0 - level) / 2.0, self.freedom) * self.error;
        Ok(Interval { low: self.estimate - half, high: self.estimate + half, level })
    }

    /// Two one-sided tests (Schuirmann 1987): the p of "the difference lies outside ± margin", the larger of both
    /// one-sided p. Below α exactly when the interval of level 1 − 2 α lies inside ± margin.
    ///
    /// # Errors
    /// A margin that is not positive.
    pub fn p_equivalent(&self, margin: f64) -> Result<f64, Refusal> {
        if !(margin > 0.0 && margin.is_finite()) {
            return Err(Refusal::Parameter("an equivalence margin is a positive number"));
        }
        let above_lower = self.upper_tail((self.estimate + margin) / self.error);
        let below_upper = self.upper_tail((margin - self.estimate) / self.error);
        Ok(above_lower.max(below_upper))
    }

    fn upper_tail(&self, t: f64) -> f64 {
        t_tail(t, self.freedom)
    }
}

#[expect(clippy::expect_used, reason = "degrees of freedom are positive wherever this is called")]
fn distribution(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("positive degrees of freedom")
}

/// The t that is exceeded with probability `tail`, 0 < tail < ½, with `freedom` > 0 degrees of freedom.
pub(crate) fn t_quantile(tail: f64, freedom: f64) -> f64 {
    let distribution = distribution(freedom);
    let rough = -distribution.inverse_cdf(tail);
    // statrs inverts to ten digits; one step of Newton doubles them.
    rough + (distribution.sf(rough) - tail) / distribution.pdf(rough)
}

/// Probability that t with `freedom` > 0 degrees of freedom exceeds `t`.
pub(crate) fn t_tail(t: f64, freedom: f64) -> f64 {
    distribution(freedom).sf(t)
}

/// Welch 1947: variances of both sides may differ. Degrees of freedom after Satterthwaite 1946.
///
/// # Errors
/// Fewer than two values a side, a value that is not finite, or no spread on either side.
pub fn welch(first: &[f64], second: &[f64]) -> Result<Difference, Refusal> {
    let (a, b) = (Moments::new(first)?, Moments::new(second)?);
    let (va, vb) = (a.variance / a.n, b.variance / b.n);
    if va + vb <= 0.0 {
        return Err(Refusal::NoSpread);
    }
    let freedom = (va + vb).powi(2) / (va * va / (a.n - 1.0) + vb * vb / (b.n - 1.0));
    Ok(Difference { estimate: a.mean - b.mean, error: (va + vb).sqrt(), freedom })
}

/// Student 1908: both sides have the same variance.
///
/// # Errors
/// Fewer than two values a side, a value that is not finite, or no spread on either side.
pub fn student(first: &[f64], second: &[f64]) -> Result<Difference, Refusal> {
    let (a, b) = (Moments::new(first)?, Moments::new(second)?);
    let freedom = a.n + b.n - 2.0;
    let pooled = (a.variance * (a.n - 1.0) + b.variance * (b.n - 1.0)) / freedom;
    if pooled <= 0.0 {
        return Err(Refusal::NoSpread);
    }
    Ok(Difference { estimate: a.mean - b.mean, error: (pooled * (1.0 / a.n + 1.0 / b.n)).sqrt(), freedom })
}

/// The mean of differences that were measured in pairs: Student 1908. Differences without any spread have an error of zero.
///
/// # Errors
/// Fewer than two differences, or one that is not finite.
pub fn paired(differences: &[f64]) -> Result<Difference, Refusal> {
    let of = Moments::new(differences)?;
    Ok(Difference { estimate: of.mean, error: (of.variance / of.n).sqrt(), freedom: of.n - 1.0 })
}

/// Number of values, mean, and variance with divisor n − 1.
struct Moments {
    n: f64,
    mean: f64,
    variance: f64,
}

impl Moments {
    fn new(values: &[f64]) -> Result<Self, Refusal> {
        demand(values, 2)?;
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Ok(Self { n, mean, variance })
    }
}
