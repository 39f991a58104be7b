//! The verdicts on the run as a whole: on one that did not come to its end, because what it would still have measured may
//! have changed any of the others, and on one whose records are damaged, for the same reason; on hosts that were lost, also
//! where no test uses them; and on a cluster that was left configured for a test.

use std::collections::BTreeSet;

use railgauge_model::plan::hostlist;

use super::{Kind, Status, Tally, Verdict};
use crate::analysis::{
    journal::{Journal, JournalEnd},
    words::count,
};

/// Name under which these verdicts stand beside those of tests.
pub const NAME: &str = "run";

/// The verdicts; none for a run that finished and whose records are whole.
pub(super) fn judge(journal: &Journal) -> Vec<Verdict> {
    [end(journal), records(journal), hosts(journal), configured(journal)].into_iter().flatten().collect()
}

/// The exit code of the process that ran a plan, if it ended by itself; `cli::exit` has the numbers of all commands.
pub(super) const fn exit_code(journal: &Journal, status: Status) -> Option<u8> {
    match journal.end {
        JournalEnd::Finished => Some(status.exit_code()),
        JournalEnd::Interrupted => Some(130),
        JournalEnd::Prevented(_) => Some(4),
        JournalEnd::Broken | JournalEnd::Running => None,
    }
}

/// A host that did not answer is told also where no test uses it: what the plan lists is what the user takes to be there.
fn hosts(journal: &Journal) -> Option<Verdict> {
    let mut reasons = Vec::new();
    if let Some((_, first)) = journal.lost.iter().next() {
        let hosts = hostlist::fold(journal.lost.keys().map(String::as_str));
        reasons.push(match journal.lost.len() {
            1 => first.to_string(),
            n => format!("{}: {hosts}; the first: {first}", count(n, "host")),
        });
    }
    let known = |host: &str| journal.hosts.contains_key(host) || journal.lost.contains_key(host);
    let silent = || journal.plan.hosts.iter().map(|host| host.name.as_str()).filter(|host| !known(host));
    if silent().next().is_some() {
        let hosts = hostlist::fold(silent());
        reasons.push(format!("{hosts}: the records say neither that it answered nor why it did not"));
    }
    let unused = unused(journal);
    if !unused.is_empty() {
        reasons.push(format!("no case measures {}", hostlist::fold(unused)));
    }
    let why = (!reasons.is_empty()).then(|| reasons.join("; "))?;
    let whole = verdict(Kind::Hosts, "every host of the plan answered, stayed and is measured", why);
    Some(Verdict { scope: count(journal.plan.hosts.len(), "host"), ..whole })
}

/// Hosts that answered and that no planned case is about, of a run that came as far as its cases: nothing is known of them
/// but their facts. Every test with a pattern that leaves out hosts says so in a note; the whole may still measure them.
fn unused(journal: &Journal) -> Vec<&str> {
    let used: BTreeSet<&str> = journal.cases.iter().flat_map(|case| case.flow.hosts()).map(|host| &**host).collect();
    let answered =
        journal.plan.hosts.iter().map(|host| host.name.as_str()).filter(|host| !journal.lost.contains_key(*host));
    answered.filter(|host| !used.is_empty() && !used.contains(host)).collect()
}

/// A cluster that a run leaves changed is not a pass, whatever it measured.
fn configured(journal: &Journal) -> Option<Verdict> {
    let test = journal.configured.as_ref().filter(|_| journal.end != JournalEnd::Running)?;
    let why = match &journal.unconfigured {
        Some(failure) => format!("`{test}`: {failure}"),
        None => format!("`undo` of `{test}` was not reached; `railgauge run --resume` runs it, or run it by hand"),
    };
    let left = verdict(Kind::Configure, "what a test configured was taken back", why);
    Some(Verdict { status: Status::Fail, ..left })
}

fn end(journal: &Journal) -> Option<Verdict> {
    let why = match &journal.end {
        JournalEnd::Finished => return None,
        JournalEnd::Interrupted => "it was interrupted; `railgauge run --resume` goes on with it".to_owned(),
        JournalEnd::Prevented(why) => format!("it could not go on: {why}; `railgauge run --resume` goes on with it"),
        JournalEnd::Broken => {
            "its records stop without an end: it broke off; `railgauge run --resume` goes on with it".to_owned()
        }
        JournalEnd::Running => "it is still running; wait for its end and draw the report again".to_owned(),
    };
    Some(verdict(Kind::Run, "the run came to its end", why))
}

fn records(journal: &Journal) -> Option<Verdict> {
    let why = [damage(journal), contradictions(journal)].into_iter().flatten().collect::<Vec<_>>();
    (!why.is_empty()).then(|| verdict(Kind::Records, "the records are as they were written", why.join("; ")))
}

/// Lines that are whole and that no run writes so: an agent's lie or a hand's work, and nothing says which of them is right.
fn contradictions(journal: &Journal) -> Option<String> {
    let first = journal.contradictions.first()?;
    let all = count(journal.contradictions.len(), "line");
    let (line, what) = (first.line, &first.what);
    Some(format!("{all} of records.jsonl cannot be right, first line {line}: {what}; run the plan again"))
}

fn damage(journal: &Journal) -> Option<String> {
    let damage: Vec<_> = journal.unhealed().collect();
    let first = damage.first()?;
    // What is there twice lacks nothing that could be measured again.
    let remedy = if damage.iter().all(|damage| damage.numbers.is_some()) {
        "`railgauge run --resume` measures again what is missing"
    } else {
        "lines are there twice or in another order, and `--resume` does not mend that: take an undamaged copy of the file, or \
         run the plan again"
    };
    Some(format!(
        "{} of records.jsonl cannot be read, first at line {}: {}; {remedy}",
        count(damage.len(), "place"),
        first.line,
        first.what
    ))
}

fn verdict(kind: Kind, demand: &str, reason: String) -> Verdict {
    Verdict {
        kind,
        test: NAME.to_owned(),
        key: None,
        demand: demand.to_owned(),
        scope: String::new(),
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
