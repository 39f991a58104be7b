//! The facts of a host that can be held against those of another host, or of another day, in words.

use railgauge_wire::facts::{Bond, Gpu, HostFacts, Interface, PciFunction, RdmaDevice, RdmaPort, Sriov};

/// Facts that should be equal on equal hosts, by name. Addresses, names and counters are not among them.
///
/// Every name stands once.
pub fn comparable(facts: &HostFacts) -> Vec<(String, String)> {
    let mut list = List::default();
    machine(facts, &mut list);
    for device in &facts.rdma {
        rdma(facts, device, &mut list);
    }
    list.add("GPUs", Some(facts.gpus.len().to_string()));
    for gpu in &facts.gpus {
        graphics(facts, gpu, &mut list);
    }
    for (name, version) in &facts.modules {
        list.add(&format!("module {name}"), Some(if version.is_empty() { "loaded".into() } else { version.clone() }));
    }
    // The directory differs with the distribution and is not the version; the loader's words have none.
    let file = |path: &String| path.starts_with('/').then(|| path.rsplit('/').next().unwrap_or(path).to_owned());
    for (name, path) in &facts.libraries {
        list.add(name, Some(file(path).unwrap_or_else(|| "not found".into())));
    }
    list.0
}

/// Those that somebody changes on purpose, and with which new levels come: system, kernel, drivers, firmware, libraries.
pub fn software(facts: &HostFacts) -> Vec<(String, String)> {
    let chosen = |name: &str| {
        ["operating system", "kernel"].contains(&name)
            || ["module ", "lib"].iter().any(|start| name.starts_with(start))
            || [" driver", " firmware"].iter().any(|end| name.ends_with(end))
    };
    comparable(facts).into_iter().filter(|(name, _)| chosen(name)).collect()
}

/// Names and values as they are gathered.
#[derive(Default)]
struct List(Vec<(String, String)>);

impl List {
    fn add(&mut self, fact: &str, value: Option<String>) {
        self.0.extend(value.map(|value| (fact.to_owned(), value)));
    }
}

fn machine(facts: &HostFacts, list: &mut List) {
    let on = |flag: Option<bool>| flag.map(|on| if on { "on" } else { "off" }.to_owned());
    let (cpu, around) = (&facts.cpu, &facts.surroundings);
    list.add("operating system", facts.os.clone());
    list.add("kernel", Some(facts.kernel.clone()));
    list.add("kernel parameters", facts.command_line.as_deref().map(parameters));
    list.add("architecture", Some(facts.architecture.clone()));
    list.add("machine", around.product.clone());
    list.add("container", around.container.clone());
    list.add("processor", cpu.model.clone());
    list.add("processors", Some(cpu.threads.to_string()));
    list.add("NUMA nodes", Some(cpu.numa_nodes.to_string()));
    list.add("frequency governor", cpu.governor.clone());
    list.add("frequency boost", on(cpu.boost));
    list.add("threads per core", on(cpu.smt));
    // To the GiB: what the kernel keeps for itself differs by some MiB on equal machines.
    list.add("memory", facts.memory_bytes.map(|bytes| format!("{} GiB", bytes.saturating_add(1 << 29) >> 30)));
    for pages in &facts.huge_pages {
        list.add(&format!("huge pages of {} KiB", pages.bytes >> 10), Some(pages.total.to_string()));
    }
    list.add("transparent huge pages", facts.transparent_huge_pages.clone());
    list.add("NUMA balancing", on(facts.numa_balancing));
    list.add(
        "locked memory limit",
        Some(facts.memlock_bytes.map_or("unlimited".into(), |n| format!("{} KiB", n >> 10))),
    );
    list.add("open files limit", facts.open_files.map(|limit| limit.to_string()));
    list.add("clock source", facts.clock_source.clone());
    list.add("IOMMUs", Some(facts.iommus.to_string()));
    list.add("net.ipv4.tcp_ecn", facts.tcp_ecn.map(|value| value.to_string()));
    list.add("RDMA devices", Some(facts.rdma.len().to_string()));
}

/// The kernel's command line without what names this host's disks and images.
fn parameters(line: &str) -> String {
    let own = ["BOOT_IMAGE=", "initrd=", "root=", "resume=", "ip=", "hostname=", "rd.luks", "rd.lvm", "rd.md"];
    let kept = line.split_whitespace().filter(|word| !own.iter().any(|name| word.starts_with(name)));
    kept.collect::<Vec<_>>().join(" ")
}

fn rdma(facts: &HostFacts, device: &RdmaDevice, list: &mut List) {
    let name = &device.name;
    let mut add = |fact: &str, value: Option<String>| list.add(&format!("{name} {fact}"), value);
    add("driver", device.driver.clone());
    add("firmware", device.firmware.clone());
    add("board", device.board.clone());
    add("PCIe link", device.pcie.map(|(speed, width)| format!("{speed} GT/s x{width}")));
    add("NUMA node", device.numa.map(|node| node.to_string()));
    function(&device.function, &mut add);
    for port in &device.ports {
        of_port(facts, port, &mut |fact, value| list.add(&format!("{name} port {} {fact}", port.number), value));
    }
}

