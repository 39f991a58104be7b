//! PCIe functions (kernel documentation: ABI/testing/sysfs-bus-pci), the bridges above them, and registers in configuration space that
//! sysfs lacks (PCI Express Base Specification, Device Control, Access Control Services, Address Translation Services).

use std::path::{Path, PathBuf};

use railgauge_wire::{Bridge, PciErrors, PciFunction, Sriov};

use crate::system::tree::Tree;

const DEVICES: &str = "sys/bus/pci/devices";

pub(crate) fn function_at(tree: &Tree, address: &str) -> PciFunction {
    tree.target(format!("{DEVICES}/{address}")).map_or_else(PciFunction::default, |place| function(tree, &place))
}

pub(crate) fn function(tree: &Tree, place: &Path) -> PciFunction {
    let config = config(tree, place);
    let space = ConfigSpace::new(&config);
    let control = space.device_control();
    PciFunction {
        max_read_request: control.map(|control| control.max_read_request()),
        max_payload: control.map(|control| control.max_payload()),
        relaxed_ordering: control.map(|control| control.relaxed_ordering()),
        ats: space.address_translation(),
        iommu: tree.text(place.join("iommu_group/type")),
        sriov: sriov(tree, place),
        errors: errors(tree, place),
        bridges: bridges(tree, place),
    }
}

/// Link speed in GT/s and width of a function: `current` or `max`.
pub(crate) fn link(tree: &Tree, place: &Path, which: &str) -> Option<(f64, u32)> {
    let speed = tree.text(place.join(format!("{which}_link_speed")))?;
    // "16.0 GT/s PCIe"; "Unknown" for virtual functions.
    let speed = speed.split_whitespace().next()?.parse::<f64>().ok().filter(|speed| speed.is_finite())?;
    Some((speed, tree.text(place.join(format!("{which}_link_width")))?.parse().ok().filter(|width| *width > 0)?))
}

/// The device of a directory, itself or one above (some drivers insert an auxiliary device).
pub(crate) fn directory(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|path| is_function(path)).map(Into::into)
}

/// For a name such as `0000:3b:00.1`.
pub(crate) fn is_function(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let name = name.to_string_lossy();
    let hex = |text: &str, digits: usize| text.len() >= digits && text.chars().all(|c| c.is_ascii_hexdigit());
    let mut parts = name.split(':');
    match (parts.next(), parts.next(), parts.next().and_then(|last| last.split_once('.')), parts.next()) {
        (Some(domain), Some(bus), Some((slot, function)), None) => {
            hex(domain, 4) && hex(bus, 2) && hex(slot, 2) && hex(function, 1)
        }
        _ => false,
    }
}

/// The readable part of configuration space; a restricted one is noted.
fn config(tree: &Tree, place: &Path) -> Vec<u8> {
    let bytes = tree.bytes(place.join("config")).unwrap_or_default();
    if bytes.len() == PUBLIC {
        tree.note("PCIe settings", "only root may read configuration space beyond its first 64 bytes");
    }
    bytes
}

