//! The verdicts on the run as a whole: on one that did not come to its end, because what it would still have measured may
//! have changed any of the others, and on one whose records are damaged, for the same reason.

use super::{Kind, Status, Tally, Verdict};
use crate::analysis::{
    journal::{End, Journal},
    words::count,
};

/// Name under which these verdicts stand beside those of tests.
pub const NAME: &str = "run";

/// The verdicts; none for a run that finished and whose records are whole.
pub(super) fn judge(journal: &Journal) -> Vec<Verdict> {
    end(journal).into_iter().chain(records(journal)).collect()
}

fn end(journal: &Journal) -> Option<Verdict> {
    let why = match &journal.end {
        End::Finished => return None,
        End::Interrupted => "it was interrupted; `railgauge run --resume` goes on with it".to_owned(),
        End::Prevented(why) => format!("it could not go on: {why}; `railgauge run --resume` goes on with it"),
        End::Broken => {
            "its records stop without an end: it broke off; `railgauge run --resume` goes on with it".to_owned()
        }
        End::Running => "it is still running; wait for its end and draw the report again".to_owned(),
    };
    Some(verdict(Kind::Run, "the run came to its end", why))
}

fn records(journal: &Journal) -> Option<Verdict> {
    let damage: Vec<_> = journal.unhealed().collect();
    let first = damage.first()?;
    // What is there twice lacks nothing that could be measured again.
    let remedy = if damage.iter().all(|damage| damage.numbers.is_some()) {
        "`railgauge run --resume` measures again what is missing"
    } else {
        "lines are there twice or in another order, and `--resume` does not mend that: take an undamaged copy of the file, or \
         run the plan again"
    };
    let why = format!(
        "{} of records.jsonl cannot be read, first at line {}: {}; {remedy}",
        count(damage.len(), "place"),
        first.line,
        first.what
    );
    Some(verdict(Kind::Records, "the records are as they were written", why))
}

fn verdict(kind: Kind, demand: &str, reason: String) -> Verdict {
    Verdict {
        kind,
        test: NAME.to_owned(),
        key: None,
        demand: demand.to_owned(),
        scope: "the run".to_owned(),
        line: None,
        metric: None,
        unit: None,
        status: Status::Inconclusive,
        waived: false,
        reason,
        worst: None,
        offenders: Vec::new(),
        holdings: Vec::new(),
        parts: Vec::new(),
        tally: Tally::default(),
    }
}
