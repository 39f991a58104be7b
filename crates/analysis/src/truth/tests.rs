use railgauge_model::{
    plan::per_end::PerEnd,
    schedule::{Cell, Flow, Port},
};
use railgauge_wire::{
    Bytes, Carrier, GigabitsPerSecond, GpuPath, Interface, LinkLayer, Measurement, Memory, Op, RdmaDevice, RdmaPort,
    Service, Transport,
};

use super::*;

pub(super) fn case(op: Op) -> Case {
    let cell = Cell {
        op,
        metric: TestMetric::Bandwidth,
        transport: Transport::Verbs,
        service: Service::Rc,
        memory: PerEnd::same(Memory::Host),
        size: Bytes(65536),
        qps: 1,
        only: None,
        neighbours: None,
        applied: None,
        manner: None,
    };
    let flow = Flow::pair(Port::new("gpu01", 0), Port::new("gpu02", 0));
    Case { id: 0, test: "t".into(), round: 0, flow, cell: cell.into() }
}

pub(super) fn link() -> LinkRecord {
    LinkRecord {
        transport: Carrier::VerbsRc,
        link_layer: LinkLayer::RoceV2,
        gpu_path: GpuPath::None,
        software: false,
        from_device: "mlx5_0".into(),
        to_device: "mlx5_0".into(),
        rate_gbps: Some(GigabitsPerSecond(400.0)),
        mtu: 4096,
        write_order: None,
        settings: BTreeMap::new(),
    }
}

/// A sample of 1 GiB; counters at the initiator and the responder.
fn sample(from: &[(&str, u64)], to: &[(&str, u64)]) -> Sample {
    let counters = |list: &[(&str, u64)]| list.iter().map(|(n, d)| ((*n).to_owned(), *d)).collect();
    let bytes = 1 << 30;
    Sample {
        initiator: Measurement {
            operations: bytes / 65536,
            bytes: Bytes(bytes),
            moved: Some(Bytes(bytes)),
            ..Default::default()
        },
        from_counters: counters(from),
        to_counters: counters(to),
        ..Sample::default()
    }
}

fn judged(op: Op, from: &[(&str, u64)], to: &[(&str, u64)]) -> Vec<String> {
    let (case, link, sample) = (case(op), link(), sample(from, to));
    let found = doubts(&case, false, &link, (None, None), &sample, &alone(&case, &link, &sample)).0;
    found.iter().map(Doubt::to_string).collect()
}

#[test]
fn the_payload_with_its_headers_is_clean() {
    // 1 GiB in packets of 4096 bytes costs about 2 % more on the wire.
    let words = ((1_u64 << 30) as f64 * 1.02) as u64 / 4;
    assert_eq!(judged(Op::Write, &[("counters/port_xmit_data", words)], &[]), Vec::<String>::new());
    // A read is sent by the responder.
    assert_eq!(judged(Op::Read, &[], &[("counters/port_xmit_data", words)]), Vec::<String>::new());
}

/// Writes of 64 bytes on InfiniBand: 106 bytes on the wire, with a global route header 146, less the VCRC that ports do not count.
#[test]
fn a_global_route_header_is_not_foreign_traffic() {
    let mut case = case(Op::Write);
    case.cell = Cell { size: Bytes(64), ..(*case.cell).clone() }.into();
    let sample = sample(&[("counters/port_xmit_data", (1 << 30) / 64 * 144 / 4)], &[]);
    let found = |settings: &[(&str, &str)]| {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let link = LinkRecord { link_layer: LinkLayer::Infiniband, settings, ..link() };
        doubts(&case, false, &link, (None, None), &sample, &alone(&case, &link, &sample)).0
    };
    assert_eq!(found(&[("grh", "true")]), []);
    assert!(matches!(&found(&[])[..], [Doubt::ForeignBytes { .. }]), "without one there is another's traffic");
}

