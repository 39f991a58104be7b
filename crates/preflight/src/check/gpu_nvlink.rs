use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "NVML",
    meaning: "collectives within the host lose the link's bandwidth, or fall back to PCIe",
    source: "NVML, nvmlDeviceGetNvLinkState",
    spoils: Spoils::GpuMemory,
    subject: Subject::Gpu,
    needs: &[Need::Gpu(|gpu| gpu.nvlinks.is_some(), "NVLinks of its GPUs (they may have none)")],
    find,
};

/// Compared with the other GPUs: the board determines how many links are wired, not the GPU.
fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let Some(usual) = Usual::of(None, scene.gpus().filter_map(|card| card.gpu.nvlinks)) else { return };
    found.extend(scene.gpus().filter_map(|card| {
        let links = card.gpu.nvlinks.filter(|links| *links < usual.value)?;
        let what = format!("{links} NVLinks are active, {}", usual.words(u32::to_string));
        Some(card.found(Warning, what, remedy::NVLINK).usual("nvlinks", links, &usual))
    }));
}
