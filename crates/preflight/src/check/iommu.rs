use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/kernel/iommu_groups/*/type, /sys/class/iommu",
    meaning: "every DMA is translated: small messages are slower, and GPUs and NICs may not reach each other directly",
    source: "kernel Documentation/ABI/testing/sysfs-kernel-iommu_groups; NVIDIA GPUDirect RDMA guide, supported systems",
    spoils: Spoils::Everything,
    subject: Subject::Nic,
    needs: &[Need::Readable(IOMMUS), Need::Port(|port| port.iommu_mode().is_some(), "the mode of its IOMMU")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let wanted = scene.wanted().iommu.as_deref();
    let serious = if scene.may_use_gpudirect() { Severity::Warning } else { Severity::Notice };
    let mut found = Vec::new();
    for port in scene.devices().filter(Port::is_hardware) {
        let mode = port.iommu_mode();
        let remedy = remedy::IOMMU_PASSTHROUGH;
        let say = |severity, what: String| Found::host(severity, port.host, what, remedy).device(&port.device.name);
        match (mode, wanted) {
            (Some(mode), Some(wanted)) if mode != wanted => {
                let observed = Observation::seen("iommu", mode).wanted(wanted, WantedBy::Plan);
                let what = format!("the IOMMU's mode is {mode}, the plan requires {wanted}");
                found.push(say(Severity::Failure, what).observed(observed));
            }
            (Some(mode @ "translated"), None) => {
                let observed = Observation::seen("iommu", mode).wanted("passthrough", WantedBy::Check);
                found.push(say(serious, "the IOMMU translates its addresses".into()).observed(observed));
            }
            _ => {}
        }
    }
    found
}
