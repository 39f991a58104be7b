//! Joins the tries of a journal to the outcome of every planned case.

mod excused;
mod mismatch;
mod tries;

use std::collections::{BTreeMap, HashSet};

use railgauge_model::{journal::event::Case, plan::model::Test};
use railgauge_wire::{Failure, Kind};

pub use mismatch::Mismatch;

use super::{
    case::{Against, CaseResult, Doubt, Few, NotRun, Scattered, State, without_remedy},
    journal::{Journal, JournalEnd, Try, measures},
    parallel, plausible, together, truth,
};

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

/// Cases and repeats that a resumed run does not measure again: those with a trusted value, and wrong bytes, which a second try must
/// not hide.
///
/// # Errors
/// As [`results`].
pub fn settled(journal: &Journal) -> Result<HashSet<(u64, u32)>, Mismatch> {
    let mut all = results(journal)?;
    all.extend(further(journal));
    all.retain(|result| result.state.is_trusted() || result.state == State::Wrong);
    let repeats =
        |result: &CaseResult<'_>| result.samples.iter().map(|(repeat, _)| (result.case.id, *repeat)).collect();
    Ok(all.iter().flat_map::<Vec<_>, _>(repeats).collect())
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

fn doubts(journal: &Journal, result: &CaseResult<'_>) -> (Vec<Doubt>, Vec<String>) {
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
        let (doubts, ends) = truth::doubts(case, test.bidirectional, link, ends, sample, &loads);
        found.extend(doubts);
        uncounted.extend(ends);
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
