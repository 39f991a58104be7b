//! The outcome of every planned case: its samples, and objections to them.

mod against;
mod excused;
mod few;
mod loss;
mod mismatch;
mod objection;
mod of_test;
mod tries;
mod wrong;

use std::collections::BTreeMap;

use jiff::Timestamp;
use railgauge_model::{
    journal::event::{Case, LinkRecord, Sample, Started},
    plan::model::{Grouping, Test},
};
use railgauge_wire::{
    failure::{Failure, Kind},
    remedy::Remedy,
    terms::Algorithm,
    unit::Bytes,
};
use serde::{Deserialize, Serialize};

pub use super::truth::Uncounted;
pub use few::Few;
pub(super) use loss::lost_at;
pub use mismatch::Mismatch;
pub use objection::{NotRun, Objection, Objections, OtherLink, OtherThan};
pub(crate) use of_test::{measures, measures_on_any};
pub use wrong::{WrongBytes, WrongRank};

pub use against::Against;
use against::Aside;

use super::{
    journal::{Journal, JournalEnd, Try},
    parallel, plausible,
    together::{self, Part, Scattered},
    truth::{self, Doubt},
    words::{count, lane, link_name, neighbour_words, value_words},
};

#[derive(Debug, Clone)]
pub struct CaseResult<'a> {
    pub case: &'a Case,
    pub test: &'a Test,
    pub repeats: u32,
    pub link: Option<&'a LinkRecord>,
    /// In the order of the journal.
    pub tries: Few<&'a Try>,
    pub samples: Few<(u32, &'a Sample)>,
    pub failure: Option<&'a Failure>,
    /// `None` for flows that share no NIC.
    pub part: Option<Box<Part>>,
    against: Aside<'a>,
    pub state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum State {
    #[serde(rename = "measured")]
    Measured,
    #[serde(rename = "too few repeats")]
    Short,
    /// Verification was requested, but no bytes were compared.
    #[serde(rename = "not verified")]
    Unverified,
    #[serde(rename = "contaminated")]
    Contaminated,
    #[serde(rename = "impossible value")]
    Impossible,
    #[serde(rename = "no value")]
    NoValue,
    #[serde(rename = "not run")]
    NotRun,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "wrong bytes")]
    Wrong,
}

impl State {
    /// Whether the value of such a case may be compared with others.
    pub const fn is_trusted(self) -> bool {
        matches!(self, Self::Measured | Self::Short)
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Short => "too few repeats",
            Self::Unverified => "not verified",
            Self::Contaminated => "contaminated",
            Self::Impossible => "impossible value",
            Self::NoValue => "no value",
            Self::NotRun => "not run",
            Self::Failed => "failed",
            Self::Wrong => "wrong bytes",
        }
    }

    /// After a number of cases: `28 with an impossible value`.
    pub const fn of_cases(self) -> &'static str {
        match self {
            Self::Short => "with too few repeats",
            Self::Impossible => "with an impossible value",
            Self::NoValue => "without a value",
            Self::Wrong => "with wrong bytes",
            Self::Measured | Self::Unverified | Self::Contaminated | Self::NotRun | Self::Failed => self.word(),
        }
    }
}

