//! The state of a cluster or a host for a monitoring system: one state and one line.
//!
//! States and codes are those of the Monitoring Plugins guidelines (Nagios, Icinga, Sensu): 0 OK, 1 warning, 2 critical, 3 unknown;
//! performance data follows a `|` as `label=value[unit];warning;critical`.

use std::{fmt::Write, path::Path};

use jiff::{SignedDuration, Timestamp};
use railgauge_analysis::{
    status::Status,
    trend::{self, Reported},
    verdict::{Cases, Component, Judged, Kind, Offender, PREFLIGHT, Tally, not_tested},
    words::count,
};
use railgauge_model::{border::text::path_text, plan::model::Alert};
use railgauge_report::index::Outcome;
use serde::Serialize;

use super::{
    judged::NightError,
    nights::{Nights, of_each_plan},
    states::{Condition, Known, OfTest, Said},
    summary::{AHEAD, Document, Summary, Verdict},
};

/// Components of a kind in the text.
pub const NAMED: usize = 4;

/// The gravest last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Ok,
    Warning,
    /// No result, an outdated result, an incomplete run, or damaged records.
    #[default]
    Unknown,
    Critical,
}

impl State {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Standing {
    pub version: u32,
    pub run_id: String,
    pub plan: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub state: State,
    /// Why, in one sentence; also used in messages.
    pub text: String,
    /// Its clauses.
    #[serde(skip)]
    pub said: Vec<String>,
    /// When the newest run's last record was written, UTC, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    pub age_seconds: i64,
    /// Oldest run that counts as the last night, in seconds.
    pub max_age_seconds: i64,
    pub failed: usize,
    pub inconclusive: usize,
    pub cases: Cases,
    /// Components that are faulty, undecided, or not measured for long, according to any run; for a host, only its own.
    pub components: Vec<Known>,
    /// Why failed verdicts make no component faulty, and other remarks.
    pub remarks: Vec<String>,
}

impl Standing {
    pub fn of(nights: &Nights, max_age: SignedDuration, now: Timestamp) -> Self {
        let newest = nights.newest();
        let (mut run, (mut state, mut text)) = (newest, of_run(nights, newest, max_age, now));
        // A run of a part does not cover the rest.
        if let Some(whole) = nights.whole(max_age, now) {
            let (other, words) = of_run(nights, whole, max_age, now);
            if other > state {
                let words = format!("{words} (in {}; since then a part of the plan was run)", whole.row.run_id);
                (run, state, text) = (whole, other, words);
            }
        }
        let with = |condition| nights.states.with(condition);
        // The answer of a run that found a component is about that component.
        let mut open = with(Condition::Faulty).chain(with(Condition::Undecided));
        let is_said = state != State::Unknown && open.any(|one| run.row.faulty.contains(&one.name));
        let (mut said, mut components) = (Vec::new(), Vec::new());
        for (condition, least) in [
            (Condition::Faulty, State::Critical),
            (Condition::Undecided, State::Warning),
            (Condition::Unknown, State::Ok),
        ] {
            let known: Vec<&Known> = with(condition).collect();
            if !known.is_empty() {
                state = state.max(least);
            }
            said.extend(sentences(condition, &known));
            components.extend(known.into_iter().cloned());
        }
        // Only a failed verdict makes a state critical without a faulty component, and an unknown state answers nothing.
        let is_open = |condition| with(condition).next().is_some();
        let first = !is_open(Condition::Faulty) && (state == State::Critical || !is_open(Condition::Undecided));
        if !is_said {
            said.insert(if first { 0 } else { said.len() }, text);
        }
        let measured = newest.said.iter().flat_map(|said| &said.components);
        let lost = |run: &Summary| format!("{} changes no state: {}", path_text(&run.directory), run.row.sentence);
        let remarks = measured.filter_map(|of| of.note.clone()).chain(nights.lost().take(NAMED).map(lost)).collect();
        Self { components, remarks, ..Self::bare(nights, state, said, max_age, now) }
    }

