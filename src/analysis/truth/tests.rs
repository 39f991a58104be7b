use railgauge_model::schedule::{Cell, Flow, Port};
use railgauge_wire::{
    measure::Measurement,
    terms::{Carrier, GpuPath, LinkLayer, Memory, Op, Service, Transport},
};

use super::*;

pub(super) fn case(op: Op) -> Case {
    let cell = Cell {
        op,
        metric: TestMetric::Bandwidth,
        transport: Transport::Verbs,
        service: Service::Rc,
        memory: Memory::Host,
        size: 65536,
        qps: 1,
        only: None,
        manner: None,
    };
    let flow = Flow::pair(Port::new("gpu01", 0), Port::new("gpu02", 0));
    Case { id: 0, test: "t".into(), round: 0, flow, cell }
}

pub(super) fn link() -> LinkRecord {
    LinkRecord {
        transport: Carrier::VerbsRc,
        link_layer: LinkLayer::RoceV2,
        gpu_path: GpuPath::None,
        software: false,
        from_device: "mlx5_0".into(),
        to_device: "mlx5_0".into(),
        rate_gbps: Some(400.0),
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
        initiator: Measurement { operations: bytes / 65536, bytes, moved: Some(bytes), ..Default::default() },
        from_counters: counters(from),
        to_counters: counters(to),
        ..Sample::default()
    }
}

fn judged(op: Op, from: &[(&str, u64)], to: &[(&str, u64)]) -> Vec<String> {
    let (case, link, sample) = (case(op), link(), sample(from, to));
    let found = doubts(&case, false, &link, (None, None), &sample, &alone(&case, &link, &sample));
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

#[test]
fn a_second_flow_on_the_nic_is_seen() {
    let found = judged(Op::Write, &[("netdev/tx_bytes", (1 << 30) + (1 << 28))], &[]);
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
          1.00 % of about 262144 packets"]
    );
    let broken = judged(Op::Write, &[("counters/link_downed", 1)], &[]);
    assert_eq!(broken, ["gpu01: the link went down (counters/link_downed +1)"]);
    // The driver's count and the kernel's are of one break.
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
    // A device that does not count what arrives says nothing.
    assert_eq!(judged(Op::Write, &[("hw_counters/sent_pkts", 262_144)], &[]), Vec::<String>::new());
    // A port's counters have what others do on it.
    let port = |received| {
        judged(Op::Write, &[("counters/port_xmit_packets", 10_000)], &[("counters/port_rcv_packets", received)])
    };
    assert_eq!(port(9_850), Vec::<String>::new());
    assert_eq!(port(9_700).len(), 1);
}
