//! What hosts have that a plan can measure: the ports that make rails, GPUs, libraries, and whether their speeds say anything.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::plan::hostlist::fold;
use railgauge_preflight::Cluster;
use railgauge_wire::{
    Distance,
    terms::{self},
};
use railgauge_wire::{
    HostFacts, Interface, RdmaDevice, RdmaPort,
    facts::{HIP, RCCL},
};
use serde::Serialize;

use super::within::{Within, all_equal, has};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Carrier {
    Verbs,
    #[default]
    Tcp,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Seen {
    /// Hosts in the plan's order.
    pub hosts: Vec<String>,
    pub carrier: Carrier,
    /// What NCCL has to use between hosts; `None` where their RDMA is emulated or missing.
    pub nccl_carrier: Option<terms::Carrier>,
    /// RDMA devices in rail order, as most hosts have them; empty over TCP and where nothing is known.
    pub devices: Vec<String>,
    #[serde(skip)]
    pub other_devices: BTreeMap<Vec<String>, Vec<String>>,
    /// Rate of the rails in Gb/s, where all of them have the same.
    pub rate: Option<f64>,
    /// `InfiniBand`, `RoCE` or `iWARP`.
    pub layer: Option<&'static str>,
    /// GPUs that CUDA shows on every host, and their product's name.
    pub gpus: usize,
    pub gpu_name: Option<String>,
    /// Smallest memory of a GPU in bytes.
    pub gpu_bytes: Option<u64>,
    /// Version of NCCL where all hosts can run it.
    pub nccl: Option<String>,
    /// Whether the GPUs are AMD's, and what it calls NCCL is RCCL.
    pub is_amd: bool,
    /// Whether the NICs of all hosts can reach GPU memory.
    pub gpudirect: bool,
    /// Rails that have no GPU behind a PCIe switch of theirs, as on some host: the way to GPU memory leads through a processor.
    pub far_from_gpus: Vec<String>,
    /// What can be measured within the hosts, where they have GPUs.
    pub within: Within,
    /// Why no limit is set; `None` where the hardware's limits are known.
    pub unjudged: Option<String>,
    pub one_machine: bool,
    /// Whether the rails are emulated in software, or files of the hosts are.
    pub is_emulated: bool,
    pub product: Option<String>,
    pub architecture: Option<String>,
    /// What a reader of the plan should know: what was left out, what differs.
    pub notes: Vec<String>,
}

struct Usable<'f> {
    device: &'f RdmaDevice,
    port: &'f RdmaPort,
}

impl Usable<'_> {
    /// As plans name it.
    fn name(&self) -> String {
        match self.port.number {
            1 => self.device.name.clone(),
            number => format!("{}:{number}", self.device.name),
        }
    }

    /// What ports of one network have in common: rate in Gb/s, link layer, and whether it is emulated.
    fn kind(&self) -> (u64, String, bool) {
        let rate = self.port.rate_gbps.map_or(0, |rate| rate.0.round() as u64);
        (rate, self.port.link_layer.clone().unwrap_or_default(), self.device.software)
    }
}

/// The ports of one host that are rails, and those that could be used and are not.
fn rails(facts: &HostFacts) -> (Vec<Usable<'_>>, Vec<Usable<'_>>) {
    // EFA has no reliable connections that verbs tests could use.
    let usable = facts
        .rdma
        .iter()
        .filter(|device| device.driver.as_deref() != Some("efa") && !facts.leaves_out(device))
        .flat_map(|device| {
            let active = |port: &&RdmaPort| port.state.as_deref() == Some("ACTIVE");
            device.ports.iter().filter(active).map(move |port| Usable { device, port })
        });
    let usable: Vec<Usable<'_>> = usable.collect();
    let mut sums: BTreeMap<(u64, String, bool), u64> = BTreeMap::new();
    for port in &usable {
        let kind = port.kind();
        let rate = kind.0.max(1);
        *sums.entry(kind).or_default() += rate;
    }
    // Emulated devices only where nothing else is there; then the network with the most bandwidth.
    let Some(best) = sums.iter().max_by_key(|((_, _, software), sum)| (!software, **sum)).map(|(kind, _)| kind.clone())
    else {
        return (usable, Vec::new());
    };
    let (fast, mut others): (Vec<_>, Vec<_>) = usable.into_iter().partition(|port| port.kind() == best);
    // Of equal ports those behind a switch with a GPU are the fabric; storage has ports of its own.
    let is_near = |port: &Usable<'_>| {
        let near = |distance| matches!(distance, Distance::Pix | Distance::Pxb);
        facts.gpu_distances.iter().any(|row| row.device == port.device.name && near(row.distance))
    };
    let (near, far): (Vec<_>, Vec<_>) = fast.into_iter().partition(is_near);
    match near.is_empty() {
        true => (far, others),
        false => {
            others.extend(far);
            (near, others)
        }
    }
}

