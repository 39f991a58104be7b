//! Counters of errors, retransmission and congestion that moved during a test.

use std::collections::BTreeMap;

use railgauge_analysis::case::CaseResult;

use super::block::{Block, Data, Table};
use crate::chart::ChartError;

/// Parts of the names of relevant counters, over vendors (mlx5, bnxt_re, irdma, rxe; InfiniBand port counters).
const TELLING: [&str; 23] = [
    "retrans",
    "out_of_seq",
    "seq_err",
    "seq_error",
    "cnp",
    "ecn",
    "pause",
    "discard",
    "drop",
    "_err",
    "error",
    "timeout",
    "rnr",
    "out_of_buffer",
    "link_down",
    "carrier_down",
    "symbol",
    "corrected",
    "stall",
    "slow_restart",
    "xmit_wait",
    "duplicate",
    "retry",
];
const LISTED: usize = 16;

pub(crate) fn telling(name: &str) -> bool {
    TELLING.iter().any(|part| name.contains(part))
}

/// `None` if none moved.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let block = |table| Block { heading: "Counters that changed", table: Some(table), ..Block::default() };
    Ok(counters(&data.results).map(block))
}

/// Sums over a test, largest first; `None` if nothing moved.
fn counters(results: &[&CaseResult<'_>]) -> Option<Table> {
    let mut sums: BTreeMap<(&str, &str), (u64, usize)> = BTreeMap::new();
    for result in results {
        for (_, sample) in &result.samples {
            let ends = [(&result.case.flow.from, &sample.from_counters), (&result.case.flow.to, &sample.to_counters)];
            for (port, counters) in ends {
                for (name, change) in counters.iter().filter(|(name, change)| **change > 0 && telling(name)) {
                    let (sum, windows) = sums.entry((name, &port.host)).or_default();
                    *sum = sum.saturating_add(*change);
                    *windows += 1;
                }
            }
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (sum, _))| std::cmp::Reverse(*sum));
    let rows = sums.into_iter().take(LISTED).map(|((name, host), (sum, windows))| {
        vec![name.to_owned(), host.to_owned(), sum.to_string(), windows.to_string()]
    });
    Table::new("counter | host | #change | #windows", rows).filled()
}
