//! Counters of a device and its network interface.
//!
//! | prefix | source |
//! | --- | --- |
//! | `counters/` | `/sys/class/infiniband/DEV/ports/P/counters`; `port_*_data` counts units of 4 bytes |
//! | `hw_counters/` | `…/ports/P/hw_counters`, else `…/DEV/hw_counters`: names are the driver's |
//! | `netdev/` | `/sys/class/net/IF/statistics`, and `carrier_down_count` of the folder above (since Linux 4.16) |
//! | `ethtool/` | the driver's statistics of IF, as `ethtool -S` prints them |
//! | `members/IF/…` | `netdev/` and `ethtool/` of each member, where the interface is a bond that the device drives by itself |
//! | `tcp/` | `/proc/net/snmp` and `/proc/net/netstat`: of the whole network namespace, and only where the device is an interface |
//!
//! The kernel caches hardware counters for `lifespan` milliseconds; this waits that long first, so that readings are not older than the
//! request.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use railgauge_wire::{Failure, Kind, MEMBERS, Stage, remedy};

use crate::{
    facts::rdma,
    system::{ethtool, tree::Tree},
};

const LIFESPAN: u64 = 200;

/// Counters of `/proc/net/snmp` and `/proc/net/netstat` that show TCP's problems.
const TCP: [&str; 7] =
    ["InSegs", "OutSegs", "RetransSegs", "InErrs", "TCPTimeouts", "TCPLostRetransmit", "TCPOFOQueue"];

pub(crate) fn read(tree: &Tree, device: &str, port: u8) -> Result<BTreeMap<String, u64>, Failure> {
    let places = lasting(tree, device, port)?;
    if let Some(path) = &places.hardware {
        let lifespan = tree.value::<u64>(format!("{path}/lifespan")).unwrap_or(0).min(LIFESPAN);
        std::thread::sleep(Duration::from_millis(if lifespan == 0 { 0 } else { lifespan + 1 }));
    }
    let mut found = in_files(tree, &places);
    for (interface, prefix) in places.interfaces() {
        match ethtool::statistics(interface) {
            Ok(statistics) => found.extend(named(&prefix, statistics)),
            Err(error) => crate::system::log!("the statistics of {interface} cannot be read: {error}"),
        }
    }
    Ok(found)
}

/// Counters from files, without waiting: the kernel may have cached those of the hardware.
pub(crate) fn in_files(tree: &Tree, places: &Places) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    if let Some(path) = &places.hardware {
        directory(tree, path, "hw_counters", &mut found);
    }
    match &places.port {
        Some(port) => directory(tree, &format!("{port}/counters"), "counters", &mut found),
        None => tcp(tree, &mut found),
    }
    for (interface, prefix) in places.interfaces() {
        of_interface(tree, interface, &prefix, &mut found);
    }
    found
}

fn of_interface(tree: &Tree, interface: &str, prefix: &str, into: &mut BTreeMap<String, u64>) {
    directory(tree, &format!("sys/class/net/{interface}/statistics"), &format!("{prefix}netdev"), into);
    // The kernel's own count of link breaks, for every driver.
    let breaks = tree.value::<u64>(format!("sys/class/net/{interface}/carrier_down_count"));
    into.extend(breaks.map(|count| (format!("{prefix}netdev/carrier_down_count"), count)));
}

pub(crate) fn named(prefix: &str, statistics: Vec<(String, u64)>) -> impl Iterator<Item = (String, u64)> {
    statistics.into_iter().map(move |(name, value)| (format!("{prefix}ethtool/{}", name.trim()), value))
}

/// Lifetime of found places. Finding a port's interface reads all of its GIDs: Soft-RoCE has 1024 of them, which takes longer than the
/// counters (130 ms in the lab's emulated hosts, before and after every window).
const LASTING: Duration = Duration::from_secs(60);

type Key = (PathBuf, String, u8);

static FOUND: Mutex<BTreeMap<Key, (Instant, Places)>> = Mutex::new(BTreeMap::new());

/// Cached for [`LASTING`] if everything still exists.
pub(crate) fn lasting(tree: &Tree, device: &str, port: u8) -> Result<Places, Failure> {
    let key = (tree.root.clone(), device.to_owned(), port);
    let known = FOUND.lock().get(&key).filter(|(at, _)| at.elapsed() < LASTING).map(|(_, places)| places.clone());
    if let Some(known) = known.filter(|known| known.are_there(tree)) {
        return Ok(known);
    }
    let found = places(tree, device, port)?;
    // A missing interface may appear.
    if found.interface.is_some() {
        FOUND.lock().insert(key, (Instant::now(), found.clone()));
    }
    Ok(found)
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// `None` for an interface.
    pub(crate) port: Option<String>,
    hardware: Option<String>,
    pub(crate) interface: Option<String>,
    pub(crate) members: Vec<String>,
    /// All members of the bond, as in its file.
    bonded: Option<String>,
}

