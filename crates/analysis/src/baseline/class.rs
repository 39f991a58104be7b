//! Classes of links that share one expected value.

use railgauge_model::{journal::event::Case, plan::baseline::Class};
use railgauge_wire::Carrier;

use crate::{history::cell_words, row::Reading};

/// `None` if nothing carried its bytes.
pub(super) fn class(case: &Case, reading: &Reading) -> Option<Class> {
    let flow = &case.flow;
    Some(Class {
        test: case.test.to_string(),
        metric: reading.metric,
        size_bytes: case.cell.size,
        ranks: flow.ranks(),
        variant: cell_words(&case.cell),
        rails: if flow.members.is_empty() { (flow.from.rail, flow.to.rail) } else { (0, 0) },
        transport: Carrier::from_word(&reading.transport)?,
    })
}
