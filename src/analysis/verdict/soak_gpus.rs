//! The verdict on the GPUs whose memory the flows of a soak used: none has an error. What slows a GPU down is told and fails nothing, as in
//! tests.

use railgauge_wire::remedy::Remedy;

use super::{
    Status, Tally, Verdict,
    reason::{OfSoak, Reason},
    soak::{NAMED, verdict},
};
use crate::analysis::{
    soak::{Soaking, on_gpus::GpuInSoak},
    words::count,
};

/// The verdict; `None` where no record tells of a GPU.
pub(super) fn judge(found: &Soaking) -> Option<Verdict> {
    let (all, failed, untold) = (&found.gpus, &found.gpu_failures, &found.gpus_untold);
    if all.is_empty() && failed.is_empty() {
        return None;
    }
    let of = |is: fn(&GpuInSoak) -> bool| all.iter().filter(move |gpu| is(gpu)).collect::<Vec<_>>();
    let bad = of(|gpu| gpu.error().is_some());
    let unread = of(|gpu| gpu.error().is_none() && gpu.is_unread());
    let blind = of(|gpu| gpu.error().is_none() && !gpu.is_unread() && gpu.blind);
    let slowed = of(|gpu| gpu.error().is_none() && !gpu.bad.is_empty());
    let without_xids = of(|gpu| gpu.without_xids > 0 && !gpu.blind && !gpu.is_unread()).len();
    let well = all.len() - bad.len() - unread.len() - blind.len();
    let mut reason = Reason::default();
    for (gpu, (error, parts)) in bad.iter().take(NAMED).filter_map(|gpu| Some((gpu, gpu.error()?))) {
        let (host, gpu) = (gpu.host.clone(), gpu.gpu.clone());
        reason.push(OfSoak::SoakGpuError { host, gpu, error: error.clone(), parts });
    }
    reason.extend(more(bad.len()));
    reason.extend(
        failed
            .iter()
            .take(NAMED)
            .map(|one| OfSoak::SoakGpuFailed { flow: one.flow.clone(), failure: Box::new(one.failure.clone()) }),
    );
    reason.extend(unread.first().map(|first| OfSoak::SoakGpusUnread {
        gpus: unread.len(),
        first: first.name(),
        unread: first.unread,
        windows: first.windows,
        failure: first.failure.clone(),
    }));
    reason.extend(blind.first().map(|first| OfSoak::SoakGpusBlind { gpus: blind.len(), first: first.name() }));
    reason.extend(untold.first().map(|first| OfSoak::SoakGpusUntold { hosts: untold.len(), first: first.clone() }));
    if bad.len() + failed.len() == 0 && well > 0 {
        reason.push(OfSoak::SoakGpusWell { gpus: well });
    }
    if without_xids > 0 {
        reason.push(OfSoak::SoakWithoutXids { gpus: without_xids });
    }
    for gpu in slowed.iter().take(NAMED) {
        let (host, name) = (gpu.host.clone(), gpu.gpu.clone());
        let worst = gpu.bad.first();
        reason.extend(worst.map(|(slow, parts)| OfSoak::SoakGpuSlowed {
            host,
            gpu: name,
            slowed: slow.clone(),
            parts: *parts,
        }));
    }
    reason.extend(more(slowed.len()));
    let open = unread.len() + blind.len() + untold.len();
    let status = match (bad.len() + failed.len(), open) {
        (0, 0) => Status::Pass,
        (0, _) => Status::Inconclusive,
        _ => Status::Fail,
    };
    let remedy = bad.first().and_then(|gpu| gpu.error()).map(|(error, _)| Remedy::from(error.remedy()));
    let remedy = remedy.or_else(|| failed.first()?.failure.told_remedy());
    // A flow that failed by its GPU counts where no GPU is told.
    let violating = bad.len() + if all.is_empty() { failed.len() } else { 0 };
    let in_scope = (all.len() + untold.len()).max(violating);
    let tally = Tally { in_scope, judged: in_scope - open, violating, missing: open, ..Tally::default() };
    let demand = "no GPU has an error".to_owned();
    Some(Verdict { remedy, ..verdict("gpus", demand, &count(all.len(), "GPU"), status, reason, tally) })
}

/// Those that are not named.
fn more(all: usize) -> Option<OfSoak> {
    all.checked_sub(NAMED).filter(|more| *more > 0).map(|gpus| OfSoak::SoakMoreGpus { gpus })
}