#[test]
fn a_second_flow_on_the_nic_is_seen() {
    let (case, sample) = (case(Op::Write), sample(&[("netdev/tx_bytes", (1 << 30) + (1 << 28))], &[]));
    let link = LinkRecord { software: true, ..link() };
    let found = doubts(&case, false, &link, (None, None), &sample, &alone(&case, &link, &sample)).0;
    let found: Vec<String> = found.iter().map(Doubt::to_string).collect();
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("gpu01: its NIC sent 1280.0 MiB for 1024.0 MiB of payload"), "{}", found[0]);
}

#[test]
fn bytes_that_took_another_way_are_seen() {
    let found = judged(Op::Read, &[], &[("counters/port_xmit_data", 1 << 20)]);
    assert!(found[0].starts_with("gpu02: its NIC sent only 4.0 MiB"), "{found:?}");
}

#[test]
fn losses_count_by_their_share_and_breaks_at_once() {
    assert_eq!(judged(Op::Write, &[("hw_counters/completer_retry_err", 3)], &[]), Vec::<String>::new());
    let lossy = judged(Op::Write, &[], &[("hw_counters/packet_seq_err", 2622)]);
    assert_eq!(
        lossy,
        ["gpu02: packets arrived out of order and were asked for again: hw_counters/packet_seq_err +2622, \
          0.99 % of about 264766 packets"]
    );
    for name in ["counters/port_rcv_errors", "hw_counters/rx_icrc_encapsulated", "hw_counters/roce_adp_retrans_to"] {
        let lossy = judged(Op::Write, &[], &[(name, 2622)]);
        assert!(matches!(&lossy[..], [one] if one.contains(&format!("{name} +2622, 0.99 %"))), "{lossy:?}");
    }
    let broken = judged(Op::Write, &[("counters/link_downed", 1)], &[]);
    assert_eq!(broken, ["gpu01: the link went down (counters/link_downed +1)"]);
    // The driver's and the kernel's counter are of one break.
    let both = [("ethtool/link_down_events_phy", 2), ("netdev/carrier_down_count", 2)];
    assert_eq!(judged(Op::Write, &[], &both), ["gpu02: the link went down (ethtool/link_down_events_phy +2)"]);
}

#[test]
fn a_stranger_that_sends_to_the_receiver_is_seen() {
    let words = ((1_u64 << 30) as f64 * 1.02) as u64 / 4;
    let found =
        judged(Op::Write, &[("counters/port_xmit_data", words)], &[("counters/port_rcv_data", words + (1 << 26))]);
    assert!(matches!(&found[..], [one] if one.starts_with("gpu02: its NIC received")), "{found:?}");
    // What an unreliable service lost on the way is not missing from the wire.
    let lossy = judged(Op::Write, &[("counters/port_xmit_data", words)], &[("counters/port_rcv_data", words / 2)]);
    assert_eq!(lossy, Vec::<String>::new());
}

#[test]
fn packets_that_did_not_arrive_are_seen_without_any_retransmission() {
    let counted = |sent, received| {
        let (sent, received) = (("hw_counters/sent_pkts", sent), ("hw_counters/rcvd_pkts", received));
        judged(Op::Write, &[("hw_counters/sent_pkts", 262_144), received], &[("hw_counters/rcvd_pkts", 262_144), sent])
    };
    assert_eq!(counted(16_384, 16_384), Vec::<String>::new());
    assert_eq!(counted(16_384, 16_370), Vec::<String>::new(), "within the tolerance");
    let lost = counted(16_384, 16_220);
    assert!(
        matches!(&lost[..], [one] if one.starts_with("gpu02: 164 of the 16384 packets that left it (1.00 %) did not arrive at gpu01")),
        "{lost:?}"
    );
    // A device that does not count arrivals proves nothing.
    assert_eq!(judged(Op::Write, &[("hw_counters/sent_pkts", 262_144)], &[]), Vec::<String>::new());
    // A port's counters include the traffic of others.
    let port = |received| {
        judged(Op::Write, &[("counters/port_xmit_packets", 10_000)], &[("counters/port_rcv_packets", received)])
    };
    assert_eq!(port(9_850), Vec::<String>::new());
    assert_eq!(port(9_700).len(), 1);
}

