//! Faults of a named host during its cases: a throttled GPU, or packets lost by TCP, look like a slow fabric.

use super::Localisation;
use crate::{
    case::{CaseResult, lost_at},
    gpus,
};

/// Only for parts that are one host or its NIC and have no note yet. `results` are those of the tests, `more` those of
/// the further cases, whose numbers follow theirs.
pub(super) fn note(all: &mut [Localisation], results: &[CaseResult<'_>], more: &[CaseResult<'_>]) {
    let case = |id: u64| {
        let at = usize::try_from(id).ok()?;
        results.get(at).or_else(|| more.get(at.checked_sub(results.len())?))
    };
    let lossy = |found: &Localisation| {
        found.lossy.iter().map(|part| (found.test.clone(), part.hosts.clone())).collect::<Vec<_>>()
    };
    let lossy: Vec<(String, Vec<String>)> = all.iter().flat_map(lossy).collect();
    for Localisation { test, suspects, .. } in all {
        for part in suspects.iter_mut().filter(|part| part.meanwhile.is_none()) {
            let [host] = part.hosts.as_slice() else { continue };
            let cases: Vec<&CaseResult<'_>> = part.cases.iter().filter_map(|id| case(*id)).collect();
            (part.meanwhile, part.meanwhile_remedy) = gpus::told(cases.iter().copied(), host).unzip();
            let is_lossy = lossy.iter().any(|(of, hosts)| of == test && *hosts == part.hosts);
            part.meanwhile = part.meanwhile.take().or_else(|| lost_at(&cases).filter(|_| is_lossy));
        }
    }
}
