use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "NVML: ECC counters, retired pages, remapped rows; AMD SMI: ECC counters",
    meaning: "the GPU may stop during a run, or needs a reset",
    source: "NVIDIA GPU Memory Error Management (deployment guide)",
    spoils: Spoils::GpuMemory,
    subject: Subject::Gpu,
    needs: &[Need::Gpu(
        |gpu| gpu.memory_faults.uncorrected.is_some() && gpu.memory_faults.pending.is_some(),
        "memory errors of its GPUs (they may have no ECC)",
    )],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for card in scene.gpus() {
        let faults = &card.gpu.memory_faults;
        let of_amd = scene.hosts().any(|(name, facts)| name == card.host && facts.has_amd_gpus());
        let reset = || match of_amd {
            true => at_address(remedy::RESET_AMD_GPU, card.gpu.pci.as_deref()),
            false => remedy::RESET_GPU.into(),
        };
        if card.gpu.ecc == Some(false) {
            let remedy = if of_amd { remedy::ECC_OF_AMD_GPU } else { remedy::ECC_ON };
            found.push(card.found(Notice, "ECC is off", remedy).wants("ecc", false, true));
        }
        if faults.remapping_failed == Some(true) {
            let broken = card.found(Failure, "a bad row of its memory could not be replaced", remedy::REPLACE_GPU);
            found.push(broken.wants("memory_faults.remapping_failed", true, false));
        }
        if faults.pending == Some(true) {
            let waiting = card.found(Warning, "a bad page or row needs a reset to be replaced", reset());
            found.push(waiting.wants("memory_faults.pending", true, false));
        }
        if let Some(count) = faults.uncorrected.filter(|count| *count > 0) {
            let what = format!("{count} memory errors since the driver was loaded could not be corrected");
            found.push(card.found(Warning, what, reset()).wants("memory_faults.uncorrected", count, 0_u32));
        }
    }
}
