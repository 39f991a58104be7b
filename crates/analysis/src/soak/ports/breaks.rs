//! Breaks of a link seen only in its counters, and not by a look at its state.

use std::collections::BTreeMap;

use railgauge_wire::{CounterRow, Nanoseconds, drivers::of_member};
use serde::Serialize;

use super::Down;
use crate::soak::{
    families::{Family, family},
    span::Span,
};

/// How much later than the state, or earlier than the look, a counter may be updated: drivers read their counters once
/// a second (kernel drivers/net/ethernet/mellanox/mlx5/core/en_main.c, `update_stats_work`; `lifespan` of hw_counters).
const LATE: Nanoseconds = Nanoseconds::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hidden {
    #[serde(flatten)]
    pub span: Span,
    /// Error of these times, in nanoseconds.
    pub error: Nanoseconds,
    pub counter: String,
    pub breaks: u64,
    /// Upper bound for each, in nanoseconds: the longest time between two looks.
    pub shorter_than: Nanoseconds,
}

/// Increases of every counter of breaks, in order of time.
#[derive(Default)]
pub(super) struct Rises(BTreeMap<String, Vec<Hidden>>);

impl Rises {
    pub(super) fn take(&mut self, row: &CounterRow, longest_gap: Nanoseconds, error: Nanoseconds) {
        for (counter, breaks) in row.counted.iter().filter(|(_, rise)| **rise > 0) {
            if family(counter) == Some(Family::LinkBreaks) {
                let span = Span::new(row.from, row.until);
                let (counter, shorter_than) = (counter.clone(), longest_gap);
                let rise = Hidden { span, error, counter: counter.clone(), breaks: *breaks, shorter_than };
                self.0.entry(counter).or_default().push(rise);
            }
        }
    }

    /// Increases that no outage explains. Counters at several places count the same breaks: of those of one port, and
    /// of those of each member of a bond, the highest counts.
    pub(super) fn hidden(self, outages: &[Down]) -> Vec<Hidden> {
        let mut most: BTreeMap<String, (u64, Vec<Hidden>)> = BTreeMap::new();
        for (counter, rises) in self.0 {
            let hidden = beyond(rises, outages);
            let sum = hidden.iter().fold(0_u64, |sum, one| sum.saturating_add(one.breaks));
            let of = of_member(&counter).map(|(member, _)| member.to_owned()).unwrap_or_default();
            let known = most.entry(of).or_default();
            if sum > known.0 {
                *known = (sum, hidden);
            }
        }
        let mut found: Vec<Hidden> = most.into_values().flat_map(|(_, hidden)| hidden).collect();
        found.sort_by(|a, b| (a.span, &a.counter).cmp(&(b.span, &b.counter)));
        found
    }
}

/// Increases of one counter without those of seen outages. Each outage explains one, of a row that can have it.
fn beyond(rises: Vec<Hidden>, outages: &[Down]) -> Vec<Hidden> {
    // What was down at the first look had broken before the first reading of its counters.
    let seen = outages.iter().map(|down| &down.begin).filter(|begin| begin.seen);
    let began: Vec<Span> = seen.map(|begin| Span::new(begin.at, begin.at).widened(begin.error)).collect();
    let mut next = 0;
    let mut found = Vec::new();
    for mut rise in rises {
        let row = rise.span.widened(LATE.saturating_add(rise.error));
        while rise.breaks > 0 && next < began.len() && began[next].from <= row.until {
            rise.breaks -= u64::from(began[next].until >= row.from);
            next += 1;
        }
        if rise.breaks > 0 {
            found.push(rise);
        }
    }
    found
}