fn name(place: &Path) -> String {
    place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Virtual functions by their device (kernel drivers/net/ethernet/mellanox/mlx5/core/main.c, `MLX5_PCI_DEV_IS_VF`).
const MLX5_VIRTUAL: [&str; 8] = ["0x1012", "0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e", "0xa2d3"];

fn sriov(tree: &Tree, place: &Path) -> Option<Sriov> {
    // A virtual machine shows a virtual function without the physical one.
    let id = |file: &str| tree.text(place.join(file));
    let named = id("vendor").is_some_and(|vendor| vendor == "0x15b3")
        && id("device").is_some_and(|device| MLX5_VIRTUAL.contains(&device.as_str()));
    if named || tree.has(place.join("physfn")) {
        return Some(Sriov::Virtual);
    }
    // The file exists only for functions with SR-IOV.
    tree.text(place.join("sriov_numvfs"))?.parse().ok().map(Sriov::Physical)
}

/// Totals of Advanced Error Reporting; `None` where the platform handles errors itself.
fn errors(tree: &Tree, place: &Path) -> Option<PciErrors> {
    let total = |file: &str, line: &str| {
        let text = tree.text(place.join(file))?;
        text.lines().find_map(|text| text.strip_prefix(line)?.trim().parse::<u64>().ok())
    };
    Some(PciErrors {
        corrected: total("aer_dev_correctable", "TOTAL_ERR_COR")?,
        nonfatal: total("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL")?,
        fatal: total("aer_dev_fatal", "TOTAL_ERR_FATAL")?,
    })
}

/// Bridges above a function, the root port first.
fn bridges(tree: &Tree, place: &Path) -> Vec<Bridge> {
    let mut above: Vec<&Path> = place.ancestors().skip(1).take_while(|path| is_function(path)).collect();
    above.reverse();
    let bridge = |place: &Path| Bridge {
        pci: name(place),
        link: link(tree, place, "current"),
        link_max: link(tree, place, "max"),
        acs: ConfigSpace::new(&config(tree, place)).access_control(),
    };
    above.into_iter().map(bridge).collect()
}

/// Bytes that all users may read; the rest is for root.
pub(crate) const PUBLIC: usize = 64;
const EXTENDED: usize = 256;
/// Status register: bit 4 says that there are capabilities.
const STATUS: usize = 0x06;
/// Pointer to the first capability.
const CAPABILITIES: usize = 0x34;
const PCI_EXPRESS: u8 = 0x10;
const ACCESS_CONTROL: u16 = 0x0d;
const ADDRESS_TRANSLATION: u16 = 0x0f;
/// Names of the bits of ACS Control, lowest first.
const SERVICES: [&str; 7] = [
    "source validation",
    "translation blocking",
    "request redirect",
    "completion redirect",
    "upstream forwarding",
    "egress control",
    "direct translated",
];

/// A function's configuration space, as far as it could be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfigSpace<'a>(&'a [u8]);

impl<'a> ConfigSpace<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn device_control(self) -> Option<DeviceControl> {
        Some(DeviceControl(self.u16(self.capability(PCI_EXPRESS)? + 8)?))
    }

    /// `None` without any of them.
    pub(crate) fn access_control(self) -> Option<Vec<String>> {
        let control = self.u16(self.extended(ACCESS_CONTROL)? + 6)?;
        let on = (0..).zip(SERVICES).filter(|(bit, _)| control >> bit & 1 == 1);
        Some(on.map(|(_, name)| name.to_owned()).collect())
    }

    /// `None` where the function cannot.
    pub(crate) fn address_translation(self) -> Option<bool> {
        Some(self.u16(self.extended(ADDRESS_TRANSLATION)? + 6)? >> 15 == 1)
    }

    fn u8(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    fn u16(self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes([self.u8(at)?, self.u8(at + 1)?]))
    }

    /// Offset of a capability. The chain's length is limited, so a broken one ends.
    fn capability(self, wanted: u8) -> Option<usize> {
        if self.u16(STATUS)? & 0x10 == 0 {
            return None;
        }
        let mut at = usize::from(self.u8(CAPABILITIES)? & 0xfc);
        for _ in 0..EXTENDED / 4 {
            match self.u8(at)? {
                _ if at < PUBLIC => return None,
                id if id == wanted => return Some(at),
                _ => at = usize::from(self.u8(at + 1)? & 0xfc),
            }
        }
        None
    }

    /// Offset of an extended capability: the header has its id in the lower 16 bits, the next offset in the upper 12.
    fn extended(self, wanted: u16) -> Option<usize> {
        let mut at = EXTENDED;
        for _ in 0..4096 / 4 {
            let (id, next) = (self.u16(at)?, usize::from(self.u16(at + 2)? >> 4));
            match (id, next) {
                (0 | u16::MAX, _) => return None,
                (id, _) if id == wanted => return Some(at),
                (_, next) if next < EXTENDED => return None,
                (_, next) => at = next,
            }
        }
        None
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceControl(u16);

impl DeviceControl {
    /// Largest read request, in bytes.
    pub(crate) const fn max_read_request(self) -> u32 {
        128 << (self.0 >> 12 & 7)
    }

    /// Largest payload, in bytes.
    pub(crate) const fn max_payload(self) -> u32 {
        128 << (self.0 >> 5 & 7)
    }

    pub(crate) const fn relaxed_ordering(self) -> bool {
        self.0 >> 4 & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn function() -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        let mut put = |at: usize, words: &[u8]| bytes[at..at + words.len()].copy_from_slice(words);
        put(STATUS, &[0x10, 0]);
        put(CAPABILITIES, &[0x40]);
        put(0x40, &[0x01, 0x60]);
        put(0x60, &[PCI_EXPRESS, 0]);
        // Read requests of 4096, payloads of 256, relaxed ordering.
        put(0x68, &[0x30, 0x51]);
        put(0x100, &[0x0d, 0, 0x01, 0x15]);
        put(0x106, &[0x1d, 0]);
        put(0x150, &[0x0f, 0, 0x01, 0]);
        put(0x156, &[0, 0x80]);
        bytes
    }

    #[test]
    fn registers_are_read() {
        let bytes = function();
        let space = ConfigSpace::new(&bytes);
        let control = space.device_control().unwrap();
        assert_eq!((control.max_read_request(), control.max_payload(), control.relaxed_ordering()), (4096, 256, true));
        let services = ["source validation", "request redirect", "completion redirect", "upstream forwarding"];
        assert_eq!(space.access_control().unwrap(), services);
        assert_eq!(space.address_translation(), Some(true));
    }

    #[test]
    fn what_is_not_readable_is_not_known() {
        let bytes = function();
        let space = ConfigSpace::new(&bytes[..PUBLIC]);
        assert!(space.device_control().is_none() && space.access_control().is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_turn_for_ever(bytes in prop::collection::vec(any::<u8>(), 0..4200)) {
            let space = ConfigSpace::new(&bytes);
            let _ = (space.device_control().map(DeviceControl::max_payload), space.access_control(), space.address_translation());
        }
    }
}
