//! RDMA devices, from `/sys/class/infiniband` (kernel documentation: ABI/stable/sysfs-class-infiniband), their device files, and the
//! active path MTU of every port through libibverbs.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::{Path, PathBuf},
};

use railgauge_wire::{
    Failure, Gather, Gid, GigabitsPerSecond, LinkLayer, RateOrigin, RateSource, RdmaDevice, RdmaPort, WIDTHS,
    drivers::{byte_counters, known},
};

use super::{interfaces, pci};
use crate::{
    system::tree::Tree,
    verbs::{Device, Port},
};

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

/// Layers of the ports that speak InfiniBand or RoCE, by their names in plans with a number. EFA and iWARP are devices of another kind.
pub(crate) fn layers(tree: &Tree) -> BTreeMap<String, LinkLayer> {
    let capable =
        |name: &String| tree.text(format!("{CLASS}/{name}/node_type")).is_some_and(|kind| kind.starts_with("1:"));
    let devices = tree.names(CLASS).into_iter().filter(capable);
    let ports = devices
        .flat_map(|name| tree.names(format!("{CLASS}/{name}/ports")).into_iter().map(move |port| (name.clone(), port)));
    let layer = |(name, port): (String, String)| {
        let layer = match tree.text(format!("{CLASS}/{name}/ports/{port}/link_layer"))?.as_str() {
            "InfiniBand" => LinkLayer::Infiniband,
            "Ethernet" => LinkLayer::RoceV2,
            _ => return None,
        };
        Some((format!("{name}:{port}"), layer))
    };
    ports.filter_map(layer).gathered()
}

pub(crate) struct Hardware {
    /// Its sysfs folder on the bus.
    place: Option<PathBuf>,
    pci: Option<PathBuf>,
    pub driver: Option<String>,
    /// A renamed siw has nothing below it; a NIC with an unreadable driver has.
    pub software: bool,
}

pub(crate) fn hardware(tree: &Tree, at: &str) -> Hardware {
    let emulation = emulation(tree, at);
    // An emulation may show the device of the interface that it runs on (Soft-RoCE and siw on older kernels).
    let place = tree.target(format!("{at}/device")).filter(|_| emulation.is_none());
    let pci = place.as_deref().and_then(pci::directory);
    let driver = emulation.map(str::to_owned).or_else(|| driver_of(tree, at, pci.as_deref()));
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
        // Asked of the running system: see `verbs::file`.
        device_file: None,
        driver,
        software,
        name,
    }
}

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
    let below = below_of(tree, name, number, &gids);
    let rate = rate_of(tree, &at, about.driver.filter(|_| !about.software), &below);
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
        saturated: saturated(tree, &at),
        unreadable_counters: unreadable(tree, &device, &at, about.driver),
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

/// The usable rate of a port; `None` where unknown, and for emulations.
pub(crate) fn rate(tree: &Tree, device: &str, number: u8) -> Option<GigabitsPerSecond> {
    let at = format!("{CLASS}/{device}");
    let Hardware { driver, software, .. } = hardware(tree, &at);
    let driver = driver.as_deref().filter(|_| !software);
    let rate = rate_of(tree, &format!("{at}/ports/{number}"), driver, &below(tree, device, number));
    rate.gbps.filter(|_| !software)
}

/// `None` for an emulation, which has no rate.
pub(crate) fn rate_origin(tree: &Tree, device: &str) -> Option<RateOrigin> {
    let Hardware { driver, software, .. } = hardware(tree, &format!("{CLASS}/{device}"));
    (!software).then(|| driver.as_deref().and_then(known).map_or(RateOrigin::Device, |driver| driver.rate))
}

pub(crate) fn below(tree: &Tree, device: &str, number: u8) -> Below {
    below_of(tree, device, number, &gids(tree, &format!("{CLASS}/{device}/ports/{number}")))
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

/// Drivers of PCI functions whose RDMA devices are iWARP, or may be: an iWARP device on another one is siw.
const IWARP: [&str; 6] = ["cxgb4", "i40e", "ice", "idpf", "qede", "erdma"];

/// The emulation that a device is. On older kernels both show the device of the interface below as their own, so its presence is not
/// evidence: Soft-RoCE has a `parent` attribute (drivers/infiniband/sw/rxe/rxe_verbs.c), and siw describes itself
/// (drivers/infiniband/sw/siw/siw_main.c) unless it was renamed.
pub(crate) fn emulation(tree: &Tree, at: &str) -> Option<&'static str> {
    if tree.has(format!("{at}/parent")) {
        return Some("rdma_rxe");
    }
    if tree.text(format!("{at}/node_desc")).is_some_and(|text| text.starts_with("Software iWARP")) {
        return Some("siw");
    }
    let iwarp = tree.text(format!("{at}/node_type")).is_some_and(|kind| kind.starts_with("4:"));
    let of_iwarp = || file_name(tree.target(format!("{at}/device/driver"))?);
    let other = || !of_iwarp().is_some_and(|driver| IWARP.contains(&driver.as_str()));
    (iwarp && tree.has("sys/module/siw") && other()).then_some("siw")
}

