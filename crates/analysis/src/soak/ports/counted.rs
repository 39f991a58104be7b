use std::collections::{BTreeMap, HashMap};

use railgauge_wire::{CounterRow, Nanoseconds, watch::STATISTICS};
use serde::Serialize;

use crate::soak::families::{Family, family};

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Counted {
    /// `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    pub total: u64,
    pub most_per_second: f64,
    /// End of that reading, in nanoseconds since 1970.
    pub most_at: Nanoseconds,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

pub struct Kept<'w> {
    also: &'w dyn Fn(&str) -> bool,
    known: HashMap<String, (bool, Option<Family>)>,
}

impl<'w> Kept<'w> {
    pub(super) fn new(also: &'w dyn Fn(&str) -> bool) -> Self {
        Self { also, known: HashMap::new() }
    }

    fn of(&mut self, name: &str) -> (bool, Option<Family>) {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let family = family(name);
        let found = (family.is_some() || (self.also)(name), family);
        self.known.insert(name.to_owned(), found);
        found
    }
}

/// A shorter reading is not scaled up: three in a tenth of a second are three.
pub(super) fn per_second(row: &CounterRow, name: &str, rise: u64) -> f64 {
    let length = row.until.saturating_sub(row.from).seconds().max(1.0);
    let mean = rise as f64 / length;
    row.peaks.get(name).copied().filter(|peak| peak.is_finite()).map_or(mean, |peak| peak.max(mean))
}

/// Adds a row. It may include a counter that did not move, which then is known to exist.
pub(super) fn take(
    row: &CounterRow,
    kept: &mut Kept<'_>,
    counters: &mut BTreeMap<String, Counted>,
    gauges: &mut BTreeMap<String, Range>,
) {
    for (name, rise) in &row.counted {
        let (true, family) = kept.of(name) else { continue };
        if !counters.contains_key(name) {
            counters.insert(name.clone(), Counted { family, ..Counted::default() });
        }
        let Some(counted) = counters.get_mut(name) else { continue };
        counted.total = counted.total.saturating_add(*rise);
        let rate = per_second(row, name, *rise);
        if rate > counted.most_per_second {
            (counted.most_per_second, counted.most_at) = (rate, row.until);
        }
    }
    // The mark of a row of drivers' statistics is not a reading.
    let readings = row.gauges.iter().filter(|(name, value)| *name != STATISTICS && value.is_finite());
    for (name, value) in readings {
        let range = gauges.entry(name.clone()).or_insert(Range { low: *value, high: *value });
        (range.low, range.high) = (range.low.min(*value), range.high.max(*value));
    }
}
