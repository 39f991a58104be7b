//! Ceilings of links whose driver reports another rate.

use railgauge_model::{journal::event::LinkRecord, schedule::Cell};
use railgauge_wire::{
    Bond, BondMember, Carrier, GigabitsPerSecond, HostFacts, Interface, LinkLayer, MegabitsPerSecond, RateSource,
    RdmaPort, Sriov,
};

use super::{
    of_case, of_nic,
    tests::{cell, close, facts, record},
    wire_rate,
};

const MAPPED: &str = "0000:0000:0000:0000:0000:ffff:0a00:0001";

fn of(record: &LinkRecord, a: &HostFacts, b: &HostFacts, qps: u32) -> f64 {
    of_case(record, Some(a), Some(b), &Cell { qps, ..cell() }, false).unwrap().gbps
}

fn bond(name: &str, links: [&str; 2]) -> HostFacts {
    let member = |(at, link): (usize, &str)| BondMember {
        name: format!("eth{at}"),
        link: Some(link.into()),
        state: Some(if link == "up" { "active" } else { "backup" }.into()),
        speed_mbps: (link == "up").then_some(MegabitsPerSecond(200_000)),
    };
    let members: Vec<BondMember> = links.into_iter().enumerate().map(|(at, link)| member((at, link))).collect();
    let mut host = facts(name, 16, MAPPED);
    let rate = 200.0 * members.iter().filter(|member| member.carries()).count() as f64;
    host.rdma[0].pcie = Some((32.0, 16));
    host.rdma[0].ports[0] = RdmaPort {
        netdev: Some("bond0".into()),
        members: members.iter().map(|member| member.name.clone()).collect(),
        rate_gbps: Some(GigabitsPerSecond(rate)),
        verbs_rate_gbps: Some(GigabitsPerSecond(200.0)),
        rate_source: Some(RateSource::Members),
        ..host.rdma[0].ports[0].clone()
    };
    let bond = Some(Bond::Master("802.3ad".into()));
    host.interfaces.push(Interface { name: "bond0".into(), mtu: Some(9000), bond, members, ..Interface::default() });
    host
}

/// From public reports: a rate of 200, 183 Gb/s with one queue pair, 372 with eight.
#[test]
fn one_queue_pair_uses_one_member_of_a_bond() {
    let record = record("mlx5_0", LinkLayer::RoceV2, Carrier::VerbsRc, Some(200.0));
    let (a, b) = (bond("a", ["up", "up"]), bond("b", ["up", "up"]));
    close(of(&record, &a, &b, 1), 196.0, 0.05);
    close(of(&record, &a, &b, 2), 392.1, 0.1);
    close(of(&record, &a, &b, 8), 392.1, 0.1);
    // The end with a member down limits all queue pairs.
    let degraded = bond("b", ["up", "down"]);
    close(of(&record, &a, &degraded, 8), 196.0, 0.05);
    // A NIC's limit for all flows together, and the upper bound of everything.
    close(of_nic(&record, &a, "mlx5_0", &cell(), true).unwrap(), 392.1, 0.1);
    close(wire_rate(&record, Some(&a), Some(&b)).unwrap(), 400.0, 1e-9);
    close(wire_rate(&record, Some(&a), Some(&degraded)).unwrap(), 200.0, 1e-9);
}

#[test]
fn a_stream_uses_one_member_unless_packets_are_spread() {
    let tcp = record("bond0", LinkLayer::Ethernet, Carrier::Tcp, Some(400.0));
    let (a, b) = (bond("a", ["up", "up"]), bond("b", ["up", "up"]));
    close(of(&tcp, &a, &b, 1), 198.0, 0.05);
    close(of(&tcp, &a, &b, 4), 396.0, 0.05);
    let spread = |mut host: HostFacts| {
        host.interfaces.last_mut().unwrap().bond = Some(Bond::Master("balance-rr".into()));
        host
    };
    close(of(&tcp, &spread(a), &spread(b), 1), 396.0, 0.05);
}

/// bnxt of 400 Gb/s that reports 100, irdma of 50 that reports 100.
#[test]
fn the_interfaces_speed_counts_where_the_drivers_rate_is_made_of_it() {
    let with = |name: &str, verbs: f64, speed: f64| {
        let mut host = facts(name, 16, MAPPED);
        host.rdma[0].pcie = Some((32.0, 16));
        let port = &mut host.rdma[0].ports[0];
        (port.verbs_rate_gbps, port.rate_gbps) = (Some(GigabitsPerSecond(verbs)), Some(GigabitsPerSecond(speed)));
        port.rate_source = Some(RateSource::Interface);
        host
    };
    let said = record("mlx5_0", LinkLayer::RoceV2, Carrier::VerbsRc, Some(100.0));
    close(of(&said, &with("a", 100.0, 400.0), &with("b", 100.0, 400.0), 1), 392.1, 0.1);
    close(of(&said, &with("a", 100.0, 50.0), &with("b", 100.0, 50.0), 1), 49.0, 0.05);
    // The other end's driver is right.
    let mut other = with("b", 200.0, 200.0);
    other.rdma[0].ports[0].rate_source = Some(RateSource::Driver);
    close(of(&said, &with("a", 100.0, 400.0), &other, 1), 196.0, 0.05);
    close(wire_rate(&said, Some(&with("a", 100.0, 400.0)), Some(&other)).unwrap(), 200.0, 1e-9);
}

