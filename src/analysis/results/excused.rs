//! Doubts that do not speak against a value.

use railgauge_wire::terms::Transport;

use super::CaseResult;
use crate::analysis::truth::Doubt;

/// Takes from the doubts of a case what its plan asked for, and what TCP lost: it sends that again, and the value is that of the network
/// as it is.
///
/// A value of the test other than the first may lose packets, which are then sent again; bytes too many without a lost packet stay
/// foreign. Of the bytes that a command of the plan moves beside a flow nobody knows.
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
