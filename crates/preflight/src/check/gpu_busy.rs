use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "NVML, AMD SMI",
    meaning: "the measurement shares the GPU's memory and engines, or gets only part of them",
    source: "NVML",
    spoils: Spoils::GpuMemory,
    subject: Subject::Gpu,
    needs: &[Need::Gpu(|gpu| gpu.processes.is_some(), "what runs on its GPUs")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (host, gpu) in scene.gpus() {
        let name = format!("GPU {}", gpu.index);
        if let Some(count) = gpu.processes.filter(|count| *count > 0) {
            let what = match count {
                1 => "1 process uses it".to_owned(),
                _ => format!("{count} processes use it"),
            };
            let observed = Observation::seen("processes", count).wanted(0_u32, WantedBy::Check);
            found.push(
                Found::host(Severity::Warning, host, what, remedy::WAIT_FOR_GPU).device(&name).observed(observed),
            );
        }
        if gpu.mig == Some(true) {
            found.push(
                Found::host(Severity::Warning, host, "it is split into instances (MIG)", remedy::MIG_OFF)
                    .device(&name)
                    .observed(Observation::seen("mig", true).wanted(false, WantedBy::Check)),
            );
        }
    }
    found
}
