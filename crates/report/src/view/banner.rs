//! What is below the answer: other causes, the first step, and what was measured.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_analysis::{
    case::State,
    explain::Fit,
    journal::JournalEnd,
    status::Status,
    verdict::{Cases, Kind, Verdict, Verdicts},
};
use railgauge_model::plan::{
    count::{count, was},
    hostlist,
};
use railgauge_preflight::{Held, Severity};
use railgauge_wire::remedy::{self, Entry, Remedy};
use serde::Serialize;

use super::{
    FindingView, Hosts, PartView, Parts, TroubleGroup,
    culprits::{Culprit, Pointer, culprit},
    help,
    switches::SuspectView,
    troubles::folded,
    wrong,
};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Banner {
    /// A line for each cause, the gravest first, which is the answer; for a pass what passed.
    pub causes: Vec<String>,
    /// Section of the page with the evidence of the first; may be empty.
    pub evidence: &'static str,
    /// The first step and its purpose; `None` where nothing is wrong or no remedy is known.
    pub remedy: Option<Pointer>,
    /// `8 of 8 hosts, 28 cases measured, 2 verdicts failed, 1 passed`.
    pub counts: String,
}

pub(super) struct Seen<'v> {
    pub end: &'v JournalEnd,
    pub verdicts: &'v Verdicts,
    /// `None` where nothing was searched.
    pub parts: Option<&'v Parts>,
    pub confirms: bool,
    pub links: &'v [SuspectView],
    pub troubles: &'v [TroubleGroup],
    pub hosts: &'v Hosts,
}

pub(super) fn banner(seen: &Seen<'_>) -> Banner {
    let failed: Vec<Culprit> =
        seen.verdicts.verdicts.iter().filter_map(|verdict| culprit(verdict, seen.hosts)).collect();
    let is_named = seen.parts.is_some_and(|parts| parts.named.iter().any(|part| !part.cleared && !part.waived));
    Banner {
        causes: seen.verdicts.causes.clone(),
        evidence: match failed.first() {
            _ if is_named => "parts",
            Some(one) => one.anchor,
            None => "",
        },
        remedy: Some(seen).filter(|seen| seen.verdicts.status != Status::Pass).and_then(|seen| step(seen, &failed)),
        counts: counts(seen),
    }
}

fn counts(seen: &Seen<'_>) -> String {
    let all = seen.hosts.all.len();
    let there = seen.hosts.all.iter().filter(|host| host.lost.is_empty()).count();
    let Cases { planned, measured, short, unverified, contaminated, impossible, no_value, failed, not_run, wrong } =
        seen.verdicts.cases;
    let states = [
        (wrong, State::Wrong),
        (failed, State::Failed),
        (not_run, State::NotRun),
        (no_value, State::NoValue),
        (impossible, State::Impossible),
        (contaminated, State::Contaminated),
        (unverified, State::Unverified),
        (short, State::Short),
    ];
    let others = states.iter().filter(|(n, _)| *n > 0).map(|(n, state)| format!(", {n} {}", state.of_cases()));
    let cases = match measured == planned {
        true => format!("{} measured", count(planned, "case")),
        false => format!("{measured} of {} measured{}", count(planned, "case"), others.collect::<String>()),
    };
    // Nothing passes before the run has ended.
    let passed = if *seen.end == JournalEnd::Running { "met so far" } else { "passed" };
    let words = [
        (Status::Fail, "failed"),
        (Status::Inconclusive, "inconclusive"),
        (Status::NotRun, "not run"),
        (Status::Pass, passed),
    ];
    let of = words.iter().map(|(status, word)| (seen.verdicts.with(*status), word)).filter(|(n, _)| *n > 0);
    let verdicts: Vec<String> = of.map(|(n, word)| format!("{n} {word}")).collect();
    format!("{there} of {}; {cases}; verdicts: {}", count(all, "host"), verdicts.join(", "))
}

fn lost(seen: &Seen<'_>, failed: &[Culprit]) -> BTreeSet<String> {
    let of_run = seen.hosts.all.iter().filter(|host| !host.lost.is_empty()).map(|host| host.name.clone());
    of_run.chain(failed.iter().flat_map(|one| one.lost.clone())).collect()
}

