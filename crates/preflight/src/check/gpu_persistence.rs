use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "NVML",
    meaning: "the first use after a pause waits seconds for the GPU to be initialised",
    source: "NVIDIA driver persistence (deployment guide)",
    spoils: Spoils::Nothing,
    subject: Subject::Gpu,
    needs: &[Need::Gpu(|gpu| gpu.persistence.is_some(), "the persistence mode of its GPUs")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let asleep = scene.gpus().filter(|(_, gpu)| gpu.persistence == Some(false));
    let remedy = remedy::GPU_PERSISTENCE;
    asleep
        .map(|(host, gpu)| {
            Found::host(Severity::Notice, host, "persistence mode is off", remedy)
                .device(format!("GPU {}", gpu.index))
                .observed(Observation::seen("persistence", false).wanted(true, WantedBy::Check))
        })
        .collect()
}
