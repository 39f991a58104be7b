//! The facts of a host that can be held against those of another host, or of another day, in words.

use railgauge_wire::facts::HostFacts;

/// Facts that should be equal on equal hosts, by name. Addresses, names and counters are not among them.
///
/// Every name stands once.
pub fn comparable(facts: &HostFacts) -> Vec<(String, String)> {
    let mut list = Vec::new();
    let mut add = |fact: &str, value: Option<String>| list.extend(value.map(|value| (fact.to_owned(), value)));
    add("operating system", facts.os.clone());
    add("kernel", Some(facts.kernel.clone()));
    add("architecture", Some(facts.architecture.clone()));
    add("processor", facts.cpu.model.clone());
    add("processors", Some(facts.cpu.threads.to_string()));
    add("NUMA nodes", Some(facts.cpu.numa_nodes.to_string()));
    add("frequency governor", facts.cpu.governor.clone());
    // To the GiB: what the kernel keeps for itself differs by some MiB on equal machines.
    add("memory", facts.memory_bytes.map(|bytes| format!("{} GiB", (bytes + (1 << 29)) >> 30)));
    add("locked memory limit", Some(facts.memlock_bytes.map_or("unlimited".into(), |n| format!("{} KiB", n >> 10))));
    add("RDMA devices", Some(facts.rdma.len().to_string()));
    for device in &facts.rdma {
        let name = &device.name;
        add(&format!("{name} driver"), device.driver.clone());
        add(&format!("{name} firmware"), device.firmware.clone());
        add(&format!("{name} board"), device.board.clone());
        add(&format!("{name} PCIe link"), device.pcie.map(|(speed, width)| format!("{speed} GT/s x{width}")));
        add(&format!("{name} NUMA node"), device.numa.map(|node| node.to_string()));
        for port in &device.ports {
            let port_name = format!("{name} port {}", port.number);
            add(&format!("{port_name} state"), port.state.clone());
            add(&format!("{port_name} link layer"), port.link_layer.clone());
            add(&format!("{port_name} rate"), port.rate_gbps.map(|rate| format!("{rate} Gb/s")));
            add(&format!("{port_name} MTU"), port.mtu.map(|mtu| mtu.to_string()));
            let interface = facts.interfaces.iter().find(|i| Some(&i.name) == port.netdev.as_ref());
            add(&format!("{port_name} interface MTU"), interface.and_then(|i| i.mtu).map(|mtu| mtu.to_string()));
            let kinds: Vec<&str> = port.gids.iter().filter_map(|gid| gid.kind.as_deref()).collect();
            add(&format!("{port_name} GID types"), (!kinds.is_empty()).then(|| kinds.join(", ")));
        }
    }
    list
}
