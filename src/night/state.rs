//! What a monitoring system is told of a run: one state and one line.
//!
//! States and codes are those of the Monitoring Plugins guidelines (Nagios, Icinga, Sensu): 0 OK, 1 warning, 2 critical, 3 unknown;
//! performance data follows a `|` as `label=value[unit];warning;critical`.

use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    blame::{Blame, Blamed, blame, failed},
    judged::{Judged, NightError},
    newest::Runs,
};
use crate::analysis::{
    journal::JournalEnd,
    verdict::{Cases, Kind, Status, not_tested},
};

/// How many runs are looked at for one that measured a host.
const LOOKED_BACK: usize = 60;
/// By how much the clock of the machine that asks may be behind the one that measured.
const AHEAD: SignedDuration = SignedDuration::from_mins(10);

/// The state of a monitoring plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Everything passed.
    Ok,
    /// Something could not be judged, or was left out, and nothing failed.
    Warning,
    /// Something failed.
    Critical,
    /// Nothing is known: no result, a result that is too old, a run that did not come to its end, or damaged records.
    Unknown,
}

impl State {
    /// The word of a plugin's line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The exit code of a plugin.
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }
}

/// How a run, or one of its hosts, stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// Version of this document.
    pub version: u32,
    /// Identity of the run.
    pub run_id: String,
    /// Name of the plan.
    pub plan: String,
    /// The host that was asked about; absent where it was the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The state.
    pub state: State,
    /// Why, in one sentence; made for a message as well.
    pub text: String,
    /// When the run's last record was written, UTC, RFC 3339; absent where there is no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// How long ago that was, in seconds.
    pub age_seconds: i64,
    /// The oldest result that counts, in seconds.
    pub max_age_seconds: i64,
    /// Failed verdicts that count.
    pub failed: usize,
    /// Verdicts that count and cannot be given.
    pub inconclusive: usize,
    /// Cases by what became of them.
    pub cases: Cases,
    /// Hosts that failed verdicts blame by themselves; empty unless the state is critical.
    pub blamed: Vec<Blamed>,
    /// What speaks against so many hosts that it blames none, and what else is worth knowing.
    pub remarks: Vec<String>,
}

impl Standing {
    /// How a run stands at the time `now`.
    pub fn of(run: &Judged, max_age: SignedDuration, now: Timestamp) -> Self {
        let Blame { hosts, remarks } = blame(run);
        let (state, text) = match unknown(run, max_age, now) {
            Some(why) => (State::Unknown, why),
            // A part that passed says nothing of the rest.
            None => {
                let is_part = run.verdicts.subset.is_some() && run.verdicts.status == Status::Pass;
                let state = if is_part { State::Warning } else { of_status(run.verdicts.status) };
                (state, run.verdicts.sentence.clone())
            }
        };
        // What is not certain names nobody.
        let blamed = if state == State::Critical { hosts } else { Vec::new() };
        Self { blamed, remarks, ..Self::bare(run, state, text, max_age, now) }
    }

    /// How one host of the newest run's plan stands. The newest run that has judged the host decides: a host that was bad and then did
    /// not answer is still bad.
    ///
    /// # Errors
    /// The newest run cannot be read.
    pub fn of_host(runs: &Runs, host: &str, max_age: SignedDuration, now: Timestamp) -> Result<Self, NightError> {
        let newest = runs.newest()?;
        let bare = |state, text| Self { host: Some(host.to_owned()), ..Self::bare(&newest, state, text, max_age, now) };
        if !newest.hosts().any(|known| known == host) {
            return Ok(bare(State::Unknown, "the plan has no host of this name".to_owned()));
        }
        // A night that did not run says nothing of any host.
        if let Some(why) = unknown(&newest, max_age, now) {
            return Ok(bare(State::Unknown, why));
        }
        let blames = |run: &Judged| blame(run).hosts.into_iter().find(|blamed| blamed.host == host);
        let says = |run: &Judged| run.has_judged(host) || (run.end() == &JournalEnd::Finished && blames(run).is_some());
        let Some(run) = runs.readable().take(LOOKED_BACK).find(says) else {
            return Ok(bare(State::Warning, newest.lost(host).unwrap_or_else(|| "no run measured it".to_owned())));
        };
        let verdicts = &run.verdicts;
        let is_newest = verdicts.run_id == newest.verdicts.run_id;
        if let Some(found) = blames(&run) {
            let since = match is_newest {
                true => String::new(),
                false => format!(" (in {}; no later run measured it)", verdicts.run_id),
            };
            let text = found.why.join("; ") + &since;
            return Ok(Self { blamed: vec![found], ..bare(State::Critical, text) });
        }
        if !is_newest && !newest.has_judged(host) && verdicts.subset.is_none() {
            let lost = newest.lost(host);
            return Ok(bare(State::Warning, lost.unwrap_or_else(|| "the newest run did not measure it".to_owned())));
        }
        let (state, text) = match verdicts.status {
            Status::Pass => {
                let untested = not_tested(verdicts.untested.iter().filter(|one| one.may_hide_a_fault()));
                let untested = untested.map_or_else(String::new, |what| format!("; {what}"));
                (State::Ok, format!("nothing speaks against it{untested}"))
            }
            Status::Fail => (
                State::Warning,
                format!("the run failed, and no failed verdict blames this host by itself. {}", verdicts.sentence),
            ),
            Status::Inconclusive | Status::NotRun => (State::Warning, verdicts.sentence.clone()),
        };
        // What decides may be a run of a part of the plan, and newer than the newest of the whole.
        let of = if is_newest { String::new() } else { format!(" (in {})", verdicts.run_id) };
        Ok(bare(state, text + &of))
    }