impl CaseResult<'_> {
    /// Start of the first try; `None` if not tried, or at an impossible time, which the judgement of the sample reports.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.tries.iter().map(|attempt| &attempt.started_at).min().and_then(Started::time)
    }

    pub fn checked(&self) -> (u64, u64) {
        self.samples.iter().fold((0_u64, 0_u64), |(verified, wrong), (_, sample)| {
            // An agent may claim any number, which must not overflow.
            (verified.saturating_add(sample.checked.verified.0), wrong.saturating_add(sample.checked.wrong.0))
        })
    }

    pub(super) fn attempt(&self, sample: &Sample) -> Option<&Try> {
        self.tries.iter().copied().find(|attempt| attempt.result.as_ref().is_ok_and(|own| std::ptr::eq(own, sample)))
    }

    pub fn link_name(&self) -> String {
        link_name(&self.case.flow, self.case.cell.transport)
    }

    /// Distinguishes cases of the same test, size and link: `4 queue pairs`, `bf16, NCCL_ALGO=Ring`. Has only what the
    /// test varies, so it is empty for most.
    pub fn variant(&self) -> String {
        let words = [Some(self.variant_at_any_value()), self.case.cell.applied.as_deref().map(value_words)];
        words.into_iter().flatten().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
    }

    pub fn variant_at_any_value(&self) -> String {
        let mut words = self.variant_in_any_environment();
        let env = self.test.collective.as_ref().filter(|collective| collective.env.len() > 1);
        if let Some(manner) = env.and(self.case.cell.manner.as_ref()) {
            let env = manner.env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
            words += if words.is_empty() { "" } else { ", " };
            words += if env.is_empty() { "environment as it is" } else { &env };
        }
        words
    }

    pub fn variant_in_any_environment(&self) -> String {
        let (test, cell) = (self.test, &self.case.cell);
        let mut words = Vec::new();
        if test.qps.len() > 1 {
            words.push(count(cell.qps as usize, lane(cell.transport)));
        }
        if test.beside.is_some() {
            words.push(neighbour_words(cell.neighbours));
        }
        if let Some((collective, manner)) = test.collective.as_ref().zip(cell.manner.as_ref()) {
            if !matches!(collective.grouping, Grouping::All | Grouping::Pairs) {
                words.push(format!("{} ranks", self.case.flow.ranks()));
            }
            if collective.datatypes.len() > 1 {
                words.push(manner.datatype.to_string());
            }
            if let Some(reduction) = manner.reduction.filter(|_| collective.reductions.len() > 1) {
                words.push(reduction.to_string());
            }
            if collective.algorithms.len() > 1 {
                words.push(manner.algorithm.map_or("automatic algorithm", Algorithm::word).to_owned());
            }
        }
        words.join(", ")
    }

    pub fn error(&self) -> Option<String> {
        self.against().words()
    }

    /// Empty if nothing is wrong.
    pub fn against(&self) -> Objections {
        let mut found = Vec::new();
        let (_, wrong) = self.checked();
        if wrong > 0 {
            found.push(Objection::WrongBytes(self.wrong_bytes(wrong)));
        }
        if let Some(failure) = self.failure.filter(|_| !self.failures.is_empty()) {
            found.push(failed(failure, self.case));
        }
        found.extend(self.not_run.clone().map(Objection::NotRun));
        let missing = self.repeats as usize - self.samples.len().min(self.repeats as usize);
        if missing > 0 && !self.samples.is_empty() {
            found.push(Objection::RepeatsMissing { missing, of: self.repeats as usize });
        }
        if self.test.verify && !self.samples.is_empty() && self.samples.iter().any(|(_, s)| self.is_unverified(s)) {
            let verified = self.samples.iter().map(|(_, sample)| sample.checked.verified).min();
            found.push(Objection::Unverified { verified_bytes: verified.unwrap_or_default() });
        }
        found.extend(self.lacks.absent.iter().cloned().map(Objection::Absent));
        found.extend(self.lacks.impossible.iter().cloned().map(Objection::Impossible));
        found.extend(self.contradiction().map(Objection::OtherLink));
        found.extend(self.doubts.iter().cloned().map(Objection::Contaminated));
        Objections(found)
    }

    /// Whether bytes were not compared: for a pair, one message per queue pair or stream; for a group, what its ranks
    /// hold; both before and after the window.
    fn is_unverified(&self, sample: &Sample) -> bool {
        let (cell, flow) = (&self.case.cell, &self.case.flow);
        let least = match flow.members.is_empty() {
            true => cell.size.max(Bytes(1)).saturating_mul(2 * u64::from(cell.qps.max(1))),
            false => plausible::verified(cell.op, cell.size, flow.ranks()),
        };
        sample.checked.verified < least
    }

    pub fn remedy(&self) -> Option<Remedy> {
        let of_doubts = || self.doubts.iter().find_map(Doubt::remedy);
        self.failure.and_then(Failure::told_remedy).or_else(of_doubts)
    }

    /// What carried the bytes differs from the plan.
    fn contradiction(&self) -> Option<OtherLink> {
        let own = self.samples.iter().filter_map(|(_, sample)| self.attempt(sample)?.link.as_deref());
        own.chain(self.link.filter(|_| !self.samples.is_empty())).find_map(|link| self.contradicts(link))
    }

    fn contradicts(&self, link: &LinkRecord) -> Option<OtherLink> {
        let host = self.case.flow.from.host.to_string();
        let carrier = link.transport;
        if carrier.transport() != self.case.cell.transport {
            let wanted = self.case.cell.transport;
            return Some(OtherLink { host, what: OtherThan::Transport { wanted, carrier } });
        }
        if let Some(wanted) = self.test.collective.as_ref().and_then(|collective| collective.carried_by)
            && wanted != link.transport
        {
            return Some(OtherLink { host, what: OtherThan::Carrier { wanted, carrier } });
        }
        let wanted = self.test.gpu_path.filter(|wanted| *wanted != link.gpu_path)?;
        Some(OtherLink { host, what: OtherThan::GpuPath { wanted, gpu_path: link.gpu_path } })
    }
}

