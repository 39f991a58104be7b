use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "NVML, AMD SMI",
    meaning: "clocks, NVLink and GPUDirect change with the driver; NCCL rejects ranks with incompatible CUDA versions",
    source: "NVML",
    spoils: Spoils::GpuMemory,
    subject: Subject::Gpu,
    needs: &[Need::Gpu(|gpu| gpu.driver.is_some(), "the driver of its GPUs")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let wanted = scene.wanted().gpu_driver.clone();
    let of = |facts: &HostFacts| facts.gpus.iter().find_map(|gpu| gpu.driver.clone());
    let usual = Usual::of(wanted, scene.hosts().filter_map(|(_, facts)| of(facts)));
    let Some(usual) = usual.filter(|usual| usual.wanted || scene.needs_gpus()) else { return Vec::new() };
    let mut found = Vec::new();
    for (host, facts) in scene.hosts() {
        match of(facts) {
            Some(version) if version != usual.value => {
                let what = format!("GPU driver {version}, {}", usual.words(Clone::clone));
                let other = Found::host(usual.severity(Severity::Warning), host, what, remedy::GPU_DRIVER);
                found.push(other.observed(Observation::with_usual("gpu_driver", version, &usual)));
            }
            _ => {}
        }
    }
    found
}
