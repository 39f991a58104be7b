//! What each NIC of the hosts of a collective carried, by its own counters.

use std::collections::BTreeMap;

use railgauge_model::{
    journal::event::{LinkRecord, NicBytes},
    plan::model::Host,
    schedule::devices::devices,
};
use railgauge_wire::{
    ByteCounter, Bytes, Carrier, HostFacts, INTERFACE, LinkLayer, PHYSICAL, RdmaDevice, RdmaPort, Transport,
    byte_counters, of_member, port_name,
};
use tokio::task::JoinSet;

use super::{
    super::counters::{Counters, difference, one},
    group::Group,
};

/// By host and device.
pub(super) type Read = BTreeMap<(String, String), Counters>;

/// The fastest of its active RDMA ports, or those that the plan names: slower ones serve management and storage. Of hosts without any, the
/// interfaces that the plan names.
fn nics(host: &Host, facts: &HostFacts) -> Vec<String> {
    let mut found = devices(host, Some(facts), Transport::Verbs);
    if host.devices.is_empty() {
        let rate = |name: &String| Some(port(facts, name)?.1.rate_gbps?.0);
        let most = found.iter().filter_map(rate).fold(0.0, f64::max);
        found.retain(|name| rate(name).is_none_or(|rate| rate >= most));
    }
    if found.is_empty() { host.tcp.clone() } else { found }
}

fn port<'f>(facts: &'f HostFacts, name: &str) -> Option<(&'f RdmaDevice, &'f RdmaPort)> {
    let (device, number) = port_name(name);
    let device = facts.rdma.iter().find(|one| one.name == device)?;
    Some((device, device.ports.iter().find(|port| port.number == number.unwrap_or(1))?))
}

/// Nothing for a group within one host, whose bytes need no NIC.
pub(super) async fn read(group: &Group, hosts: &[Host]) -> Read {
    let mut members: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, member) in group.members.iter().enumerate() {
        members.entry(&member.port.host).or_insert(at);
    }
    let mut reading = JoinSet::new();
    for (name, at) in members.iter().filter(|_| members.len() > 1) {
        let member = &group.members[*at];
        let names =
            hosts.iter().find(|host| host.name == *name).map_or_else(Vec::new, |host| nics(host, &member.facts));
        for nic in names.into_iter().filter(|_| member.gpu.is_some()) {
            let agent = member.agent.clone();
            reading.spawn(async move {
                let counters = one(&agent, &nic, 1).await;
                ((agent.host().to_owned(), nic), counters)
            });
        }
    }
    reading.join_all().await.into_iter().collect()
}

/// Between two readings, of the hosts whose NICs all count bytes. Nothing for hosts of one machine, whose bytes need no NIC.
pub(super) fn carried(group: &Group, before: &Read, after: &Read, link: &LinkRecord) -> Vec<NicBytes> {
    if link.link_layer == LinkLayer::Loopback {
        return Vec::new();
    }
    let mut hosts: BTreeMap<&str, Vec<(&str, Counters)>> = BTreeMap::new();
    for ((host, device), then) in before {
        let now = after.get(&(host.clone(), device.clone()));
        hosts.entry(host).or_default().push((device, now.map(|now| difference(then, now)).unwrap_or_default()));
    }
    let of = |(host, nics): (&str, Vec<(&str, Counters)>)| {
        let facts = group.members.iter().find(|member| *member.port.host == *host).map(|member| &*member.facts);
        let driver = nics.iter().find_map(|(name, _)| port(facts?, name)?.0.driver.as_deref());
        let (devices, moved): (Vec<&str>, Vec<Counters>) = nics.into_iter().unzip();
        let counted = counted(&moved, driver, link.transport).unwrap_or_default();
        let nic = |(device, bytes): (&str, Bytes)| NicBytes { host: host.to_owned(), device: device.to_owned(), bytes };
        devices.into_iter().zip(counted).map(nic).collect::<Vec<_>>()
    };
    hosts.into_iter().flat_map(of).collect()
}

/// Bytes sent and received by each NIC of a host, by the best counter that moved at any of them: at an idle NIC it did not.
fn counted(moved: &[Counters], driver: Option<&str>, carrier: Carrier) -> Option<Vec<Bytes>> {
    // The device's own counter of a bond may be that of one member.
    let bonded = moved.iter().any(|counters| counters.keys().any(|name| of_member(name).is_some()));
    let candidates = match carrier {
        Carrier::NcclSocket => &[INTERFACE],
        _ if bonded => &[PHYSICAL],
        _ => byte_counters(driver),
    };
    candidates.iter().find_map(|candidate| {
        let all: Option<Vec<Bytes>> = moved.iter().map(|counters| bytes(candidate, counters)).collect();
        all.filter(|all| all.iter().any(|bytes| !bytes.is_zero()))
    })
}

