#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("{got} values, at least {need} are needed")]
    TooFew { need: usize, got: usize },
    #[error("value {at} is not a finite number")]
    NotFinite { at: usize },
    /// Zero or negative where a logarithm is taken.
    #[error("value {at} is not greater than zero")]
    NotPositive { at: usize },
    /// Outside its range, or inputs that do not match.
    #[error("{0}")]
    Parameter(&'static str),
}

/// Passes if there are at least `need` values and all are finite.
pub(crate) fn demand(values: &[f64], need: usize) -> Result<(), Refusal> {
    if values.len() < need {
        return Err(Refusal::TooFew { need, got: values.len() });
    }
    match values.iter().position(|v| !v.is_finite()) {
        Some(at) => Err(Refusal::NotFinite { at }),
        None => Ok(()),
    }
}

/// Passes if `0 < p < 1`.
pub(crate) fn demand_probability(p: f64, what: &'static str) -> Result<(), Refusal> {
    if p > 0.0 && p < 1.0 { Ok(()) } else { Err(Refusal::Parameter(what)) }
}

/// Natural logarithms of positive, finite values.
///
/// # Errors
/// [`Refusal::NotFinite`], [`Refusal::NotPositive`].
pub fn logs(values: &[f64]) -> Result<Vec<f64>, Refusal> {
    demand(values, 0)?;
    match values.iter().position(|&v| v <= 0.0) {
        Some(at) => Err(Refusal::NotPositive { at }),
        None => Ok(values.iter().map(|v| v.ln()).collect()),
    }
}
