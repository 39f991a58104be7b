//! Cells of a round, ends of its flows, and the time that they have in common.

use railgauge_model::journal::event::{Case, Moment, Sample};
use railgauge_model::schedule::Port;
use railgauge_wire::{Bytes, Nanoseconds, NanosecondsI64};

use super::account::strays;
use crate::{
    case::CaseResult,
    value::{Direction, Spans},
};

/// The identity of a cell in a round: message size, queue pairs, concurrent connections, and the value of the test.
pub(super) type Cell<'a> = (Bytes, u32, Option<u32>, Option<&'a str>);

pub fn ends(case: &Case) -> (&Port, &Port) {
    let flow = &case.flow;
    if case.cell.op.pulls() { (&flow.to, &flow.from) } else { (&flow.from, &flow.to) }
}

pub(super) fn cell(case: &Case) -> Cell<'_> {
    (case.cell.size, case.cell.qps, case.cell.neighbours, case.cell.applied.as_deref())
}

/// On the clock that showed the planned start as `start`.
pub(super) fn on(start: Moment, (from, until): (NanosecondsI64, NanosecondsI64)) -> (Nanoseconds, Nanoseconds) {
    (start.at.saturating_add_signed(from), start.at.saturating_add_signed(until))
}

pub fn direction(result: &CaseResult<'_>, repeat: u32, sample: &Sample) -> Direction {
    let pass = result.part.as_ref().and_then(|part| part.passes.get(&repeat));
    let overlap = pass.and_then(|pass| pass.overlap).zip(sample.together.as_deref());
    let overlap = overlap.filter(|_| strays(result, sample).is_empty());
    Direction::Within(
        overlap.map(|(overlap, together)| Spans { here: on(together.from, overlap), there: on(together.to, overlap) }),
    )
}
