//! GPU memory that errs.

use railgauge_wire::remedy;

use super::{Found, Need, Remedy, Rule, Scene, Severity, Spoils, Subject};

pub(super) const RULE: Rule = Rule {
    reads: "NVML: ECC counters, retired pages, remapped rows",
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
        let mut add = |severity, what: String, remedy: Remedy| {
            found.push(Found::host(severity, host, what, remedy).device(format!("GPU {}", gpu.index)));
        };
        if gpu.ecc == Some(false) {
            add(Severity::Notice, "ECC is off".into(), remedy::ECC_ON.into());
        }
        if faults.remapping_failed == Some(true) {
            add(Severity::Failure, "a bad row of its memory could not be replaced".into(), remedy::REPLACE_GPU.into());
        }
        if faults.pending == Some(true) {
            add(Severity::Warning, "a bad page or row needs a reset to be replaced".into(), remedy::RESET_GPU.into());
        }
        if let Some(count) = faults.uncorrected.filter(|count| *count > 0) {
            add(
                Severity::Warning,
                format!("{count} memory errors since the driver was loaded could not be corrected"),
                remedy::RESET_GPU.into(),
            );
        }
    }
    found
}
