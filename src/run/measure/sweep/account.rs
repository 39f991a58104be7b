use railgauge_model::journal::event::{GpuDuring, Sample};
use railgauge_wire::{Answer, CaseAccount, Checked, Failure, Nanoseconds, Stage};

use super::super::{
    super::{failures::unexpected, links::Link},
    counters,
    steps::{both, corrupted, sane},
};

pub(super) fn of(host: &str, answer: Answer) -> Result<CaseAccount, Failure> {
    match answer {
        Answer::Case(account) => Ok(*account),
        other => Err(unexpected(host, Stage::Measure, &other)),
    }
}

/// When something of a failed pass completed last, on the initiator's clock.
pub(super) fn progress(initiator: &Result<CaseAccount, Failure>) -> Option<Nanoseconds> {
    initiator.as_ref().ok().filter(|account| account.failure.is_some()).and_then(|account| account.progress)
}

/// Both ends' results as one sample. `pulls`: the bytes go to the initiator. `waited` is the time in which the case must have happened.
/// Wrong bytes before a failure have precedence.
pub(super) fn sample(
    link: &Link,
    pulls: bool,
    accounts: (Result<CaseAccount, Failure>, Result<CaseAccount, Failure>),
    waited: Nanoseconds,
) -> Result<Sample, Failure> {
    // Only the receiving end can verify the bytes.
    let sink = if pulls { &accounts.0 } else { &accounts.1 };
    let checked = sink.as_ref().map(|account| account.checked).unwrap_or_default();
    whole(link, accounts, waited, checked).map_err(|failure| corrupted(checked, failure))
}

fn whole(
    link: &Link,
    accounts: (Result<CaseAccount, Failure>, Result<CaseAccount, Failure>),
    waited: Nanoseconds,
    checked: Checked,
) -> Result<Sample, Failure> {
    let complete = |account: Result<CaseAccount, Failure>, host: &str| {
        let mut account = account?;
        account.failure.take().map_or(Ok(account), |failure| Err(failure.at(host)))
    };
    let (from, to) = both(complete(accounts.0, link.from.host()), complete(accounts.1, link.to.host()))?;
    Ok(Sample {
        initiator: sane(link, from.measured)?,
        responder: to.measured,
        checked,
        from_counters: counters::difference(&from.counters.0, &from.counters.1),
        to_counters: counters::difference(&to.counters.0, &to.counters.1),
        waited: Some(waited),
        spent: Some(from.spent.into()),
        gpus: [GpuDuring::of(link.from.host(), from.gpus), GpuDuring::of(link.to.host(), to.gpus)].concat().into(),
        ..Sample::default()
    })
}
