//! How far two PCIe devices are from each other, from their places in `/sys/devices`.
//!
//! The words are those of `nvidia-smi topo -m`: PIX at most one bridge, PXB several bridges, PHB a host bridge, NODE
//! several host bridges of one NUMA node, SYS between NUMA nodes.

use std::path::{Path, PathBuf};

use railgauge_wire::{
    facts::{Gpu, GpuDistance, RdmaDevice},
    terms::Distance,
};

use crate::system::tree::Tree;

/// Every pair of a GPU and an RDMA device whose places are known.
pub(crate) fn all(tree: &Tree, gpus: &[Gpu], devices: &[RdmaDevice]) -> Vec<GpuDistance> {
    let pairs = gpus.iter().flat_map(|gpu| devices.iter().map(move |device| (gpu, device)));
    pairs
        .filter_map(|(gpu, device)| {
            let distance = between(tree, gpu.pci.as_deref()?, device.pci.as_deref()?)?;
            Some(GpuDistance { gpu: gpu.index, device: device.name.clone(), distance })
        })
        .collect()
}

/// The distance of two PCI addresses; `None` where the tree does not hold one of them.
pub(crate) fn between(tree: &Tree, one: &str, other: &str) -> Option<Distance> {
    let place = |address: &str| tree.target(format!("sys/bus/pci/devices/{address}"));
    let (one, other) = (place(one)?, place(other)?);
    let (mine, theirs) = (chain(&one), chain(&other));
    let shared = mine.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
    if shared > 0 {
        // The first of a chain is the host bridge (`pci0000:16`), the second its root port: below one root port, all
        // bridges that are not shared lie on the way.
        let bridges = (mine.len() - shared).saturating_sub(1) + (theirs.len() - shared).saturating_sub(1);
        return Some(match (shared, bridges) {
            (1, _) => Distance::Phb,
            (_, 0) => Distance::Pix,
            // A switch is an upstream port and one downstream port per device: two bridges, one switch.
            (_, 1 | 2) => Distance::Pix,
            _ => Distance::Pxb,
        });
    }
    let node = |place: &PathBuf| tree.value::<i64>(place.join("numa_node")).filter(|node| *node >= 0);
    Some(match (node(&one), node(&other)) {
        (Some(one), Some(other)) if one != other => Distance::Sys,
        _ => Distance::Node,
    })
}

fn chain(place: &Path) -> Vec<String> {
    let names = place.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    names.skip_while(|name| !name.starts_with("pci")).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    /// A tree with these devices: their path below `sys/devices`, and their NUMA node.
    fn tree(devices: &[(&str, i32)]) -> (tempfile::TempDir, Tree) {
        let root = tempfile::tempdir().unwrap();
        let all = root.path().join("sys/bus/pci/devices");
        fs::create_dir_all(&all).unwrap();
        for (path, node) in devices {
            let place = root.path().join("sys/devices").join(path);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("numa_node"), format!("{node}\n")).unwrap();
            symlink(&place, all.join(place.file_name().unwrap())).unwrap();
        }
        let found = Tree::new(root.path());
        (root, found)
    }

    #[test]
    fn the_words_of_the_field() {
        let (_root, tree) = tree(&[
            // GPU and NIC behind one switch.
            ("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0", 0),
            ("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0", 0),
            // Behind another switch below it.
            ("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1a:00.0/0000:1b:00.0/0000:1c:00.0", 0),
            // Another root port of the same host bridge.
            ("pci0000:15/0000:15:02.0/0000:20:00.0", 0),
            // Another host bridge of the node, and of the other node.
            ("pci0000:37/0000:37:01.0/0000:38:00.0", 0),
            ("pci0000:97/0000:97:01.0/0000:98:00.0", 1),
        ]);
        let from = |other: &str| between(&tree, "0000:18:00.0", other);
        assert_eq!(from("0000:19:00.0"), Some(Distance::Pix));
        assert_eq!(from("0000:1c:00.0"), Some(Distance::Pxb));
        assert_eq!(from("0000:20:00.0"), Some(Distance::Phb));
        assert_eq!(from("0000:38:00.0"), Some(Distance::Node));
        assert_eq!(from("0000:98:00.0"), Some(Distance::Sys));
        assert_eq!(from("0000:99:00.0"), None);
    }
}
