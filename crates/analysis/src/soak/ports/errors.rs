//! Errors of a port's physical layer, and the times in which it was up without a break.

use std::collections::BTreeMap;

use railgauge_model::plan::model::LinkValue;
use railgauge_wire::{CounterRow, Nanoseconds};

use crate::soak::{families::last_part, span::Span};

/// Counters of errors per bit (sources of the names: [`families`](crate::soak::families)). `symbol_error` is the port's own count on
/// InfiniBand; `rx_pcs_symbol_err_phy` counts what FEC did not correct.
const COUNTERS: [(LinkValue, &str); 3] = [
    (LinkValue::PostFecBer, "rx_pcs_symbol_err_phy"),
    (LinkValue::PostFecBer, "rx_pcs_symbol_err"),
    (LinkValue::SymbolErrors, "symbol_error"),
];

/// Readings in sequence are joined up to this length, so that a port with errors in every second takes little memory.
const JOINED: Nanoseconds = Nanoseconds::from_secs(60);

/// Rises of each value's counters, in order of time; an entry without rises is a counter that never rose.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Errors(BTreeMap<LinkValue, Vec<(Span, u64)>>);

impl Errors {
    /// What this counter counts, by the last part of its name.
    pub(super) fn of(counter: &str) -> Option<LinkValue> {
        COUNTERS.iter().find(|(_, name)| *name == last_part(counter)).map(|(of, _)| *of)
    }

    pub(super) fn take(&mut self, row: &CounterRow) {
        for (name, rise) in &row.counted {
            let Some(of) = Self::of(name) else { continue };
            let rises = self.0.entry(of).or_default();
            let span = Span::new(row.from, row.until);
            match rises.last_mut() {
                _ if *rise == 0 => {}
                Some((last, sum)) if last.until >= span.from && span.until.saturating_sub(last.from) <= JOINED => {
                    (last.until, *sum) = (last.until.max(span.until), sum.saturating_add(*rise));
                }
                _ => rises.push((span, *rise)),
            }
        }
    }

    /// Rises in readings within this time; `None` without such a counter.
    pub fn within(&self, of: LinkValue, time: &Span) -> Option<u64> {
        let rises = self.0.get(&of)?.iter().filter(|(span, _)| time.from <= span.from && span.until <= time.until);
        Some(rises.fold(0, |sum: u64, (_, rise)| sum.saturating_add(*rise)))
    }
}
