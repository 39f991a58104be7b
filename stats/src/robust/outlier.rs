//! The threshold for a single outlier among many values.

use crate::{rank::normal_quantile, student::t_quantile};

/// Least standard deviations below the level for a single value to stand out.
pub(crate) const LEAST: f64 = 5.0;
/// Probability that chance makes any value stand out, which raises the cut.
const FALSE_ALARM: f64 = 0.01;

/// Standard deviations below a [`Level`](super::Level) from which one of `looks` values stands out: 5, or more with so many values, or so
/// few behind the scale, that chance would reach 5 in more than one run of a hundred (Bonferroni over the values, Student's t for the
/// scale). `basis` is the number of values behind the scale; `None` for a known scale, the noise of repeats.
/// [`localise`](mod@crate::localise) uses it for single paths.
pub fn outlier_cut(looks: usize, basis: Option<usize>) -> f64 {
    cut(LEAST, looks, basis)
}

/// With another least cut, as for medians of several values.
pub(crate) fn cut(least: f64, looks: usize, basis: Option<usize>) -> f64 {
    let tail = FALSE_ALARM / looks.max(1) as f64;
    let by_chance = match basis {
        None => -normal_quantile(tail),
        // The robust scale is about as precise as a standard deviation of half as many values; for very few of nearly as many.
        Some(n) => t_quantile(tail, (n / 2).max(n.saturating_sub(1).min(3)).max(1) as f64),
    };
    least.max(by_chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_looks_and_fewer_values_ask_for_more() {
        assert_eq!(outlier_cut(100, Some(1000)), 5.0);
        assert!(outlier_cut(100_000, None) > 5.0);
        assert!(outlier_cut(10, Some(6)) > outlier_cut(10, Some(60)));
        assert!(outlier_cut(3, Some(3)) > 8.0, "three values name nobody lightly");
    }
}