/// Remedy for lost hosts.
fn of_lost(seen: &Seen<'_>, failed: &[Culprit]) -> Option<Pointer> {
    let lost = lost(seen, failed);
    let all = seen.hosts.all.len();
    // What most of them need.
    let mut needs: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for host in seen.hosts.all.iter().filter(|host| !host.help.is_empty()) {
        needs.entry(&host.help).or_default().insert(host.name.clone());
    }
    let most = needs.into_iter().rev().max_by_key(|(_, hosts)| hosts.len());
    let of_soak = || failed.iter().find(|one| one.is_loss).and_then(|one| Some(one.step.as_ref()?.text.clone()));
    let (text, hosts) = match most {
        // If all worked and were lost, a single host is hardly the cause.
        _ if lost.len() == all && all > 1 && seen.verdicts.cases.measured_any() => {
            (help(&remedy::FAILED_ALIKE.into()), lost)
        }
        Some((help, hosts)) => (help.to_owned(), hosts),
        None => (of_soak()?, lost),
    };
    let who = if hosts.len() == all { format!("all {}", count(all, "host")) } else { folded(hosts.clone()) };
    Some(Pointer { about: format!("{who} {} lost", was(hosts.len())), text, anchor: "where" })
}

/// The first step: about what is known to be bad; otherwise that of the first failed verdict; otherwise, for an
/// unfinished run without a failure, to resume it.
fn step(seen: &Seen<'_>, failed: &[Culprit]) -> Option<Pointer> {
    let Seen { end, verdicts, troubles, hosts, links, .. } = seen;
    let first = verdicts.verdicts.iter().find(|verdict| verdict.status == Status::Fail && !verdict.waived);
    let names_its_own =
        |verdict: &&Verdict| matches!(verdict.kind, Kind::Preflight | Kind::Links | Kind::Soak | Kind::EveryCase);
    let own = first.filter(names_its_own);
    let named = || seen.parts.iter().flat_map(|parts| &parts.named);
    let is_cause = |part: &PartView| own.is_some_and(|verdict| is_cause_of(verdict, part));
    let part = named().find(|part| part.is_bad()).filter(|part| !is_cause(part));
    let of_own = |one: Culprit| if one.is_loss { of_lost(seen, failed) } else { one.step };
    let all_lost = lost(seen, failed).len() == hosts.all.len();
    let unsettled = named().find(|part| part.is_unsettled());
    wrong::step(verdicts)
        .or_else(|| of_lost(seen, failed).filter(|_| all_lost))
        .or_else(|| resume(end).filter(|_| verdicts.status != Status::Fail))
        .or_else(|| of_part(part?, hosts))
        .or_else(|| culprit(own?, hosts).and_then(of_own))
        // A finding on some hosts does not explain a failure of all.
        .or_else(|| broken_by_all(verdicts))
        .or_else(|| of_cause(unsettled, hosts))
        .or_else(|| troubles.iter().find(|group| !group.help.is_empty()).map(of_troubles))
        .or_else(|| of_lost(seen, failed))
        .or_else(|| failed.iter().find_map(|culprit| culprit.step.clone()))
        .or_else(|| resume(end))
        .or_else(|| unsettled.map(|part| of_unsettled(seen, part)))
        .or_else(|| links.first().map(|link| of_link(seen, link)))
        .or_else(|| of_verdicts(verdicts))
        .or_else(|| of_worst_finding(hosts))
}

fn of_unsettled(seen: &Seen<'_>, part: &PartView) -> Pointer {
    let about = format!("{} ({})", part.with_alternatives(), part.standing);
    let remedy = part.remedy.unwrap_or_else(|| again(seen, part.open));
    Pointer { about, text: help(&remedy.into()), anchor: "parts" }
}

fn of_link(seen: &Seen<'_>, link: &SuspectView) -> Pointer {
    let about = format!("{} ({})", link.name, link.standing);
    let remedy = if link.certain { remedy::CHECK_CABLE } else { again(seen, link.open) };
    Pointer { about, text: help(&remedy.into()), anchor: "switches" }
}

fn of_worst_finding(hosts: &Hosts) -> Option<Pointer> {
    let view = hosts.findings.iter().find(|view| view.finding.severity > Severity::Notice)?;
    let found = of_finding(view, None);
    if hosts.unexplained.is_empty() || view.is_failure() {
        return Some(found);
    }
    let about = format!("no preflight finding explains the result; most severe finding: {}", found.about);
    Some(Pointer { about, ..found })
}

/// Whether a failed verdict explains a bad part: its host differs from the plan, or its memory is broken.
fn is_cause_of(verdict: &Verdict, part: &PartView) -> bool {
    let mut unmet = verdict.holdings.iter().filter(|held| held.state == Held::Unmet);
    verdict.kind == Kind::EveryCase || unmet.any(|held| part.hosts.contains(&held.host))
}

/// A finding that may be the cause comes first.
fn of_part(part: &PartView, hosts: &Hosts) -> Option<Pointer> {
    let own = || {
        let about = format!("{} ({})", part.name, part.standing);
        Some(Pointer { about, text: help(&part.remedy?.into()), anchor: "parts" })
    };
    of_cause(Some(part), hosts).or_else(own)
}

