//! Runs without values: whether one of them is the last, and whether they are too many.

use std::collections::BTreeMap;

use super::Past;
use crate::history::{numbers, shape};

/// Runs of a kind considered for the share without values.
const RECENT: usize = 28;
/// Fewest runs of a kind that are judged by themselves.
const FEWEST: usize = 7;
/// One in this many runs is a large share.
const SHARE: usize = 4;

/// Whether an unreadable run may be the last one: none of its kind has a later name. `torn` are their names, with the
/// number of runs read before each.
pub(super) fn is_last(past: &[Past], torn: &[(usize, String)]) -> bool {
    torn.iter().any(|(before, name)| {
        let kind = shape(name);
        let mut like = past.iter().filter(|run| shape(&run.directory) == kind).peekable();
        if like.peek().is_none() {
            return *before >= past.len();
        }
        like.all(|run| numbers(&run.directory) < numbers(name))
    })
}

/// Runs without a value, if at least a quarter, and the number of runs considered: all, or the last 28 of a kind. Their
/// content cannot be inferred from the others: something bad may be the cause. `refused` are the names of runs that are not in `past`.
pub(super) fn lacking(past: &[Past], refused: &[String]) -> Option<(usize, usize)> {
    let known = past.iter().map(|run| (run.directory.as_str(), run.valued));
    let all: Vec<(&str, bool)> = known.chain(refused.iter().map(|name| (name.as_str(), false))).collect();
    let mut kinds: BTreeMap<String, Vec<(&str, bool)>> = BTreeMap::new();
    for one in &all {
        kinds.entry(shape(one.0)).or_default().push(*one);
    }
    let many = |runs: &[(&str, bool)]| {
        let lost = runs.iter().filter(|(_, valued)| !valued).count();
        (lost > 0 && lost * SHARE >= runs.len()).then_some((lost, runs.len()))
    };
    let of_kind = kinds.values_mut().filter(|runs| runs.len() >= FEWEST).find_map(|runs| {
        runs.sort_by(|a, b| numbers(a.0).cmp(&numbers(b.0)));
        many(&runs[runs.len().saturating_sub(RECENT)..])
    });
    many(&all).or(of_kind)
}
