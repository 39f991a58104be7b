//! At which other size parts are looked for, where nothing stands out at the usual one.
//!
//! Pairs are judged at one size: the largest of a bandwidth, the smallest of a latency. A fault may show at others only, as one
//! of a protocol that changes with the size does. Where the usual size is quiet, sizes at which single pairs stand out are tried.

use std::collections::BTreeMap;

use railgauge_stats::robust::{Level, outlier_cut};
use railgauge_wire::{terms::Metric, unit::Bytes};

use super::pick::{Picked, logarithm};
use crate::analysis::{results::CaseResult, row::Row};

/// Most sizes that are tried.
const MOST: usize = 3;
/// Fewest values among which one can stand out.
const FEWEST: usize = 3;

/// Rows of one metric at each size (and count of queue pairs) other than the usual one where pairs are far below most, those
/// with the most such pairs first, [`MOST`] at most. `least` is the plan's least effect, as a difference of logarithms.
pub(super) fn sizes<'r>(
    rows: &[(&'r CaseResult<'r>, &'r Row)],
    metric: Metric,
    usual: (Bytes, u32),
    least: f64,
) -> Vec<Picked<'r>> {
    let mut cells: BTreeMap<(Bytes, u32), Picked<'r>> = BTreeMap::new();
    for (result, row) in rows.iter().filter(|(_, row)| row.metric == metric) {
        cells.entry((row.size_bytes, row.qps)).or_default().push((result, row));
    }
    let looks = cells.values().map(Vec::len).sum();
    let mut low: Vec<(usize, (Bytes, u32))> = cells
        .iter()
        .filter(|(cell, _)| **cell != usual)
        .map(|(cell, picked)| (far_below(picked, looks, least), *cell))
        .filter(|(low, _)| *low > 0)
        .collect();
    // Of as many the one closest to the usual one.
    low.sort_by_key(|(low, (size, qps))| (std::cmp::Reverse(*low), size.abs_diff(usual.0), qps.abs_diff(usual.1)));
    low.iter().take(MOST).filter_map(|(_, cell)| cells.remove(cell)).collect()
}

/// How many values are worse than the centre by more than the cut for single values.
fn far_below(picked: &Picked<'_>, looks: usize, least: f64) -> usize {
    let values: Vec<f64> = picked.iter().filter_map(|(result, row)| logarithm(result, row)).collect();
    if values.len() < FEWEST {
        return 0;
    }
    let Ok(level) = Level::of(&values, least) else { return 0 };
    let threshold = (outlier_cut(looks, Some(level.n)) * level.scale).max(least);
    values.iter().filter(|value| level.centre - **value > threshold).count()
}
