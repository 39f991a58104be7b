//! Counter readings, and their rows.
//!
//! A row has differences between two readings of the same counters, over exactly its span. Drivers' statistics cost much more than files
//! and are read less often, so they have separate rows with longer spans ([`CounterRow::is_of_statistics`]).
//!
//! | what a counter does | what is counted |
//! | --- | --- |
//! | rises | the difference |
//! | is there for the first time | nothing in this row: what it counted before is not known |
//! | is smaller than before | nothing in this row: it was reset, and what it counted since is not known |
//! | … and was in the last quarter below 2³² | the difference over the wrap; not in `counters/`, where none wraps |
//! | is stuck at its largest value | nothing any more. The row that found it so has a gauge `saturated/NAME` with the value |
//!
//! The error counters of an InfiniBand port have 4, 8 or 16 bits and stop at their largest value ([`WIDTHS`]). Further errors are
//! invisible until a reset, which a gauge reports once.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::{CounterRow, Gather, Nanoseconds, WIDTHS, watch::of_one_queue};

pub(super) type Values = BTreeMap<String, u64>;

#[derive(Debug, Default)]
pub(super) struct Series {
    last: Option<(Nanoseconds, Values)>,
    /// Counters already reported as stuck at their largest value.
    saturated: BTreeSet<String>,
    /// Readings other than counts, for the next row.
    gauges: BTreeMap<String, f64>,
    told: bool,
}

impl Series {
    /// Returns the row that ends with this reading; `None` for the first.
    pub(super) fn read(&mut self, at: Nanoseconds, values: Values) -> Option<CounterRow> {
        for name in saturated(&values) {
            if self.saturated.insert(name.to_owned()) {
                self.gauges.insert(format!("saturated/{name}"), values[name] as f64);
            }
        }
        self.saturated.retain(|name| values.get(name).is_none_or(|value| is_largest(name, *value)));
        let (from, before) = self.last.replace((at, values))?;
        let (_, after) = self.last.as_ref()?;
        let mut counted = rises(&before, after);
        // A counter without a rise differs from a missing one: the first row has them all.
        if std::mem::replace(&mut self.told, true) {
            counted.retain(|_, rise| *rise > 0);
        }
        Some(CounterRow { from, until: at, counted, gauges: std::mem::take(&mut self.gauges), ..CounterRow::default() })
    }

    /// Readings other than counts, for the next row.
    pub(super) fn gauge(&mut self, gauges: impl IntoIterator<Item = (String, f64)>) {
        self.gauges.extend(gauges);
    }

    /// New counters: earlier values do not count. Rows continue.
    pub(super) fn forget(&mut self) {
        if let Some((_, values)) = &mut self.last {
            values.clear();
        }
    }

    pub(super) fn had_counters(&self) -> bool {
        self.last.as_ref().is_some_and(|(_, values)| !values.is_empty())
    }
}

fn rises(before: &Values, after: &Values) -> Values {
    let rise = |(name, now): (&String, &u64)| {
        let rise = since(name, *before.get(name)?, *now)?;
        (!of_one_queue(name)).then(|| (name.clone(), rise))
    };
    after.iter().filter_map(rise).gathered()
}

/// `None` after a reset.
fn since(name: &str, then: u64, now: u64) -> Option<u64> {
    const WRAP: u64 = 1 << 32;
    let wraps = || is_of_port(name).is_none() && (WRAP - WRAP / 4..WRAP).contains(&then) && now < WRAP / 4;
    now.checked_sub(then).or_else(|| wraps().then(|| now + WRAP - then))
}

/// A counter of the port itself, without its folder.
fn is_of_port(name: &str) -> Option<&str> {
    let (folder, name) = name.split_once('/')?;
    (folder == "counters").then_some(name)
}

fn saturated(values: &Values) -> impl Iterator<Item = &str> {
    values.iter().filter(|(name, value)| is_largest(name, **value)).map(|(name, _)| name.as_str())
}

fn is_largest(name: &str, value: u64) -> bool {
    let Some(plain) = is_of_port(name) else { return false };
    WIDTHS.iter().any(|(known, bits)| *known == plain && value >= (1 << bits) - 1)
}

/// Approximate bytes of a row in an answer.
pub(super) fn size(row: &CounterRow) -> usize {
    const AROUND: usize = 24;
    let names = row.counted.keys().chain(row.peaks.keys()).chain(row.gauges.keys());
    2 * AROUND + names.map(|name| name.len() + AROUND).sum::<usize>()
}

#[cfg(test)]
#[path = "tests/counters.rs"]
mod tests;
