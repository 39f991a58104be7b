use super::{Found, Need, Observation, Rule, Scene, Severity, Spoils, Subject, Usual, WantedBy, unread};
use railgauge_wire::{
    facts::{GPUS, HostFacts},
    remedy,
};

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
                let other = Found::host(usual.severity(Severity::Warning), host, what, remedy::SAME_GPU_DRIVER);
                found.push(other.observed(Observation::with_usual("gpu_driver", version, &usual)));
            }
            None if usual.wanted && facts.gpus.is_empty() && !facts.unreadable.contains_key(GPUS) => {
                let what = format!("no GPU, {}", usual.words(Clone::clone));
                let none = Found::host(usual.severity(Severity::Warning), host, what, remedy::WANTED_VALUE);
                let observed = Observation::seen("gpu_driver", "no GPU").wanted(usual.value.clone(), WantedBy::Plan);
                found.push(none.observed(observed).meaning("the host does not meet the plan's requirement"));
            }
            None if usual.wanted => {
                let observed = Observation::unread("gpu_driver", usual.value.clone());
                found.push(unread(host, "the GPUs' driver", &usual.value).observed(observed));
            }
            _ => {}
        }
    }
    found
}
