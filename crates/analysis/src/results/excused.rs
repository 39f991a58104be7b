//! Doubts that are not objections to a value.

use railgauge_wire::Transport;

use crate::case::{CaseResult, Doubt};

/// Removes doubts that follow from the plan, and TCP losses: these packets are sent again, and the value is that of the network as it is.
///
/// A test's value other than the first may lose packets, which are then sent again; additional bytes without a lost
/// packet stay foreign. The bytes of a plan's command next to a flow are unknown.
pub(super) fn excuse(result: &mut CaseResult<'_>) {
    let is_lost = |doubt: &Doubt| doubt.lost().is_some();
    let loses = !result.case.cell.is_reference(result.test) && result.doubts.iter().any(is_lost);
    let repairs = result.case.cell.transport == Transport::Tcp;
    let moves = result.case.cell.neighbours == Some(0);
    let asked_for = |doubt: &Doubt| match doubt {
        Doubt::ForeignBytes { .. } => loses || moves,
        doubt => (loses || repairs) && is_lost(doubt),
    };
    if result.doubts.iter().any(asked_for) {
        result.change(|against| {
            (against.excused, against.doubts) = std::mem::take(&mut against.doubts).into_iter().partition(asked_for);
        });
    }
}
