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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for card in scene.gpus() {
        if let Some(count) = card.gpu.processes.filter(|count| *count > 0) {
            let what = match count {
                1 => "1 process uses it".to_owned(),
                _ => format!("{count} processes use it"),
            };
            found.push(card.found(Warning, what, remedy::WAIT_FOR_GPU).wants("processes", count, 0_u32));
        }
        if card.gpu.mig == Some(true) {
            let split = card.found(Warning, "it is split into instances (MIG)", remedy::MIG_OFF);
            found.push(split.wants("mig", true, false));
        }
    }
}