    /// What is told where there is no run that can be read.
    pub fn of_nothing(error: &NightError, host: Option<&str>, max_age: SignedDuration) -> Self {
        Self {
            version: 1,
            run_id: String::new(),
            plan: String::new(),
            host: host.map(str::to_owned),
            state: State::Unknown,
            text: error.to_string(),
            ended: None,
            age_seconds: 0,
            max_age_seconds: max_age.as_secs(),
            failed: 0,
            inconclusive: 0,
            cases: Cases::default(),
            blamed: Vec::new(),
            remarks: Vec::new(),
        }
    }

    fn bare(run: &Judged, state: State, text: String, max_age: SignedDuration, now: Timestamp) -> Self {
        let verdicts = &run.verdicts;
        Self {
            version: 1,
            run_id: verdicts.run_id.clone(),
            plan: verdicts.plan.clone(),
            host: None,
            state,
            text,
            ended: Some(run.ended.to_string()),
            age_seconds: now.duration_since(run.ended).as_secs(),
            max_age_seconds: max_age.as_secs(),
            failed: failed(run).count(),
            inconclusive: verdicts.with(Status::Inconclusive) + verdicts.with(Status::NotRun),
            cases: verdicts.cases,
            blamed: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// The line of a monitoring plugin. It is one line, and only the bar before the performance data is one.
    pub fn plugin_line(&self) -> String {
        let of = match &self.host {
            None => self.plan.clone(),
            // Where no run can be read its plan is not known.
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
        // Never fails: it writes to a String.
        let _ = write!(
            line,
            " | age={age}s;;{most} failed={failed};;0 inconclusive={inconclusive};0 measured={measured} planned={planned}"
        );
        line
    }
}

/// Text without what a plugin's line gives a meaning. A command in it must not become another one: its bar becomes one that is none.
fn plain(text: &str) -> String {
    let plain = |c: char| match c {
        '|' => '\u{ff5c}',
        c if c.is_control() => ' ',
        c => c,
    };
    text.chars().map(plain).collect()
}

const fn of_status(status: Status) -> State {
    match status {
        Status::Pass => State::Ok,
        Status::Inconclusive | Status::NotRun => State::Warning,
        Status::Fail => State::Critical,
    }
}

/// Why a result says nothing of now.
fn unknown(run: &Judged, max_age: SignedDuration, now: Timestamp) -> Option<String> {
    let age = now.duration_since(run.ended);
    // What would make any of its verdicts another one.
    let mut whole = run.verdicts.verdicts.iter().filter(|verdict| matches!(verdict.kind, Kind::Run | Kind::Records));
    if let Some(verdict) = whole.next() {
        return Some(verdict.reason.to_string());
    }
    if age < -AHEAD {
        return Some(format!("the run ended at {}, which is in the future: set the clocks", run.ended));
    }
    (age > max_age).then(|| format!("the newest result is of {}, older than {}", run.ended, spoken(max_age)))
}

/// A length of time in hours or smaller.
fn spoken(length: SignedDuration) -> String {
    let seconds = length.as_secs();
    match seconds {
        s if s % 3600 == 0 => format!("{} h", s / 3600),
        s if s % 60 == 0 => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_command_in_a_plugins_line_stays_one_that_cannot_be_taken_for_another() {
        assert_eq!(plain("`dmesg | grep x`\n"), "`dmesg \u{ff5c} grep x` ");
    }
}
