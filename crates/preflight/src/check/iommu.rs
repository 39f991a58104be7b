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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let wanted = scene.wanted().iommu.as_deref();
    let serious = if scene.may_use_gpudirect() { Warning } else { Notice };
    for port in scene.devices().filter(Port::is_hardware) {
        match (port.iommu_mode(), wanted) {
            (Some(mode), Some(wanted)) if mode != wanted => {
                let observed = Observation::seen("iommu", mode).wanted(wanted, WantedBy::Plan);
                let what = format!("the IOMMU's mode is {mode}, the plan requires {wanted}");
                found.push(port.of_device(Failure, what, remedy::IOMMU_PASSTHROUGH).observed(observed));
            }
            (Some(mode @ "translated"), None) => {
                let what = "the IOMMU translates its addresses";
                let slow = port.of_device(serious, what, remedy::IOMMU_PASSTHROUGH);
                found.push(slow.wants("iommu", mode, "passthrough"));
            }
            _ => {}
        }
    }
}
