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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    found.extend(scene.gpus().filter_map(|card| {
        let ((_, now), (_, best)) = card.gpu.pcie.zip(card.gpu.pcie_max).filter(|(now, best)| now.1 < best.1)?;
        let narrow = card.found(Warning, format!("PCIe x{now}, but it supports x{best}"), remedy::RESEAT_GPU);
        Some(narrow.wants("pcie_width", now, best).unit("lanes"))
    }));
}