impl Seen {
    /// Unknown hardware of hosts: nothing is left out, and nothing is demanded.
    pub(super) fn unseen(hosts: &[String], is_local: bool) -> Self {
        Self {
            hosts: hosts.to_vec(),
            carrier: if is_local { Carrier::Tcp } else { Carrier::Verbs },
            unjudged: Some(if is_local { ONE_MACHINE } else { UNSEEN }.to_owned()),
            one_machine: is_local,
            ..Self::default()
        }
    }

    /// What these hosts have. `hosts` are those of `cluster`, in the plan's order.
    pub(super) fn of(hosts: &[String], cluster: &Cluster, is_local: bool) -> Self {
        let facts: Vec<(&String, &HostFacts)> =
            hosts.iter().filter_map(|host| Some((host, cluster.facts.get(host)?))).collect();
        let mut seen = Self::unseen(hosts, is_local || is_one_machine(&facts));
        seen.product = all_equal(facts.iter().map(|(_, facts)| facts.surroundings.product.clone()));
        seen.architecture = all_equal(facts.iter().map(|(_, facts)| Some(facts.architecture.clone())));
        seen.carrier = Carrier::Tcp;
        seen.learn_rails(&facts);
        seen.learn_gpus(&facts);
        let is_software = |facts: &HostFacts| rails(facts).0.iter().any(|rail| rail.device.software);
        seen.is_emulated = facts
            .iter()
            .any(|(_, facts)| !facts.overrides.is_empty() || (seen.carrier == Carrier::Verbs && is_software(facts)));
        let is_efa = |facts: &HostFacts| facts.rdma.iter().any(|device| device.driver.as_deref() == Some("efa"));
        seen.nccl_carrier = match seen.carrier {
            _ if seen.is_emulated || seen.one_machine => None,
            Carrier::Verbs => Some(terms::Carrier::NcclIb),
            Carrier::Tcp => facts.iter().all(|(_, facts)| is_efa(facts)).then_some(terms::Carrier::NcclPlugin),
        };
        seen.unjudged = seen.reason(&facts);
        seen
    }

