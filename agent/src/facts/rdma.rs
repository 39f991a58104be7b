//! RDMA devices, from `/sys/class/infiniband` (kernel documentation: ABI/stable/sysfs-class-infiniband).

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use railgauge_wire::{
    facts::{Gid, RdmaDevice, RdmaPort},
    unit::GigabitsPerSecond,
};

use super::pci;
use crate::system::tree::Tree;

/// Directory of the devices.
pub(crate) const CLASS: &str = "sys/class/infiniband";

/// All devices, in the order of their names.
pub(crate) fn devices(tree: &Tree) -> Vec<RdmaDevice> {
    tree.names(CLASS).into_iter().map(|name| device(tree, name)).collect()
}

/// PCI address of a device, in sysfs' spelling; emulations have none.
pub(crate) fn address(tree: &Tree, name: &str) -> Option<String> {
    let hardware = tree.target(format!("{CLASS}/{name}/device"))?;
    pci::directory(&hardware)?.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn device(tree: &Tree, name: String) -> RdmaDevice {
    let at = format!("{CLASS}/{name}");
    let hardware = tree.target(format!("{at}/device"));
    let pci = hardware.as_deref().and_then(pci::directory);
    let driver = driver(tree, &at, pci.as_deref());
    let software = is_software(driver.as_deref(), hardware.is_some());
    let pcie = |which: &str| pci::link(tree, pci.as_deref()?, which);
    let numbers = tree.names(format!("{at}/ports")).into_iter().filter_map(|port| port.parse::<u8>().ok());
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_unstable();
    RdmaDevice {
        // "1: CA", "4: RNIC".
        kind: tree.text(format!("{at}/node_type")).map(|text| after_colon(&text)),
        firmware: tree.text(format!("{at}/fw_ver")).filter(|text| !text.is_empty()),
        board: tree.text(format!("{at}/board_id")).filter(|text| !text.is_empty()),
        guid: tree.text(format!("{at}/node_guid")),
        numa: tree.value::<i64>(format!("{at}/device/numa_node")).and_then(|node| u32::try_from(node).ok()),
        pcie: pcie("current"),
        pcie_max: pcie("max"),
        function: pci.as_deref().map(|place| pci::function(tree, place)).unwrap_or_default(),
        ports: numbers.into_iter().map(|number| port(tree, &name, number, software)).collect(),
        pci: pci.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()),
        driver,
        software,
        name,
    }
}

/// The kernel driver. Emulations have no device below them; Soft-RoCE is the one with a `parent` attribute, and the
/// only emulation of an iWARP device is siw.
fn driver(tree: &Tree, at: &str, pci: Option<&Path>) -> Option<String> {
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let linked = pci.and_then(|pci| tree.target(pci.join("driver")));
    if let Some(linked) = linked.or_else(|| tree.target(format!("{at}/device/driver"))) {
        return name(linked);
    }
    if tree.has(format!("{at}/device")) {
        return None;
    }
    if tree.has(format!("{at}/parent")) {
        return Some("rdma_rxe".into());
    }
    let iwarp = tree.text(format!("{at}/node_type")).is_some_and(|kind| kind.starts_with("4:"));
    (iwarp && tree.has("sys/module/siw")).then(|| "siw".into())
}

/// Whether a device is an emulation: by its driver, or since there is nothing below it.
fn is_software(driver: Option<&str>, has_hardware: bool) -> bool {
    matches!(driver, Some("rdma_rxe" | "siw")) || !has_hardware
}

fn after_colon(text: &str) -> String {
    text.split_once(':').map_or(text, |(_, word)| word).trim().to_owned()
}

