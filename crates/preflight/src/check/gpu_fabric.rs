//! GPUs that are not registered with the NVLink fabric, or not well there.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "NVML",
    meaning: "CUDA does not start on the GPU (error 802), or its NVLink traffic is slower or stops",
    source: "NVML, nvmlDeviceGetGpuFabricInfoV; NVIDIA Fabric Manager User Guide",
    spoils: Spoils::GpuMemory,
    subject: Subject::Gpu,
    needs: &[Need::Gpu(
        |gpu| gpu.fabric.is_some(),
        "registration of its GPUs with an NVLink fabric (they may have none)",
    )],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for card in scene.gpus() {
        let Some(fabric) = &card.gpu.fabric else { continue };
        let fault = |what: String| card.found(Warning, what, remedy::FABRIC_MANAGER);
        if fabric.state != Registration::Completed {
            let (state, wanted) = (fabric.state.words(), Registration::Completed.words());
            let what = format!("its registration with the NVLink fabric is {state}");
            found.push(fault(what).wants("fabric.state", state, wanted));
        }
        if let Some(code) = fabric.error {
            let what = format!("its registration with the NVLink fabric failed (NVML error {code})");
            found.push(fault(what).seen("fabric.error", code));
        }
        for trouble in &fabric.troubles {
            let what = format!("the NVLink fabric says of it: {trouble}");
            found.push(fault(what).seen("fabric.troubles", trouble.clone()));
        }
    }
    for (host, facts) in scene.hosts().filter(|_| scene.needs_gpus()) {
        let domains: BTreeSet<String> = facts.gpus.iter().filter_map(|gpu| gpu.fabric.as_ref()?.domain()).collect();
        if domains.len() > 1 {
            let names = domains.into_iter().collect::<Vec<_>>().join(", ");
            let what =
                format!("its GPUs are in several NVLink domains, and do not reach each other by NVLink: {names}");
            found.push(Found::host(Warning, host, what, remedy::FABRIC_MANAGER).seen("fabric.domain", names));
        }
    }
}
