//! From numbers to one of five words.

use super::Comparison;
use crate::{multiple::benjamini_hochberg, refusal::Refusal};

/// Share of false discoveries that [`verdicts`] allows, and level of a single [`verdict`].
pub const LEVEL: f64 = 0.05;

/// What a comparison shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Changed for the better, by at least the margin.
    Improved,
    /// Changed for the worse, by at least the margin.
    Regressed,
    /// Shown to lie within the margin.
    Equivalent,
    /// Changed, and shown to lie within the margin.
    Negligible,
    /// Neither a change nor its absence is shown.
    Inconclusive,
}

/// Verdict of one comparison whose p values may have been adjusted for many.
///
/// Improved or regressed: p of no change at most 5 %, the 95 % interval does not hold 0, and the effect is at least
/// [`Comparison::least`]. Equivalent or negligible: p of lying outside the margin at most 5 %, and the 90 % interval inside. Everything
/// else is inconclusive, also what could not reach 5 % because of few runs.
pub fn verdict(comparison: &Comparison, p_change: f64, p_equivalent: f64, higher_is_better: bool) -> Verdict {
    let inside = |low: f64, high: f64| -comparison.margin < low && high < comparison.margin;
    let changed = p_change <= LEVEL && comparison.interval95.is_some_and(|interval| !interval.holds(0.0));
    let equivalent = p_equivalent <= LEVEL && comparison.interval90.is_some_and(|i| inside(i.low, i.high));
    if changed && comparison.effect.abs() >= comparison.least {
        if (comparison.effect > 0.0) == higher_is_better { Verdict::Improved } else { Verdict::Regressed }
    } else if equivalent {
        if changed { Verdict::Negligible } else { Verdict::Equivalent }
    } else {
        Verdict::Inconclusive
    }
}

/// Verdicts of many cells, with each cell's adjusted p of no change: Benjamini & Hochberg over the p of no change, and
/// separately over the p of lying outside the margin. Each cell comes with whether higher is better.
///
/// # Errors
/// A p that is not a probability.
pub fn verdicts(cells: &[(Comparison, bool)]) -> Result<Vec<(Verdict, f64)>, Refusal> {
    let adjusted = |p: &dyn Fn(&Comparison) -> f64| {
        benjamini_hochberg(&cells.iter().map(|(cell, _)| p(cell)).collect::<Vec<f64>>())
    };
    let (change, equivalent) = (adjusted(&|cell| cell.p_change)?, adjusted(&|cell| cell.p_equivalent)?);
    let judged = cells.iter().zip(change).zip(equivalent);
    Ok(judged.map(|(((cell, higher), change), equal)| (verdict(cell, change, equal, *higher), change)).collect())
}
