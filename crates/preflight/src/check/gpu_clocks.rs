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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let held = scene
        .gpus()
        .filter_map(|(host, gpu)| Some((host, gpu, gpu.throttled.as_deref().filter(|reasons| !reasons.is_empty())?)));
    let one = |(host, gpu, reasons): (&str, &Gpu, &[String])| {
        let severity =
            if reasons.iter().all(|reason| reason == POWER_CAP) { Severity::Notice } else { Severity::Warning };
        let what = format!("its clocks are throttled: {}", reasons.join(", "));
        let observed = Observation::seen("throttled", reasons.to_vec());
        Found::host(severity, host, what, remedy::GPU_CLOCKS).device(format!("GPU {}", gpu.index)).observed(observed)
    };
    held.map(one).collect()
}