/// The first finding that may be the cause of a part; without a part the first that fits.
fn of_cause(part: Option<&PartView>, hosts: &Hosts) -> Option<Pointer> {
    let fits = |one: &&Fit| part.is_none_or(|part| one.parts.iter().any(|name| part.names.contains(name)));
    let mut causes = hosts.findings.iter().filter_map(|view| Some((view, view.explains.iter().find(fits)?)));
    causes.next().map(|(view, how)| of_finding(view, Some(how)))
}

/// A limit that every judged value breaks, so that no single part is the cause. With few values it is unknown whether the others are similar.
fn broken_by_all(verdicts: &Verdicts) -> Option<Pointer> {
    let is_by_all = |verdict: &&Verdict| {
        let remedy = verdict.remedy.as_ref().filter(|remedy| remedy.id == remedy::LIMIT_BROKEN_BY_ALL.id);
        remedy.is_some() && !verdict.waived && verdict.tally.judged > verdict.tally.in_scope / 2
    };
    verdicts.verdicts.iter().find(is_by_all).and_then(of_verdict)
}

/// For a link between switches: an `open` one was measured again.
const fn again(seen: &Seen<'_>, open: bool) -> Entry {
    if open || seen.confirms { remedy::MEASURE_AGAIN } else { remedy::CONFIRM_SUSPECTS }
}

/// How to resume an unfinished run, or what to do before its plan runs again; `None` for a finished one.
fn resume(end: &JournalEnd) -> Option<Pointer> {
    let (about, text) = match end {
        JournalEnd::Finished => return None,
        JournalEnd::Running => (
            "the run is still in progress".to_owned(),
            "wait for its end, then run `railgauge report` again".to_owned(),
        ),
        JournalEnd::Interrupted => ("the run was interrupted".to_owned(), help(&remedy::RESUME_RUN.into())),
        JournalEnd::Broken => ("the run broke off".to_owned(), help(&remedy::RESUME_RUN.into())),
        JournalEnd::Prevented { why, remedy } => {
            let remedy = remedy.clone().unwrap_or_else(|| remedy::RESUME_RUN.into());
            (format!("the run could not continue: {why}"), help(&remedy))
        }
    };
    Some(Pointer { about, text, anchor: "" })
}

/// The first remedy among verdicts as grave as the run; that of a broken limit alone comes last.
fn of_verdicts(verdicts: &Verdicts) -> Option<Pointer> {
    let is_told = matches!(verdicts.status, Status::Fail | Status::Inconclusive);
    let grave = |verdict: &&Verdict| is_told && verdict.status == verdicts.status && !verdict.waived;
    let helped = verdicts.verdicts.iter().filter(grave).filter(|verdict| verdict.remedy.is_some());
    helped.min_by_key(|verdict| verdict.remedy.as_ref().is_some_and(is_of_limit)).and_then(of_verdict)
}

fn is_of_limit(remedy: &Remedy) -> bool {
    let limits = [
        remedy::BROKEN_LIMIT,
        remedy::LIMIT_BROKEN_BY_ALL,
        remedy::LIMIT_BROKEN_BY_GROUPS,
        remedy::LIMIT_BROKEN_BY_ONE,
        remedy::LIMIT_BROKEN_WITHIN_HOSTS,
    ];
    limits.iter().any(|limit| limit.id == remedy.id)
}

fn of_verdict(verdict: &Verdict) -> Option<Pointer> {
    let what = verdict.reason.step().map_or_else(|| verdict.demanded(), |(reason, _)| reason.to_string());
    let text = help(verdict.remedy.as_ref()?);
    Some(Pointer { about: format!("{}: {what}", verdict.test), text, anchor: "verdicts" })
}

fn of_troubles(group: &TroubleGroup) -> Pointer {
    let verb = match group.state {
        State::NotRun | State::Failed => format!(" {}", group.state.word()),
        _ => format!(" ({})", group.state.word()),
    };
    let place = if group.named { "at" } else { "between" };
    let about = format!("{}{verb} {place} {}", count(group.cases, "case"), group.hosts);
    Pointer { about, text: group.help.clone(), anchor: "troubles" }
}

fn of_finding(view: &FindingView, how: Option<&Fit>) -> Pointer {
    let finding = &view.finding;
    let hosts = hostlist::listed(finding.hosts.iter().map(String::as_str));
    let hosts = if hosts.is_empty() { String::new() } else { format!(" ({hosts})") };
    let how = how.map_or_else(String::new, |one| format!(", which may explain {}", one.words));
    Pointer {
        about: format!("{}{hosts}: {}{how}", finding.check, finding.what),
        text: help(&finding.remedy),
        anchor: "configuration",
    }
}