    /// The rails, if RDMA can be used on most hosts.
    fn learn_rails(&mut self, facts: &[(&String, &HostFacts)]) {
        let mut lists: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        let mut left_out: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        let mut kinds = Vec::new();
        for (host, facts) in facts {
            let (rails, others) = rails(facts);
            lists.entry(rails.iter().map(Usable::name).collect()).or_default().push((*host).clone());
            kinds.extend(rails.iter().map(|rail| (rail.kind(), rail.device.kind.clone())));
            left_out.insert(host, others.iter().map(Usable::name).collect());
        }
        let without = lists.remove(&Vec::new()).unwrap_or_default();
        if lists.is_empty() || without.len() * 2 >= facts.len() {
            if !lists.is_empty() {
                self.notes.push(format!("{} no active RDMA port: pairs are measured over TCP.", has(&without)));
            }
            return;
        }
        let missing = self.named(facts, |facts| !has_library(facts, "libibverbs.so.1"));
        if missing.len() == facts.len() {
            self.notes.push(
                "The hosts have RDMA ports but no libibverbs (package rdma-core or libibverbs1): pairs are measured over TCP."
                    .to_owned(),
            );
            return;
        }
        self.carrier = Carrier::Verbs;
        for (hosts, what) in [(&without, "no active RDMA port"), (&missing, "no libibverbs")] {
            if !hosts.is_empty() {
                let has = has(hosts);
                self.notes.push(format!("{has} {what}: tests over RDMA fail there until it is repaired or left out."));
            }
        }
        // The list of most hosts, of those the longest.
        let usual = lists.iter().max_by_key(|(list, hosts)| (hosts.len(), list.len())).map(|(list, _)| list.clone());
        self.devices = usual.unwrap_or_default();
        for (list, hosts) in lists {
            if list == self.devices {
                continue;
            }
            if list.iter().any(|name| !self.devices.contains(name)) {
                self.other_devices.insert(list, hosts);
                continue;
            }
            for host in &hosts {
                let active = left_out.get(host).cloned().unwrap_or_default();
                let lacking = self.devices.iter().filter(|name| !list.contains(name)).map(String::as_str);
                let (unlike, down): (Vec<&str>, Vec<&str>) =
                    lacking.partition(|name| active.iter().any(|own| own == name));
                let here = std::slice::from_ref(host);
                if !down.is_empty() {
                    let has = has(here);
                    self.notes.push(format!("{has} no active port {}, which most hosts have.", fold(down)));
                }
                if !unlike.is_empty() {
                    self.notes.push(format!(
                        "{host}: {} differs from the other ports (rate, network, or distance from a GPU); it is a rail all the \
                         same, as on most hosts.",
                        fold(unlike)
                    ));
                }
            }
        }
        let unused: BTreeSet<&str> = left_out.values().flatten().map(String::as_str).collect();
        let unused: Vec<&str> =
            unused.into_iter().filter(|name| !self.devices.iter().any(|device| device == name)).collect();
        if !unused.is_empty() {
            self.notes.push(format!(
                "Not used as rails, because they are of another network than most: {}. Add them to `devices` if they belong \
                 to the fabric.",
                fold(unused)
            ));
        }
        let rates = kinds.iter().map(|((rate, ..), _)| Some(*rate).filter(|rate| *rate > 0));
        self.rate = all_equal(rates).map(|rate| rate as f64);
        self.layer = all_equal(kinds.iter().map(|((_, layer, _), kind)| match (kind.as_deref(), layer.as_str()) {
            (Some("RNIC"), _) => Some("iWARP"),
            (_, "InfiniBand") => Some("InfiniBand"),
            (_, "Ethernet") => Some("RoCE"),
            _ => None,
        }));
    }

    fn learn_gpus(&mut self, facts: &[(&String, &HostFacts)]) {
        let shown = |facts: &HostFacts| facts.gpus.iter().filter(|gpu| facts.cuda_number(gpu).is_some()).count();
        let counts: Vec<usize> = facts.iter().map(|(_, facts)| shown(facts)).collect();
        let most = counts.iter().copied().max().unwrap_or_default();
        if most == 0 {
            return;
        }
        if self.one_machine {
            self.notes.push("GPUs are left out: all hosts are one machine and would share them.".to_owned());
            return;
        }
        let fewer = self.named(facts, |facts| shown(facts) < most);
        if !fewer.is_empty() {
            self.notes.push(format!("{} fewer GPUs than the others, which have {most}.", has(&fewer)));
        }
        let split = self.named(facts, |facts| facts.gpus.iter().any(|gpu| gpu.mig == Some(true)));
        let driverless = self.named(facts, |facts| !has_library(facts, "libcuda.so.1") && !facts.finds(HIP));
        for (hosts, what) in [
            (&split, "GPUs that are split into instances (MIG)"),
            (&driverless, "no CUDA driver (libcuda.so.1) and no HIP (libamdhip64.so)"),
        ] {
            if !hosts.is_empty() {
                self.notes.push(format!("{} {what}: tests of GPU memory are left out.", has(hosts)));
                return;
            }
        }
        self.gpus = counts.into_iter().min().unwrap_or_default();
        if self.gpus == 0 {
            return;
        }
        self.within = Within::of(facts);
        self.notes.append(&mut self.within.notes);
        let all = || facts.iter().flat_map(|(_, facts)| &facts.gpus);
        self.gpu_name = all_equal(all().map(|gpu| gpu.name.clone()));
        self.gpu_bytes = all().filter_map(|gpu| gpu.memory_bytes).min().map(|bytes| bytes.0);
        let versions: Vec<Option<String>> = facts.iter().map(|(_, facts)| nccl(facts)).collect();
        let without: Vec<String> = facts
            .iter()
            .zip(&versions)
            .filter(|(_, version)| version.is_none())
            .map(|((host, _), _)| (*host).clone())
            .collect();
        match without.is_empty() {
            true => self.nccl = all_equal(versions).or_else(|| Some("of several versions".to_owned())),
            false => self.notes.push(format!(
                "{} no NCCL of 2.11 or newer, or RCCL, that the loader finds (libnccl.so.2, librccl.so.1): its collectives are left \
                 out. Install it, or name it with `library`.",
                has(&without)
            )),
        }
        let far: BTreeSet<String> = facts.iter().flat_map(|(_, facts)| far_rails(facts)).collect();
        self.far_from_gpus = far.into_iter().collect();
        self.is_amd = facts.iter().all(|(_, facts)| facts.has_amd_gpus());
        let of_amd = self.named(facts, HostFacts::has_amd_gpus);
        let blind = self.named(facts, |facts| !reaches_gpus(facts) && !facts.has_amd_gpus());
        self.gpudirect = blind.is_empty() && of_amd.is_empty();
        if !of_amd.is_empty() && self.carrier == Carrier::Verbs {
            self.notes.push(format!(
                "{} AMD GPUs, whose memory is not registered with NICs: its pair tests are left out.",
                has(&of_amd)
            ));
        }
        if !blind.is_empty() && self.carrier == Carrier::Verbs {
            self.notes.push(format!(
                "{} neither nvidia_peermem nor the open NVIDIA driver with a kernel from 5.12: NICs cannot reach GPU memory, \
                 and its pair tests are left out.",
                has(&blind)
            ));
        }
    }

