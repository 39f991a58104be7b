//! The verdict of every test: all its cases were measured as often as planned, undisturbed, and verified. Further cases
//! do not count, except for wrong bytes, which are wrong wherever they arrive.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use railgauge_model::plan::model::Test;
use railgauge_wire::{Bytes, Op, remedy};
use serde_json::json;

use super::{Kind, Tally, Verdict};
use crate::{
    case::{CaseResult, State},
    reason::{Id, Reason, Reasons, Value},
    status::Status,
    words::count,
};

/// `corrupt` are further cases with wrong bytes; `lossy` names the parts that lose packets.
pub(super) fn judge(
    test: &Test,
    results: &[&CaseResult<'_>],
    corrupt: &[&CaseResult<'_>],
    lossy: Vec<String>,
) -> Verdict {
    let with = |state| results.iter().filter(move |result| result.state == state);
    // A plan may switch verification off; then a pass needs another demand.
    let unverifiable = !test.verify && test.expect.is_empty();
    let demand = if test.verify || unverifiable {
        "every case is measured and its data verified"
    } else {
        "every case is measured (the plan switches verification off)"
    };
    let of = results.len();
    let bad: Vec<&CaseResult<'_>> = results.iter().copied().filter(|one| one.state != State::Measured).collect();
    let mut reason = Reasons::default();
    reason.extend(memory(with(State::Wrong).chain(corrupt)));
    let status = if let Some(first) = corrupt.first() {
        reason.push(blamed(Id::FurtherWrongBytes, first).with("cases", corrupt.len()));
        reason.extend(incomplete(of, &bad));
        Status::Fail
    } else if results.is_empty() {
        reason.push(Reason::new(Id::NonePlanned));
        Status::Inconclusive
    } else if with(State::Wrong).next().is_some() {
        reason.extend(incomplete(of, &bad));
        Status::Fail
    } else if let (Some(worst), true) = (worst(&bad), with(State::NotRun).count() == of) {
        reason.push(blamed(Id::NoneRun, worst).with("of", of));
        Status::NotRun
    } else if !bad.is_empty() {
        reason.extend(incomplete(of, &bad));
        Status::Inconclusive
    } else if unverifiable {
        reason.push(Reason::new(Id::VerificationOff).with("of", of));
        Status::Inconclusive
    } else {
        let verified = results.iter().map(|result| result.checked().0).fold(0, u64::saturating_add);
        let verified = test.verify.then_some(Value::Amount(Bytes(verified)));
        reason.push(Reason::new(Id::Measured).with("of", of).with("verified_bytes", verified));
        Status::Pass
    };
    reason.extend(lost(results, lossy));
    let missing = [State::Failed, State::NotRun, State::NoValue].map(|state| with(state).count()).iter().sum();
    let measured = results.iter().filter(|result| !result.samples.is_empty() && result.state != State::NoValue);
    let compared = with(State::Measured).chain(with(State::Wrong));
    Verdict {
        compared: compared.map(|result| (result.case.id, result.state == State::Wrong)).collect(),
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

/// Losses that are not an objection, or whose place is known; `None` without any.
fn lost(results: &[&CaseResult<'_>], parts: Vec<String>) -> Option<Reason> {
    let counts = |result: &&&CaseResult<'_>| result.doubts.is_empty() || !parts.is_empty();
    let lossy = || results.iter().filter(counts).filter_map(|one| Some((one.loss()?, one)));
    let ((_, doubt), first) = lossy().max_by(|((a, _), _), ((b, _), _)| a.total_cmp(b))?;
    let reason = Reason::new(Id::LostPackets).case(first).with("error", doubt.to_string());
    Some(reason.with("cases", lossy().count()).with("parts", parts))
}

/// GPUs with wrong memory, each once, with their hosts; `None` without any.
fn memory<'r>(wrong: impl Iterator<Item = &'r &'r CaseResult<'r>>) -> Option<Reason> {
    let tests = wrong.filter(|result| result.case.cell.op == Op::GpuMemoryTest);
    let parts: BTreeSet<_> = tests.map(|result| &result.case.flow.to).map(|port| (&port.host, port.rail)).collect();
    let names: Vec<String> = parts.iter().map(|(host, gpu)| format!("GPU {gpu} of {host}")).collect();
    let remedy = remedy::GPU_MEMORY_ERRORS.into();
    let reason = Reason::new(Id::WrongMemory).all(names).hosts(parts.iter().map(|(host, _)| host));
    (!parts.is_empty()).then(|| reason.remedy(Some(remedy)))
}

/// `None` without any.
fn incomplete(of: usize, bad: &[&CaseResult<'_>]) -> Option<Reason> {
    let mut states: BTreeMap<Reverse<State>, usize> = BTreeMap::new();
    bad.iter().for_each(|result| *states.entry(Reverse(result.state)).or_default() += 1);
    let words: Vec<String> =
        states.iter().map(|(Reverse(state), cases)| format!("{cases} {}", state.of_cases())).collect();
    let fields = states.iter().map(|(Reverse(state), cases)| json!({ "state": state, "cases": cases })).collect();
    let reason = blamed(Id::Incomplete, worst(bad)?).with("cases", bad.len()).with("of", of);
    Some(reason.with("states", Value::Data(fields, words.join(", "))))
}

/// The first if there are several.
fn worst<'r>(bad: &[&'r CaseResult<'r>]) -> Option<&'r CaseResult<'r>> {
    bad.iter().copied().reduce(|worst, one| if one.state > worst.state { one } else { worst })
}

fn blamed(id: Id, result: &CaseResult<'_>) -> Reason {
    Reason::new(id).case(result).with("error", result.error().unwrap_or_default())
}
