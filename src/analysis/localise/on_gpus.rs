//! What was bad about the GPUs of a named host while the cases ran that speak of it: a host or NIC with a throttled GPU looks like a slow
//! fabric.

use super::Localisation;
use crate::analysis::{gpus, results::CaseResult};

/// Tells it of every part that is one host or a NIC of one, and of which nothing is told yet. `results` are those of the tests, `more`
/// those of the further cases, whose numbers go on behind them.
pub(super) fn tell(all: &mut [Localisation], results: &[CaseResult<'_>], more: &[CaseResult<'_>]) {
    let case = |id: u64| {
        let at = usize::try_from(id).ok()?;
        results.get(at).or_else(|| more.get(at.checked_sub(results.len())?))
    };
    for part in all.iter_mut().flat_map(|found| &mut found.suspects).filter(|part| part.gpus.is_none()) {
        if let [host] = part.hosts.as_slice() {
            let cases = part.cases.iter().filter_map(|id| case(*id));
            (part.gpus, part.gpus_remedy) = gpus::told(cases, host).unzip();
        }
    }
}
