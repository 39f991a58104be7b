//! Kernel modules that matter to RDMA and GPUs (kernel documentation: ABI/stable/sysfs-module).

use std::collections::BTreeMap;

use railgauge_wire::{facts::MODULES, gather::Gather};

use crate::system::tree::Tree;

/// Modules that are loaded or built in with parameters, and their versions; empty where one has none.
pub(crate) fn loaded(tree: &Tree) -> BTreeMap<String, String> {
    let there = MODULES.into_iter().filter(|name| tree.has(format!("sys/module/{name}")));
    there.map(|name| (name.to_owned(), version(tree, name))).gathered()
}

fn version(tree: &Tree, name: &str) -> String {
    let version = tree.text(format!("sys/module/{name}/version")).unwrap_or_default();
    // NVIDIA's two flavours share a name and a version; only the open one shares GPU memory as dma-bufs.
    let open = name == "nvidia"
        && tree.text("proc/driver/nvidia/version").is_some_and(|text| text.contains("Open Kernel Module"));
    if open { format!("{version} (open)").trim().to_owned() } else { version }
}
