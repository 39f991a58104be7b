//! Why a run did not pass: a line for each cause, the gravest first. The first is the answer of the run, which the page,
//! the terminal, `verdicts.json`, `status` and messages share.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{Cases, Kind, Trouble, Verdict, Verdicts, not_tested, only_shared};
use crate::{
    case::{NotRun, Objection, State},
    compare::Interleaved,
    reason::{Id, Reason},
    status::Status,
    words::{count, size},
};

/// Reasons that name a component, so that the test does not matter for what to do.
const NAMING: [Id; 6] = [Id::Faulty, Id::FaultyAtTimes, Id::Suspect, Id::Undecided, Id::LinkStandsOut, Id::WrongMemory];

/// Reasons that repeat those of the cases, or that no status follows from.
const BESIDES: [Id; 11] = [
    Id::Incomplete,
    Id::NoneRun,
    Id::FurtherWrongBytes,
    Id::WrongBytes,
    Id::NotMeasured,
    Id::NotTrusted,
    Id::NothingStandsOut,
    Id::OthersKept,
    Id::NotTested,
    Id::LostPackets,
    Id::AcrossRails,
];

/// On the whole run, and listed before single cases.
const WHOLE: [Kind; 4] = [Kind::Run, Kind::Records, Kind::Hosts, Kind::Configure];

/// Reasons of these have their subject.
const APART: [Kind; 2] = [Kind::Preflight, Kind::Soak];

const fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::EveryCase => 0,
        Kind::Parts | Kind::Links => 1,
        Kind::Preflight | Kind::Soak => 2,
        _ => 3,
    }
}

#[derive(Default)]
struct Lines {
    /// Tests and the text that they share.
    all: Vec<(Vec<String>, String)>,
    /// Components that have a line.
    named: BTreeSet<String>,
}

impl Lines {
    fn add(&mut self, tests: Option<String>, text: String) {
        match self.all.iter_mut().find(|(_, known)| *known == text) {
            Some((known, _)) => {
                let new: Vec<String> = tests.into_iter().filter(|test| !known.contains(test)).collect();
                known.extend(new);
            }
            None => self.all.push((tests.into_iter().collect(), text)),
        }
    }
}

impl Verdicts {
    /// At least one line: that of a pass says what passed.
    pub(super) fn cause_lines(&self) -> Vec<String> {
        // The answer of an experiment, unless something is wrong.
        let of_turns = |of: &Interleaved| format!("{} → {}: {}", of.a, of.b, of.comparison.sentence);
        let turns = self.interleaved.iter().map(of_turns);
        if self.status == Status::Pass {
            return turns.chain([self.passed()]).collect();
        }
        let mut lines = Lines::default();
        // A fast wrong answer is worse than a slow right one.
        self.cases(&mut lines, |state| state == State::Wrong);
        self.verdicts(&mut lines, Status::Fail, |_| true);
        let of_limits = |one: &Verdict| one.kind == Kind::Expectation && one.status == Status::Fail && !one.waived;
        if lines.named.is_empty() && self.verdicts.iter().any(of_limits) {
            self.verdicts(&mut lines, Status::Inconclusive, |kind| matches!(kind, Kind::Parts | Kind::Links));
            if lines.named.is_empty() {
                self.unnamed().into_iter().for_each(|text| lines.add(None, text));
            }
        }
        self.verdicts(&mut lines, Status::Inconclusive, |kind| WHOLE.contains(&kind));
        self.cases(&mut lines, |state| state != State::Wrong);
        for status in [Status::Inconclusive, Status::NotRun] {
            self.verdicts(&mut lines, status, |kind| !WHOLE.contains(&kind));
        }
        let mut all: Vec<String> =
            lines.all.into_iter().map(|(tests, text)| prefixed(&tests.join(", "), text)).collect();
        if all.is_empty() {
            let first = self.verdicts.iter().find(|one| one.status == self.status && !one.waived);
            all.push(
                first.map_or_else(|| "nothing was run".to_owned(), |one| prefixed(&one.test, one.reason.to_string())),
            );
        }
        all.splice(1..1, turns);
        all
    }

    fn passed(&self) -> String {
        let untested = not_tested(self.untested.iter().filter(|one| one.may_hide_a_fault()));
        let untested = untested.map_or_else(String::new, |what| format!("; {what}"));
        let passed = match self.verdicts.iter().filter(|verdict| !verdict.waived).count() {
            1 => "the only verdict".to_owned(),
            2 => "both verdicts".to_owned(),
            n => format!("all {n} verdicts"),
        };
        format!("{passed} passed, {} measured{untested}", self.planned())
    }

    fn planned(&self) -> String {
        count(self.cases.planned, "case")
    }

