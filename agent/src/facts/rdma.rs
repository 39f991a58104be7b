//! RDMA devices, from `/sys/class/infiniband` (kernel documentation: ABI/stable/sysfs-class-infiniband).
//!
//! | file | finds |
//! | --- | --- |
//! | `driver` | the kernel driver, and whether it is an emulation |
//! | `interface` | the network interface behind a port, and the members of a bond |
//! | `rate` | the rate of a port, where the driver's is not true |
//! | `health` | counters that say nothing any more |

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use railgauge_wire::{
    drivers::{RateOrigin, known},
    facts::{Gid, RdmaDevice, RdmaPort},
    gather::Gather,
    unit::GigabitsPerSecond,
};

pub(crate) mod driver;
mod health;
mod interface;
mod rate;

pub(crate) use interface::Below;

use super::pci;
use crate::system::tree::Tree;
use rate::Rate;

pub(crate) const CLASS: &str = "sys/class/infiniband";

/// All devices, in the order of their names.
pub(crate) fn devices(tree: &Tree) -> Vec<RdmaDevice> {
    tree.names(CLASS).into_iter().map(|name| device(tree, name)).collect()
}

/// PCI address of a device, in sysfs' spelling; emulations have none.
pub(crate) fn address(tree: &Tree, name: &str) -> Option<String> {
    function_of(tree, name)?.file_name().map(|name| name.to_string_lossy().into_owned())
}

pub(crate) fn function_of(tree: &Tree, name: &str) -> Option<PathBuf> {
    pci::directory(&tree.target(format!("{CLASS}/{name}/device"))?)
}

struct Hardware {
    /// Its place on the bus, if it has one.
    place: Option<PathBuf>,
    pci: Option<PathBuf>,
    driver: Option<String>,
    software: bool,
}

fn hardware(tree: &Tree, at: &str) -> Hardware {
    let emulation = driver::emulation(tree, at);
    // An emulation may show the device of the interface that it runs on (Soft-RoCE and siw on older kernels).
    let place = tree.target(format!("{at}/device")).filter(|_| emulation.is_none());
    let pci = place.as_deref().and_then(pci::directory);
    let driver = emulation.map(str::to_owned).or_else(|| driver::of(tree, at, pci.as_deref()));
    let software = emulation.is_some() || place.is_none();
    Hardware { place, pci, driver, software }
}

fn device(tree: &Tree, name: String) -> RdmaDevice {
    let at = format!("{CLASS}/{name}");
    let Hardware { place, pci, driver, software } = hardware(tree, &at);
    let pcie = |which: &str| pci::link(tree, pci.as_deref()?, which);
    let numbers = tree.names(format!("{at}/ports")).into_iter().filter_map(|port| port.parse::<u8>().ok());
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_unstable();
    let numa = place.as_ref().and_then(|_| tree.value::<i64>(format!("{at}/device/numa_node")));
    let about = About { name: &name, driver: driver.as_deref(), software };
    RdmaDevice {
        // "1: CA", "4: RNIC".
        kind: tree.text(format!("{at}/node_type")).map(|text| after_colon(&text)),
        firmware: tree.text(format!("{at}/fw_ver")).filter(|text| !text.is_empty()),
        board: tree.text(format!("{at}/board_id")).filter(|text| !text.is_empty()),
        guid: tree.text(format!("{at}/node_guid")),
        numa: numa.and_then(|node| u32::try_from(node).ok()),
        pcie: pcie("current"),
        pcie_max: pcie("max"),
        function: pci.as_deref().map(|place| pci::function(tree, place)).unwrap_or_default(),
        ports: numbers.into_iter().map(|number| port(tree, &about, number)).collect(),
        pci: pci.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()),
        // Asked of the running system: see `device_files`.
        device_file: None,
        driver,
        software,
        name,
    }
}

/// What a port's facts need of its device.
struct About<'a> {
    name: &'a str,
    driver: Option<&'a str>,
    software: bool,
}

fn after_colon(text: &str) -> String {
    text.split_once(':').map_or(text, |(_, word)| word).trim().to_owned()
}

fn port(tree: &Tree, about: &About<'_>, number: u8) -> RdmaPort {
    let name = about.name;
    let device = format!("{CLASS}/{name}");
    let at = format!("{device}/ports/{number}");
    // "4: ACTIVE" and "5: LinkUp".
    let word = |file: &str| Some(after_colon(&tree.text(format!("{at}/{file}"))?));
    let gids = gids(tree, &at);
    let below = interface::below(tree, name, number, &gids);
    let rate = rate::of(tree, &at, about.driver.filter(|_| !about.software), &below);
    let rate = if about.software { Rate::default() } else { rate };
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
        rate_gbps: rate.gbps,
        rate_source: rate.source,
        verbs_rate_gbps: rate.verbs_gbps,
        mtu: None,
        saturated: health::saturated(tree, &at),
        unreadable_counters: health::unreadable(tree, &device, &at, about.driver),
        netdev: below.netdev,
        members: below.members,
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
    let keys: BTreeSet<String> = keys.filter_map(|index| tree.text(format!("{port}/pkeys/{index}"))).gathered();
    keys.into_iter().filter(|key| key != "0x0000").collect()
}

/// MLNX_OFED's file says `Global tclass=106`, and nothing while no class is forced.
fn traffic_class(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.trim().strip_prefix("Global tclass=")?.trim().parse().ok())
}

/// The rate of a port of a device that is reckoned with; `None` where nobody knows it, and of emulations.
pub(crate) fn rate(tree: &Tree, device: &str, number: u8) -> Option<GigabitsPerSecond> {
    let at = format!("{CLASS}/{device}");
    let Hardware { driver, software, .. } = hardware(tree, &at);
    let driver = driver.as_deref().filter(|_| !software);
    let rate = rate::of(tree, &format!("{at}/ports/{number}"), driver, &below(tree, device, number));
    rate.gbps.filter(|_| !software)
}

/// Where the rate of a device's ports comes from; `None` for an emulation, which has none.
pub(crate) fn rate_origin(tree: &Tree, device: &str) -> Option<RateOrigin> {
    let Hardware { driver, software, .. } = hardware(tree, &format!("{CLASS}/{device}"));
    (!software).then(|| driver.as_deref().and_then(known).map_or(RateOrigin::Device, |driver| driver.rate))
}

/// The interfaces behind a port of a device.
pub(crate) fn below(tree: &Tree, device: &str, number: u8) -> Below {
    interface::below(tree, device, number, &gids(tree, &format!("{CLASS}/{device}/ports/{number}")))
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
