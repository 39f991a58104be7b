//! The verdict every test has: all its cases were measured as often as planned, undisturbed, and their data verified. Cases
//! that were measured beside it to settle a suspect are no part of it, but for wrong bytes: those are wrong wherever they arrive.

use std::collections::BTreeSet;

use railgauge_model::plan::model::Test;
use railgauge_wire::terms::Op;

use super::{
    Kind, Status, Tally, Verdict,
    reason::{Among, Blamed, MemoryPart, OfCases, Place, Reason},
};
use crate::analysis::{
    results::{CaseResult, State},
    words::count,
};

/// Judges all cases of a test; `corrupt` are its further cases with wrong bytes, `lossy` names the parts at which packets are lost.
pub(super) fn judge(
    test: &Test,
    results: &[&CaseResult<'_>],
    corrupt: &[&CaseResult<'_>],
    lossy: Vec<String>,
) -> Verdict {
    let with = |state| results.iter().filter(move |result| result.state == state);
    // A plan may switch verification off; then only somebody who demanded something else gets a pass without it.
    let unverifiable = !test.verify && test.expect.is_empty();
    let demand = if test.verify || unverifiable {
        "every case is measured and its data verified"
    } else {
        "every case is measured (the plan switches verification off)"
    };
    let of = results.len();
    let bad: Vec<&CaseResult<'_>> = results.iter().copied().filter(|one| one.state != State::Measured).collect();
    let mut reason = Reason::default();
    let wrong_memory = memory(with(State::Wrong).chain(corrupt));
    if !wrong_memory.is_empty() {
        reason.push(OfCases::WrongMemory { parts: wrong_memory });
    }
    let status = if let Some(first) = corrupt.first() {
        reason.push(OfCases::FurtherWrongBytes { cases: corrupt.len(), first: blamed(first) });
        reason.extend(short(of, &bad));
        Status::Fail
    } else if results.is_empty() {
        reason.push(OfCases::NonePlanned);
        Status::Inconclusive
    } else if with(State::Wrong).next().is_some() {
        reason.extend(short(of, &bad));
        Status::Fail
    } else if let (Some(gravest), true) = (gravest(&bad), with(State::NotRun).count() == of) {
        reason.push(OfCases::NoneRun { of, gravest });
        Status::NotRun
    } else if !bad.is_empty() {
        reason.extend(short(of, &bad));
        Status::Inconclusive
    } else if unverifiable {
        reason.push(OfCases::VerificationOff { of });
        Status::Inconclusive
    } else {
        let verified = results.iter().map(|result| result.checked().0).fold(0, u64::saturating_add);
        reason.push(OfCases::Measured { of, verified_bytes: test.verify.then_some(verified) });
        Status::Pass
    };
    reason.extend(lost(results, lossy));
    let missing = [State::Failed, State::NotRun, State::NoValue].map(|state| with(state).count()).iter().sum();
    let measured = results.iter().filter(|result| !result.samples.is_empty() && result.state != State::NoValue);
    Verdict {
        scope: count(of, "case"),
        tally: Tally {
            in_scope: of + corrupt.len(),
            judged: with(State::Measured).count(),
            violating: with(State::Wrong).count() + corrupt.len(),
            doubtful: measured.filter(|r| !matches!(r.state, State::Measured | State::Wrong)).count(),
            missing,
            ..Tally::default()
        },
        ..Verdict::new(Kind::EveryCase, &test.name, demand, status, reason)
    }
}

/// The losses that do not speak against a value, or whose place is known; `None` without any.
fn lost(results: &[&CaseResult<'_>], parts: Vec<String>) -> Option<OfCases> {
    let counts = |result: &&&CaseResult<'_>| result.doubts.is_empty() || !parts.is_empty();
    let lossy = || results.iter().filter(counts).filter_map(|one| Some((one.loss()?, one)));
    let ((_, doubt), first) = lossy().max_by(|((a, _), _), ((b, _), _)| a.total_cmp(b))?;
    let gravest = Blamed { place: Place::of_case(first), error: doubt.to_string() };
    Some(OfCases::LostPackets { cases: lossy().count(), parts, gravest })
}

/// The GPUs whose memory was tested and is wrong, each once.
fn memory<'r>(wrong: impl Iterator<Item = &'r &'r CaseResult<'r>>) -> Vec<MemoryPart> {
    let tests = wrong.filter(|result| result.case.cell.op == Op::GpuMemoryTest);
    let part = |result: &&CaseResult<'_>| {
        let port = &result.case.flow.to;
        MemoryPart { host: port.host.to_string(), gpu: port.rail }
    };
    tests.map(part).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The cases that are not as the test wants them; `None` without any.
fn short(of: usize, bad: &[&CaseResult<'_>]) -> Option<OfCases> {
    let order = [
        State::Wrong,
        State::Failed,
        State::NotRun,
        State::NoValue,
        State::Impossible,
        State::Contaminated,
        State::Unverified,
        State::Short,
    ];
    let among = |state| Among { state, cases: bad.iter().filter(|result| result.state == state).count() };
    let states = order.into_iter().map(among).filter(|among| among.cases > 0).collect();
    Some(OfCases::Short { cases: bad.len(), of, states, gravest: gravest(bad)? })
}

/// The worst of them, the first if there are several.
fn gravest(bad: &[&CaseResult<'_>]) -> Option<Blamed> {
    bad.iter().copied().reduce(|worst, one| if one.state > worst.state { one } else { worst }).map(blamed)
}

fn blamed(result: &CaseResult<'_>) -> Blamed {
    Blamed { place: Place::of_case(result), error: result.error().unwrap_or_default() }
}