    fn verdicts(&self, lines: &mut Lines, status: Status, kinds: impl Fn(Kind) -> bool) {
        // A suspect may be next to a faulty component.
        let is_own = |one: &Verdict| one.status == status || one.kind == Kind::Parts && one.status > status;
        let own = self.verdicts.iter().filter(|one| is_own(one) && !one.waived && kinds(one.kind));
        let mut own: Vec<&Verdict> = own.filter(|verdict| !self.is_explained(verdict)).collect();
        own.sort_by_key(|verdict| rank(verdict.kind));
        for verdict in own {
            let is_new = |reason: &&Reason| {
                let names = components(reason);
                let is_said = !names.is_empty() && names.iter().all(|name| lines.named.contains(name));
                let is_later = status == Status::Fail && matches!(reason.id, Id::Suspect | Id::Undecided);
                !BESIDES.contains(&reason.id) && !is_said && !is_later
            };
            let is_graver = |id| matches!(id, Id::Faulty | Id::FaultyAtTimes);
            let mut own = verdict.reason.iter().filter(|one| verdict.status == status || !is_graver(one.id));
            let Some(reason) = own.find(is_new) else { continue };
            let more = own.filter(is_new).count();
            let names = components(reason);
            let is_further = matches!(reason.id, Id::Suspect | Id::Undecided) && !lines.named.is_empty();
            let text = match verdict.kind {
                // Next to a component that is named, many that are not decided are a number.
                Kind::Parts if is_further && names.len() > 2 => {
                    format!("{} undecided", count(names.len(), "more component"))
                }
                Kind::Run => format!("{reason}: {} of {} measured", self.cases.measured, self.planned()),
                Kind::Hosts => format!("{reason}{}", self.waiting()),
                kind if APART.contains(&kind) && more > 0 => format!("{reason} (and {more} more)"),
                _ => reason.to_string(),
            };
            let whole = !names.is_empty() || WHOLE.contains(&verdict.kind) || APART.contains(&verdict.kind);
            lines.named.extend(names);
            lines.add((!whole).then(|| verdict.narrowed_test()), text);
        }
    }

    /// Whether all low values of a verdict on components passed a link between switches that has a verdict as grave.
    fn is_explained(&self, verdict: &Verdict) -> bool {
        let has = |one: &Verdict, id| one.reason.iter().any(|reason| reason.id == id);
        let explains = |one: &Verdict| {
            (one.kind, &one.test, one.waived) == (Kind::Links, &verdict.test, false)
                && one.status >= verdict.status
                && has(one, Id::LinkStandsOut)
                && !has(one, Id::LinksUnexplained)
        };
        verdict.kind == Kind::Parts && self.verdicts.iter().any(explains)
    }

    /// Cases that were not run because their host was lost.
    fn waiting(&self) -> String {
        match self.troubles.iter().filter(|trouble| is_of_run(trouble)).count() {
            0 => String::new(),
            n => format!("; {n} of {} not run", self.planned()),
        }
    }

    /// By state and remedy.
    fn cases(&self, lines: &mut Lines, which: impl Fn(State) -> bool) {
        let mut groups: BTreeMap<_, Vec<&Trouble>> = BTreeMap::new();
        for trouble in self.troubles.iter().filter(|trouble| which(trouble.state) && !is_of_run(trouble)) {
            let remedy = trouble.remedy.as_ref().map(|remedy| remedy.id.as_ref());
            groups.entry((Reverse(trouble.state), remedy)).or_default().push(trouble);
        }
        for ((state, _), cases) in groups {
            let Some(first) = cases.first() else { continue };
            let why = first.against.to_string();
            let differs = |one: &&Trouble| one.against != first.against && one.against.to_string() != why;
            let example = if cases.iter().any(differs) { "for example " } else { "" };
            let place = match first.against.0.first() {
                Some(Objection::Failed { failure, .. }) if failure.host.is_some() => String::new(),
                _ => format!("{}, {}: ", first.link, size(first.size_bytes)),
            };
            let shared = only_shared(cases.iter().map(|case| case.hosts.as_slice()));
            let shared = shared.map_or_else(String::new, |host| format!(", all with {host}"));
            let none = if self.cases.measured_any() { "" } else { "no case was measured: " };
            let many = format!("{none}{} of {} {}", cases.len(), self.planned(), state.0.of_cases());
            lines.add(None, format!("{many}{shared}: {example}{place}{why}"));
        }
    }

    /// Why a failed run names no component.
    fn unnamed(&self) -> Option<String> {
        let few = self.localisation.iter().find_map(|test| Some((test, test.too_few?)));
        let of_parts = || self.verdicts.iter().filter(|verdict| verdict.kind == Kind::Parts);
        let why = match few {
            Some((test, [got, needed])) => {
                let what = if test.counted == "part" { "component" } else { "host" };
                format!("needs {}, has {got}", count(needed, what))
            }
            None if of_parts().next().is_none() => return None,
            None if of_parts().all(|verdict| verdict.status == Status::Pass) => {
                "none is worse than its peers".to_owned()
            }
            None => return None,
        };
        Some(format!("no faulty component identified: {why}"))
    }
}

fn prefixed(front: &str, text: String) -> String {
    if front.is_empty() { text } else { format!("{front}: {text}") }
}

/// Names of components in a reason; empty for one that names none.
fn components(reason: &Reason) -> Vec<String> {
    if !NAMING.contains(&reason.id) {
        return Vec::new();
    }
    match reason.json("parts") {
        serde_json::Value::Array(names) => names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
        _ => reason.subject.clone(),
    }
}

/// Whether a verdict on the whole run says why a case was not run.
fn is_of_run(trouble: &Trouble) -> bool {
    use NotRun::{BrokeOff, HostLost, Interrupted, Prevented, StillRunning};
    let of_run = |one: &Objection| {
        matches!(one, Objection::NotRun(HostLost { .. } | Prevented { .. } | Interrupted | BrokeOff | StillRunning))
    };
    trouble.against.0.iter().any(of_run)
}

impl Cases {
    pub const fn measured_any(&self) -> bool {
        self.measured + self.short + self.unverified + self.contaminated + self.impossible + self.wrong > 0
    }
}