    /// Why speeds of these hosts are not judged.
    fn reason(&self, facts: &[(&String, &HostFacts)]) -> Option<String> {
        if self.one_machine {
            return Some(ONE_MACHINE.to_owned());
        }
        if let Some((_, facts)) = facts.iter().find(|(_, facts)| !facts.overrides.is_empty()) {
            let names: Vec<&str> = facts.overrides.keys().map(String::as_str).collect();
            return Some(format!(
                "Files or libraries of the hosts are replaced ({}): speeds say nothing about hardware, so no limit is set.",
                names.join(", ")
            ));
        }
        match self.carrier {
            Carrier::Verbs if facts.iter().any(|(_, facts)| narrow_slot(facts).is_some()) => {
                let narrow = facts.iter().find_map(|(host, facts)| Some((host, narrow_slot(facts)?)));
                narrow.map(|(host, (ports, slot))| {
                    format!(
                        "{host}: {} share a PCIe slot that carries {slot:.0} Gb/s, less than all of them together, and rails are \
                         measured all at once: what each gets is the card's choice, so no limit is set. With `rails = [0]` in a \
                         test one of them is measured alone.",
                        fold(ports.iter().map(String::as_str))
                    )
                })
            }
            Carrier::Verbs => {
                let unknown = facts.iter().flat_map(|(_, facts)| rails(facts).0);
                let mut unknown = unknown.filter(|port| port.device.software || port.port.rate_gbps.is_none());
                unknown.next().map(|port| match port.device.software {
                    true => "The RDMA devices are emulated in software: their speed depends on the processors, so no limit \
                             is set."
                        .to_owned(),
                    false => format!(
                        "The rate of {} is unknown, so no limit is set. After a first run, set one from its result.",
                        port.name()
                    ),
                })
            }
            Carrier::Tcp if facts.iter().any(|(_, facts)| facts.surroundings.virtual_machine == Some(true)) => Some(
                "The hosts are virtual machines: the speed that their interfaces report may differ from what the provider allows, so \
                 no limit is set. After a first run, set one from its result."
                    .to_owned(),
            ),
            Carrier::Tcp => {
                let slow = |one: &&Interface| one.speed_mbps.is_some_and(|speed| speed.0 <= FASTEST_TCP_MBPS);
                let judged = |facts: &HostFacts| {
                    let mut carrying = carrying(facts).peekable();
                    carrying.peek().is_some() && carrying.all(|one| slow(&one))
                };
                (!facts.iter().all(|(_, facts)| judged(facts))).then(|| {
                    "The speed of some interfaces is unknown, or more than a few TCP streams can fill, so no limit \
                     is set. After a first run, set one from its result."
                        .to_owned()
                })
            }
        }
    }

    fn named(&self, facts: &[(&String, &HostFacts)], is: impl Fn(&HostFacts) -> bool) -> Vec<String> {
        facts.iter().filter(|(_, facts)| is(facts)).map(|(host, _)| (*host).clone()).collect()
    }
}

const UNSEEN: &str = "No host was read, so no limit is set. After a first run, set one from its result.";

/// What is said of hosts that share everything.
const ONE_MACHINE: &str =
    "All hosts are processes of one machine: their speeds say nothing about a network, so no limit is set.";

