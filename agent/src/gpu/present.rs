//! GPUs on the PCI bus, whether any library tells of them or not.

use crate::system::tree::Tree;

/// AMD's vendor number on PCI.
const AMD: &str = "0x1002";
/// Classes of PCI functions that are GPUs: displays of any kind, and processing accelerators (PCI Code and ID Assignment, 03h and 12h).
const CLASSES: [&str; 2] = ["0x03", "0x12"];

/// PCI addresses of AMD's GPUs, in their order.
pub(crate) fn amd(tree: &Tree) -> Vec<String> {
    let is_gpu = |address: &String| {
        let told = |file: &str| tree.text(format!("sys/bus/pci/devices/{address}/{file}"));
        told("vendor").is_some_and(|vendor| vendor == AMD)
            && told("class").is_some_and(|class| CLASSES.iter().any(|one| class.starts_with(one)))
    };
    let mut found: Vec<String> = tree.names("sys/bus/pci/devices").into_iter().filter(is_gpu).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_told_from_other_functions_of_amd() {
        let root = tempfile::tempdir().unwrap();
        for (address, vendor, class) in [
            ("0000:65:00.0", "0x1002", "0x120000"),
            ("0000:05:00.0", "0x1002", "0x038000"),
            ("0000:05:00.1", "0x1002", "0x040300"),
            ("0000:00:08.0", "0x1022", "0x060400"),
            ("0000:1b:00.0", "0x10de", "0x030200"),
        ] {
            let place = root.path().join("sys/bus/pci/devices").join(address);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("vendor"), format!("{vendor}\n")).unwrap();
            std::fs::write(place.join("class"), format!("{class}\n")).unwrap();
        }
        assert_eq!(amd(&Tree::new(root.path())), ["0000:05:00.0", "0000:65:00.0"]);
        assert_eq!(amd(&Tree::new("/nonexistent")), [""; 0]);
    }
}
