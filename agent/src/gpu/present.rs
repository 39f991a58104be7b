//! GPUs on the PCI bus, independent of libraries, and distances of PCIe devices in `/sys/devices`. The words are those of `nvidia-smi
//! topo -m`: PIX at most one bridge, PXB several bridges, PHB a host bridge, NODE several host bridges of one NUMA node, SYS between NUMA
//! nodes.

use std::path::{Path, PathBuf};

use railgauge_wire::{Distance, Gpu, GpuDistance, RdmaDevice};

use crate::system::tree::Tree;

const AMD: &str = "0x1002";
const NVIDIA: &str = "0x10de";
/// Classes of PCI functions (PCI Code and ID Assignment): processing accelerators; displays of any kind; displays without an output; and
/// VGA controllers.
const ACCELERATOR: &str = "0x12";
const DISPLAY: &str = "0x03";
const NO_OUTPUT: &str = "0x0380";
const VGA: &str = "0x0300";

const NODES: &str = "sys/class/kfd/kfd/topology/nodes";

/// PCI addresses of AMD's GPUs in order: accelerators, displays without an output, and VGA controllers with a compute node of amdgpu.
/// With an NVIDIA GPU, an AMD display is the host's graphics, and only accelerators count.
pub(crate) fn amd(tree: &Tree) -> Vec<String> {
    let beside_nvidia = nvidia(tree);
    let mut computing = None;
    let mut computes =
        |address: &str| computing.get_or_insert_with(|| computing_at(tree)).iter().any(|at| at == address);
    let mut is_gpu = |address: &String| {
        let Some(class) = class(tree, address, AMD) else { return false };
        class.starts_with(ACCELERATOR)
            || !beside_nvidia && (class.starts_with(NO_OUTPUT) || class.starts_with(VGA) && computes(address))
    };
    let mut found: Vec<String> = functions(tree).into_iter().filter(|address| is_gpu(address)).collect();
    found.sort_unstable();
    found
}

pub(crate) fn nvidia(tree: &Tree) -> bool {
    functions(tree).iter().any(|address| class(tree, address, NVIDIA).is_some_and(|class| class.starts_with(DISPLAY)))
}

fn functions(tree: &Tree) -> Vec<String> {
    tree.names("sys/bus/pci/devices")
}

fn class(tree: &Tree, address: &str, of: &str) -> Option<String> {
    let told = |file: &str| tree.text(format!("sys/bus/pci/devices/{address}/{file}"));
    told("vendor").filter(|vendor| vendor == of).and_then(|_| told("class"))
}

fn computing_at(tree: &Tree) -> Vec<String> {
    let nodes = tree.names(NODES);
    let texts = nodes.iter().filter_map(|node| tree.text(format!("{NODES}/{node}/properties")));
    texts.filter_map(|text| place(&text)).collect()
}

/// Location of the GPU of a compute node; `None` for a processor's node. Bus, device and function are 16 bits; the bits above are a
/// partition's number.
fn place(properties: &str) -> Option<String> {
    let told = |wanted: &str| {
        let mut pairs = properties.lines().filter_map(|line| line.split_once(' '));
        pairs.find(|(name, _)| *name == wanted).and_then(|(_, value)| value.trim().parse::<u32>().ok())
    };
    told("simd_count").filter(|simds| *simds > 0)?;
    let (domain, at) = (told("domain")?, told("location_id")?);
    Some(format!("{domain:04x}:{:02x}:{:02x}.{}", at >> 8 & 0xff, at >> 3 & 0x1f, at & 7))
}

pub(crate) fn all(tree: &Tree, gpus: &[Gpu], devices: &[RdmaDevice]) -> Vec<GpuDistance> {
    let pairs = gpus.iter().flat_map(|gpu| devices.iter().map(move |device| (gpu, device)));
    pairs
        .filter_map(|(gpu, device)| {
            let distance = between(tree, gpu.pci.as_deref()?, device.pci.as_deref()?)?;
            Some(GpuDistance { gpu: gpu.index, device: device.name.clone(), distance })
        })
        .collect()
}

