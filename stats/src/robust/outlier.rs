//! From where on a single value stands out among many.

use crate::{rank::normal_quantile, student::t_quantile};

/// Least standard deviations below the level for a single value to stand out.
pub(crate) const LEAST: f64 = 5.0;
/// Probability that chance alone makes any of the values stand out, by which the cut grows.
const FALSE_ALARM: f64 = 0.01;

/// How many standard deviations below a [`Level`](super::Level) one of `looks` values must lie to stand out: 5, or more
/// where so many values are looked at, or the scale rests on so few, that chance would reach 5 in more than one run of a
/// hundred (Bonferroni over the values, Student's t for the scale). `basis` is the number of values behind the scale; `None`
/// where the scale is the noise of repeats, which is known. It is the cut by which
/// [`localise`](mod@crate::localise) tells single paths.
pub fn outlier_cut(looks: usize, basis: Option<usize>) -> f64 {
    cut(LEAST, looks, basis)
}

/// [`outlier_cut`] with another least cut, as for medians of several values.
pub(crate) fn cut(least: f64, looks: usize, basis: Option<usize>) -> f64 {
    let tail = FALSE_ALARM / looks.max(1) as f64;
    let by_chance = match basis {
        None => -normal_quantile(tail),
        // The robust scale is about as sure as a standard deviation of half as many values; of very few it is nearly one.
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
