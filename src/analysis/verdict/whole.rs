//! The verdict on a run that did not come to its end: what it would still have measured may have changed any of the others.

use super::{Kind, Status, Tally, Verdict};
use crate::analysis::journal::{End, Journal};

/// Name under which this verdict stands beside those of tests.
pub const NAME: &str = "run";

/// The verdict; `None` for a run that finished.
pub(super) fn judge(journal: &Journal) -> Option<Verdict> {
    let why = match &journal.end {
        End::Finished => return None,
        End::Interrupted => "it was interrupted".to_owned(),
        End::Prevented(why) => format!("it could not go on: {why}"),
        End::Broken => "its records end without an end of the run: it broke off, or is still running".to_owned(),
    };
    Some(Verdict {
        kind: Kind::Run,
        test: NAME.to_owned(),
        key: None,
        demand: "the run came to its end".to_owned(),
        scope: "the run".to_owned(),
        line: None,
        metric: None,
        unit: None,
        status: Status::Inconclusive,
        waived: false,
        reason: format!("{why}; `railgauge run --resume` goes on with it"),
        worst: None,
        offenders: Vec::new(),
        holdings: Vec::new(),
        parts: Vec::new(),
        tally: Tally::default(),
    })
}
