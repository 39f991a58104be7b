//! Hosts with every member of their bonds in use: the difference is the cost of a missing one.

use railgauge_wire::{
    facts::{BondMember, HostFacts, Interface, RateSource, RdmaPort},
    unit::{GigabitsPerSecond, MegabitsPerSecond},
};

fn idle(interface: &Interface) -> Vec<String> {
    interface.idle_members().map(|member| member.name.clone()).collect()
}

pub(crate) fn lacks_members(facts: &HostFacts) -> bool {
    facts.interfaces.iter().any(|interface| interface.idle_members().next().is_some())
}

/// The facts of a host with every member of its bonds in use, except for one bond that stays unchanged. A member of
/// unknown speed, such as one that is down, counts as the fastest of its bond.
pub(crate) fn whole(facts: &HostFacts, as_it_is: Option<&str>) -> HostFacts {
    let mut whole = facts.clone();
    let bonds = whole.interfaces.iter_mut().filter(|interface| Some(&*interface.name) != as_it_is);
    let mended: Vec<String> = bonds.filter_map(|bond| mend(bond).then(|| bond.name.clone())).collect();
    let rates: Vec<Option<GigabitsPerSecond>> = ports(&whole)
        .map(|port| {
            let behind = port.netdev.as_ref().is_some_and(|name| mended.contains(name));
            let rates = whole.member_rates(port).filter(|_| behind && port.rate_source == Some(RateSource::Members));
            rates.map(|rates| GigabitsPerSecond(rates.iter().map(|rate| rate.0).sum()))
        })
        .collect();
    let ports = whole.rdma.iter_mut().flat_map(|device| &mut device.ports);
    ports.zip(rates).for_each(|(port, rate)| port.rate_gbps = rate.or(port.rate_gbps));
    whole
}

fn ports(facts: &HostFacts) -> impl Iterator<Item = &RdmaPort> {
    facts.rdma.iter().flat_map(|device| &device.ports)
}

/// Returns whether a member did not carry traffic.
fn mend(bond: &mut Interface) -> bool {
    let (idle, carried) = (idle(bond), sum(bond.members.iter().filter(|member| member.carries())));
    let fastest = bond.members.iter().filter_map(|member| member.speed_mbps).max_by_key(|speed| speed.0);
    let spare = bond.has_spares();
    for member in bond.members.iter_mut().filter(|member| idle.contains(&member.name)) {
        member.speed_mbps = member.speed_mbps.or(fastest);
        member.link = member.link.is_some().then(|| "up".to_owned());
        // In the mode with spares it is one more of them.
        member.state = spare.then(|| "backup".to_owned());
    }
    // The kernel's speed of a bond is the sum of its members that send (drivers/net/bonding/bond_main.c).
    if bond.speed_mbps.is_some() && bond.speed_mbps == carried {
        bond.speed_mbps = sum(bond.members.iter().filter(|member| member.carries()));
    }
    !idle.is_empty()
}

/// `None` if one is unknown.
fn sum<'a>(members: impl Iterator<Item = &'a BondMember>) -> Option<MegabitsPerSecond> {
    members.map(|member| member.speed_mbps.map(|speed| speed.0)).sum::<Option<_>>().map(MegabitsPerSecond)
}