/// Above this a few streams of TCP may leave a part of the link unused however healthy it is.
const FASTEST_TCP_MBPS: u64 = 50_000;

/// Rails of a host without a GPU behind the same PCIe switch, by name.
fn far_rails(facts: &HostFacts) -> Vec<String> {
    let is_near =
        |device: &str| facts.gpus_near(device).any(|known| matches!(known.distance, Distance::Pix | Distance::Pxb));
    rails(facts).0.iter().filter(|rail| !is_near(&rail.device.name)).map(Usable::name).collect()
}

/// Share of a slot's transfers that is payload, at most: 128 of 130 bits by line coding, 256 of 284 bytes of a packet by its headers
/// (PCI Express Base Specification 5.0; docs/methods.md has the formula).
const SLOT: f64 = 128.0 / 130.0 * 256.0 / 284.0;

/// Rails of a host in one slot that cannot carry all of them at their rates, and what the slot carries in Gb/s.
fn narrow_slot(facts: &HostFacts) -> Option<(Vec<String>, f64)> {
    let rails = rails(facts).0;
    let mut slots: BTreeMap<&str, Vec<&Usable<'_>>> = BTreeMap::new();
    for rail in &rails {
        // The functions of one card differ in the last digit of their address (domain:bus:device.function).
        let slot = rail.device.pci.as_deref().and_then(|pci| pci.rsplit_once('.'));
        if let Some((slot, _)) = slot {
            slots.entry(slot).or_default().push(rail);
        }
    }
    slots.into_values().filter(|ports| ports.len() > 1).find_map(|ports| {
        let (gigatransfers, lanes) = ports.iter().find_map(|port| port.device.pcie)?;
        let slot = gigatransfers * f64::from(lanes) * SLOT;
        let rates: f64 = ports.iter().filter_map(|port| port.port.rate_gbps).map(|rate| rate.0).sum();
        (rates > slot).then(|| (ports.iter().map(|port| port.name()).collect(), slot))
    })
}

pub(super) fn carrying(facts: &HostFacts) -> impl Iterator<Item = &Interface> {
    let is_up = |one: &&Interface| one.state.as_deref().is_none_or(|state| state != "down");
    facts.interfaces.iter().filter(|one| one.name != "lo" && !one.addresses.is_empty()).filter(is_up)
}

/// Whether all of several hosts are one: they have one name, and the addresses of one interface.
fn is_one_machine(facts: &[(&String, &HostFacts)]) -> bool {
    let Some(((_, first), others)) = facts.split_first() else { return false };
    let addresses = |facts: &HostFacts| -> Vec<String> {
        carrying(facts).flat_map(|one| one.addresses.clone()).filter(|address| !address.starts_with("fe80")).collect()
    };
    let own = addresses(first);
    !others.is_empty()
        && others.iter().all(|(_, facts)| {
            facts.hostname == first.hostname && addresses(facts).iter().any(|address| own.contains(address))
        })
}

/// Whether the loader of a host finds a library.
pub(super) fn has_library(facts: &HostFacts, name: &str) -> bool {
    // The loader's words are not a path.
    facts.libraries.get(name).is_some_and(|path| path.starts_with('/'))
}

/// Version of NCCL, by its file's name, empty for RCCL; `None` without one that railgauge can use.
fn nccl(facts: &HostFacts) -> Option<String> {
    if facts.has_amd_gpus() {
        // Its file is called by another number; a rank reports the version, and refuses one that is too old.
        return facts.finds(RCCL).then(String::new);
    }
    let path = facts.libraries.get("libnccl.so.2").filter(|path| path.starts_with('/'))?;
    let Some((_, version)) = path.rsplit_once(".so.") else { return Some(String::new()) };
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) < (2, 11) => None,
        _ => Some(version.to_owned()),
    }
}

/// Whether NICs of a host can reach GPU memory: the module for it, or a dma-buf (preflight's check `gpudirect`).
fn reaches_gpus(facts: &HostFacts) -> bool {
    let open = facts.modules.get("nvidia").is_some_and(|version| version.contains("open"));
    let mut numbers = facts.kernel.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().ok());
    let release = (numbers.next().flatten().unwrap_or(0), numbers.next().flatten().unwrap_or(0));
    facts.modules.contains_key("nvidia_peermem")
        || facts.modules.contains_key("nv_peer_mem")
        || (open && release >= (5, 12))
}
