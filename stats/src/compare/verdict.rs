use serde::Serialize;

use super::{Comparison, LEVEL};
use crate::{multiple::benjamini_hochberg, refusal::Refusal, shift::Interval};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// By at least the margin.
    Improved,
    /// By at least the margin.
    Regressed,
    Equivalent,
    Negligible,
    Inconclusive,
    /// No change is shown, and the margin is too wide for its absence to mean anything.
    TooNoisy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// Runs after have no value: what failed is not part of what was measured.
    Missing,
    FewRuns,
    /// The other runs show its absence, but single runs are far off.
    Strays,
    /// The effect shows its absence, but not the difference of means: the runs of a side do not agree.
    Means,
    /// A change, or its absence, for independent runs; but in this order correlated runs would look the same.
    Order,
    /// A change, or its absence, for this cell alone, but among so many chance does as much somewhere.
    ManyCases,
    /// A change, but not clearly more or less than the margin.
    Margin,
    Spread,
    Noise,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    pub verdict: Verdict,
    pub p_change: f64,
    /// `None` for a verdict.
    pub obstacle: Option<Obstacle>,
}

/// Verdict of one comparison whose p values may be adjusted for many.
///
/// Improved or regressed: p of no change at most 5 %, the 95 % interval does not hold 0, and the effect is at least the margin.
/// Equivalent or negligible: p of lying outside the margin at most 5 %, both 95 % intervals (of the effect and of means) inside it, no
/// run that is far off, and four values a side; too noisy instead where the margin is too wide. Where runs after have no value, the
/// verdict is neither improved nor equivalent: their values are unknown. Everything else is inconclusive, also what could not reach 5 %
/// because of few runs.
pub fn verdict(comparison: &Comparison, p_change: f64, p_equivalent: f64, higher_is_better: bool) -> Verdict {
    let changed = p_change <= LEVEL && comparison.interval95.is_some_and(|interval| !interval.holds(0.0));
    let whole = comparison.missing[1] == 0;
    let steady = comparison.strays == [0, 0];
    if changed && comparison.effect.abs() >= comparison.margin {
        match (comparison.effect > 0.0) == higher_is_better {
            false => Verdict::Regressed,
            true if whole => Verdict::Improved,
            true => Verdict::Inconclusive,
        }
    } else if comparison.too_wide && comparison.interval95.is_some() {
        Verdict::TooNoisy
    } else if whole
        && comparison.n >= FEWEST
        && steady
        && p_equivalent <= LEVEL
        && inside(comparison.interval95, comparison.margin)
        && inside(comparison.mean95, comparison.margin)
    {
        if changed { Verdict::Negligible } else { Verdict::Equivalent }
    } else {
        Verdict::Inconclusive
    }
}

/// Fewest values of the smaller side that show the absence of a change: with fewer, the missing ones might differ.
const FEWEST: usize = 4;

fn inside(interval: Option<Interval>, margin: f64) -> bool {
    interval.is_some_and(|interval| -margin < interval.low && interval.high < margin)
}

/// Verdicts of many cells: Benjamini & Hochberg over the p of no change, and separately over the p of lying outside the margin. Each cell
/// has whether higher is better. Where nothing changed, the first change is named in at most 5 % of comparisons, as long as cells are
/// independent and do not share the luck of their runs.
///
/// # Errors
/// A p that is not a probability.
pub fn verdicts(cells: &[(Comparison, bool)]) -> Result<Vec<Judged>, Refusal> {
    let adjusted = |p: &dyn Fn(&Comparison) -> f64| {
        benjamini_hochberg(&cells.iter().map(|(cell, _)| p(cell)).collect::<Vec<f64>>())
    };
    let change = adjusted(&|cell| cell.p_change)?;
    let equivalent = adjusted(&|cell| cell.p_equivalent)?;
    let plain = adjusted(&|cell| cell.p_plain)?.into_iter().zip(adjusted(&|cell| cell.p_equivalent_plain)?);
    let judged = cells.iter().zip(change).zip(plain).zip(equivalent);
    Ok(judged
        .map(|((((cell, higher), p_change), plain), equal)| {
            let verdict = verdict(cell, p_change, equal, *higher);
            Judged { verdict, p_change, obstacle: obstacle(cell, verdict, [p_change, equal], plain) }
        })
        .collect())
}

/// `p` are those of no change and of lying outside the margin, `plain` the same of independent runs, all adjusted.
fn obstacle(cell: &Comparison, verdict: Verdict, p: [f64; 2], plain: (f64, f64)) -> Option<Obstacle> {
    let clear = cell.effect.abs() >= cell.margin;
    let by_effect = inside(cell.interval95, cell.margin);
    let order_hides = if clear {
        plain.0 <= LEVEL && p[0] > LEVEL
    } else {
        // Two one-sided tests at 2.5 % are what a 95 % interval inside the margin shows.
        let shown = plain.1 <= LEVEL && cell.p_equivalent_plain <= LEVEL / 2.0;
        shown && cell.p_equivalent > cell.p_equivalent_plain
    };
    match (verdict, cell.interval95) {
        (Verdict::TooNoisy, _) => Some(Obstacle::Noise),
        (Verdict::Inconclusive, _) if cell.missing[1] > 0 => Some(Obstacle::Missing),
        (Verdict::Inconclusive, None) => Some(Obstacle::FewRuns),
        (Verdict::Inconclusive, Some(_)) if cell.n < FEWEST && !clear => Some(Obstacle::FewRuns),
        (Verdict::Inconclusive, Some(interval)) => Some(if by_effect && cell.strays != [0, 0] {
            Obstacle::Strays
        } else if order_hides {
            Obstacle::Order
        } else if by_effect {
            if inside(cell.mean95, cell.margin) { Obstacle::ManyCases } else { Obstacle::Means }
        } else if interval.holds(0.0) {
            Obstacle::Spread
        } else if p[0] > LEVEL {
            Obstacle::ManyCases
        } else {
            Obstacle::Margin
        }),
        _ => None,
    }
}