/// With those of a bond's members; `None` where the counter is missing.
fn bytes(counter: &ByteCounter, moved: &Counters) -> Option<Bytes> {
    let is_counted = |name: &&String| {
        let plain = of_member(name).map_or(name.as_str(), |(_, plain)| plain);
        counter.sent.iter().chain(counter.received).any(|known| *known == plain)
    };
    let counts: Vec<u64> = moved.iter().filter(|(name, _)| is_counted(name)).map(|(_, count)| *count).collect();
    let sum = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    (!counts.is_empty()).then(|| Bytes(sum.saturating_mul(counter.unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(driver: &str, carrier: Carrier, nics: &[&[(&str, u64)]]) -> Option<Vec<u64>> {
        let moved = |nic: &&[(&str, u64)]| nic.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let moved: Vec<Counters> = nics.iter().map(moved).collect();
        counted(&moved, Some(driver), carrier).map(|all| all.iter().map(|bytes| bytes.0).collect())
    }

    #[test]
    fn the_fastest_active_ports_are_read_or_those_that_the_plan_names() {
        let device = |(name, rate, state): (&str, f64, &str)| RdmaDevice {
            name: name.to_owned(),
            ports: vec![RdmaPort {
                number: 1,
                state: Some(state.to_owned()),
                rate_gbps: Some(railgauge_wire::GigabitsPerSecond(rate)),
                ..RdmaPort::default()
            }],
            ..RdmaDevice::default()
        };
        let ports =
            [("a", 400.0, "ACTIVE"), ("b", 400.0, "ACTIVE"), ("slow", 100.0, "ACTIVE"), ("down", 400.0, "DOWN")];
        let facts = HostFacts { rdma: ports.into_iter().map(device).collect(), ..HostFacts::default() };
        let of = |text: &str, facts: &HostFacts| {
            let plan = format!(
                "name = \"p\"\nlaunch = {{ via = \"ssh\" }}\nhosts = {{ names = [\"h\", \"i\"]{text} }}\n\
                 [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n"
            );
            let plan = railgauge_model::plan::parse("p.toml", &plan, std::path::Path::new("")).unwrap().0;
            nics(&plan.hosts[0], facts)
        };
        assert_eq!(of("", &facts), ["a", "b"]);
        assert_eq!(of(", devices = [\"slow\"]", &facts), ["slow"]);
        assert_eq!(of(", tcp = [\"eth0\", \"eth1\"]", &HostFacts::default()), ["eth0", "eth1"]);
        assert_eq!(of("", &HostFacts::default()), [] as [&str; 0]);
    }

    #[test]
    fn an_idle_nic_has_carried_nothing() {
        let busy = [("counters/port_xmit_data", 100), ("counters/port_rcv_data", 50), ("netdev/tx_bytes", 7)];
        let idle = [("counters/port_xmit_data", 0), ("counters/port_rcv_data", 0), ("netdev/tx_bytes", 7)];
        assert_eq!(of("mlx5_core", Carrier::NcclIb, &[&busy, &idle]), Some(vec![600, 0]));
        // Sockets pass the interface, whose bytes the port's counters leave out.
        assert_eq!(of("mlx5_core", Carrier::NcclSocket, &[&busy, &idle]), Some(vec![7, 7]));
        let octets = [("hw_counters/ip4OutOctets", 3), ("hw_counters/ip6OutOctets", 4), ("hw_counters/ip4InOctets", 5)];
        assert_eq!(of("irdma", Carrier::NcclIb, &[&octets, &octets]), Some(vec![12, 12]));
    }

    #[test]
    fn what_is_not_counted_is_unknown() {
        let busy = [("counters/port_xmit_data", 100), ("counters/port_rcv_data", 50)];
        assert_eq!(of("mlx5_core", Carrier::NcclIb, &[&busy, &[]]), None, "one NIC could not be read");
        let still = [("counters/port_xmit_data", 0)];
        assert_eq!(of("mlx5_core", Carrier::NcclIb, &[&still, &still]), None, "no counter moved");
        // bnxt_re updates its counters once a second.
        assert_eq!(of("bnxt_en", Carrier::NcclIb, &[&busy, &busy]), None);
    }

    #[test]
    fn a_bond_has_the_sum_of_its_members() {
        let bond = [
            ("counters/port_xmit_data", 1),
            ("members/a/ethtool/tx_bytes_phy", 5),
            ("members/b/ethtool/rx_bytes_phy", 6),
        ];
        assert_eq!(of("mlx5_core", Carrier::NcclIb, &[&bond, &bond]), Some(vec![11, 11]));
    }
}
