//! What a journal holds that its plan does not: they are not of the same run.

use super::count;

/// The first thing of a journal that cannot be of its plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// An outcome of a case that nobody planned.
    #[error("the journal holds an outcome of case {case}, which was never planned")]
    UnplannedCase { case: u64 },
    /// A case of a test that the plan does not have.
    #[error("the journal holds test `{test}`, which the plan does not have: they are not of the same run")]
    UnknownTest { test: String },
    #[error("the journal holds repeat {repeat} of case {case}, whose test has {}", count(*.repeats as usize, "repeat"))]
    UnaskedRepeat {
        case: u64,
        /// Which repeat, counted from 1.
        repeat: u64,
        repeats: u32,
    },
    /// A case that its test does not have.
    #[error("case {case} of the journal measures what test `{test}` of the plan does not")]
    ForeignCase { case: u64, test: String },
}
