//! The network interface behind a port, and the physical ports below it.

use railgauge_wire::facts::Gid;

use super::super::interfaces;
use super::{CLASS, function_of};
use crate::{facts::pci, system::tree::Tree};

#[derive(Debug, Default)]
pub(crate) struct Below {
    pub(crate) netdev: Option<String>,
    /// Interfaces of the physical ports, where that is a bond.
    pub(crate) members: Vec<String>,
}

impl Below {
    /// The interface whose speed is that of the port: of one physical port.
    pub(super) fn physical(&self) -> Option<&str> {
        self.members.first().or(self.netdev.as_ref()).map(String::as_str)
    }
}

/// The interfaces behind a port. A bond that the device drives by itself may be known to the port by one of its members only.
pub(super) fn below(tree: &Tree, device: &str, number: u8, gids: &[Gid]) -> Below {
    let Some(named) = named(tree, device, number, gids) else { return Below::default() };
    let members = members(tree, device, &named);
    match interfaces::master(tree, &named).map(|bond| (self::members(tree, device, &bond), bond)) {
        Some((members, bond)) if members.len() > 1 => Below { netdev: Some(bond), members },
        _ => Below { netdev: Some(named), members },
    }
}

/// The members of a bond that are physical ports of this device: on its own function, or on one without an RDMA device of its
/// own. mlx5 removes the device of the second function when it takes a bond over
/// (drivers/net/ethernet/mellanox/mlx5/core/lag/lag.c); where it does not, each port has its own device and one member.
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
