//! Facts of this host, from the kernel's files and a few of its calls. Nothing is guessed: an unreadable fact is `None`, and `unreadable`
//! says why.

use std::{collections::BTreeMap, io, sync::mpsc::Receiver, time::Duration};

use railgauge_wire::{DeviceFile, Failure, GPUS, Gather, Gpu, HostFacts, NEIGHBOURS, Neighbour, Tool};
use rdma::PortAnswer;

use crate::{
    gpu::{Vendor, device, facts as nvml, present},
    system::{
        interfaces::{Address, addresses},
        tree::{self, Tree},
    },
    tools,
    verbs::{Device, file},
    worker,
};

pub(crate) mod idle;
pub mod interfaces;
pub(crate) mod kernel_log;
pub(crate) mod libraries;
pub(crate) mod machine;
mod parts;
pub(crate) mod pci;
pub(crate) mod rdma;
mod vpd;

#[derive(Debug)]
pub struct Live {
    pub addresses: io::Result<Vec<Address>>,
    pub interfaces: BTreeMap<String, interfaces::Answers>,
    pub libraries: BTreeMap<String, String>,
    pub device_files: BTreeMap<String, DeviceFile>,
    pub path_mtus: Vec<PortAnswer>,
    pub gpus: Result<Vec<Gpu>, Failure>,
    pub cuda: Result<Vec<String>, Failure>,
}

impl Live {
    pub fn here(tree: &Tree) -> Self {
        let path_mtus = rdma::path_mtus();
        let gpus = nvml::all(tree);
        // Starting CUDA or HIP takes a moment, and a host without GPUs need not wait for it.
        let cuda = if gpus.as_ref().is_ok_and(|gpus| !gpus.is_empty()) { device::visible() } else { Ok(Vec::new()) };
        Self {
            addresses: addresses(),
            interfaces: interfaces::ask(tree),
            device_files: file::files(tree, Device::names().ok().as_deref()),
            // After querying the devices, which loads the providers' libraries.
            libraries: libraries::probe(),
            path_mtus,
            gpus,
            cuda,
        }
    }
}

/// Limit for reading the labels of parts. Cards and modules answer over slow buses, and a broken one may never; measurements do not need
/// them.
const LABELS_WITHIN: Duration = Duration::from_secs(5);

/// Adds the makers' labels of the host's parts, as far as readable in time. `collect` does not read them: kits read the same files again,
/// and must not have these.
fn labels(facts: &mut HostFacts) {
    let known = facts.clone();
    let read = worker::ask("labels", move || {
        let tree = Tree::host();
        let parts = parts::of(&tree, &known);
        (parts, tree.unreadable())
    });
    match read.recv_timeout(LABELS_WITHIN) {
        Ok((parts, unreadable)) => {
            facts.parts = parts;
            facts.unreadable.extend(unreadable);
        }
        Err(_) => {
            let tree = Tree::host();
            tree.note("serial numbers of parts", &format!("not read within {} s", LABELS_WITHIN.as_secs()));
            facts.unreadable.extend(tree.unreadable());
        }
    }
}

/// Facts, and how idle the host was since the process started. Waits until a fifth of a second has passed since then.
pub(crate) fn here() -> HostFacts {
    let (tree, root) = (Tree::host(), Tree::host());
    let look = idle::first(&root);
    let asked = worker::ask("lldp", tools::heard);
    let live = Live::here(&tree);
    let mut facts = collect(tree, live);
    labels(&mut facts);
    neighbours(&asked, &mut facts);
    facts.cuda_visible = HIDING.iter().find_map(|name| std::env::var(name).ok());
    facts.overrides = overrides();
    // A pod may have no account, and so none of Kubernetes' files; every pod has this variable.
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        facts.surroundings.container = Some("kubernetes".into());
    }
    look.again(&root, &mut facts);
    facts
}

/// Variables that hide GPUs from CUDA, and from HIP, which knows the first too.
const HIDING: [&str; 3] = ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"];

fn overrides() -> BTreeMap<String, String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let known = [tree::ROOT, "RAILGAUGE_IBVERBS", "RAILGAUGE_RDMACM"];
    known.into_iter().filter_map(|name| Some((name.to_owned(), set(name)?))).gathered()
}

pub fn collect(tree: Tree, live: Live) -> HostFacts {
    let mut facts = HostFacts {
        rdma: rdma::devices(&tree),
        interfaces: interfaces::all(&tree, live.addresses.as_deref().unwrap_or_default(), &live.interfaces),
        modules: libraries::loaded(&tree),
        xids: kernel_log::xids(&tree),
        libraries: live.libraries,
        ..machine::facts(&tree)
    };
    for device in &mut facts.rdma {
        device.device_file = live.device_files.get(&device.name).cloned();
    }
    match live.gpus {
        Ok(gpus) => {
            facts.gpu_distances = present::all(&tree, &gpus, &facts.rdma);
            facts.gpus = gpus;
            let visible = live.cuda.unwrap_or_else(|failure| {
                let of = if facts.has_amd_gpus() { Vendor::Amd } else { Vendor::Nvidia };
                facts.unreadable.insert(format!("{}'s numbers of the GPUs", of.runtime()), failure.cause);
                Vec::new()
            });
            for gpu in &mut facts.gpus {
                // NVML and AMD SMI count all GPUs, CUDA and HIP those that they see; the address is the same for both.
                let number = visible.iter().position(|pci| gpu.pci.as_ref() == Some(pci));
                gpu.cuda_device = number.and_then(|number| u32::try_from(number).ok());
                gpu.function = gpu.pci.as_deref().map(|pci| pci::function_at(&tree, pci)).unwrap_or_default();
                let numa = gpu.pci.as_ref().map(|pci| format!("sys/bus/pci/devices/{pci}/numa_node"));
                // -1 where the platform does not report it; a single node needs no report.
                let told = numa.and_then(|path| tree.value::<i64>(path)).and_then(|node| u32::try_from(node).ok());
                gpu.numa = told.or((facts.cpu.numa_nodes == 1).then_some(0));
            }
        }
        Err(why) => {
            facts.unreadable.insert(GPUS.into(), why.cause);
        }
    }
    facts.unreadable.extend(tree.unreadable());
    for said in live.path_mtus {
        let mut ports = facts.rdma.iter_mut().filter(|device| device.name == said.device).flat_map(|d| &mut d.ports);
        let port = ports.find(|port| port.number == said.port);
        match (said.mtu, port) {
            (Ok(mtu), Some(port)) => port.mtu = Some(mtu),
            // A device that appeared between the two reads.
            (Ok(_), None) => {}
            (Err(why), _) => {
                facts.unreadable.insert(format!("path MTU of {} port {}", said.device, said.port), why.cause);
            }
        }
    }
    if let Err(error) = live.addresses {
        facts.unreadable.insert("addresses".into(), error.to_string());
    }
    facts
}

/// Extra time for lldpcli beyond its own limit, to start and to be killed on a busy host.
const GRACE: Duration = Duration::from_secs(1);

fn neighbours(asked: &Receiver<io::Result<Vec<Neighbour>>>, facts: &mut HostFacts) {
    let why = match asked.recv_timeout(Tool::Neighbours.limit() + GRACE) {
        Ok(Ok(neighbours)) => {
            facts.neighbours = Some(neighbours);
            return;
        }
        Ok(Err(why)) => why.to_string(),
        Err(_) => "lldpcli could not be asked".to_owned(),
    };
    facts.unreadable.insert(NEIGHBOURS.into(), why);
}

#[cfg(test)]
mod tests;
