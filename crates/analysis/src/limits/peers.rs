//! Values of the other links of the same test, cell and rail.

use std::collections::HashMap;

use railgauge_wire::Bytes;

use crate::{case::CaseResult, row::Row};

/// Fewest other links for a comparison. With two, the median is their mean, and one bad peer would move it by half its distance.
pub(crate) const AT_LEAST: usize = 3;

/// Key of peers: size, variant, ranks and rail. Within hosts all parts are peers, whatever their number; ways between
/// two parts are peers of the same way on other hosts, since not all ways are built alike.
type PeersKey = (Bytes, String, u32, (u32, u32));

pub(super) struct Peers {
    values: HashMap<PeersKey, Vec<f64>>,
}

fn key(result: &CaseResult<'_>, row: &Row) -> PeersKey {
    let (from, to) = (result.case.flow.from.rail, result.case.flow.to.rail);
    let rail = match result.case.cell.transport.is_within_host() {
        true if from == to => (0, 0),
        true => (from, to),
        false => (row.rail, row.rail),
    };
    (row.size_bytes, result.variant(), row.ranks, rail)
}

impl Peers {
    pub(super) fn new<'r>(rows: impl Iterator<Item = (&'r CaseResult<'r>, &'r Row)>) -> Self {
        let mut values: HashMap<_, Vec<f64>> = HashMap::new();
        for (result, row) in rows {
            values.entry(key(result, row)).or_default().extend(row.value);
        }
        values.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
        Self { values }
    }

    /// Median of all other links; `None` with fewer than [`AT_LEAST`].
    pub(super) fn centre(&self, result: &CaseResult<'_>, row: &Row) -> Option<f64> {
        let values = self.values.get(&key(result, row))?;
        let own = row.value.and_then(|value| values.iter().position(|other| other.total_cmp(&value).is_eq()));
        let others = values.len() - usize::from(own.is_some());
        if others < AT_LEAST {
            return None;
        }
        // The value at a position of the list without `own`, found without building that list.
        let at = |place: usize| values[place + usize::from(own.is_some_and(|own| place >= own))];
        let half = others / 2;
        Some(if others % 2 == 1 { at(half) } else { f64::midpoint(at(half - 1), at(half)) })
    }
}
