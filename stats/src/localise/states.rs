//! Whether good pairs are in one of two states by chance.

use super::{
    confirm::{FEWEST, UNSTEADY},
    split::split,
};
use crate::robust::median_in_place;

/// How far the two states of controls lie apart, where these are in two: the largest distance among the samples given. Pairs
/// within groups and pairs between groups are samples of their own. Each is compared with its own median, and where that lies
/// in the upper state of one and in the lower of the other, both together have three states or hide theirs.
pub(super) fn states_apart<'a>(samples: impl Iterator<Item = &'a [f64]>) -> Option<f64> {
    samples.filter_map(apart).max_by(f64::total_cmp)
}

fn apart(controls: &[f64]) -> Option<f64> {
    let mut sorted = controls.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let found = split(&sorted, FEWEST)?;
    let at = sorted.partition_point(|control| *control < found.from);
    let (low, high) = sorted.split_at_mut(at);
    // A glitch or two are no second state.
    let rarer = low.len().min(high.len()) as f64;
    (rarer > UNSTEADY * controls.len() as f64).then(|| median_in_place(high) - median_in_place(low))
}