fn host(driver: &str) -> HostFacts {
    let port = RdmaPort { number: 1, netdev: Some("eth2".into()), ..RdmaPort::default() };
    let device =
        RdmaDevice { name: "mlx5_0".into(), driver: Some(driver.into()), ports: vec![port], ..RdmaDevice::default() };
    HostFacts { rdma: vec![device], ..HostFacts::default() }
}

fn looked_at(from: &HostFacts, to: &HostFacts, sample: &Sample) -> (Vec<String>, Vec<String>) {
    let (case, link, ends) = (case(Op::Write), link(), (Some(from), Some(to)));
    let loads = alone(&case, &link, sample);
    let (found, unchecked) = doubts(&case, false, &link, ends, sample, &loads);
    (found.iter().map(Doubt::to_string).collect(), unchecked)
}

/// 1 GiB with its headers.
const WHOLE: u64 = (1 << 30) + (1 << 30) / 50;
const NOTHING: (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());

#[test]
fn each_driver_has_its_byte_counters() {
    for (driver, sent, received, unit) in [
        ("mlx5_core", "counters/port_xmit_data", "counters/port_rcv_data", 4),
        ("ionic", "hw_counters/tx_rdma_ucast_bytes", "hw_counters/rx_rdma_ucast_bytes", 1),
        ("ice", "hw_counters/ip4OutOctets", "hw_counters/ip4InOctets", 1),
        ("erdma", "hw_counters/hw_tx_bytes_cnt", "hw_counters/hw_rx_bytes_cnt", 1),
    ] {
        let host = host(driver);
        let counted = sample(&[(sent, WHOLE / unit), ("netdev/tx_bytes", 4096)], &[(received, WHOLE / unit)]);
        assert_eq!(looked_at(&host, &host, &counted), NOTHING, "{driver}");
        let lost = sample(&[(sent, WHOLE / unit / 2)], &[(received, WHOLE / unit)]);
        let (found, _) = looked_at(&host, &host, &lost);
        assert!(
            matches!(&found[..], [one] if one.contains("the bytes took another way") && one.contains(sent)),
            "{found:?}"
        );
    }
}

#[test]
fn an_iwarp_link_whose_mtu_nobody_knows_is_not_checked_and_said() {
    let mut known = host("ice");
    known.interfaces.push(Interface { name: "eth2".into(), mtu: Some(1500), ..Interface::default() });
    let (case, link, unknown) = (case(Op::Write), LinkRecord { link_layer: LinkLayer::Iwarp, ..link() }, host("ice"));
    // A third of what was sent: no check would pass.
    let counters = [("hw_counters/ip4OutOctets", WHOLE / 3), ("hw_counters/ip4InOctets", WHOLE / 3)];
    let sample = sample(&counters, &counters);
    let loads = alone(&case, &link, &sample);
    let of = |from, to| doubts(&case, false, &link, (Some(from), Some(to)), &sample, &loads).1;
    assert_eq!(of(&known, &unknown), ["gpu01 mlx5_0", "gpu02 mlx5_0"]);
    assert_eq!(of(&unknown, &unknown).len(), 2);
    assert_eq!(of(&known, &known), Vec::<String>::new());
}

