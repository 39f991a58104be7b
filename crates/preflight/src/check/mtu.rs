use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/net/*/mtu, active path MTU by libibverbs",
    meaning: "every pair with this host uses smaller packets; headers take a larger share of the bandwidth",
    source: "docs/methods.md: payload per packet; rdma-core's ibv_query_port(3)",
    spoils: Spoils::Bandwidth,
    subject: Subject::Port,
    needs: &[Need::Port(has_mtu, "MTUs")],
    find,
};

/// RoCE uses the largest path MTU that fits the interface: 1500 gives 1024, 9000 gives 4096, and a pair uses the smaller of both ends.
fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let wanted = scene.wanted().mtu;
    // Verbs do not use the MTU of IPoIB.
    let matters = |port: &Port<'_>| wanted.is_some() || !port.is_infiniband();
    let mtus = || {
        let interfaces = scene.wires().filter(matters).filter_map(|port| Some((port, port.interface?)));
        interfaces.filter_map(|(port, interface)| Some((port, interface.mtu?)))
    };
    let usual = Usual::of(wanted, mtus().map(|(_, mtu)| mtu));
    for (port, mtu) in mtus() {
        let name = port.interface.map_or("", |interface| &interface.name);
        let active = port.port.mtu;
        match &usual {
            Some(usual) if mtu != usual.value => {
                let active = active.map(|mtu| format!(" (RDMA MTU {mtu})")).unwrap_or_default();
                let what = format!("MTU of {name} is {mtu}{active}, {}", usual.words(u32::to_string));
                let remedy = remedy::INTERFACE_MTU.with([("interface", name), ("mtu", &usual.value.to_string())]);
                let (severity, what) = departure(usual, fellows(&port, mtus()) == Some(mtu), what);
                found.push(port.found(severity, what, remedy).usual("mtu", mtu, usual).unit("B"));
            }
            _ => {
                let Some(active) = active.filter(|active| port.is_roce() && *active < fits(mtu)) else { continue };
                let what = format!("RDMA MTU is {active}, {name} with MTU {mtu} would carry {}", fits(mtu));
                let small = port.found(Warning, what, remedy::RETRAIN_MTU);
                found.push(small.wants("rdma_mtu", active, fits(mtu)).unit("B"));
            }
        }
    }
    found.extend(of_infiniband(scene));
}

/// Largest RDMA MTU that an interface carries: headers take at most 96 bytes (the kernel's rdma/ib_addr.h, `iboe_get_mtu`).
fn fits(mtu: u32) -> u32 {
    let room = mtu.saturating_sub(96);
    [4096, 2048, 1024, 512, 256].into_iter().find(|size| *size <= room).unwrap_or(0)
}

/// InfiniBand has no interface to follow: the active MTU itself is compared with the others'.
fn of_infiniband(scene: &Scene<'_>) -> Vec<Found> {
    let ports = || scene.ports().filter(Port::is_infiniband);
    let Some(usual) = Usual::of(None, ports().filter_map(|port| port.port.mtu)) else { return Vec::new() };
    let small = ports().filter(|port| port.port.mtu.is_some_and(|mtu| mtu < usual.value));
    let one = |port: Port<'_>| {
        let active = port.port.mtu.unwrap_or(0);
        let what = format!("RDMA MTU {active}, {}", usual.words(u32::to_string));
        port.found(Warning, what, remedy::PARTITION_MTU).usual("rdma_mtu", active, &usual).unit("B")
    };
    small.map(one).collect()
}

fn has_mtu(port: &Port<'_>) -> bool {
    match port.is_infiniband() {
        true => port.port.mtu.is_some(),
        false => port.interface.is_some_and(|interface| interface.mtu.is_some()),
    }
}
