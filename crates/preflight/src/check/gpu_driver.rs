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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let of = |facts: &HostFacts| facts.gpus.iter().find_map(|gpu| gpu.driver.clone());
    let usual = Usual::of(scene.wanted().gpu_driver.clone(), scene.hosts().filter_map(|(_, facts)| of(facts)));
    let Some(usual) = usual.filter(|usual| usual.wanted || scene.needs_gpus()) else { return };
    found.extend(scene.hosts().filter_map(|(host, facts)| {
        let version = of(facts).filter(|version| *version != usual.value)?;
        let what = format!("GPU driver {version}, {}", usual.words(Clone::clone));
        let other = Found::host(usual.severity(Warning), host, what, remedy::GPU_DRIVER);
        Some(other.usual("gpu_driver", version, &usual))
    }));
}