/// `None` where the tree lacks one of them.
pub(crate) fn between(tree: &Tree, one: &str, other: &str) -> Option<Distance> {
    let place = |address: &str| tree.target(format!("sys/bus/pci/devices/{address}"));
    let (one, other) = (place(one)?, place(other)?);
    let (mine, theirs) = (chain(&one), chain(&other));
    let shared = mine.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
    if shared > 0 {
        // A chain starts with the host bridge (`pci0000:16`) and its root port: below one root port, all unshared bridges are on the way.
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

    const NVIDIA: (&str, &str, &str) = ("0000:1b:00.0", "0x10de", "0x030200");

    fn told(functions: &[(&str, &str, &str)], nodes: &[(u32, u32)]) -> (Vec<String>, bool) {
        let root = tempfile::tempdir().unwrap();
        for (address, vendor, class) in functions {
            let place = root.path().join("sys/bus/pci/devices").join(address);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("vendor"), format!("{vendor}\n")).unwrap();
            std::fs::write(place.join("class"), format!("{class}\n")).unwrap();
        }
        for (at, (simds, (domain, location))) in
            [(0, (0, 0))].iter().chain(&nodes.iter().map(|n| (304, *n)).collect::<Vec<_>>()).enumerate()
        {
            let place = root.path().join("sys/class/kfd/kfd/topology/nodes").join(at.to_string());
            std::fs::create_dir_all(&place).unwrap();
            let text = format!("cpu_cores_count 0\nsimd_count {simds}\nlocation_id {location}\ndomain {domain}\n");
            std::fs::write(place.join("properties"), text).unwrap();
        }
        let tree = Tree::new(root.path());
        (amd(&tree), nvidia(&tree))
    }

    #[test]
    fn gpus_are_told_from_other_functions_of_amd() {
        let functions = [
            ("0000:65:00.0", "0x1002", "0x120000"),
            ("0000:05:00.0", "0x1002", "0x038000"),
            ("0000:05:00.1", "0x1002", "0x040300"),
            ("0000:00:08.0", "0x1022", "0x060400"),
        ];
        let both = ["0000:05:00.0", "0000:65:00.0"].map(str::to_owned).to_vec();
        assert_eq!(told(&functions, &[]), (both, false));
        assert_eq!(amd(&Tree::new("/nonexistent")), [""; 0]);
    }

    #[test]
    fn graphics_count_only_where_they_compute() {
        let graphics = [("0000:0a:00.0", "0x1002", "0x030000"), ("0001:41:00.0", "0x1002", "0x030000")];
        assert_eq!(told(&graphics, &[]).0, [""; 0]);
        assert_eq!(told(&graphics, &[(0, 0x4100)]).0, [""; 0]);
        assert_eq!(told(&graphics, &[(1, 0x4100)]).0, ["0001:41:00.0"]);
        assert_eq!(told(&graphics, &[(1, 0x4100), (0, 0x0a00)]).0, ["0000:0a:00.0", "0001:41:00.0"]);
    }

    #[test]
    fn beside_gpus_of_nvidia_only_accelerators_of_amd_count() {
        let mixed = [
            NVIDIA,
            ("0000:0a:00.0", "0x1002", "0x030000"),
            ("0000:0b:00.0", "0x1002", "0x038000"),
            ("0000:65:00.0", "0x1002", "0x120000"),
        ];
        assert_eq!(told(&mixed, &[(0, 0x0a00), (0, 0x0b00)]), (vec!["0000:65:00.0".to_owned()], true));
        let switch = [("0000:c1:00.0", "0x10de", "0x068000"), ("0000:0b:00.0", "0x1002", "0x038000")];
        assert_eq!(told(&switch, &[]), (vec!["0000:0b:00.0".to_owned()], false));
    }

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
