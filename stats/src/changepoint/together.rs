//! Series that changed at the same time have one cause.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Member {
    pub series: usize,
    pub day: i64,
    pub effect: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Shared {
    pub label: usize,
    pub day: i64,
    pub members: Vec<usize>,
    pub of: usize,
}

const SPAN: i64 = 4;
const FEWEST: usize = 3;
/// Share of a label's series that must have changed.
const SHARE: f64 = 0.3;

/// Finds labels (a host, a leaf, a rail, a software version; `labels[series]` has those of a series) with more than 30 % of their series
/// changed in the same direction within five days, and reports each change under one label at most. The label that explains most is
/// first: one point for each of its changed series, less 3/7 for each other, so that a leaf whose links all changed wins over its
/// cluster, and the cluster over its leaves if all of it changed.
pub fn together(changes: &[Member], labels: &[Vec<usize>]) -> Vec<Shared> {
    let mut size: BTreeMap<usize, usize> = BTreeMap::new();
    for label in labels.iter().flatten() {
        *size.entry(*label).or_default() += 1;
    }
    let mut left: BTreeSet<usize> = (0..changes.len()).filter(|&c| changes[c].series < labels.len()).collect();
    let mut found = Vec::new();
    while let Some(best) = best(changes, labels, &size, &left) {
        best.members.iter().for_each(|change| _ = left.remove(change));
        found.push(best);
    }
    found
}

fn best(
    changes: &[Member],
    labels: &[Vec<usize>],
    size: &BTreeMap<usize, usize>,
    left: &BTreeSet<usize>,
) -> Option<Shared> {
    let mut by_label: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
    for &change in left {
        for &label in &labels[changes[change].series] {
            by_label.entry((label, changes[change].effect > 0.0)).or_default().push(change);
        }
    }
    let mut best: Option<(f64, Shared)> = None;
    for ((label, _), mut members) in by_label {
        let of = size[&label];
        members.sort_unstable_by_key(|&change| (changes[change].day, change));
        let members = densest(changes, &members);
        let series: BTreeSet<usize> = members.iter().map(|&change| changes[change].series).collect();
        let changed = series.len() as f64;
        if series.len() < FEWEST || changed <= SHARE * of as f64 {
            continue;
        }
        let score = changed - SHARE / (1.0 - SHARE) * (of as f64 - changed);
        let better = |(most, other): &(f64, Shared)| score > *most || score == *most && of < other.of;
        if best.as_ref().is_none_or(better) {
            let day = changes[members[members.len() / 2]].day;
            best = Some((score, Shared { label, day, members: members.to_vec(), of }));
        }
    }
    best.map(|(_, shared)| shared)
}

/// The stretch within the span with most changes; `members` are in order of days.
fn densest<'a>(changes: &[Member], members: &'a [usize]) -> &'a [usize] {
    let mut best = &members[..0];
    let mut start = 0;
    for end in 1..=members.len() {
        while changes[members[end - 1]].day - changes[members[start]].day > SPAN {
            start += 1;
        }
        if end - start > best.len() {
            best = &members[start..end];
        }
    }
    best
}