fn port(tree: &Tree, name: &str, number: u8, software: bool) -> RdmaPort {
    let device = format!("{CLASS}/{name}");
    let at = format!("{device}/ports/{number}");
    // "4: ACTIVE" and "5: LinkUp".
    let word = |file: &str| Some(after_colon(&tree.text(format!("{at}/{file}"))?));
    // "100 Gb/sec (4X EDR)". Emulations report a rate that says nothing.
    let rate = || tree.text(format!("{at}/rate"))?.split_whitespace().next()?.parse().ok().map(GigabitsPerSecond);
    let gids = gids(tree, &at);
    let link_layer = tree.text(format!("{at}/link_layer"));
    let infiniband = link_layer.as_deref() == Some("InfiniBand");
    RdmaPort {
        number,
        state: word("state"),
        physical: word("phys_state"),
        lid: infiniband.then(|| number_in(tree, format!("{at}/lid"))).flatten(),
        subnet_manager: infiniband.then(|| number_in(tree, format!("{at}/sm_lid"))).flatten(),
        partitions: if infiniband { partitions(tree, &at) } else { Vec::new() },
        traffic_class: tree.text(format!("{device}/tc/{number}/traffic_class")).and_then(|text| traffic_class(&text)),
        cm_tos: tree.value(format!("sys/kernel/config/rdma_cm/{name}/ports/{number}/default_roce_tos")),
        link_layer,
        rate_gbps: (!software).then(rate).flatten().filter(|rate| rate.is_rate()),
        mtu: None,
        netdev: netdev(tree, &device, number, &gids),
        gids,
        traffic: None,
    }
}

/// A number as InfiniBand's files have it: `0x1c`.
fn number_in(tree: &Tree, path: String) -> Option<u32> {
    let text = tree.text(path)?;
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
}

/// Partition keys that are set, each once.
fn partitions(tree: &Tree, port: &str) -> Vec<String> {
    let keys = tree.names(format!("{port}/pkeys")).into_iter();
    let keys: BTreeSet<String> = keys.filter_map(|index| tree.text(format!("{port}/pkeys/{index}"))).collect();
    keys.into_iter().filter(|key| key != "0x0000").collect()
}

/// MLNX_OFED's file says `Global tclass=106`, and nothing while no class is forced.
fn traffic_class(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.trim().strip_prefix("Global tclass=")?.trim().parse().ok())
}

/// The interface behind a port of a device.
pub(crate) fn netdev_of(tree: &Tree, device: &str, number: u8) -> Option<String> {
    let at = format!("{CLASS}/{device}");
    netdev(tree, &at, number, &gids(tree, &format!("{at}/ports/{number}")))
}

fn gids(tree: &Tree, port: &str) -> Vec<Gid> {
    let mut indices: Vec<u32> =
        tree.names(format!("{port}/gids")).into_iter().filter_map(|index| index.parse().ok()).collect();
    indices.sort_unstable();
    let set = indices.into_iter().filter_map(|index| {
        let gid = tree.text(format!("{port}/gids/{index}"))?;
        let is_set = gid.chars().any(|c| !matches!(c, '0' | ':'));
        is_set.then(|| Gid {
            index,
            gid,
            kind: tree.text(format!("{port}/gid_attrs/types/{index}")),
            netdev: tree.text(format!("{port}/gid_attrs/ndevs/{index}")),
        })
    });
    set.collect()
}

/// The interface behind a port: what its GIDs say, else what hangs on the same device with the port's number.
fn netdev(tree: &Tree, device: &str, number: u8, gids: &[Gid]) -> Option<String> {
    if let Some(named) = gids.iter().find_map(|gid| gid.netdev.clone()) {
        return Some(named);
    }
    let names = tree.names(format!("{device}/device/net"));
    let port_of = |name: &String| {
        let file = |file: &str| tree.text(format!("sys/class/net/{name}/{file}"));
        let number = file("dev_port").and_then(|text| text.parse::<u32>().ok()).filter(|port| *port > 0);
        // Drivers older than `dev_port` put the number into `dev_id`, in hexadecimal.
        let older = || u32::from_str_radix(file("dev_id")?.trim_start_matches("0x"), 16).ok();
        number.or_else(older).unwrap_or(0) + 1
    };
    match names.as_slice() {
        [only] => Some(only.clone()),
        _ => names.iter().find(|name| port_of(name) == u32::from(number)).cloned(),
    }
    .or_else(|| tree.text(format!("{device}/parent")).filter(|text| !text.is_empty()))
}