impl Places {
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = (&str, String)> {
        let members = self.members.iter().map(|name| (name.as_str(), format!("{MEMBERS}{name}/")));
        members.chain(self.interface.iter().map(|name| (name.as_str(), String::new())))
    }

    /// Whether a tree still has all of them, and the bond the same members.
    pub(crate) fn are_there(&self, tree: &Tree) -> bool {
        if self.interface.as_ref().and_then(|name| bonded(tree, name)) != self.bonded {
            return false;
        }
        let interfaces = self.interface.iter().chain(&self.members).map(|name| format!("sys/class/net/{name}"));
        self.port.iter().chain(&self.hardware).cloned().chain(interfaces).all(|path| tree.has(path))
    }
}

/// As the kernel lists them (Documentation/networking/bonding.rst).
fn bonded(tree: &Tree, interface: &str) -> Option<String> {
    tree.text(format!("sys/class/net/{interface}/bonding/slaves"))
}

fn places(tree: &Tree, device: &str, port: u8) -> Result<Places, Failure> {
    let unknown = |what: String| {
        Failure::new(Stage::Facts, Kind::Configuration, format!("{what} does not exist"))
            .remedy(remedy::NAME_DEVICE_OF_FACTS)
    };
    // A device name has no path.
    if device.is_empty() || device.contains(['/', '\0']) || device.starts_with('.') {
        return Err(unknown(format!("device {device:?}")));
    }
    let at = format!("{}/{device}", rdma::CLASS);
    if tree.has(&at) {
        let of_port = format!("{at}/ports/{port}");
        if !tree.has(&of_port) {
            return Err(unknown(format!("port {port} of {device}")));
        }
        let hardware = [format!("{of_port}/hw_counters"), format!("{at}/hw_counters")];
        let hardware = hardware.into_iter().find(|path| tree.has(path));
        let below = rdma::below(tree, device, port);
        let bonded = below.netdev.as_ref().and_then(|name| bonded(tree, name));
        return Ok(Places { port: Some(of_port), hardware, interface: below.netdev, members: below.members, bonded });
    }
    if tree.has(format!("sys/class/net/{device}")) {
        let interface = Some(device.to_owned());
        return Ok(Places { port: None, hardware: None, bonded: bonded(tree, device), interface, members: Vec::new() });
    }
    Err(unknown(format!("device or interface {device}")))
}

fn directory(tree: &Tree, path: &str, prefix: &str, into: &mut BTreeMap<String, u64>) {
    let names = tree.names(path).into_iter().filter(|name| name != "lifespan");
    into.extend(names.filter_map(|name| {
        let value = tree.text(format!("{path}/{name}"))?.parse().ok()?;
        Some((format!("{prefix}/{name}"), value))
    }));
}