#[test]
fn what_nobody_counts_is_not_checked_and_said() {
    // The interface's bytes without RDMA: this does not mean that the payload took another way.
    let hosts = (host("qede"), host("mlx5_core"));
    let counted = sample(&[("netdev/tx_bytes", 4096)], &[("counters/port_rcv_data", WHOLE / 4)]);
    let (found, unchecked) = looked_at(&hosts.0, &hosts.1, &counted);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(unchecked, ["gpu01 mlx5_0"]);
    // Those of bnxt_re are up to a second old, which may be half of a case.
    let late = sample(&[("hw_counters/tx_bytes", WHOLE / 2)], &[("hw_counters/rx_bytes", WHOLE / 2)]);
    let (found, unchecked) = looked_at(&host("bnxt_en"), &host("bnxt_en"), &late);
    assert_eq!((found, unchecked.len()), (Vec::<String>::new(), 2), "{unchecked:?}");
    // A frozen counter.
    let counted =
        sample(&[("counters/port_xmit_data", 0), ("netdev/tx_bytes", 4096)], &[("counters/port_rcv_data", WHOLE / 4)]);
    let (found, unchecked) = looked_at(&hosts.1, &hosts.1, &counted);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(unchecked, ["gpu01 mlx5_0"]);
    // The next best one counts.
    let counted = sample(
        &[("counters/port_xmit_data", 0), ("ethtool/tx_bytes_phy", WHOLE)],
        &[("counters/port_rcv_data", WHOLE / 4)],
    );
    assert_eq!(looked_at(&hosts.1, &hosts.1, &counted), NOTHING);
    // One that is there and cannot be read.
    let mut broken = host("mlx5_core");
    let said = [("counters/port_xmit_data".to_owned(), "Invalid argument".to_owned())];
    broken.rdma[0].ports[0].unreadable_counters = said.into();
    let counted = sample(&[("netdev/tx_bytes", 4096)], &[("counters/port_rcv_data", WHOLE / 4)]);
    let (found, unchecked) = looked_at(&broken, &hosts.1, &counted);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(unchecked, ["gpu01 mlx5_0"]);
}

#[test]
fn a_bond_is_the_sum_of_its_members_and_each_is_named() {
    let mut bond = host("mlx5_core");
    bond.rdma[0].ports[0].members = vec!["eth0".into(), "eth1".into()];
    let (zero, one) = ("members/eth0/ethtool/tx_bytes_phy", "members/eth1/ethtool/tx_bytes_phy");
    let received = [("members/eth0/ethtool/rx_bytes_phy", WHOLE / 2), ("members/eth1/ethtool/rx_bytes_phy", WHOLE / 2)];
    // The device itself counts one port.
    let halves = [("counters/port_xmit_data", WHOLE / 8), (zero, WHOLE / 2), (one, WHOLE / 2)];
    assert_eq!(looked_at(&bond, &bond, &sample(&halves, &received)), NOTHING);
    // One queue pair uses one member.
    assert_eq!(looked_at(&bond, &bond, &sample(&[(zero, 0), (one, WHOLE)], &received)), NOTHING);
    let (found, unchecked) = looked_at(&bond, &bond, &sample(&[(one, WHOLE)], &received));
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(unchecked, ["gpu01 mlx5_0"]);
    let bad = [
        halves.as_slice(),
        &[("members/eth1/netdev/carrier_down_count", 1), ("members/eth0/ethtool/rx_discards_phy", 4000)],
    ]
    .concat();
    let (found, _) = looked_at(&bond, &bond, &sample(&bad, &received));
    let [discards, down] = &found[..] else { panic!("{found:?}") };
    assert!(discards.contains("members/eth0/ethtool/rx_discards_phy +4000"), "{discards}");
    assert_eq!(down, "gpu01: the link went down (members/eth1/netdev/carrier_down_count +1)");
}

#[test]
fn losses_of_every_driver_are_seen() {
    for name in [
        "hw_counters/to_retransmits",
        "hw_counters/seq_err_naks_rcvd",
        "hw_counters/rnr_naks_rcvd",
        "hw_counters/oos_drop_count",
        "hw_counters/RetransSegs",
        "hw_counters/ip4InDiscards",
        "hw_counters/tx_rdma_ack_timeout",
        "hw_counters/retrans_pkts",
    ] {
        let found = judged(Op::Write, &[(name, 2622)], &[]);
        assert!(matches!(&found[..], [one] if one.starts_with("gpu01: ") && one.contains(name)), "{name}: {found:?}");
    }
    for name in ["hw_counters/max_retry_exceeded", "hw_counters/req_tx_retry_excd_err"] {
        let found = judged(Op::Write, &[(name, 1)], &[]);
        assert_eq!(found, [format!("gpu01: a transport retry limit was reached ({name} +1)")]);
    }
}
