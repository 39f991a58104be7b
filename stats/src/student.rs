use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

use crate::{
    refusal::{Refusal, demand, demand_probability},
    shift::Interval,
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    pub estimate: f64,
    pub error: f64,
    pub freedom: f64,
}

impl Difference {
    /// Interval with this confidence level.
    ///
    /// # Errors
    /// A level outside (0, 1).
    pub fn interval(&self, level: f64) -> Result<Interval, Refusal> {
        demand_probability(level, "a confidence level lies between 0 and 1")?;
        let half = t_quantile((1.0 - level) / 2.0, self.freedom) * self.error;
        Ok(Interval { low: self.estimate - half, high: self.estimate + half, level })
    }
}

#[expect(clippy::expect_used, reason = "degrees of freedom are positive wherever this is called")]
fn distribution(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("positive degrees of freedom")
}

/// The t exceeded with probability `tail`, 0 < tail < ½, with `freedom` > 0 degrees of freedom.
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

/// Student 1908. Differences without any spread have an error of zero.
///
/// # Errors
/// Fewer than two differences, or one that is not finite.
pub fn paired(differences: &[f64]) -> Result<Difference, Refusal> {
    demand(differences, 2)?;
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Ok(Difference { estimate: mean, error: (variance / n).sqrt(), freedom: n - 1.0 })
}
