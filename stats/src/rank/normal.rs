//! The standard normal distribution to full precision.

use std::f64::consts::{PI, SQRT_2};

/// Probability that a standard normal value is at most `z`.
pub fn normal_cdf(z: f64) -> f64 {
    // libm and not statrs, whose error function is good to nine digits only.
    0.5 * libm::erfc(-z / SQRT_2)
}

/// The value a standard normal stays at or below with probability `p`; ∓ infinity at 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    let rough = -SQRT_2 * statrs::function::erf::erfc_inv(2.0 * p);
    if !rough.is_finite() {
        return rough;
    }
    let density = (-rough * rough / 2.0).exp() / (2.0 * PI).sqrt();
    rough - (normal_cdf(rough) - p) / density
}
