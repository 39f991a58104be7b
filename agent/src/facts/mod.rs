//! What this host is, from files of the kernel and a few of its calls. Nothing is guessed: what cannot be read is
//! `None`, and `unreadable` says why.
//!
//! | file | collects |
//! | --- | --- |
//! | [`tree`] | the way to the files, below a root that tests choose |
//! | [`machine`] | operating system, processor, memory, limits |
//! | [`rdma`] | RDMA devices, ports, GIDs |
//! | [`interfaces`] | network interfaces |
//! | [`path_mtu`] | what RDMA ports say through libibverbs |
//! | [`libraries`] | what the loader finds |

pub mod interfaces;
pub mod libraries;
pub mod machine;
pub mod path_mtu;
pub mod rdma;
pub mod tree;

use railgauge_wire::facts::{Gpu, HostFacts};
use std::collections::BTreeMap;

use crate::{
    gpu::{distance, facts as nvml},
    system::interfaces::{Address, addresses},
};
use tree::Tree;

/// What is not read from files.
#[derive(Debug)]
pub struct Live {
    /// Addresses of the interfaces, or why they are not known.
    pub addresses: Result<Vec<Address>, String>,
    /// Libraries by name: path, or the loader's words.
    pub libraries: BTreeMap<String, String>,
    /// Active path MTU of RDMA ports.
    pub path_mtus: Vec<path_mtu::Said>,
    /// GPUs, or why they are not known.
    pub gpus: Result<Vec<Gpu>, String>,
}

impl Live {
    /// This process's own view.
    pub fn here() -> Self {
        let addresses = addresses().map_err(|error| error.to_string());
        Self { addresses, libraries: libraries::probe(), path_mtus: path_mtu::ask(), gpus: nvml::gpus(&Tree::new("/")) }
    }
}

/// Collects the facts of the host whose files are below the tree's root.
pub fn collect(tree: Tree, live: Live) -> HostFacts {
    let mut facts = HostFacts {
        rdma: rdma::devices(&tree),
        interfaces: interfaces::all(&tree, live.addresses.as_deref().unwrap_or_default()),
        libraries: live.libraries,
        ..machine::facts(&tree)
    };
    match live.gpus {
        Ok(gpus) => {
            facts.gpu_distances = distance::all(&tree, &gpus, &facts.rdma);
            facts.gpus = gpus;
        }
        Err(why) => {
            facts.unreadable.insert("gpus".into(), why);
        }
    }
    facts.unreadable.extend(tree.unreadable());
    for said in live.path_mtus {
        let mut ports = facts.rdma.iter_mut().filter(|device| device.name == said.device).flat_map(|d| &mut d.ports);
        let port = ports.find(|port| port.number == said.port);
        match (said.mtu, port) {
            (Ok(mtu), Some(port)) => port.mtu = Some(mtu),
            // A device that came between the two looks.
            (Ok(_), None) => {}
            (Err(why), _) => {
                facts.unreadable.insert(format!("path MTU of {} port {}", said.device, said.port), why);
            }
        }
    }
    if let Err(error) = live.addresses {
        facts.unreadable.insert("addresses".into(), error);
    }
    facts
}

#[cfg(test)]
mod tests;
