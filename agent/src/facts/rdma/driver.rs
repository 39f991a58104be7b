//! The kernel driver of an RDMA device.

use std::path::{Path, PathBuf};

use crate::system::tree::Tree;

/// Drivers of PCI functions whose RDMA devices are iWARP, or may be: an iWARP device on another one is siw.
const IWARP: [&str; 6] = ["cxgb4", "i40e", "ice", "idpf", "qede", "erdma"];

/// The emulation that a device is. On older kernels both show the device of the interface below as their own, so that its
/// absence is no sign: Soft-RoCE is the one with a `parent` attribute (drivers/infiniband/sw/rxe/rxe_verbs.c), and siw
/// describes itself (drivers/infiniband/sw/siw/siw_main.c) unless somebody has renamed it.
pub(crate) fn emulation(tree: &Tree, at: &str) -> Option<&'static str> {
    if tree.has(format!("{at}/parent")) {
        return Some("rdma_rxe");
    }
    if tree.text(format!("{at}/node_desc")).is_some_and(|text| text.starts_with("Software iWARP")) {
        return Some("siw");
    }
    let iwarp = tree.text(format!("{at}/node_type")).is_some_and(|kind| kind.starts_with("4:"));
    let of_iwarp = || name(tree.target(format!("{at}/device/driver"))?);
    let other = || !of_iwarp().is_some_and(|driver| IWARP.contains(&driver.as_str()));
    (iwarp && tree.has("sys/module/siw") && other()).then_some("siw")
}

/// The driver of the function below a device that is no emulation.
pub(super) fn of(tree: &Tree, at: &str, pci: Option<&Path>) -> Option<String> {
    let linked = pci.and_then(|pci| tree.target(pci.join("driver")));
    name(linked.or_else(|| tree.target(format!("{at}/device/driver")))?)
}

fn name(path: PathBuf) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}
