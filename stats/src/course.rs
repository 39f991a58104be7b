//! Detects drifts and steps of values over time.

use crate::{refusal::Refusal, robust::SMALLEST, student::t_quantile};

/// Fewest values, in the order of time, that show a change.
const FEWEST: usize = 6;
/// Minimum share of the values on either side of a step, and their least number.
const SIDE: (f64, usize) = (0.1, 2);
/// False alarm probability for values without a change.
const FALSE_ALARM: f64 = 0.001;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    pub by: f64,
    /// Index of the first value after the step; `None` for a drift.
    pub step: Option<usize>,
    n: usize,
}

impl Course {
    /// Change at an index relative to the start.
    pub fn at(&self, position: usize) -> f64 {
        match self.step {
            Some(step) => self.by * f64::from(u8::from(position >= step)),
            None => self.by * position as f64 / (self.n - 1) as f64,
        }
    }
}

/// Change of values in the order of time, if larger than `least` and than chance: a line or two levels, whichever fits better (Student's
/// t; Bonferroni over the line and all places of a step).
///
/// # Errors
/// Fewer than six values, or one that is not finite.
pub fn course(values: &[f64], least: f64) -> Result<Option<Course>, Refusal> {
    crate::refusal::demand(values, FEWEST)?;
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let all: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let middle = (n - 1) as f64 / 2.0;
    let product: f64 = values.iter().enumerate().map(|(at, value)| (at as f64 - middle) * (value - mean)).sum();
    let times = (n * (n * n - 1)) as f64 / 12.0;
    let side = ((SIDE.0 * n as f64).ceil() as usize).max(SIDE.1);
    let slope = product / times;
    let line = (product * product / times, Course { by: slope * (n - 1) as f64, step: None, n });
    let mut below = 0.0;
    let steps = (1..n).filter_map(|at| {
        below += values[at - 1] - mean;
        let (a, b) = (at as f64, (n - at) as f64);
        let by = -below / b - below / a;
        let course = Course { by, step: Some(at), n };
        (side..=n - side).contains(&at).then_some((by * by * a * b / (a + b), course))
    });
    // What each explains of the sum of squares.
    let best = steps.fold(line, |best, next| if next.0 > best.0 { next } else { best });
    let freedom = (n - 2) as f64;
    let spread = ((all - best.0).max(0.0) / freedom).sqrt().max(SMALLEST);
    let looks = (n + 2 - 2 * side) as f64;
    let is_sure = best.0.sqrt() > t_quantile(FALSE_ALARM / (2.0 * looks), freedom) * spread;
    Ok(Some(best.1).filter(|course| is_sure && course.by.abs() >= least))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(at: usize) -> f64 {
        ((at * 7919) % 101) as f64 / 50.0 - 1.0
    }

    #[test]
    fn a_drift_and_a_step_are_told() {
        let with = |of: &dyn Fn(usize) -> f64| (0..21).map(|at| of(at) + 0.01 * noise(at)).collect::<Vec<_>>();
        assert_eq!(course(&with(&|_| 0.0), 0.05), Ok(None));
        let drift = course(&with(&|at| -0.15 * at as f64 / 20.0), 0.05).unwrap().unwrap();
        assert!(drift.step.is_none() && (drift.by + 0.15).abs() < 0.02, "{drift:?}");
        assert!((drift.at(20) - drift.by).abs() < 1e-12 && drift.at(0) == 0.0);
        let step = course(&with(&|at| if at < 14 { 0.0 } else { -0.2 }), 0.05).unwrap().unwrap();
        assert!(step.step == Some(14) && (step.by + 0.2).abs() < 0.02, "{step:?}");
        assert_eq!((step.at(13), step.at(14)), (0.0, step.by));
        // A single value is not a step, and a small one does not count.
        assert_eq!(course(&with(&|at| if at == 20 { -0.3 } else { 0.0 }), 0.05), Ok(None));
        assert_eq!(course(&with(&|at| if at < 14 { 0.0 } else { -0.04 }), 0.05), Ok(None));
        assert!(course(&[0.0; 5], 0.05).is_err());
    }
}
