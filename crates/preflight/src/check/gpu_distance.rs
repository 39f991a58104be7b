use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "PCI tree of /sys/devices",
    meaning: "traffic between GPU and NIC crosses the processor: GPUDirect is slow or disabled",
    source: "NVIDIA GPUDirect RDMA guide; `nvidia-smi topo -m`",
    spoils: Spoils::GpuMemory,
    subject: Subject::GpuBesideNic,
    needs: &[Need::Host(has_distances, "where its GPUs and RDMA devices are in the PCI tree")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    if !scene.may_use_gpudirect() {
        return;
    }
    for (host, facts) in scene.hosts() {
        let used: BTreeSet<&str> =
            scene.devices().filter(|port| port.host == host).map(|port| port.device.name.as_str()).collect();
        for gpu in &facts.gpus {
            let mine =
                facts.gpu_distances.iter().filter(|row| row.gpu == gpu.index && used.contains(row.device.as_str()));
            let Some(nearest) = mine.min_by_key(|row| row.distance as u8) else { continue };
            if matches!(nearest.distance, Distance::Phb | Distance::Node | Distance::Sys) {
                let distance = nearest.distance.word();
                let what = format!("the nearest NIC of the plan is {} ({distance})", nearest.device);
                let severity = if nearest.distance == Distance::Sys { Warning } else { Notice };
                let far = Card { host, gpu }.found(severity, what, remedy::NEARER_NIC);
                found.push(far.seen("gpu_distance", distance));
            }
        }
    }
}

fn has_distances(facts: &HostFacts) -> bool {
    facts.gpus.iter().all(|gpu| facts.gpu_distances.iter().any(|row| row.gpu == gpu.index))
}
