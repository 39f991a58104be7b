//! The verdict on the GPUs whose memory the flows of a soak used: none has an error. What slows down a GPU is reported
//! and does not fail, as in tests.

use super::{
    Tally, Verdict,
    soak_events::{NAMED, more, of_counts, verdict},
};
use crate::{
    case::Bad,
    reason::{Id, Reason, Reasons, Value},
    soak::{Soaking, on_gpus::GpuInSoak},
    words::count,
};

/// `None` if no record has a GPU.
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
    let of_gpu = |id, gpu: &GpuInSoak, name, bad: &Bad, parts: usize| {
        Reason::new(id)
            .about(gpu.name())
            .with("host", &gpu.host)
            .with("gpu", &gpu.gpu)
            .with(name, Value::data(bad))
            .with("parts", Some(parts).filter(|parts| *parts > 1))
    };
    let mut reason = Reasons::default();
    reason.extend(bad.iter().take(NAMED).filter_map(|gpu| {
        let (error, parts) = gpu.error()?;
        Some(of_gpu(Id::SoakGpuError, gpu, "error", error, parts).remedy(Some(error.remedy().into())))
    }));
    reason.extend(more(bad.len(), "more GPU"));
    reason.extend(
        failed.iter().take(NAMED).map(|one| Reason::new(Id::SoakGpuFailed).about(&one.flow).failed(&one.failure)),
    );
    reason.extend(unread.first().map(|first| {
        Reason::new(Id::SoakGpusUnread)
            .first(first.name(), unread.len())
            .with("unread", first.unread)
            .with("windows", first.windows)
            .with("failure", first.failure.clone())
    }));
    reason.extend(blind.first().map(|first| Reason::new(Id::SoakGpusBlind).first(first.name(), blind.len())));
    reason.extend(untold.first().map(|first| Reason::new(Id::SoakGpusSilent).first(first, untold.len())));
    if bad.len() + failed.len() == 0 && well > 0 {
        reason.push(Reason::new(Id::SoakGpusWell).with("gpus", well));
    }
    if without_xids > 0 {
        reason.push(Reason::new(Id::SoakWithoutXids).with("gpus", without_xids));
    }
    reason.extend(slowed.iter().take(NAMED).filter_map(|gpu| {
        let (slow, parts) = gpu.bad.first()?;
        Some(of_gpu(Id::SoakGpuSlowed, gpu, "slowed", slow, *parts))
    }));
    reason.extend(more(slowed.len(), "more GPU"));
    let open = unread.len() + blind.len() + untold.len();
    let status = of_counts(bad.len() + failed.len(), open, true);
    // A flow that failed because of its GPU counts if no GPU is recorded.
    let violating = bad.len() + if all.is_empty() { failed.len() } else { 0 };
    let in_scope = (all.len() + untold.len()).max(violating);
    let tally = Tally { in_scope, judged: in_scope - open, violating, missing: open, ..Tally::default() };
    let demand = "no GPU has an error".to_owned();
    Some(verdict("gpus", demand, &count(all.len(), "GPU"), status, reason, tally))
}