/// No upper bound comes of a rate that a device may exceed: a virtual function on a bond of two ports of 200 Gb/s, and a speed of InfiniBand
/// that the kernel does not know.
#[test]
fn only_proven_rates_bound_what_a_link_carries() {
    let with = |name: &str, link_layer: &str, rate: f64, sriov: Option<Sriov>| {
        let mut host = facts(name, 16, MAPPED);
        host.interfaces.clear();
        host.rdma[0].function.sriov = sriov;
        let port = &mut host.rdma[0].ports[0];
        (port.link_layer, port.rate_source) = (Some(link_layer.into()), Some(RateSource::Driver));
        port.rate_gbps = Some(GigabitsPerSecond(rate));
        host
    };
    let bound = |layer, a: &HostFacts, b: &HostFacts| {
        let said = record("mlx5_0", layer, Carrier::VerbsRc, Some(200.0));
        wire_rate(&said, Some(a), Some(b))
    };
    let virtual_function = || Some(Sriov::Virtual);
    let (a, b) = (with("a", "Ethernet", 200.0, virtual_function()), with("b", "Ethernet", 200.0, virtual_function()));
    assert_eq!(bound(LinkLayer::RoceV2, &a, &b), None);
    // The other end's port limits it all the same.
    let physical = with("b", "Ethernet", 400.0, Some(Sriov::Physical(4)));
    assert_eq!(bound(LinkLayer::RoceV2, &a, &physical), Some(400.0));
    assert_eq!(bound(LinkLayer::RoceV2, &physical, &a), Some(400.0));
    // A virtual function of InfiniBand reports its port's rate.
    let (a, b) = (with("a", "InfiniBand", 200.0, virtual_function()), with("b", "InfiniBand", 200.0, None));
    assert_eq!(bound(LinkLayer::Infiniband, &a, &b), Some(200.0));
    let (a, b) = (with("a", "InfiniBand", 10.0, None), with("b", "InfiniBand", 10.0, None));
    assert_eq!(bound(LinkLayer::Infiniband, &a, &b), None);
}

/// 98 % of the two uplinks would be 196 % of the ceiling of one, and each queue pair uses one; NDR shown as SDR would be 5,000 %.
#[test]
fn only_proven_rates_have_a_ceiling() {
    let with = |name: &str, link_layer: &str, rate: f64, sriov: Sriov| {
        let mut host = facts(name, 16, MAPPED);
        host.interfaces.clear();
        host.rdma[0].function.sriov = Some(sriov);
        let port = &mut host.rdma[0].ports[0];
        (port.link_layer, port.rate_source) = (Some(link_layer.into()), Some(RateSource::Driver));
        port.rate_gbps = Some(GigabitsPerSecond(rate));
        host
    };
    let ceiling = |layer, rate, [a, b]: [&HostFacts; 2], qps| {
        let said = record("mlx5_0", layer, Carrier::VerbsRc, Some(rate));
        of_case(&said, Some(a), Some(b), &Cell { qps, ..cell() }, false).map(|ceiling| ceiling.gbps.round())
    };
    let of_bond = with("a", "Ethernet", 200.0, Sriov::Virtual);
    let [same, physical] = [Sriov::Virtual, Sriov::Physical(4)].map(|sriov| with("b", "Ethernet", 200.0, sriov));
    for ends in [[&of_bond, &same], [&of_bond, &physical], [&physical, &of_bond]] {
        assert_eq!(ceiling(LinkLayer::RoceV2, 200.0, ends, 2), None);
        assert_eq!(ceiling(LinkLayer::RoceV2, 200.0, ends, 1), Some(196.0));
    }
    let [a, b] = ["a", "b"].map(|name| with(name, "InfiniBand", 10.0, Sriov::Physical(0)));
    assert_eq!(ceiling(LinkLayer::Infiniband, 10.0, [&a, &b], 1), None);
    let [a, b] = ["a", "b"].map(|name| with(name, "InfiniBand", 100.0, Sriov::Physical(0)));
    assert_eq!(ceiling(LinkLayer::Infiniband, 100.0, [&a, &b], 1), Some(99.0));
}

#[test]
fn a_known_payload_lowers_what_a_slot_lets_through() {
    let record = record("mlx5_0", LinkLayer::RoceV2, Carrier::VerbsRc, Some(400.0));
    let (a, mut b) = (facts("a", 16, MAPPED), facts("b", 16, MAPPED));
    // 252.1 × 512 / 536, and × 256 / 280 at the end that stores.
    close(of(&record, &a, &b, 1), 240.8, 0.05);
    b.rdma[0].function.max_payload = Some(256);
    close(of(&record, &a, &b, 1), 230.5, 0.05);
}
