//! GPUs on the PCI bus, whether any library tells of them or not.

use crate::system::tree::Tree;

/// Vendor numbers on PCI.
const AMD: &str = "0x1002";
const NVIDIA: &str = "0x10de";
/// Classes of PCI functions (PCI Code and ID Assignment): processing accelerators; displays of any kind; displays without an output; and
/// VGA controllers.
const ACCELERATOR: &str = "0x12";
const DISPLAY: &str = "0x03";
const NO_OUTPUT: &str = "0x0380";
const VGA: &str = "0x0300";

/// Where amdgpu lists what computes: processors and GPUs.
const NODES: &str = "sys/class/kfd/kfd/topology/nodes";

/// PCI addresses of AMD's GPUs, in their order: accelerators, displays without an output, and VGA controllers that amdgpu has a compute
/// node for. Beside a GPU of NVIDIA a display of AMD's is the host's graphics, and only accelerators count.
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

/// The class of a function of this vendor.
fn class(tree: &Tree, address: &str, of: &str) -> Option<String> {
    let told = |file: &str| tree.text(format!("sys/bus/pci/devices/{address}/{file}"));
    told("vendor").filter(|vendor| vendor == of).and_then(|_| told("class"))
}

/// PCI addresses of the GPUs that amdgpu has compute nodes for.
fn computing_at(tree: &Tree) -> Vec<String> {
    let nodes = tree.names(NODES);
    let texts = nodes.iter().filter_map(|node| tree.text(format!("{NODES}/{node}/properties")));
    texts.filter_map(|text| place(&text)).collect()
}

/// Where the GPU of a compute node is, by the node's properties; `None` of a processor's node. The place is bus, device and function in 16
/// bits; above them stands the number of a partition.
fn place(properties: &str) -> Option<String> {
    let told = |wanted: &str| {
        let mut pairs = properties.lines().filter_map(|line| line.split_once(' '));
        pairs.find(|(name, _)| *name == wanted).and_then(|(_, value)| value.trim().parse::<u32>().ok())
    };
    told("simd_count").filter(|simds| *simds > 0)?;
    let (domain, at) = (told("domain")?, told("location_id")?);
    Some(format!("{domain:04x}:{:02x}:{:02x}.{}", at >> 8 & 0xff, at >> 3 & 0x1f, at & 7))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NVIDIA: (&str, &str, &str) = ("0000:1b:00.0", "0x10de", "0x030200");

    /// A host with these functions, and with amdgpu's compute nodes at these places (domain, location).
    fn told(functions: &[(&str, &str, &str)], nodes: &[(u32, u32)]) -> (Vec<String>, bool) {
        let root = tempfile::tempdir().unwrap();
        for (address, vendor, class) in functions {
            let place = root.path().join("sys/bus/pci/devices").join(address);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("vendor"), format!("{vendor}\n")).unwrap();
            std::fs::write(place.join("class"), format!("{class}\n")).unwrap();
        }
        // The first is a processor's.
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
        // A switch of NVIDIA is no GPU.
        let switch = [("0000:c1:00.0", "0x10de", "0x068000"), ("0000:0b:00.0", "0x1002", "0x038000")];
        assert_eq!(told(&switch, &[]), (vec!["0000:0b:00.0".to_owned()], false));
    }
}
