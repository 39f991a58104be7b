//! Doubts that the plan itself asked for.

use super::CaseResult;
use crate::analysis::truth::Doubt;

/// Takes from the doubts of a case what its plan asked for.
///
/// A value of the test other than the first may lose packets, which are then sent again; bytes too many without a lost packet stay
/// foreign. Of the bytes that a command of the plan moves beside a flow nobody knows.
pub(super) fn excuse(result: &mut CaseResult<'_>) {
    let is_lost = |doubt: &Doubt| matches!(doubt, Doubt::Loss { .. } | Doubt::NotArrived { .. });
    let loses = !result.case.cell.is_reference(result.test) && result.doubts.iter().any(is_lost);
    let moves = result.case.cell.neighbours == Some(0);
    let asked_for = |doubt: &Doubt| match doubt {
        Doubt::ForeignBytes { .. } => loses || moves,
        doubt => loses && is_lost(doubt),
    };
    if result.doubts.iter().any(asked_for) {
        result.change(|against| {
            (against.excused, against.doubts) = std::mem::take(&mut against.doubts).into_iter().partition(asked_for);
        });
    }
}