fn function(function: &PciFunction, add: &mut impl FnMut(&str, Option<String>)) {
    let bytes = |value: Option<u32>| value.map(|bytes| format!("{bytes} B"));
    let on = |flag: Option<bool>| flag.map(|on| if on { "on" } else { "off" }.to_owned());
    add("read requests", bytes(function.max_read_request));
    add("PCIe payload", bytes(function.max_payload));
    add("relaxed ordering", on(function.relaxed_ordering));
    add("ATS", on(function.ats));
    add("IOMMU", function.iommu.clone());
    add(
        "SR-IOV",
        function.sriov.as_ref().map(|role| match role {
            Sriov::Physical(count) => format!("{count} virtual functions"),
            Sriov::Virtual => "is a virtual function".into(),
        }),
    );
    let controlled = function.bridges.iter().filter(|bridge| bridge.acs.as_ref().is_some_and(|acs| !acs.is_empty()));
    let known = function.bridges.iter().any(|bridge| bridge.acs.is_some());
    add("bridges with ACS", known.then(|| controlled.count().to_string()));
}

fn of_port(facts: &HostFacts, port: &RdmaPort, add: &mut impl FnMut(&str, Option<String>)) {
    let number = |value: Option<u32>| value.map(|number| number.to_string());
    add("state", port.state.clone());
    add("link layer", port.link_layer.clone());
    add("rate", port.rate_gbps.map(|rate| format!("{rate} Gb/s")));
    add("MTU", number(port.mtu));
    add("partitions", (!port.partitions.is_empty()).then(|| port.partitions.join(", ")));
    add("traffic class", number(port.traffic_class));
    add("rdma_cm ToS", number(port.cm_tos));
    let kinds: Vec<&str> = port.gids.iter().filter_map(|gid| gid.kind.as_deref()).collect();
    add("GID types", (!kinds.is_empty()).then(|| kinds.join(", ")));
    if let Some(interface) = port.netdev.as_deref().and_then(|name| facts.interface(name)) {
        ethernet(interface, add);
    }
}

fn ethernet(interface: &Interface, add: &mut impl FnMut(&str, Option<String>)) {
    let priorities = |list: &[u8]| match list {
        [] => "none".to_owned(),
        list => list.iter().map(u8::to_string).collect::<Vec<_>>().join(", "),
    };
    add("interface MTU", interface.mtu.map(|mtu| mtu.to_string()));
    add("interface driver", interface.driver.as_ref().map(|(name, version)| format!("{name} {version}")));
    add(
        "bond",
        interface.bond.as_ref().map(|bond| match bond {
            Bond::Member(master) => format!("member of {master}"),
            Bond::Master(mode) => mode.clone(),
        }),
    );
    add(
        "pause frames",
        interface.pause.map(|pause| match (pause.receive, pause.send) {
            (true, true) => "received and sent".into(),
            (true, false) => "received".into(),
            (false, true) => "sent".into(),
            (false, false) => "off".to_owned(),
        }),
    );
    add("trust", interface.trust.clone());
    if let Some(dcb) = &interface.dcb {
        add("PFC priorities", Some(priorities(&dcb.pfc)));
        let map: Vec<String> = dcb.dscp.iter().map(|(code, priority)| format!("{code}→{priority}")).collect();
        add("DSCP to priority", (!map.is_empty()).then(|| map.join(" ")));
    }
    if let Some(ecn) = &interface.ecn {
        add("ECN notification", Some(priorities(&ecn.notifies)));
        add("ECN reaction", Some(priorities(&ecn.reacts)));
    }
}

fn graphics(facts: &HostFacts, gpu: &Gpu, list: &mut List) {
    let mut add = |fact: &str, value: Option<String>| list.add(&format!("GPU {} {fact}", gpu.index), value);
    let on = |flag: Option<bool>| flag.map(|on| if on { "on" } else { "off" }.to_owned());
    add("model", gpu.name.clone());
    add("driver", gpu.driver.clone());
    add("CUDA", gpu.cuda.clone());
    add("PCIe at best", gpu.pcie_max.map(|(generation, width)| format!("gen {generation} x{width}")));
    add("PCIe width", gpu.pcie.map(|(_, width)| format!("x{width}")));
    add("memory", gpu.memory_bytes.map(|bytes| format!("{} GiB", (bytes + (1 << 29)) >> 30)));
    add("ECC", on(gpu.ecc));
    add("MIG", on(gpu.mig));
    add("persistence", on(gpu.persistence));
    add("NVLinks", gpu.nvlinks.map(|links| links.to_string()));
    add("highest clock", gpu.clock_mhz.map(|(_, best)| format!("{best} MHz")));
    add("power limit", gpu.power_watts.map(|(_, limit)| format!("{limit:.0} W")));
    add("NUMA node", gpu.numa.map(|node| node.to_string()));
    function(&gpu.function, &mut add);
    let near = facts.gpu_distances.iter().filter(|row| row.gpu == gpu.index);
    let near: Vec<String> = near.map(|row| format!("{} {}", row.device, row.distance.word())).collect();
    add("distances", (!near.is_empty()).then(|| near.join(", ")));
}
