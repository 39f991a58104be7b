//! GID tables in which an index does not mean what it means on the other hosts.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/ports/*/gids, gid_attrs/types, networks of the interfaces",
    meaning: "a tool that uses one GID index for all hosts gets another type or network here and cannot connect",
    source: "kernel Documentation/ABI/stable/sysfs-class-infiniband; NCCL_IB_GID_INDEX, perftest --gid-index",
    spoils: Spoils::Nothing,
    subject: Subject::RocePort,
    needs: &[
        Need::Port(|port| port.port.gids.iter().all(|gid| gid.kind.is_some()), "the types of its GIDs"),
        Need::Port(|port| port.interface.is_some(), "the interfaces of its ports"),
    ],
    find,
};

/// Hosts are compared by device: rails may be separate networks.
fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let mut rails: BTreeMap<String, Vec<Port<'_>>> = BTreeMap::new();
    for port in scene.ports().filter(|port| port.is_roce() && meets_others(port)) {
        rails.entry(port.name()).or_default().push(port);
    }
    let names_index = scene.has(|test| test.knobs.gid_index.is_some());
    for ports in rails.into_values() {
        let tables: Vec<(Port<'_>, Table)> = ports.into_iter().map(|port| (port, table(&port))).collect();
        let indices: BTreeSet<u32> = tables.iter().flat_map(|(_, table)| table.keys().copied()).collect();
        for index in indices {
            let usual = Usual::of(None, tables.iter().map(|(_, table)| table.get(&index).cloned()));
            let Some(usual) = usual else { continue };
            for (port, table) in &tables {
                let entry = table.get(&index).cloned();
                // A missing entry cannot be used accidentally; the check of GIDs reports a port without any.
                if entry == usual.value || entry.is_none() {
                    continue;
                }
                let what = format!("GID {index} is {}, {}", shown(&entry), usual.words(shown));
                // A pod's table holds the GIDs of its own interfaces in the order of their creation: indices differ between pods, and
                // cannot be made equal.
                let (severity, remedy) = match scene.around(port.facts) {
                    Around::Pod | Around::Container if !names_index => (Notice, remedy::POD_GID_TABLE.into()),
                    Around::Pod | Around::Container => (Warning, remedy::POD_GID_TABLE.into()),
                    _ => (Warning, of_interface(remedy::GID_TABLE, port, &[])),
                };
                let usual = Usual { value: usual.value.clone().unwrap_or_default(), wanted: usual.wanted };
                let other = port.found(severity, what, remedy);
                found.push(other.usual(format!("gids.{index}"), shown(&entry), &usual));
            }
        }
    }
}

/// Whether there is a GID to reach others; if not, the check of GIDs reports it.
fn meets_others(port: &Port<'_>) -> bool {
    let routable = |gid: &Gid| !gid.gid.starts_with("fe80") && gid.kind.as_deref().is_none_or(|kind| kind == "RoCE v2");
    port.port.gids.iter().any(routable)
}

type Table = BTreeMap<u32, String>;

fn table(port: &Port<'_>) -> Table {
    let networks = port.interface.map(|interface| interface.networks.as_slice()).unwrap_or_default();
    let words = |gid: &Gid| {
        let kind = gid.kind.as_deref().unwrap_or("a GID");
        match gid.ipv4() {
            Some(ip) => match networks.iter().find(|network| holds(network, ip)) {
                Some(network) => format!("{kind} of {network}"),
                None => format!("{kind} of an IPv4 address"),
            },
            None if gid.gid.starts_with("fe80") => format!("{kind}, link-local"),
            None => format!("{kind} of an IPv6 address"),
        }
    };
    port.port.gids.iter().map(|gid| (gid.index, words(gid))).collect()
}

/// Whether an address is in a network such as `10.77.0.0/24`.
fn holds(network: &str, ip: Ipv4Addr) -> bool {
    let parts = network
        .split_once('/')
        .and_then(|(net, bits)| Some((net.parse::<Ipv4Addr>().ok()?, bits.parse::<u32>().ok()?)));
    parts.is_some_and(|(net, bits)| {
        let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits)).unwrap_or(0);
        net.to_bits() & mask == ip.to_bits() & mask
    })
}

fn shown(entry: &Option<String>) -> String {
    entry.clone().unwrap_or_else(|| "empty".into())
}
