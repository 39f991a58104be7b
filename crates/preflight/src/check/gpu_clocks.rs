use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "NVML: clock event reasons; AMD SMI: violations",
    meaning: "reductions in collectives run at the lower clock",
    source: "NVML, nvmlClocksEventReasons",
    spoils: Spoils::GpuMemory,
    subject: Subject::Gpu,
    needs: &[Need::Gpu(|gpu| gpu.throttled.is_some(), "what throttles its GPUs")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for card in scene.gpus() {
        let reasons = card.gpu.throttled.as_deref().unwrap_or_default();
        if !reasons.is_empty() {
            let severity = if reasons.iter().all(|reason| reason == POWER_CAP) { Notice } else { Warning };
            let what = format!("its clocks are throttled: {}", reasons.join(", "));
            found.push(card.found(severity, what, remedy::GPU_CLOCKS).seen("throttled", reasons.to_vec()));
        }
    }
}
