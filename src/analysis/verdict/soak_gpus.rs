//! The verdict on the GPUs whose memory the flows of a soak used: none has an error. What slows a GPU down is told and fails nothing, as in
//! tests.

use railgauge_wire::remedy::Remedy;

use super::{
    Status, Tally, Verdict,
    reason::{OfSoak, Reason},
    soak::{NAMED, verdict},
};
use crate::analysis::{
    soak::{Soaking, on_gpus::SoakedGpu},
    words::count,
};

/// The verdict; `None` where no record tells of a GPU.
pub(super) fn judge(found: &Soaking) -> Option<Verdict> {
    let (all, failed) = (&found.gpus, &found.gpu_failures);
    if all.is_empty() && failed.is_empty() {
        return None;
    }
    let bad: Vec<&SoakedGpu> = all.iter().filter(|gpu| gpu.error().is_some()).collect();
    let unread: Vec<&SoakedGpu> = all.iter().filter(|gpu| gpu.readings == 0 && gpu.error().is_none()).collect();
    let slowed: Vec<&SoakedGpu> = all.iter().filter(|gpu| gpu.error().is_none() && !gpu.bad.is_empty()).collect();
    let mut reason = Reason::default();
    for (gpu, (error, parts)) in bad.iter().take(NAMED).filter_map(|gpu| Some((gpu, gpu.error()?))) {
        reason.push(OfSoak::SoakGpuError { gpu: gpu.name(), error: error.clone(), parts });
    }
    reason.extend(
        failed
            .iter()
            .take(NAMED)
            .map(|one| OfSoak::SoakGpuFailed { flow: one.flow.clone(), failure: Box::new(one.failure.clone()) }),
    );
    if let Some(more @ 1..) = bad.len().checked_sub(NAMED) {
        reason.push(OfSoak::SoakMoreGpus { gpus: more });
    }
    if let Some(first) = unread.first() {
        reason.push(OfSoak::SoakGpusUnread { gpus: unread.len(), first: first.name(), failure: first.failure.clone() });
    }
    if bad.len() + failed.len() == 0 && unread.len() < all.len() {
        reason.push(OfSoak::SoakGpusWell { gpus: all.len() - unread.len() });
    }
    for gpu in slowed.iter().take(NAMED) {
        reason.extend(gpu.bad.first().map(|(slow, parts)| OfSoak::SoakGpuSlowed {
            gpu: gpu.name(),
            slowed: slow.clone(),
            parts: *parts,
        }));
    }
    let status = match (bad.len() + failed.len(), unread.len()) {
        (0, 0) => Status::Pass,
        (0, _) => Status::Inconclusive,
        _ => Status::Fail,
    };
    let first = bad.first().and_then(|gpu| gpu.error()).map(|(error, _)| error);
    let first = first.or_else(|| slowed.first().and_then(|gpu| gpu.bad.first()).map(|(slow, _)| slow));
    let remedy = first.filter(|_| status != Status::Pass).map(|bad| Remedy::from(bad.remedy()));
    let remedy = remedy.or_else(|| failed.first()?.failure.told_remedy());
    let tally = Tally {
        in_scope: all.len(),
        judged: all.len() - unread.len(),
        violating: bad.len().max(usize::from(!failed.is_empty())).min(all.len()),
        missing: unread.len(),
        ..Tally::default()
    };
    let demand = "no GPU has an error".to_owned();
    Some(Verdict { remedy, ..verdict("gpus", demand, &count(all.len(), "GPU"), status, reason, tally) })
}
