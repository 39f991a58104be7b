//! Network interfaces.

use railgauge_wire::facts::Interface;

use super::tree::Tree;
use crate::system::interfaces::Address;

const CLASS: &str = "sys/class/net";

/// All interfaces, in the order of their names.
pub fn all(tree: &Tree, addresses: &[Address]) -> Vec<Interface> {
    let names = tree.names(CLASS).into_iter();
    // `bonding_masters` is a file between the interfaces.
    let names = names.filter(|name| tree.has(format!("{CLASS}/{name}/ifindex")));
    names
        .map(|name| Interface {
            mtu: mtu(tree, &name),
            state: tree.text(format!("{CLASS}/{name}/operstate")),
            speed_mbps: speed(tree, &name),
            addresses: addresses.iter().filter(|a| a.interface == name).map(|a| a.ip.to_string()).collect(),
            name,
        })
        .collect()
}

/// MTU in bytes.
pub fn mtu(tree: &Tree, name: &str) -> Option<u32> {
    tree.value(format!("{CLASS}/{name}/mtu"))
}

/// Speed in Mb/s; `None` where it is not known, and for interfaces with neither hardware nor another interface below
/// them (veth, tun, dummy), which report a made-up one.
pub fn speed(tree: &Tree, name: &str) -> Option<u64> {
    let real = |entry: &String| entry == "device" || entry.starts_with("lower_");
    if !tree.names(format!("{CLASS}/{name}")).iter().any(real) {
        return None;
    }
    let speed: i64 = tree.value(format!("{CLASS}/{name}/speed"))?;
    // -1 is the kernel's word for unknown.
    u64::try_from(speed).ok().filter(|speed| *speed > 0)
}
