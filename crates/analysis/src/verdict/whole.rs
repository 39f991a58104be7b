//! The verdicts on the run as a whole: on an unfinished one, because the rest may have changed any other verdict; on damaged records, for
//! the same reason; on lost hosts, even without a test; and on a test's configuration that was not undone.

use std::collections::BTreeSet;

use railgauge_wire::{Failure, remedy};

use super::{Kind, Verdict};
use crate::{
    journal::{Journal, JournalEnd, Loss},
    reason::{Id, Reason, Reasons},
    status::Status,
    words::count,
};

pub const NAME: &str = "run";

pub(super) fn judge(journal: &Journal) -> Vec<Verdict> {
    [end(journal), records(journal), hosts(journal), configured(journal)].into_iter().flatten().collect()
}

/// `cli::exit` has the numbers of all commands.
pub(super) const fn exit_code(journal: &Journal, status: Status) -> Option<u8> {
    match journal.end {
        JournalEnd::Finished => Some(status.exit_code()),
        JournalEnd::Interrupted => Some(130),
        JournalEnd::Prevented { .. } => Some(4),
        JournalEnd::Broken | JournalEnd::Running => None,
    }
}

/// A host that did not answer is reported even if no test uses it: the user expects every host of the plan to be there.
fn hosts(journal: &Journal) -> Option<Verdict> {
    let mut reason = Reasons::default();
    if let Some(first) = journal.lost.values().next() {
        reason.push(lost(Id::Lost, journal.lost.keys(), first));
    }
    let came_back = came_back(journal);
    let known = |host: &str| journal.hosts.contains_key(host) || journal.lost.contains_key(host);
    let all = journal.plan.hosts.iter().map(|host| &host.name);
    let silent: Vec<&String> = all.filter(|host| !known(host)).collect();
    for (id, hosts) in [(Id::Silent, silent), (Id::Unused, unused(journal))] {
        if !hosts.is_empty() {
            reason.push(Reason::new(id).hosts(hosts));
        }
    }
    let is_whole = reason.is_empty() && came_back.iter().all(|reason| reason.id == Id::CameBack);
    reason.extend(came_back);
    if reason.is_empty() {
        return None;
    }
    let (demand, status) = match is_whole {
        true => ("every host of the plan answered, is there at the end and is measured", Status::Pass),
        false => ("every host of the plan answered, stayed and is measured", Status::Inconclusive),
    };
    let whole = verdict(Kind::Hosts, demand, reason);
    Some(Verdict { scope: count(journal.plan.hosts.len(), "host"), status, ..whole })
}

/// With the reason of the first loss.
fn lost<'h>(id: Id, hosts: impl IntoIterator<Item = &'h String>, failure: &Failure) -> Reason {
    let reason = Reason::new(id).hosts(hosts);
    let several = reason.hosts.len();
    reason.with("several", Some(several).filter(|n| *n > 1)).with("one", several == 1).failed(failure)
}

/// Hosts that were lost and came back: their missing tests are measured again, but not what they missed of a soak.
fn came_back(journal: &Journal) -> Vec<Reason> {
    let begin = journal.soaked.iter().map(|part| part.from).min();
    let in_soak = |loss: &Loss| begin.is_some_and(|begin| loss.at.is_none_or(|at| at > begin));
    let (of_soak, of_tests): (Vec<&Loss>, Vec<&Loss>) = journal.came_back().partition(|loss| in_soak(loss));
    let of = |(id, losses): (Id, Vec<&Loss>)| {
        let names: BTreeSet<&String> = losses.iter().map(|loss| &loss.host).collect();
        Some(lost(id, names, &losses.first()?.failure))
    };
    [(Id::MissedSoak, of_soak), (Id::CameBack, of_tests)].into_iter().filter_map(of).collect()
}

/// Hosts that answered and that no planned case uses, in a run that planned its cases: only their facts are known.
/// Every test whose pattern leaves out hosts has a note; together they may still measure all.
fn unused(journal: &Journal) -> Vec<&String> {
    let used: BTreeSet<&str> = journal.cases.iter().flat_map(|case| case.flow.hosts()).map(|host| &**host).collect();
    let answered = journal.plan.hosts.iter().map(|host| &host.name).filter(|host| !journal.lost.contains_key(*host));
    answered.filter(|host| !used.is_empty() && !used.contains(host.as_str())).collect()
}

fn configured(journal: &Journal) -> Option<Verdict> {
    let change = journal.configured.as_ref().filter(|_| journal.end != JournalEnd::Running)?;
    let reason = match &journal.unconfigured {
        Some(failure) => Reason::new(Id::UndoFailed).hosts(&failure.host).failed(failure),
        None => Reason::new(Id::UndoNotReached).remedy(Some(remedy::RESUME_RUN.into())),
    };
    let reason = reason.with("test", &change.test).with("value", change.value.clone());
    let left = verdict(Kind::Configure, "what a test configured was taken back", Reasons::new(reason));
    Some(Verdict { status: Status::Fail, ..left })
}

fn end(journal: &Journal) -> Option<Verdict> {
    let resume = Some(remedy::RESUME_RUN.into());
    let reason = match &journal.end {
        JournalEnd::Finished => return None,
        JournalEnd::Interrupted => Reason::new(Id::Interrupted).remedy(resume),
        JournalEnd::Prevented { why, remedy } => {
            Reason::new(Id::Prevented).with("cause", why).remedy(remedy.clone().or(resume))
        }
        JournalEnd::Broken => Reason::new(Id::BrokeOff).remedy(resume),
        JournalEnd::Running => Reason::new(Id::StillRunning),
    };
    Some(verdict(Kind::Run, "the run finished", Reasons::new(reason)))
}

fn records(journal: &Journal) -> Option<Verdict> {
    let reason: Reasons = [damage(journal), contradictions(journal)].into_iter().flatten().collect();
    (!reason.is_empty()).then(|| verdict(Kind::Records, "the records are as they were written", reason))
}

/// Whole lines that no run writes: an agent's error or a manual edit, and it is unknown which line is right.
fn contradictions(journal: &Journal) -> Option<Reason> {
    let first = journal.contradictions.first()?;
    let reason = Reason::new(Id::Contradictory).with("lines", journal.contradictions.len());
    Some(reason.with("line", first.line).with("cause", &first.what).remedy(Some(remedy::DAMAGED_RECORDS.into())))
}

fn damage(journal: &Journal) -> Option<Reason> {
    let damage: Vec<_> = journal.unhealed().collect();
    let first = damage.first()?;
    // Duplicate lines lack nothing that could be measured again.
    let resumable = damage.iter().all(|damage| damage.numbers.is_some());
    let remedy = if resumable { remedy::RESUME_RUN } else { remedy::DAMAGED_RECORDS };
    let reason = Reason::new(Id::Unreadable).with("places", damage.len());
    Some(reason.with("line", first.line).with("cause", &first.what).remedy(Some(remedy.into())))
}

fn verdict(kind: Kind, demand: &str, reason: Reasons) -> Verdict {
    Verdict::new(kind, NAME, demand, Status::Inconclusive, reason)
}