/// The driver of the function below a device, except for an emulation.
pub(super) fn driver_of(tree: &Tree, at: &str, pci: Option<&Path>) -> Option<String> {
    let linked = pci.and_then(|pci| tree.target(pci.join("driver")));
    file_name(linked.or_else(|| tree.target(format!("{at}/device/driver")))?)
}

fn file_name(path: PathBuf) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// Error counters that have reached their largest value.
pub(super) fn saturated(tree: &Tree, port: &str) -> Vec<String> {
    let full = |(name, bits): &&(&str, u32)| {
        let value = tree.text(format!("{port}/counters/{name}")).and_then(|text| text.parse::<u64>().ok());
        value.is_some_and(|value| value >= (1 << bits) - 1)
    };
    WIDTHS.iter().filter(full).map(|(name, _)| format!("counters/{name}")).collect()
}

/// Existing byte counters of the driver without a number, and why: drivers without port counters have the files and answer with an error,
/// or with words on older kernels (drivers/infiniband/core/sysfs.c, `show_pma_counter`).
pub(super) fn unreadable(tree: &Tree, device: &str, port: &str, driver: Option<&str>) -> BTreeMap<String, String> {
    let names = byte_counters(driver).iter().flat_map(|counter| counter.sent.iter().chain(counter.received));
    let one = |name: &&'static str| {
        let places = [format!("{port}/{name}"), format!("{device}/{name}")];
        let place = places.into_iter().find(|place| tree.has(place))?;
        let mut text = String::new();
        let why = match tree.open(place).and_then(|file| file.take(64).read_to_string(&mut text)) {
            Ok(_) if text.trim().parse::<u64>().is_ok() => return None,
            Ok(_) => format!("holds {:?}", text.trim()),
            Err(error) => error.to_string(),
        };
        Some(((*name).to_owned(), why))
    };
    names.filter_map(one).gathered()
}

#[derive(Debug, Default)]
pub(crate) struct Below {
    pub(crate) netdev: Option<String>,
    pub(crate) members: Vec<String>,
}

impl Below {
    /// The interface with the port's speed, for one physical port.
    pub(super) fn physical(&self) -> Option<&str> {
        self.members.first().or(self.netdev.as_ref()).map(String::as_str)
    }
}

/// The interfaces behind a port. For a bond that the device drives itself, the port may know only one of its members.
pub(super) fn below_of(tree: &Tree, device: &str, number: u8, gids: &[Gid]) -> Below {
    let Some(named) = named(tree, device, number, gids) else { return Below::default() };
    let members = members(tree, device, &named);
    match interfaces::master(tree, &named).map(|bond| (self::members(tree, device, &bond), bond)) {
        Some((members, bond)) if members.len() > 1 => Below { netdev: Some(bond), members },
        _ => Below { netdev: Some(named), members },
    }
}

/// The members of a bond that are physical ports of this device: on its own function, or on one without an RDMA device. mlx5 removes the
/// device of the second function when it takes a bond over (drivers/net/ethernet/mellanox/mlx5/core/lag/lag.c); otherwise each port has
/// its own device and one member.
fn members(tree: &Tree, device: &str, bond: &str) -> Vec<String> {
    let own = function_of(tree, device);
    let others: Vec<_> = tree.names(CLASS).into_iter().filter(|name| name != device).collect();
    let others: Vec<_> = others.iter().filter_map(|name| function_of(tree, name)).collect();
    let mine = |member: &String| {
        let function = tree.target(format!("sys/class/net/{member}/device")).and_then(|place| pci::directory(&place));
        function.is_some() && (function == own || !others.iter().any(|other| Some(other) == function.as_ref()))
    };
    interfaces::members(tree, bond).into_iter().filter(mine).collect()
}