/// With the host in front, `gpu02: join: …`; both ends, or all ranks, if it is unknown.
fn failed(failure: &Failure, case: &Case) -> Objection {
    let ends = match case.flow.members.is_empty() {
        true => format!("{} → {}", case.flow.from.host, case.flow.to.host),
        false => case.flow.name(),
    };
    Objection::Failed { failure: Box::new(without_remedy(failure)), ends }
}

fn without_remedy(failure: &Failure) -> Failure {
    Failure { remedy: None, ..failure.clone() }
}

pub fn of_host(host: &str, failure: &Failure) -> String {
    without_remedy(failure).at(host).to_string()
}

/// In the order of the cases.
///
/// # Errors
/// The journal names a test, case or repeat that is not in the plan or the journal: they do not belong together.
pub fn results<'a>(journal: &'a Journal) -> Result<Vec<CaseResult<'a>>, Mismatch> {
    let known = (journal.cases.len() + journal.further.len()) as u64;
    if let Some(attempt) = journal.tries.iter().find(|attempt| attempt.case >= known) {
        return Err(Mismatch::UnplannedCase { case: attempt.case });
    }
    let tests = tests(journal);
    if let Some(case) = journal.cases.iter().find(|case| !tests.contains_key(&*case.test)) {
        return Err(Mismatch::UnknownTest { test: case.test.to_string() });
    }
    if let Some(repeat) = unasked_repeat(journal, &tests) {
        return Err(repeat);
    }
    let is_of = |case: &Case, test: &Test| measures(case, test) && case.cell.only.is_none();
    let foreign = |case: &&Case| tests.get(&*case.test).is_some_and(|test| !is_of(case, test));
    if let Some(case) = journal.cases.iter().find(foreign) {
        return Err(Mismatch::ForeignCase { case: case.id, test: case.test.to_string() });
    }
    Ok(joined(journal, &journal.cases, |test| test.repeats))
}

/// A repeat beyond the plan: further cases are measured once, others as often as their test says.
fn unasked_repeat(journal: &Journal, tests: &BTreeMap<&str, &Test>) -> Option<Mismatch> {
    let repeats = |case: u64| {
        let planned = usize::try_from(case).ok().and_then(|at| journal.cases.get(at));
        planned.map_or(Some(1), |case| Some(tests.get(&*case.test)?.repeats))
    };
    let attempt =
        journal.tries.iter().find(|attempt| repeats(attempt.case).is_some_and(|all| attempt.repeat >= all))?;
    let (case, repeat) = (attempt.case, u64::from(attempt.repeat) + 1);
    Some(Mismatch::UnaskedRepeat { case, repeat, repeats: repeats(case).unwrap_or_default() })
}

/// In the order of the cases. They are not part of any test.
pub fn further(journal: &Journal) -> Vec<CaseResult<'_>> {
    joined(journal, &journal.further, |_| 1)
}

fn tests(journal: &Journal) -> BTreeMap<&str, &Test> {
    journal.plan.tests.iter().map(|test| (test.name.as_str(), test)).collect()
}

fn joined<'a>(journal: &'a Journal, cases: &'a [Case], repeats: fn(&Test) -> u32) -> Vec<CaseResult<'a>> {
    let tests = tests(journal);
    let tries = tries::by_case(journal, cases);
    let cases = cases.iter().zip(tries);
    let mut results: Vec<CaseResult<'a>> = cases
        .filter_map(|(case, tries)| {
            let test = *tests.get(&*case.test)?;
            Some(result(journal, case, test, repeats(test), tries))
        })
        .collect();
    together::join(&mut results, &journal.hosts);
    parallel::each(&mut results, |result| {
        let (doubts, uncounted) = doubts(journal, result);
        result.change(|against| (against.doubts, against.uncounted) = (doubts, uncounted));
        excused::excuse(result);
        let lacks = plausible::lacks(result, &journal.hosts);
        result.change(|against| against.lacks = lacks);
        result.state = state(result);
    });
    together::judge_victims(&mut results);
    results
}

