//! Where noise arises: within runs or between nights.

use crate::refusal::Refusal;

/// Variance of repeated runs taken apart (Kalibera & Jones 2013, sections 6 and 7).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Variance of runs of the same night: T₁² = S₁².
    pub within: f64,
    /// Variance between nights beyond that: T₂² = S₂² − S₁² / r, not below 0, where S₂² is the variance of the nights'
    /// means and r the (harmonic mean) number of runs a night.
    pub between: f64,
    /// Nights.
    pub nights: usize,
}

impl Split {
    /// Share of a single run's variance that arises within the night; `None` if nothing varies.
    pub fn within_share(&self) -> Option<f64> {
        let all = self.within + self.between;
        (all > 0.0).then(|| self.within / all)
    }

    /// Runs a night that give the most precise result for the time, if a night costs `night` and each run in it costs
    /// `run`: ⌈√(night / run · T₁² / T₂²)⌉; 1 where runs do not vary, `None` where nights do not (then nothing is gained by
    /// more nights).
    pub fn runs_a_night(&self, night: f64, run: f64) -> Option<usize> {
        if self.within <= 0.0 {
            return Some(1);
        }
        (self.between > 0.0).then(|| ((night / run * self.within / self.between).sqrt().ceil() as usize).max(1))
    }
}

/// Takes the variance of nights with several runs each apart. Nights with one run are left out.
///
/// # Errors
/// Fewer than two nights with two runs, or a value that is not finite.
pub fn variance_split(nights: &[&[f64]]) -> Result<Split, Refusal> {
    let several: Vec<&[f64]> = nights.iter().copied().filter(|runs| runs.len() >= 2).collect();
    if several.len() < 2 {
        return Err(Refusal::TooFew { need: 2, got: several.len() });
    }
    if let Some(at) = several.iter().position(|runs| runs.iter().any(|v| !v.is_finite())) {
        return Err(Refusal::NotFinite { at });
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let squares = |values: &[f64]| values.iter().map(|v| (v - mean(values)).powi(2)).sum::<f64>();
    let runs: usize = several.iter().map(|runs| runs.len()).sum();
    let within = several.iter().map(|runs| squares(runs)).sum::<f64>() / (runs - several.len()) as f64;
    let means: Vec<f64> = several.iter().map(|runs| mean(runs)).collect();
    let of_means = squares(&means) / (means.len() - 1) as f64;
    let inverse_runs = several.iter().map(|runs| 1.0 / runs.len() as f64).sum::<f64>() / several.len() as f64;
    Ok(Split { within, between: (of_means - within * inverse_runs).max(0.0), nights: several.len() })
}
