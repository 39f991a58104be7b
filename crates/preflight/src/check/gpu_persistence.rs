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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let asleep = scene.gpus().filter(|card| card.gpu.persistence == Some(false));
    found.extend(asleep.map(|card| {
        card.found(Notice, "persistence mode is off", remedy::GPU_PERSISTENCE).wants("persistence", false, true)
    }));
}