    /// The state of one host by its newest measurements, whatever later runs measured.
    /// The gravest state of a host in the runs of each plan; unknown only if no plan knows more. `None` without a run.
    pub fn of_host_in_all(word: &str, host: &str, max_age: SignedDuration, now: Timestamp) -> Option<Self> {
        let all = of_each_plan(word, now);
        let each = all.iter().map(|nights| Self::of_host(nights, host, max_age, now));
        each.max_by_key(|one| (one.state != State::Unknown, one.state))
    }

    pub fn of_host(nights: &Nights, host: &str, max_age: SignedDuration, now: Timestamp) -> Self {
        let Some(known) = nights.states.host(host) else {
            let waived = nights.states.waived.iter().find(|one| one.kind == "host" && one.hosts == [host]);
            let text = match waived {
                Some(one) => format!("the newest plan waives it; last measured on {}", one.measured.date()),
                None => "no run measured a host of this name".to_owned(),
            };
            return Self {
                host: Some(host.to_owned()),
                ..Self::bare(nights, State::Unknown, vec![text], max_age, now)
            };
        };
        let Said { run_id, .. } = &known.measured;
        let last = format!("measured on {} in {run_id}", known.measured.date());
        let why = known.why.join("; ");
        let (state, text) = match known.state {
            Condition::Faulty => (State::Critical, format!("{why} (faulty {}; last {last})", since(known))),
            Condition::Undecided => (State::Warning, format!("{why} (undecided {}; last {last})", since(known))),
            Condition::Unknown => (State::Unknown, format!("not known to be good: last {last}")),
            Condition::Good => {
                let said = nights.run(run_id).and_then(|run| run.said.as_ref());
                let untested =
                    said.and_then(|said| not_tested(said.untested.iter().filter(|one| one.may_hide_a_fault())));
                let untested = untested.map_or_else(String::new, |what| format!("; {what}"));
                (State::Ok, format!("good: {last}{untested}"))
            }
        };
        let components = vec![known.clone()];
        Self { host: Some(host.to_owned()), components, ..Self::bare(nights, state, vec![text], max_age, now) }
    }

    pub fn faulty_hosts(&self) -> impl Iterator<Item = &Known> {
        self.components.iter().filter(|one| one.kind == "host" && one.state == Condition::Faulty)
    }

    pub fn of_nothing(error: &NightError, host: Option<&str>, max_age: SignedDuration) -> Self {
        Self {
            version: 2,
            host: host.map(str::to_owned),
            text: error.to_string(),
            said: vec![error.to_string()],
            max_age_seconds: max_age.as_secs(),
            ..Self::default()
        }
    }

