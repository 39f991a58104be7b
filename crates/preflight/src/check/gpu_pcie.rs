use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "NVML, AMD SMI",
    meaning: "the missing lanes limit copies to the host and GPUDirect",
    source: "NVML; an idle GPU lowers the generation of its link but never the width",
    spoils: Spoils::GpuMemory,
    subject: Subject::Gpu,
    needs: &[Need::Gpu(|gpu| gpu.pcie.is_some() && gpu.pcie_max.is_some(), "the PCIe links of its GPUs")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let narrow = scene.gpus().filter_map(|(host, gpu)| {
        let ((_, now), (_, best)) = gpu.pcie.zip(gpu.pcie_max).filter(|(now, best)| now.1 < best.1)?;
        let remedy = remedy::RESEAT_GPU;
        let found = Found::host(Severity::Warning, host, format!("PCIe x{now}, but it supports x{best}"), remedy);
        let observed = Observation::seen("pcie_width", now).unit("lanes").wanted(best, WantedBy::Check);
        Some(found.device(format!("GPU {}", gpu.index)).observed(observed))
    });
    narrow.collect()
}
