//! The verdict every test has: all its cases were measured as often as planned, undisturbed, and their data verified. Cases
//! that were measured beside it to settle a suspect are no part of it, but for wrong bytes: those are wrong wherever they arrive.

use railgauge_model::plan::model::Test;

use super::{Kind, Status, Tally, Verdict};
use crate::analysis::{
    results::{CaseResult, State},
    words::{amount, count, size},
};

/// Judges all cases of a test; `corrupt` are its further cases with wrong bytes.
pub(super) fn judge(test: &Test, results: &[&CaseResult<'_>], corrupt: &[&CaseResult<'_>]) -> Verdict {
    let with = |state| results.iter().filter(move |result| result.state == state);
    // A plan may switch verification off; then only somebody who demanded something else gets a pass without it.
    let unverifiable = !test.verify && test.expect.is_empty();
    let demand = if test.verify || unverifiable {
        "every case is measured and its data verified"
    } else {
        "every case is measured (the plan switches verification off)"
    };
    let total = count(results.len(), "case");
    let bad: Vec<&&CaseResult<'_>> = results.iter().filter(|result| result.state != State::Measured).collect();
    let (status, reason) = if let Some(first) = corrupt.first() {
        let (all, bytes) = (count(corrupt.len(), "further case"), size(first.case.cell.size));
        let error = first.error().unwrap_or_default();
        let beside = if bad.is_empty() { String::new() } else { format!("; {}", summary(&total, &bad)) };
        (Status::Fail, format!("wrong bytes in {all}: {}, {bytes}: {error}{beside}", first.link_name()))
    } else if results.is_empty() {
        (Status::Inconclusive, "no case of this test was planned, so nothing was measured".to_owned())
    } else if with(State::Wrong).next().is_some() {
        (Status::Fail, summary(&total, &bad))
    } else if with(State::NotRun).count() == results.len() {
        (Status::NotRun, format!("none of its {total} was run: {}", cause(&bad)))
    } else if !bad.is_empty() {
        (Status::Inconclusive, summary(&total, &bad))
    } else if unverifiable {
        (Status::Inconclusive, format!("{total} measured, but the plan switches verification off (verify = false)"))
    } else {
        let verified = results.iter().map(|result| result.checked().0).fold(0, u64::saturating_add);
        let amount = amount(verified);
        let verified = if test.verify { format!("; {amount} verified, 0 bytes wrong") } else { String::new() };
        (Status::Pass, format!("{total} measured{verified}"))
    };
    let missing = [State::Failed, State::NotRun, State::NoValue].map(|state| with(state).count()).iter().sum();
    let measured = results.iter().filter(|result| !result.samples.is_empty() && result.state != State::NoValue);
    Verdict {
        kind: Kind::EveryCase,
        waived: false,
        key: None,
        holdings: Vec::new(),
        parts: Vec::new(),
        test: test.name.clone(),
        demand: demand.to_owned(),
        scope: total,
        line: None,
        metric: None,
        unit: None,
        status,
        reason,
        worst: None,
        offenders: Vec::new(),
        tally: Tally {
            in_scope: results.len() + corrupt.len(),
            judged: with(State::Measured).count(),
            violating: with(State::Wrong).count() + corrupt.len(),
            doubtful: measured.filter(|r| !matches!(r.state, State::Measured | State::Wrong)).count(),
            missing,
        },
    }
}

/// `3 of 24 cases short of that: 1 with wrong bytes, 2 failed; the gravest: gpu01:0 → gpu02:0, 64 KiB: …`.
fn summary(total: &str, bad: &[&&CaseResult<'_>]) -> String {
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
    let parts: Vec<String> = order
        .into_iter()
        .filter_map(|state| {
            let n = bad.iter().filter(|result| result.state == state).count();
            (n > 0).then(|| format!("{n} {}", state.of_cases()))
        })
        .collect();
    format!("{} of {total} short of that: {}; the gravest: {}", bad.len(), parts.join(", "), cause(bad))
}

/// The worst of them and what stands against it.
fn cause(bad: &[&&CaseResult<'_>]) -> String {
    let mut worst: Option<&CaseResult<'_>> = None;
    for result in bad {
        if worst.is_none_or(|known| result.state > known.state) {
            worst = Some(result);
        }
    }
    worst.map_or_else(String::new, |result| {
        let bytes = size(result.case.cell.size);
        format!("{}, {bytes}: {}", result.link_name(), result.error().unwrap_or_default())
    })
}