fn result<'a>(
    journal: &'a Journal,
    case: &'a Case,
    test: &'a Test,
    repeats: u32,
    tries: Few<&'a Try>,
) -> CaseResult<'a> {
    let counted = tries::that_count(&tries);
    // The link of the values; a later failed try may have opened another one.
    let measured = counted.iter().rev().filter(|attempt| attempt.result.is_ok());
    let link = measured.chain(tries.iter().rev()).find_map(|attempt| attempt.link.as_deref());
    let sample = |attempt: &&'a Try| Some((attempt.repeat, attempt.result.as_ref().ok()?));
    let failure = |attempt: &&'a Try| Some((attempt.repeat, attempt.result.as_ref().err()?));
    let samples: Few<_> = counted.iter().filter_map(sample).collect();
    let failures: Vec<_> = counted.iter().filter_map(failure).collect();
    let corrupt = failures.iter().find(|(_, failure)| failure.kind == Kind::Corruption);
    let mut failure = corrupt.or(failures.first()).map(|(_, failure)| *failure);
    let mut not_run = None;
    if failures.is_empty() && samples.len() < repeats as usize {
        let (why, cause) = why_not_run(journal, case);
        (not_run, failure) = (Some(why), cause);
    }
    CaseResult {
        case,
        test,
        repeats,
        link,
        tries,
        samples,
        failure,
        part: None,
        against: Against { failures, not_run, ..Against::default() }.into(),
        state: State::Measured,
    }
}

fn doubts(journal: &Journal, result: &CaseResult<'_>) -> (Vec<Doubt>, Vec<Uncounted>) {
    let mut uncounted = Vec::new();
    let CaseResult { case, test, link, samples, part, .. } = result;
    let facts = |host: &str| journal.hosts.get(host).map(|host| &host.facts);
    let ends = (facts(&case.flow.from.host), facts(&case.flow.to.host));
    let mut found = match link {
        Some(link) if !samples.is_empty() => truth::known_before(case, link, ends, test.knobs.mtu.is_some()),
        _ => Vec::new(),
    };
    for (repeat, sample) in samples {
        let Some(link) = link else {
            found.extend(truth::noted(sample));
            continue;
        };
        let pass = part.as_ref().and_then(|part| part.passes.get(repeat));
        let loads = match (part, pass) {
            (Some(_), Some(pass)) => {
                found.extend(pass.doubts.iter().cloned().map(Doubt::Round));
                (pass.load(&case.flow.from), pass.load(&case.flow.to))
            }
            (Some(_), None) => {
                found.push(Doubt::Round(Scattered::NoTimeOfSample));
                continue;
            }
            (None, _) => truth::alone(case, link, sample),
        };
        found.extend(truth::doubts(case, test.bidirectional, link, ends, sample, &loads));
        uncounted.extend(truth::uncounted(case, test.bidirectional, link, ends, sample, &loads));
    }
    plausible::in_order(&mut found);
    uncounted.sort();
    uncounted.dedup();
    (found, uncounted)
}

fn state(result: &CaseResult<'_>) -> State {
    let samples = || result.samples.iter().map(|(_, sample)| sample);
    if result.checked().1 > 0 || result.failures.iter().any(|(_, failure)| failure.kind == Kind::Corruption) {
        State::Wrong
    } else if result.samples.is_empty() {
        if result.failures.is_empty() { State::NotRun } else { State::Failed }
    } else if !result.lacks.absent.is_empty() {
        State::NoValue
    } else if !result.lacks.impossible.is_empty() {
        State::Impossible
    } else if !result.doubts.is_empty() || result.contradiction().is_some() {
        State::Contaminated
    } else if result.test.verify && samples().any(|sample| result.is_unverified(sample)) {
        State::Unverified
    } else if result.samples.len() < result.repeats as usize {
        State::Short
    } else {
        State::Measured
    }
}

fn why_not_run<'a>(journal: &'a Journal, case: &Case) -> (NotRun, Option<&'a Failure>) {
    // A host that never answered is to blame before one that was lost later.
    let mut ends: Vec<&str> = case.flow.hosts().into_iter().map(|host| &**host).collect();
    ends.sort_by_key(|host| journal.hosts.contains_key(*host));
    if let Some((host, failure)) = ends.into_iter().find_map(|host| Some((host, journal.lost.get(host)?))) {
        let told = Box::new(without_remedy(failure).at(host));
        return (NotRun::HostLost { host: host.to_owned(), failure: told }, Some(failure));
    }
    let why = match &journal.end {
        JournalEnd::Prevented { why, .. } => return (NotRun::Prevented { cause: why.clone() }, None),
        JournalEnd::Interrupted => NotRun::Interrupted,
        JournalEnd::Broken => NotRun::BrokeOff,
        JournalEnd::Running => NotRun::StillRunning,
        JournalEnd::Finished if journal.plan.at_most.is_some() => NotRun::TimeOver,
        JournalEnd::Finished => NotRun::NoOutcome,
    };
    let damaged = journal.unhealed().next().map(|damage| NotRun::Damaged { line: damage.line });
    (damaged.unwrap_or(why), None)
}
