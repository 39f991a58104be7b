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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (host, gpu) in scene.gpus() {
        let faults = &gpu.memory_faults;
        let of_amd = scene.hosts().any(|(name, facts)| name == host && facts.has_amd_gpus());
        let reset = || match of_amd {
            true => at_address(remedy::RESET_AMD_GPU, gpu.pci.as_deref()),
            false => remedy::RESET_GPU.into(),
        };
        let mut add = |severity, what: String, remedy: Remedy, observed: Observation| {
            let fault = Found::host(severity, host, what, remedy).device(format!("GPU {}", gpu.index));
            found.push(fault.observed(observed));
        };
        if gpu.ecc == Some(false) {
            add(
                Severity::Notice,
                "ECC is off".into(),
                Remedy::from(if of_amd { remedy::ECC_OF_AMD_GPU } else { remedy::ECC_ON }),
                Observation::seen("ecc", false).wanted(true, WantedBy::Check),
            );
        }
        if faults.remapping_failed == Some(true) {
            let observed = Observation::seen("memory_faults.remapping_failed", true).wanted(false, WantedBy::Check);
            let what = "a bad row of its memory could not be replaced".into();
            add(Severity::Failure, what, remedy::REPLACE_GPU.into(), observed);
        }
        if faults.pending == Some(true) {
            let observed = Observation::seen("memory_faults.pending", true).wanted(false, WantedBy::Check);
            let what = "a bad page or row needs a reset to be replaced".into();
            add(Severity::Warning, what, reset(), observed);
        }
        if let Some(count) = faults.uncorrected.filter(|count| *count > 0) {
            add(
                Severity::Warning,
                format!("{count} memory errors since the driver was loaded could not be corrected"),
                reset(),
                Observation::seen("memory_faults.uncorrected", count).wanted(0_u32, WantedBy::Check),
            );
        }
    }
    found
}
