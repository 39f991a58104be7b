use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/device/numa_node",
    meaning: "buffers and threads cannot be placed near the NIC and may be on the remote processor",
    source: "kernel Documentation/ABI/testing/sysfs-bus-pci",
    spoils: Spoils::Everything,
    subject: Subject::Nic,
    needs: &[Need::Port(
        |port| port.device.pci.is_some() && port.facts.cpu.numa_nodes > 0,
        "where its devices are in the PCI tree, or its NUMA nodes",
    )],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let lost = scene
        .devices()
        .filter(|port| port.device.pci.is_some() && port.device.numa.is_none() && port.facts.cpu.numa_nodes > 1);
    found.extend(lost.map(|port| {
        let what = format!("its NUMA node is unknown, and the host has {} nodes", port.facts.cpu.numa_nodes);
        port.of_device(Notice, what, remedy::UPDATE_BIOS)
    }));
}