    fn bare(nights: &Nights, state: State, said: Vec<String>, max_age: SignedDuration, now: Timestamp) -> Self {
        let run = nights.newest();
        let with = |status| run.said.as_ref().map_or(0, |said| said.with(status).count());
        Self {
            version: 2,
            run_id: name(run),
            plan: nights.plan.clone(),
            state,
            text: said.join("; "),
            said,
            ended: Some(run.ended.to_string()),
            age_seconds: now.duration_since(run.ended).as_secs(),
            max_age_seconds: max_age.as_secs(),
            failed: with(Status::Fail),
            inconclusive: with(Status::Inconclusive) + with(Status::NotRun),
            cases: run.said.as_ref().map(|said| said.cases).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The line of a monitoring plugin. The only bar is before the performance data.
    pub fn plugin_line(&self) -> String {
        let of = match &self.host {
            None => self.plan.clone(),
            Some(host) if self.plan.is_empty() => host.clone(),
            Some(host) => format!("{host} in {}", self.plan),
        };
        let of = if of.is_empty() { of } else { of + ": " };
        let mut line = plain(&format!("RAILGAUGE {} - {of}{}", self.state.word(), self.text));
        if self.ended.is_none() {
            return line;
        }
        let Cases { planned, measured, .. } = self.cases;
        let (age, most) = (self.age_seconds.max(0), self.max_age_seconds);
        let (failed, inconclusive) = (self.failed, self.inconclusive);
        let _ = write!(
            line,
            " | age={age}s;;{most} failed={failed};;0 inconclusive={inconclusive};0 measured={measured} planned={planned}"
        );
        line
    }
}

/// `host gpu07 faulty since 2026-11-29 in nightly-20261129: −49.7 % against good pairs in write-bw`, and how many more there are.
fn sentences(condition: Condition, all: &[&Known]) -> Vec<String> {
    let more = Some(all.len().saturating_sub(NAMED)).filter(|more| *more > 0);
    let named = all.iter().take(NAMED).map(|one| one.sentence());
    named.chain(more.map(|more| format!("{more} more {}", condition.word()))).collect()
}

impl Known {
    /// Name, place, state and why.
    pub fn sentence(&self) -> String {
        let place = self.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let (name, word) = (&self.name, self.state.word());
        let state = match self.state {
            Condition::Unknown => format!("{word}, last measured on {}", self.measured.date()),
            _ => format!("{word} {}", since(self)),
        };
        let why = if self.why.is_empty() { String::new() } else { format!(": {}", self.why.join(", ")) };
        format!("{name}{place} {}{why}", state.trim_end())
    }
}

/// The directory names a run whose records do not.
fn name(run: &Summary) -> String {
    let directory = || run.directory.file_name().map(|name| path_text(Path::new(name)).to_string());
    Some(run.row.run_id.clone()).filter(|id| !id.is_empty()).or_else(directory).unwrap_or_default()
}

/// `since 2026-11-29 in nightly-20261129`.
fn since(known: &Known) -> String {
    known.since.as_ref().map_or_else(String::new, |said| format!("since {} in {}", said.date(), said.run_id))
}

/// Replaces characters that are special in a plugin's line. A command in it must not become a different one, so a bar becomes a similar
/// character.
fn plain(text: &str) -> String {
    let plain = |c: char| match c {
        '|' => '\u{ff5c}',
        c if c.is_control() => ' ',
        c => c,
    };
    text.chars().map(plain).collect()
}

fn of_run(nights: &Nights, run: &Summary, max_age: SignedDuration, now: Timestamp) -> (State, String) {
    let sentence = || run.row.sentence.clone();
    let Some(said) = &run.said else { return (State::Unknown, sentence()) };
    if let Some(why) = unknown(run, said, max_age, now) {
        return (State::Unknown, why);
    }
    let outcome = match run.row.outcome {
        Outcome::Fail if said.with(Status::Fail).all(|one| is_settled(nights, said, one)) => {
            let is_judged = said.with(Status::Inconclusive).chain(said.with(Status::NotRun)).next().is_none();
            if is_judged && said.with(Status::Fail).all(is_complete) { Outcome::Pass } else { Outcome::Inconclusive }
        }
        outcome => outcome,
    };
    let warning = |why: String| (State::Warning, format!("{}; {why}", sentence()));
    let Alert { nights: needed, of, .. } = nights.states.alert;
    match outcome {
        Outcome::Pass => missing(nights, said).map_or_else(|| (State::Ok, sentence()), warning),
        Outcome::Fail if alerts(nights, said) => (State::Critical, sentence()),
        Outcome::Fail => warning(format!("an alert needs {needed} of {of} nights")),
        Outcome::Inconclusive | Outcome::NotRun => (State::Warning, sentence()),
        _ => (State::Unknown, sentence()),
    }
}

/// Whether a verdict that failed would have been one on all its cases without those that broke it.
fn is_complete(failed: &Verdict) -> bool {
    let Tally { missing, unlimited, doubtful, .. } = failed.tally;
    missing + unlimited == 0 && (failed.kind != Kind::Expectation || doubtful == 0)
}

/// Whether everything that made a verdict of a run fail was later measured as good.
fn is_settled(nights: &Nights, said: &Document, failed: &Verdict) -> bool {
    let of_key = failed.key.as_ref().filter(|_| failed.kind == Kind::Preflight);
    let test = of_key.map_or_else(|| failed.test.clone(), |key| format!("{PREFLIGHT} {key}"));
    let parts = said.components.iter().filter(|of| of.test == test).flat_map(|of| &of.components);
    let bad: Vec<&Component> = parts.filter(|one| one.state > Some(Judged::Good)).collect();
    let is_good = |one: &&Component| {
        let mut known = nights.states.all.iter().filter(|known| known.kind == one.kind && known.name == one.name);
        // Good in another test alone, because its state in this one is too old, settles nothing.
        let in_test = |of: &OfTest| of.test != test || of.state == Condition::Good;
        known.any(|known| known.state == Condition::Good && known.tests.iter().all(in_test))
    };
    let is_theirs = |case: &Offender| {
        bad.iter().any(|one| one.hosts.contains(&case.src_host) || one.hosts.contains(&case.dst_host))
    };
    let explains = match failed.kind {
        Kind::Parts | Kind::Preflight => true,
        Kind::Expectation => failed.offenders.len() == failed.tally.violating && failed.offenders.iter().all(is_theirs),
        _ => false,
    };
    explains && !bad.is_empty() && bad.iter().all(is_good)
}

/// What a run of a part of the plan omitted and no other run shows; `None` for nothing.
fn missing(nights: &Nights, said: &Document) -> Option<String> {
    let part = said.subset.as_ref()?;
    let hosts = nights.states.hosts.iter().filter(|host| host.state != Condition::Unknown).count();
    let lacks = |known: usize, all: usize, what: &str| {
        (known < all).then(|| format!("{} of {} not known to be good or faulty", all - known, count(all, what)))
    };
    lacks(hosts, part.of_hosts, "host").or_else(|| lacks(nights.states.tests(), part.of_tests.len(), "test"))
}

/// Whether a verdict failed on enough of the last nights for an alert. Verdicts on parts belong to the components.
fn alerts(nights: &Nights, said: &Document) -> bool {
    let alert = nights.states.alert;
    let last = || nights.judged().take(alert.of as usize).filter_map(|run| run.said.as_ref());
    let failed = |said: &Document, one: &Verdict| {
        said.with(Status::Fail)
            .any(|other| (other.kind, &other.test, &other.demand) == (one.kind, &one.test, &one.demand))
    };
    let enough = |one: &Verdict| last().filter(|said| failed(said, one)).count() >= alert.nights as usize;
    alert.nights <= 1 || said.with(Status::Fail).any(|one| one.kind != Kind::Parts && enough(one))
}

fn unknown(run: &Summary, said: &Document, max_age: SignedDuration, now: Timestamp) -> Option<String> {
    let age = now.duration_since(run.ended);
    let whole = said.verdicts.iter().find(|verdict| matches!(verdict.kind, Kind::Run | Kind::Records));
    if let Some(verdict) = whole {
        return Some(verdict.reason.clone());
    }
    if age < -AHEAD {
        return Some(format!("the run ended at {}, which is in the future: set the clocks", run.ended));
    }
    (age > max_age).then(|| format!("the newest result is of {}, older than {max_age:#}", run.ended))
}

pub fn reported(word: &str, now: Timestamp) -> Vec<Reported> {
    let of_plan = |nights: Nights| {
        let standing = Standing::of(&nights, SignedDuration::MAX, now);
        let component = |(one, state): (&Known, &'static str)| trend::Component {
            name: one.name.clone(),
            state,
            since: one.since.as_ref().map(Said::date).unwrap_or_default(),
            measured: one.measured.date(),
        };
        let others = standing.components.iter().filter(|one| one.kind != "host");
        let counted = nights.states.hosts.iter().chain(others).map(|one| (one, one.state.word()));
        let waived = nights.states.waived.iter().map(|one| (one, "waived"));
        Reported {
            directory: path_text(&nights.newest().directory).to_string(),
            status: match standing.state {
                State::Ok => Status::Pass,
                State::Critical => Status::Fail,
                State::Warning | State::Unknown => Status::Inconclusive,
            },
            components: counted.chain(waived).map(component).collect(),
            sentence: standing.text,
        }
    };
    of_each_plan(word, now).into_iter().map(of_plan).collect()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_command_in_a_plugins_line_stays_one_that_cannot_be_taken_for_another() {
        assert_eq!(plain("`dmesg | grep x`\n"), "`dmesg \u{ff5c} grep x` ");
    }
}
