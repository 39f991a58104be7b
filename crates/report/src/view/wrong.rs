//! The remedy for wrong bytes, which is the most urgent: a fast wrong answer is worse than a slow right one.

use std::collections::BTreeSet;

use super::{culprits::Pointer, help, troubles::folded};
use railgauge_analysis::{
    case::State,
    status::Status,
    verdict::{Kind, Trouble, Verdicts, only_shared},
    words::count,
};
use railgauge_wire::remedy::{self, Remedy};

/// For wrong bytes in a test or in the soak; `None` without any.
pub(super) fn step(verdicts: &Verdicts) -> Option<Pointer> {
    of_cases(&verdicts.troubles).or_else(|| of_soak(verdicts))
}

fn of_cases(troubles: &[Trouble]) -> Option<Pointer> {
    // The GPU of a memory test is a part, and reported as one.
    let is_of_part = |remedy: &Remedy| remedy.id == remedy::GPU_MEMORY_ERRORS.id;
    let wrong = troubles.iter().filter(|trouble| trouble.state == State::Wrong);
    let wrong: Vec<&Trouble> = wrong.filter(|trouble| !trouble.remedy.as_ref().is_some_and(is_of_part)).collect();
    let remedy = wrong.first()?.remedy.as_ref()?;
    let hosts = || wrong.iter().map(|trouble| trouble.hosts.as_slice());
    let any: BTreeSet<String> = hosts().flatten().cloned().collect();
    let place = match only_shared(hosts()) {
        Some(host) => format!(", all of them with {host}"),
        None => format!(" {} {}", if any.len() == 1 { "at" } else { "between" }, folded(any)),
    };
    let about = format!("{} (wrong bytes){place}", count(wrong.len(), "case"));
    Some(Pointer { about, text: help(remedy), anchor: "troubles" })
}

fn of_soak(verdicts: &Verdicts) -> Option<Pointer> {
    let soak = verdicts.verdicts.iter().filter(|verdict| verdict.kind == Kind::Soak && verdict.status == Status::Fail);
    let mut steps = soak.filter_map(|verdict| verdict.reason.step());
    let (reason, remedy) = steps.find(|(_, remedy)| remedy.id == remedy::WRONG_BYTES.id)?;
    Some(Pointer { about: reason.to_string(), text: help(remedy), anchor: "soak" })
}