/// Lines come in pairs: `Tcp: names…`, `Tcp: values…`.
fn tcp(tree: &Tree, into: &mut BTreeMap<String, u64>) {
    let text = ["proc/net/snmp", "proc/net/netstat"].map(|path| tree.text(path).unwrap_or_default()).join("\n");
    let lines: Vec<_> = text.lines().collect();
    for pair in lines.windows(2).filter(|pair| pair[0].starts_with("Tcp")) {
        let (mut names, mut values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
        if names.next() != values.next() {
            continue;
        }
        for (name, value) in names.zip(values).filter(|(name, _)| TCP.contains(name)) {
            into.extend(value.parse().ok().map(|value| (format!("tcp/{name}"), value)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &std::path::Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_device_has_its_ports_counters_and_its_interfaces() {
        let root = tempfile::tempdir().unwrap();
        let port = "sys/class/infiniband/mlx5_0/ports/1";
        for (path, text) in [
            (format!("{port}/counters/port_xmit_data"), "123\n"),
            (format!("{port}/counters/symbol_error"), "not a number\n"),
            (format!("{port}/hw_counters/out_of_sequence"), "4294967295\n"),
            (format!("{port}/hw_counters/lifespan"), "1\n"),
            (format!("{port}/gids/0"), "fe80:0000:0000:0000:0000:0000:0000:0001\n"),
            (format!("{port}/gid_attrs/ndevs/0"), "nowhere0\n"),
            ("sys/class/net/nowhere0/statistics/tx_bytes".into(), "99\n"),
            ("sys/class/net/nowhere0/carrier_down_count".into(), "2\n"),
        ] {
            write(root.path(), &path, text);
        }
        let found = read(&Tree::new(root.path()), "mlx5_0", 1).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(
            found,
            [
                ("counters/port_xmit_data", 123),
                ("hw_counters/out_of_sequence", 4_294_967_295),
                ("netdev/carrier_down_count", 2),
                ("netdev/tx_bytes", 99)
            ]
        );
    }

    #[test]
    fn the_interface_of_a_port_is_looked_for_once_and_again_when_it_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let port = "sys/class/infiniband/mlx5_0/ports/1";
        let behind = |interface: &str| {
            write(root.path(), &format!("{port}/gids/0"), "fe80:0000:0000:0000:0000:0000:0000:0001\n");
            write(root.path(), &format!("{port}/gid_attrs/ndevs/0"), &format!("{interface}\n"));
            write(root.path(), &format!("sys/class/net/{interface}/statistics/tx_bytes"), "99\n");
        };
        let counted = || read(&Tree::new(root.path()), "mlx5_0", 1).unwrap().len();
        behind("nowhere0");
        assert_eq!(counted(), 1);
        fs::remove_dir_all(root.path().join(port).join("gids")).unwrap();
        assert_eq!(counted(), 1);
        fs::remove_dir_all(root.path().join("sys/class/net/nowhere0")).unwrap();
        assert_eq!(counted(), 0);
        behind("nowhere1");
        assert_eq!(counted(), 1);
    }

    #[test]
    fn a_bond_has_the_counters_of_each_member() {
        let root = tempfile::tempdir().unwrap();
        let class = "sys/class/net";
        for (path, text) in [
            ("sys/class/infiniband/mlx5_bond_0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n"),
            ("sys/class/infiniband/mlx5_bond_0/ports/1/gid_attrs/ndevs/0", "bond7\n"),
            (&format!("{class}/bond7/bonding/mode"), "802.3ad 4\n"),
            (&format!("{class}/bond7/bonding/slaves"), "nowhere0 nowhere1\n"),
            (&format!("{class}/bond7/statistics/tx_bytes"), "30\n"),
            (&format!("{class}/nowhere0/statistics/tx_bytes"), "10\n"),
            (&format!("{class}/nowhere1/statistics/tx_bytes"), "20\n"),
            (&format!("{class}/nowhere1/carrier_down_count"), "1\n"),
        ] {
            write(root.path(), path, text);
        }
        for (name, function) in [("infiniband/mlx5_bond_0", "0"), ("net/nowhere0", "0"), ("net/nowhere1", "1")] {
            let place = root.path().join(format!("sys/devices/pci0000:b0/0000:b1:00.{function}"));
            fs::create_dir_all(&place).unwrap();
            std::os::unix::fs::symlink(place, root.path().join(format!("sys/class/{name}/device"))).unwrap();
        }
        let found = read(&Tree::new(root.path()), "mlx5_bond_0", 1).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(
            found,
            [
                ("members/nowhere0/netdev/tx_bytes", 10),
                ("members/nowhere1/netdev/carrier_down_count", 1),
                ("members/nowhere1/netdev/tx_bytes", 20),
                ("netdev/tx_bytes", 30)
            ]
        );
        // Counters of a member that left the bond vanish at once.
        write(root.path(), &format!("{class}/bond7/bonding/slaves"), "nowhere0\n");
        let found = read(&Tree::new(root.path()), "mlx5_bond_0", 1).unwrap();
        assert!(!found.keys().any(|name| name.starts_with("members/nowhere1")), "{found:?}");
    }

    #[test]
    fn an_interface_has_its_statistics_and_tcp() {
        let found = read(&Tree::new("/"), "lo", 1).unwrap();
        assert!(found.contains_key("netdev/rx_bytes") && found.contains_key("tcp/RetransSegs"), "{found:?}");
        assert!(found.contains_key("tcp/TCPTimeouts"), "{found:?}");
    }

    #[test]
    fn what_is_not_there_is_named() {
        for name in ["nowhere0", "../lo", "", "."] {
            let failure = read(&Tree::new("/"), name, 1).unwrap_err();
            assert_eq!(failure.kind, Kind::Configuration, "{failure}");
        }
    }
}
