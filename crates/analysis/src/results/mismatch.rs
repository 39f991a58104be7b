//! Content of a journal that contradicts its plan: they are not of the same run.

use crate::words::count;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("the journal holds an outcome of case {case}, which was never planned")]
    UnplannedCase { case: u64 },
    #[error("the journal holds test `{test}`, which the plan does not have: they are not of the same run")]
    UnknownTest { test: String },
    #[error("the journal holds repeat {repeat} of case {case}, whose test has {}", count(*.repeats as usize, "repeat"))]
    UnaskedRepeat {
        case: u64,
        /// Counted from 1.
        repeat: u64,
        repeats: u32,
    },
    #[error("case {case} of the journal measures what test `{test}` of the plan does not")]
    ForeignCase { case: u64, test: String },
}
