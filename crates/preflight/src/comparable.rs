//! The facts of a host that can be compared with those of another host, or of another day.

use railgauge_wire::{Bond, Bytes, Gpu, HostFacts, Interface, PciFunction, RdmaDevice, RdmaPort, Sriov};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactOf<'f> {
    Host,
    Nic {
        device: &'f str,
        port: Option<u8>,
    },
    Gpu(u32),
    /// Huge pages of this size.
    HugePages(Bytes),
    Module(&'f str),
    Library,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparable<'f> {
    pub of: FactOf<'f>,
    /// `firmware`, `PCIe link`, …; empty for modules and huge pages, for a library its name.
    pub fact: &'f str,
    pub value: String,
}

impl Comparable<'_> {
    /// Unique in a host: `kernel`, `mlx5_0 firmware`, `mlx5_0 port 1 MTU`, `GPU 2 ECC`.
    pub fn name(&self) -> String {
        let fact = self.fact;
        match self.of {
            FactOf::Host | FactOf::Library => fact.to_owned(),
            FactOf::Nic { device, port: None } => format!("{device} {fact}"),
            FactOf::Nic { device, port: Some(port) } => format!("{device} port {port} {fact}"),
            FactOf::Gpu(index) => format!("GPU {index} {fact}"),
            FactOf::HugePages(bytes) => format!("huge pages of {} KiB", bytes / Bytes::from_kib(1)),
            FactOf::Module(module) => format!("module {module}"),
        }
    }

    /// The name without the device: `NIC firmware`, `NIC port 1 MTU`.
    pub fn of_any(&self) -> String {
        match self.of {
            FactOf::Nic { port, .. } => Comparable { of: FactOf::Nic { device: "NIC", port }, ..self.clone() }.name(),
            _ => self.name(),
        }
    }

    /// Whether it changes with intended upgrades: system, kernel, drivers, firmware, libraries.
    fn is_software(&self) -> bool {
        match self.of {
            FactOf::Host => [OS, KERNEL].contains(&self.fact),
            FactOf::Nic { .. } => [DRIVER, FIRMWARE, INTERFACE_DRIVER].contains(&self.fact),
            FactOf::Gpu(_) => self.fact == DRIVER,
            FactOf::HugePages(_) => false,
            FactOf::Module(_) => true,
            FactOf::Library => self.fact.starts_with("lib"),
        }
    }
}

const OS: &str = "operating system";
const KERNEL: &str = "kernel";
const DRIVER: &str = "driver";
const FIRMWARE: &str = "firmware";
const INTERFACE_DRIVER: &str = "interface driver";

/// Facts that should be equal on equal hosts, with unique names. Addresses, names and counters are excluded.
pub fn comparable(facts: &HostFacts) -> Vec<Comparable<'_>> {
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
        let version = if version.is_empty() { "loaded".into() } else { version.clone() };
        list.of(FactOf::Module(name), "", Some(version));
    }
    // The directory depends on the distribution and is not the version; the loader's words have none.
    let file = |path: &String| path.starts_with('/').then(|| path.rsplit('/').next().unwrap_or(path).to_owned());
    for (name, path) in &facts.libraries {
        list.of(FactOf::Library, name, Some(file(path).unwrap_or_else(|| "not found".into())));
    }
    list.0
}

pub fn software(facts: &HostFacts) -> Vec<(String, String)> {
    let software = comparable(facts).into_iter().filter(Comparable::is_software);
    software.map(|fact| (fact.name(), fact.value)).collect()
}

#[derive(Default)]
struct List<'f>(Vec<Comparable<'f>>);

impl<'f> List<'f> {
    fn add(&mut self, fact: &'f str, value: Option<String>) {
        self.of(FactOf::Host, fact, value);
    }

    fn of(&mut self, of: FactOf<'f>, fact: &'f str, value: Option<String>) {
        self.0.extend(value.map(|value| Comparable { of, fact, value }));
    }
}

fn machine<'f>(facts: &'f HostFacts, list: &mut List<'f>) {
    let on = |flag: Option<bool>| flag.map(|on| if on { "on" } else { "off" }.to_owned());
    let (cpu, around) = (&facts.cpu, &facts.surroundings);
    list.add(OS, facts.os.clone());
    list.add(KERNEL, Some(facts.kernel.clone()));
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
    list.add(
        "memory",
        facts.memory_bytes.map(|bytes| format!("{} GiB", bytes.saturating_add(Bytes(1 << 29)) / Bytes::from_gib(1))),
    );
    for pages in &facts.huge_pages {
        list.of(FactOf::HugePages(pages.bytes), "", Some(pages.total.to_string()));
    }
    list.add("transparent huge pages", facts.transparent_huge_pages.clone());
    list.add("NUMA balancing", on(facts.numa_balancing));
    list.add(
        "locked memory limit",
        Some(facts.memlock_bytes.map_or("unlimited".into(), |n| format!("{} KiB", n / Bytes::from_kib(1)))),
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

fn rdma<'f>(facts: &'f HostFacts, device: &'f RdmaDevice, list: &mut List<'f>) {
    let name = device.name.as_str();
    let mut add =
        |fact: &'static str, value: Option<String>| list.of(FactOf::Nic { device: name, port: None }, fact, value);
    add(DRIVER, device.driver.clone());
    add(FIRMWARE, device.firmware.clone());
    add("board", device.board.clone());
    add("PCIe link", device.pcie.map(|(speed, width)| format!("{speed} GT/s x{width}")));
    add("NUMA node", device.numa.map(|node| node.to_string()));
    function(&device.function, &mut add);
    for port in &device.ports {
        let subject = FactOf::Nic { device: name, port: Some(port.number) };
        of_port(facts, port, &mut |fact, value| list.of(subject, fact, value));
    }
}

fn function(function: &PciFunction, add: &mut impl FnMut(&'static str, Option<String>)) {
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

fn of_port(facts: &HostFacts, port: &RdmaPort, add: &mut impl FnMut(&'static str, Option<String>)) {
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

fn ethernet(interface: &Interface, add: &mut impl FnMut(&'static str, Option<String>)) {
    let priorities = |list: &[u8]| match list {
        [] => "none".to_owned(),
        list => list.iter().map(u8::to_string).collect::<Vec<_>>().join(", "),
    };
    add("interface MTU", interface.mtu.map(|mtu| mtu.to_string()));
    add(INTERFACE_DRIVER, interface.driver.as_ref().map(|(name, version)| format!("{name} {version}")));
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

fn graphics<'f>(facts: &'f HostFacts, gpu: &'f Gpu, list: &mut List<'f>) {
    let mut add = |fact: &'static str, value: Option<String>| list.of(FactOf::Gpu(gpu.index), fact, value);
    let on = |flag: Option<bool>| flag.map(|on| if on { "on" } else { "off" }.to_owned());
    add("model", gpu.name.clone());
    add(DRIVER, gpu.driver.clone());
    add("CUDA", gpu.cuda.clone());
    add("PCIe at best", gpu.pcie_max.map(|(generation, width)| format!("gen {generation} x{width}")));
    add("PCIe width", gpu.pcie.map(|(_, width)| format!("x{width}")));
    add("memory", gpu.memory_bytes.map(|bytes| format!("{} GiB", (bytes + Bytes(1 << 29)) / Bytes::from_gib(1))));
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
