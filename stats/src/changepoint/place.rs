//! The night on which a change began.

use super::{change_points, walk::BEFORE};
use crate::{
    refusal::Refusal,
    robust::{median_in_place, winsorise},
};

/// A change is looked for among the last nights only.
const PLACED: usize = 20;
/// Nights to either side of a change point among which the best is taken.
const NEARBY: usize = 5;
/// p of the change points that place a change.
const PLACING: f64 = 1e-4;

/// Position in a level where a change is placed that the slow rule found in its last `nights`: the last change point among
/// the last nights that goes the same way, or the split that the rank rule found; then the night nearby that leaves the
/// smallest distances to the medians of both sides.
///
/// # Errors
/// Fewer than three values, or one that is not finite.
pub(super) fn place(level: &[f64], excess: f64, nights: usize) -> Result<usize, Refusal> {
    let n = level.len();
    let clipped = winsorise(level)?;
    let points = change_points(&clipped, PLACING)?;
    let near = points.iter().rev().find(|p| p.at + PLACED >= n && (p.effect > 0.0) == (excess > 0.0));
    let rough = near.map_or(n - nights, |point| point.at);
    // Without a change point the rank rule's guess may be far too early: a large change shows on its third night.
    let last = near.map_or(n - 1, |_| (rough + NEARBY + 1).min(n - 1));
    let start = n.saturating_sub(BEFORE + PLACED);
    let distances = |values: &[f64]| {
        let centre = median_in_place(&mut values.to_vec());
        values.iter().map(|v| (v - centre).abs()).sum::<f64>()
    };
    let left = |at: &usize| distances(&level[start..*at]) + distances(&level[*at..]);
    let nearby = rough.saturating_sub(NEARBY).max(start + 8)..last;
    Ok(nearby.min_by(|a, b| left(a).total_cmp(&left(b))).unwrap_or(rough))
}
