//! PCIe functions (kernel documentation: ABI/testing/sysfs-bus-pci) and the bridges above them.

use std::path::{Path, PathBuf};

use railgauge_wire::facts::{Bridge, PciErrors, PciFunction, Sriov};

use super::config_space::{ConfigSpace, PUBLIC};
use crate::system::tree::Tree;

/// All PCI devices, by address.
const DEVICES: &str = "sys/bus/pci/devices";

/// What the function at an address is set to.
pub(crate) fn function_at(tree: &Tree, address: &str) -> PciFunction {
    tree.target(format!("{DEVICES}/{address}")).map_or_else(PciFunction::default, |place| function(tree, &place))
}

/// What the function of a directory below `sys/devices` is set to.
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

/// The PCI device a directory lies in, itself or one above (some drivers hang an auxiliary device between).
pub(crate) fn directory(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|path| is_function(path)).map(Into::into)
}

/// Whether a directory is called by a PCI address such as `0000:3b:00.1`.
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

/// Configuration space as far as it can be read; what ordinary users do not see is noted.
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

fn sriov(tree: &Tree, place: &Path) -> Option<Sriov> {
    if tree.has(place.join("physfn")) {
        return Some(Sriov::Virtual);
    }
    // There is no such file for a function that cannot.
    tree.text(place.join("sriov_numvfs"))?.parse().ok().map(Sriov::Physical)
}

/// Totals of the files that Advanced Error Reporting keeps; absent where the platform keeps the errors to itself.
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