/// What the GIDs say, a bond before its members; else what hangs on the same device with the port's number.
fn named(tree: &Tree, device: &str, number: u8, gids: &[Gid]) -> Option<String> {
    let device = format!("{CLASS}/{device}");
    let of_gids = || gids.iter().filter_map(|gid| gid.netdev.clone());
    if let Some(named) = of_gids().find(|name| interfaces::is_bond(tree, name)).or_else(|| of_gids().next()) {
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
    let parent = || tree.text(format!("{device}/parent")).filter(|text| !text.is_empty());
    let beside = match names.as_slice() {
        [only] => Some(only.clone()),
        _ => names.iter().find(|name| port_of(name) == u32::from(number)).cloned(),
    };
    parent().or(beside)
}

#[derive(Debug, Default)]
pub(super) struct Rate {
    pub(super) gbps: Option<GigabitsPerSecond>,
    pub(super) source: Option<RateSource>,
    pub(super) verbs_gbps: Option<GigabitsPerSecond>,
}

pub(super) fn rate_of(tree: &Tree, port: &str, driver: Option<&str>, below: &Below) -> Rate {
    // "100 Gb/sec (4X EDR)".
    let verbs_gbps = tree
        .text(format!("{port}/rate"))
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .map(GigabitsPerSecond);
    let verbs_gbps = verbs_gbps.filter(|rate| rate.is_rate());
    let speed = |name: &str| interfaces::speed(tree, name).map(GigabitsPerSecond::from);
    let rate = |gbps: Option<GigabitsPerSecond>, source| Rate { gbps, source: gbps.map(|_| source), verbs_gbps };
    if let (Some(bond), true) = (&below.netdev, below.members.len() > 1) {
        let all = interfaces::bond_members(tree, bond);
        let carrying = all.iter().filter(|member| below.members.contains(&member.name) && member.carries());
        let speeds: Option<Vec<GigabitsPerSecond>> = carrying.map(|member| speed(&member.name)).collect();
        if let Some(speeds) = speeds.filter(|speeds| !speeds.is_empty()) {
            let sum = GigabitsPerSecond(speeds.iter().map(|speed| speed.0).sum());
            return rate(Some(sum), RateSource::Members);
        }
    }
    let origin = driver.and_then(known).map_or(RateOrigin::Device, |driver| driver.rate);
    let of_interface = || below.physical().and_then(speed);
    // The kernel's speed of a bond is the sum of its members.
    let joined = below.physical().is_some_and(|name| interfaces::is_bond(tree, name));
    match (origin, of_interface()) {
        (RateOrigin::InterfaceInSteps | RateOrigin::Constant, Some(speed)) => rate(Some(speed), RateSource::Interface),
        // The driver's value is then invented, or cut off at a step.
        (RateOrigin::InterfaceInSteps | RateOrigin::Constant, None) => rate(None, RateSource::Driver),
        // mlx5 says 40 Gb/s for every mode of Ethernet that it does not know (drivers/infiniband/hw/mlx5/main.c, `mlx5_query_port_roce`), such
        // as the lanes of 200 Gb/s of ConnectX-8 in kernels before 6.16.
        (RateOrigin::Device, Some(speed)) if !joined && verbs_gbps.is_some_and(|said| said < speed) => {
            rate(Some(speed), RateSource::Interface)
        }
        (RateOrigin::Device, _) => rate(verbs_gbps, RateSource::Driver),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortAnswer {
    pub device: String,
    /// Port, counted from 1.
    pub port: u8,
    /// Bytes, or why they are not known.
    pub mtu: Result<u32, Failure>,
}

/// Queries every port of every device. Empty without libibverbs or the kernel's part of it, which `libraries` reports.
pub(crate) fn path_mtus() -> Vec<PortAnswer> {
    Device::names().unwrap_or_default().iter().flat_map(|name| of_device(name)).collect()
}

fn of_device(name: &str) -> Vec<PortAnswer> {
    let said = |port, mtu| PortAnswer { device: name.to_owned(), port, mtu };
    let opened = Device::open(name).and_then(|device| device.limits().map(|limits| (device, limits)));
    match opened {
        Err(failure) => vec![said(1, Err(failure))],
        Ok((device, limits)) => {
            (1..=limits.ports).map(|port| said(port, Port::query(&device, port).map(|port| port.mtu))).collect()
        }
    }
}
