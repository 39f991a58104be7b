//! Network interfaces (kernel documentation: ABI/testing/sysfs-class-net, networking/bonding).

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use railgauge_wire::{Bond, BondMember, Dcb, Ecn, Gather, Interface, MegabitsPerSecond, Pause};

use crate::system::{ethtool, interfaces::Address, netlink, tree::Tree};

const CLASS: &str = "sys/class/net";

#[derive(Debug, Clone, Default)]
pub struct Answers {
    pub driver: Option<(String, String)>,
    pub pause: Option<Pause>,
    pub dcb: Option<Dcb>,
}

/// Notes refusals. Empty for a tree of another host.
pub fn ask(tree: &Tree) -> BTreeMap<String, Answers> {
    if !tree.is_here() {
        return BTreeMap::new();
    }
    let one = |name: String| {
        let noted = |what: &str, error: std::io::Error| tree.note(format!("{what} of {name}"), &error.to_string());
        let answers = Answers {
            driver: ethtool::driver(&name).unwrap_or_else(|error| (noted("driver", error), None).1),
            pause: ethtool::pause(&name).unwrap_or_else(|error| (noted("pause frames", error), None).1),
            dcb: netlink::ieee(&name).unwrap_or_else(|error| (noted("priorities", error), None).1),
        };
        (name, answers)
    };
    names(tree).map(one).collect()
}

/// Without the file `bonding_masters`.
fn names(tree: &Tree) -> impl Iterator<Item = String> {
    tree.names(CLASS).into_iter().filter(|name| tree.has(format!("{CLASS}/{name}/ifindex")))
}

pub fn all(tree: &Tree, addresses: &[Address], answers: &BTreeMap<String, Answers>) -> Vec<Interface> {
    let one = |name: String| {
        let mine = || addresses.iter().filter(|address| address.interface == name);
        let Answers { driver, pause, dcb } = answers.get(&name).cloned().unwrap_or_default();
        Interface {
            mtu: mtu(tree, &name),
            state: tree.text(format!("{CLASS}/{name}/operstate")),
            speed_mbps: speed(tree, &name),
            addresses: mine().map(|address| address.ip.to_string()).collect(),
            networks: mine().filter_map(network).gathered::<BTreeSet<_>>().into_iter().collect(),
            bond: bond(tree, &name),
            members: bond_below(tree, &name).map(|bond| bond_members(tree, &bond)).unwrap_or_default(),
            trust: tree.text(format!("{CLASS}/{name}/qos/trust")),
            ecn: ecn(tree, &name),
            driver,
            pause,
            dcb,
            traffic: None,
            name,
        }
    };
    names(tree).map(one).collect()
}

/// Such as `10.77.0.0/24`.
fn network(address: &Address) -> Option<String> {
    let (IpAddr::V4(ip), Some(prefix)) = (address.ip, address.prefix.filter(|prefix| *prefix <= 32)) else {
        return None;
    };
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
    Some(format!("{}/{prefix}", std::net::Ipv4Addr::from_bits(ip.to_bits() & mask)))
}

fn bond(tree: &Tree, name: &str) -> Option<Bond> {
    let mode = bond_below(tree, name).and_then(|bond| tree.text(format!("{CLASS}/{bond}/bonding/mode")));
    match mode {
        Some(mode) => Some(Bond::Master(mode.split_whitespace().next().unwrap_or_default().to_owned())),
        None => master(tree, name).map(Bond::Member),
    }
}

fn bond_below(tree: &Tree, name: &str) -> Option<String> {
    let mut name = name.to_owned();
    // A VLAN may be on a VLAN (802.1ad), rarely on more.
    for _ in 0..4 {
        if is_bond(tree, &name) {
            return Some(name);
        }
        name = below_vlan(tree, &name)?;
    }
    None
}

/// The interface below a VLAN (net/8021q/vlan_dev.c names the type; `lower_…` since Linux 3.14).
fn below_vlan(tree: &Tree, name: &str) -> Option<String> {
    let events = tree.text(format!("{CLASS}/{name}/uevent"))?;
    if !events.lines().any(|line| line.trim() == "DEVTYPE=vlan") {
        return None;
    }
    tree.names(format!("{CLASS}/{name}")).iter().find_map(|entry| entry.strip_prefix("lower_").map(str::to_owned))
}

pub(crate) fn is_bond(tree: &Tree, name: &str) -> bool {
    tree.has(format!("{CLASS}/{name}/bonding/mode"))
}

/// Bridges have members too; only a bond's have this folder.
pub(crate) fn master(tree: &Tree, name: &str) -> Option<String> {
    if !tree.has(format!("{CLASS}/{name}/bonding_slave")) {
        return None;
    }
    let master = tree.target(format!("{CLASS}/{name}/master"))?;
    Some(master.file_name()?.to_string_lossy().into_owned())
}

pub(crate) fn members(tree: &Tree, bond: &str) -> Vec<String> {
    let place = format!("{CLASS}/{bond}/bonding/slaves");
    let names = if tree.has(&place) { tree.text(place) } else { None };
    names.unwrap_or_default().split_whitespace().filter(|name| !name.contains('/')).map(str::to_owned).collect()
}

/// With the bond's view of them.
pub(crate) fn bond_members(tree: &Tree, bond: &str) -> Vec<BondMember> {
    let one = |name: String| BondMember {
        link: tree.text(format!("{CLASS}/{name}/bonding_slave/mii_status")),
        state: tree.text(format!("{CLASS}/{name}/bonding_slave/state")),
        speed_mbps: speed(tree, &name),
        name,
    };
    members(tree, bond).into_iter().map(one).collect()
}

fn ecn(tree: &Tree, name: &str) -> Option<Ecn> {
    let on = |point: &str| {
        let place = format!("{CLASS}/{name}/ecn/{point}/enable");
        let priorities = tree.names(&place).into_iter().filter_map(|name| name.parse::<u8>().ok());
        let on = priorities.filter(|priority| tree.value::<u8>(format!("{place}/{priority}")) == Some(1));
        tree.has(&place).then(|| on.collect())
    };
    Some(Ecn { notifies: on("roce_np")?, reacts: on("roce_rp")? })
}

/// In bytes.
pub fn mtu(tree: &Tree, name: &str) -> Option<u32> {
    tree.value(format!("{CLASS}/{name}/mtu"))
}

/// `None` if unknown, and for interfaces with neither hardware nor another interface below them (veth, tun, dummy), which report an
/// invented one.
pub fn speed(tree: &Tree, name: &str) -> Option<MegabitsPerSecond> {
    let real = |entry: &String| entry == "device" || entry.starts_with("lower_");
    if !tree.names(format!("{CLASS}/{name}")).iter().any(real) {
        return None;
    }
    let speed: i64 = tree.value(format!("{CLASS}/{name}/speed"))?;
    // The kernel's -1 means unknown.
    u64::try_from(speed).ok().filter(|speed| *speed > 0).map(MegabitsPerSecond)
}
