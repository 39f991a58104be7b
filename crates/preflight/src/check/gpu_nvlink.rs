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
fn find(scene: &Scene<'_>) -> Vec<Found> {
    let Some(usual) = Usual::of(None, scene.gpus().filter_map(|(_, gpu)| gpu.nvlinks)) else { return Vec::new() };
    let short = scene.gpus().filter_map(|(host, gpu)| {
        let links = gpu.nvlinks.filter(|links| *links < usual.value)?;
        let what = format!("{links} NVLinks are active, {}", usual.words(u32::to_string));
        let remedy = remedy::NVLINK;
        let few = Found::host(Severity::Warning, host, what, remedy).device(format!("GPU {}", gpu.index));
        Some(few.observed(Observation::with_usual("nvlinks", links, &usual)))
    });
    short.collect()
}
