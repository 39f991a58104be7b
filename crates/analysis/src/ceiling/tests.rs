//! The numbers of docs/methods.md, computed there by hand.

use std::collections::BTreeMap;

use railgauge_model::{
    journal::event::{COLLNET, LinkRecord},
    plan::per_end::PerEnd,
    schedule::Cell,
};
use railgauge_wire::{
    Bytes, Carrier, Gid, GigabitsPerSecond, Gpu, GpuPath, HostFacts, Interface, LinkLayer, MegabitsPerSecond,
    MegabytesPerSecond, Memory, Op, RdmaDevice, RdmaPort, Service, TestMetric, Transport,
};

use super::{Group, Limit, Link, Pcie, RankHost, Traffic, bandwidth, busbw, of_case, of_nccl, wire};

fn link(layer: LinkLayer, rate: f64, mtu: u32) -> Link {
    Link { layer, rate_gbps: Some(rate), mtu, ipv6: false, vlan: false, grh: false, from_pcie: None, to_pcie: None }
}

fn traffic(op: Op, size: u64) -> Traffic {
    Traffic { op, service: Service::Rc, size, bidirectional: false }
}

pub(super) fn close(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} ± {tolerance}");
}

fn gbps(link: &Link, traffic: Traffic) -> f64 {
    bandwidth(link, &traffic).unwrap().gbps
}

#[test]
fn efficiency_of_64_kib_writes() {
    // Path MTU; RoCE v2 over IPv4, with VLAN, over IPv6; InfiniBand; RoCE v1.
    let table = [
        (1024, [0.9256, 0.9223, 0.9092, 0.9750, 0.9157]),
        (2048, [0.9613, 0.9595, 0.9523, 0.9872, 0.9559]),
        (4096, [0.9801, 0.9792, 0.9755, 0.9935, 0.9773]),
    ];
    for (mtu, expected) in table {
        let v2 = link(LinkLayer::RoceV2, 1.0, mtu);
        let links = [
            v2.clone(),
            Link { vlan: true, ..v2.clone() },
            Link { ipv6: true, ..v2 },
            link(LinkLayer::Infiniband, 1.0, mtu),
            link(LinkLayer::RoceV1, 1.0, mtu),
        ];
        for (link, expected) in links.iter().zip(expected) {
            close(wire::efficiency(link, &traffic(Op::Write, 65536)).unwrap(), expected, 0.000_05);
        }
    }
}

#[test]
fn what_a_400_gigabit_port_carries() {
    let write = traffic(Op::Write, 65536);
    close(gbps(&link(LinkLayer::RoceV2, 400.0, 1024), write), 370.3, 0.1);
    close(gbps(&link(LinkLayer::RoceV2, 400.0, 4096), write), 392.1, 0.1);
    close(gbps(&link(LinkLayer::Infiniband, 400.0, 4096), write), 397.4, 0.1);
    // LRH 8, GRH 40, BTH 12, RETH 16 in the first, ICRC 4, VCRC 2: 4,162 bytes on the wire for 4,096, on 16 packets.
    let routed = Link { grh: true, ..link(LinkLayer::Infiniband, 400.0, 4096) };
    close(gbps(&routed, write), 393.6, 0.05);
    close(gbps(&link(LinkLayer::RoceV2, 100.0, 4096), write), 98.0, 0.05);
    close(gbps(&link(LinkLayer::RoceV2, 800.0, 2048), write), 769.0, 0.1);
    let both = Traffic { bidirectional: true, ..write };
    close(gbps(&link(LinkLayer::RoceV2, 400.0, 4096), both), 784.1, 0.1);
}

#[test]
fn every_operation_has_its_own_headers() {
    let roce = link(LinkLayer::RoceV2, 1.0, 4096);
    let exactly = |op, size, payload: f64, wire: f64| close(gbps(&roce, traffic(op, size)), payload / wire, 1e-12);
    exactly(Op::Write, 8, 8.0, 82.0 + 8.0 + 16.0);
    // Payload is padded to four bytes.
    exactly(Op::Write, 5, 5.0, 82.0 + 8.0 + 16.0);
    exactly(Op::WriteImm, 8, 8.0, 82.0 + 8.0 + 20.0);
    exactly(Op::Send, 65536, 65536.0, 65536.0 + 16.0 * 82.0);
    exactly(Op::Send, 4097, 4097.0, 4100.0 + 2.0 * 82.0);
    // Answers with an AETH on the first and last of 16 packets, on the only one of one.
    exactly(Op::Read, 65536, 65536.0, 65536.0 + 16.0 * 82.0 + 8.0);
    exactly(Op::Read, 4096, 4096.0, 4096.0 + 82.0 + 4.0);
    // Also for an atomic: 110 against 94.
    exactly(Op::Read, 2, 2.0, 82.0 + 16.0);
    // Of an atomic too: 110 against 94.
    exactly(Op::AtomicFadd, 65536, 8.0, 110.0);
    exactly(Op::AtomicCas, 8, 8.0, 110.0);
    // In both directions at once each wire has the requests of one side and the answers of the other.
    let both = |op, size| gbps(&roce, Traffic { bidirectional: true, ..traffic(op, size) });
    close(both(Op::AtomicFadd, 8), 2.0 * 8.0 / 204.0, 1e-12);
    close(both(Op::Read, 65536), 2.0 * 65536.0 / (65536.0 + 16.0 * 82.0 + 8.0 + 98.0), 1e-12);
    // A datagram carries a DETH.
    let datagram = Traffic { service: Service::Ud, ..traffic(Op::Send, 4096) };
    close(gbps(&roce, datagram), 4096.0 / (4096.0 + 90.0), 1e-12);
}

#[test]
fn tcp_and_iwarp() {
    let size = 1 << 20;
    // 1500 - 20 - 20 - 12 of 1500 + 38: the well-known 941 Mb/s of gigabit Ethernet.
    close(gbps(&link(LinkLayer::Ethernet, 1.0, 1500), traffic(Op::Write, size)), 0.9415, 0.000_05);
    close(gbps(&link(LinkLayer::Ethernet, 1.0, 9000), traffic(Op::Write, size)), 0.9900, 0.000_05);
    let v6 = Link { ipv6: true, ..link(LinkLayer::Ethernet, 1.0, 1500) };
    close(gbps(&v6, traffic(Op::Write, size)), 1428.0 / 1538.0, 1e-12);
    close(gbps(&link(LinkLayer::Ethernet, 1.0, 1500), traffic(Op::Write, 1)), 0.9415, 0.000_05);
    // 1440 of 1538 and 8940 of 9038.
    close(gbps(&link(LinkLayer::Iwarp, 1.0, 1500), traffic(Op::Write, 1440 * 1000)), 1440.0 / 1538.0, 1e-12);
    close(gbps(&link(LinkLayer::Iwarp, 1.0, 9000), traffic(Op::Read, 8940 * 1000)), 8940.0 / 9038.0, 1e-12);
    // Untagged headers are four bytes longer.
    close(gbps(&link(LinkLayer::Iwarp, 1.0, 1500), traffic(Op::Send, 1436 * 1000)), 1436.0 / 1538.0, 1e-12);
}

#[test]
fn infiniband_ports_that_report_the_signalling_rate() {
    let rate = |reported| wire::data_rate(LinkLayer::Infiniband, reported);
    assert_eq!([10.0, 20.0, 100.0, 200.0, 400.0].map(rate), [8.0, 16.0, 100.0, 200.0, 400.0].map(Some));
    close(rate(56.0).unwrap(), 54.545, 0.001);
    assert_eq!(rate(40.0), None);
    assert_eq!(wire::data_rate(LinkLayer::RoceV2, 40.0), Some(40.0));
    assert_eq!([0.0, -1.0, f64::NAN].map(rate), [None; 3]);
}

#[test]
fn slots() {
    let x16 = |gigatransfers, payload| Pcie { gigatransfers, lanes: 16, max_payload: Some(payload) };
    for (speed, raw, by_payload) in [
        (8.0, 126.0, [106.0, 115.0, 120.0]),
        (16.0, 252.1, [212.0, 230.0, 241.0]),
        (32.0, 504.1, [425.0, 461.0, 482.0]),
    ] {
        close(x16(speed, 256).raw().unwrap(), raw, 0.1);
        for (payload, expected) in [128, 256, 512].into_iter().zip(by_payload) {
            close(x16(speed, payload).receiving().unwrap(), expected, 1.0);
        }
    }
    // 252.06 × 256 / 276 and, with flits, 64 × 16 × 236 / 256 × 256 / 272.
    close(x16(16.0, 256).sending().unwrap(), 233.8, 0.1);
    close(x16(64.0, 256).receiving().unwrap(), 888.5, 0.1);
    close(x16(5.0, 128).raw().unwrap(), 64.0, 1e-9);
    assert_eq!(Pcie { lanes: 0, ..x16(8.0, 256) }.receiving(), None);
    assert_eq!(x16(8.0, 0).receiving(), None);
    assert_eq!(x16(0.0, 256).receiving(), None);
}

#[test]
fn the_narrowest_slot_counts_on_the_side_it_is_on() {
    let gen4 = Pcie { gigatransfers: 16.0, lanes: 16, max_payload: Some(256) };
    let gen5 = Pcie { gigatransfers: 32.0, ..gen4 };
    let ends = |from, to| Link { from_pcie: Some(from), to_pcie: Some(to), ..link(LinkLayer::Infiniband, 400.0, 4096) };
    let write = traffic(Op::Write, 1 << 20);
    let found = bandwidth(&ends(gen5, gen4), &write).unwrap();
    assert_eq!(found.limit, Limit::Pcie);
    close(found.gbps, 230.5, 0.1);
    // Fetching costs less than storing; a read stores at the initiator.
    close(gbps(&ends(gen4, gen5), write), 233.8, 0.1);
    close(gbps(&ends(gen4, gen5), traffic(Op::Read, 1 << 20)), 230.5, 0.1);
    close(gbps(&ends(gen4, gen5), Traffic { bidirectional: true, ..write }), 461.0, 0.1);
    assert_eq!(bandwidth(&ends(gen5, gen5), &write).unwrap().limit, Limit::Wire);
}

#[test]
fn no_guess_where_nothing_is_known() {
    let write = traffic(Op::Write, 4096);
    let roce = link(LinkLayer::RoceV2, 100.0, 1024);
    assert_eq!(bandwidth(&Link { rate_gbps: None, ..roce.clone() }, &write), None);
    assert_eq!(bandwidth(&Link { mtu: 0, ..roce.clone() }, &write), None);
    assert_eq!(bandwidth(&roce, &traffic(Op::Write, 0)), None);
    assert_eq!(bandwidth(&roce, &traffic(Op::AllReduce, 4096)), None);
    assert_eq!(bandwidth(&link(LinkLayer::Loopback, 100.0, 65536), &write), None);
    assert_eq!(bandwidth(&link(LinkLayer::Nvlink, 100.0, 4096), &write), None);
    assert_eq!(bandwidth(&link(LinkLayer::Ethernet, 100.0, 40), &write), None);
    assert_eq!(bandwidth(&link(LinkLayer::Iwarp, 100.0, 50), &write), None);
}

#[test]
fn collectives() {
    let group = Group { ranks: 32, hosts: 4, nics: 8, ring: true };
    // Eight NICs of 392.1 Gb/s.
    close(busbw(Op::AllReduce, group, 392.1).unwrap(), 392.1, 1e-9);
    // Two hosts of eight: (15/16) / (1/2) of it, so that two hosts show more than their NICs carry.
    let two = Group { ranks: 16, hosts: 2, ring: false, ..group };
    close(busbw(Op::AllReduce, two, 392.1).unwrap(), 392.1 * 1.875, 1e-9);
    // One rank a host: both are the NIC.
    let single = Group { ranks: 4, hosts: 4, nics: 1, ring: false };
    for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter, Op::Broadcast, Op::Reduce, Op::AllToAll] {
        close(busbw(op, single, 80.0).unwrap(), 10.0, 1e-9);
    }
    // Each of 8 ranks sends to 24 of 31 others through the host's NICs.
    close(busbw(Op::AllToAll, group, 400.0).unwrap(), 400.0 * 31.0 / (8.0 * 24.0), 1e-9);
    assert_eq!(busbw(Op::AllReduce, Group { ranks: 8, hosts: 1, ..group }, 400.0), None);
    assert_eq!(busbw(Op::AllReduce, Group { ranks: 9, hosts: 2, ..group }, 400.0), None);
    assert_eq!(busbw(Op::Write, group, 400.0), None);
}

pub(super) fn record(device: &str, layer: LinkLayer, transport: Carrier, rate_gbps: Option<f64>) -> LinkRecord {
    LinkRecord {
        transport,
        link_layer: layer,
        gpu_path: GpuPath::None,
        software: false,
        from_device: device.into(),
        to_device: device.into(),
        rate_gbps: rate_gbps.map(GigabitsPerSecond),
        mtu: 4096,
        write_order: None,
        settings: BTreeMap::from([("gid_index".into(), "3".into())]),
    }
}

pub(super) fn facts(hostname: &str, lanes: u32, gid: &str) -> HostFacts {
    HostFacts {
        hostname: hostname.into(),
        rdma: vec![RdmaDevice {
            name: "mlx5_0".into(),
            pcie: Some((16.0, lanes)),
            ports: vec![RdmaPort {
                number: 1,
                netdev: Some("eth2".into()),
                gids: vec![Gid { index: 3, gid: gid.into(), ..Gid::default() }],
                ..RdmaPort::default()
            }],
            ..RdmaDevice::default()
        }],
        interfaces: vec![Interface {
            name: "eth2".into(),
            mtu: Some(9000),
            speed_mbps: Some(MegabitsPerSecond(100_000)),
            ..Interface::default()
        }],
        ..HostFacts::default()
    }
}

#[test]
fn recorded_cases() {
    let cell = cell();
    const MAPPED: &str = "0000:0000:0000:0000:0000:ffff:0a00:0001";
    let (a, b) = (facts("a", 16, MAPPED), facts("b", 16, MAPPED));
    let of = |record: &LinkRecord, a: &HostFacts, b: &HostFacts, cell: &Cell| {
        of_case(record, Some(a), Some(b), cell, false).map(|ceiling| ceiling.gbps)
    };
    let roce = record("mlx5_0", LinkLayer::RoceV2, Carrier::VerbsRc, Some(200.0));
    close(of(&roce, &a, &b, &cell).unwrap(), 196.0, 0.05);
    close(of_case(&roce, None, None, &cell, false).unwrap().gbps, 196.0, 0.05);
    // A slot with half its lanes, at the far end: 126.0 × 512 / 536.
    close(of(&roce, &a, &facts("b", 8, MAPPED), &cell).unwrap(), 120.4, 0.1);
    let v6 = facts("a", 16, "fd00:0000:0000:0000:0000:0000:0000:0001");
    close(of(&roce, &v6, &b, &cell).unwrap(), 195.1, 0.05);
    assert_eq!(of(&roce, &a, &b, &Cell { metric: TestMetric::Latency, ..cell.clone() }), None);
    // Inside one NIC nothing crosses the wire.
    assert_eq!(of(&roce, &a, &a, &cell), None);

    // TCP: rate and MTU are the interface's.
    let tcp = record("eth2", LinkLayer::Ethernet, Carrier::Tcp, None);
    close(of(&tcp, &a, &b, &cell).unwrap(), 99.0, 0.01);
    assert_eq!(of_case(&tcp, None, Some(&b), &cell, false), None);

    // For an emulated device the interface's speed counts, and not its own claim.
    let software = LinkRecord { software: true, ..record("mlx5_0", LinkLayer::RoceV2, Carrier::VerbsRc, Some(2.5)) };
    close(of(&software, &a, &b, &cell).unwrap(), 98.0, 0.05);
    let mut mute = b.clone();
    mute.interfaces[0].speed_mbps = None;
    assert_eq!(of(&software, &a, &mute, &cell), None);

    // iWARP needs the interface's MTU, not the path MTU the port invents.
    let iwarp = record("mlx5_0", LinkLayer::Iwarp, Carrier::VerbsRc, Some(100.0));
    close(of(&iwarp, &a, &b, &cell).unwrap(), 98.9, 0.1);
    mute.interfaces[0].mtu = None;
    assert_eq!(of(&iwarp, &a, &mute, &cell), None);
}

#[test]
fn collectives_of_nccl_on_one_host() {
    let gpu = Gpu {
        nvlinks: Some(18),
        nvlink_mbps: Some(MegabytesPerSecond(26_562)),
        pcie_max: Some((5, 16)),
        ..Gpu::default()
    };
    let host = |mut gpus: Vec<Gpu>| {
        (0..).zip(&mut gpus).for_each(|(index, gpu)| gpu.index = index);
        HostFacts { hostname: "a".into(), gpus, ..HostFacts::default() }
    };
    let four = host(vec![gpu.clone(); 4]);
    let seats = |facts| (0..4).map(|gpu| RankHost { facts: Some(facts), gpu: Some(gpu) }).collect::<Vec<_>>();
    let cell = |op| Cell { transport: Transport::Nccl, memory: PerEnd::same(Memory::Cuda), op, ..cell() };
    let linked = |layer, transport, nvls: &str| LinkRecord {
        settings: [("channels: coll", "24"), ("channels: nvls", nvls)].map(|(k, v)| (k.into(), v.into())).into(),
        ..record("GPU 0", layer, transport, None)
    };
    let nvlink = linked(LinkLayer::Nvlink, Carrier::NcclP2p, "0");
    for op in [Op::AllReduce, Op::AllGather, Op::AllToAll, Op::Broadcast, Op::SendRecv] {
        // 18 links of 25 GB/s.
        close(of_nccl(&nvlink, &seats(&four), &cell(op)).unwrap(), 450.0, 1e-9);
    }
    let reduce = cell(Op::AllReduce);
    // The GPU with the fewest links limits all others.
    let mut lame = four.clone();
    lame.gpus[2].nvlinks = Some(16);
    close(of_nccl(&nvlink, &seats(&lame), &reduce).unwrap(), 400.0, 1e-9);
    // Through the slots: 32 GT/s × 16 × 128/130 × 512 / 532 / 8.
    let shared = linked(LinkLayer::Loopback, Carrier::NcclShm, "0");
    close(of_nccl(&shared, &seats(&four), &reduce).unwrap(), 60.6, 0.05);
    // Switches that may reduce, a log without channels, sockets inside a host, a rate missing from NVML, a latency.
    assert_eq!(of_nccl(&linked(LinkLayer::Nvlink, Carrier::NcclP2p, "16"), &seats(&four), &reduce), None);
    let mute = LinkRecord { settings: BTreeMap::new(), ..nvlink.clone() };
    assert_eq!(of_nccl(&mute, &seats(&four), &reduce), None);
    assert_eq!(of_nccl(&linked(LinkLayer::Loopback, Carrier::NcclSocket, "0"), &seats(&four), &reduce), None);
    let unknown = host(vec![Gpu { nvlink_mbps: None, ..gpu }; 4]);
    assert_eq!(of_nccl(&nvlink, &seats(&unknown), &reduce), None);
    assert_eq!(of_nccl(&nvlink, &seats(&four), &Cell { metric: TestMetric::Latency, ..reduce.clone() }), None);
}

#[test]
fn collectives_of_nccl_over_a_network() {
    let port = |name: &str, rate: f64| RdmaDevice {
        name: name.into(),
        pcie: Some((32.0, 16)),
        ports: vec![RdmaPort {
            number: 1,
            rate_gbps: Some(GigabitsPerSecond(rate)),
            mtu: Some(4096),
            ..RdmaPort::default()
        }],
        ..RdmaDevice::default()
    };
    let host = |name: &str, rate: f64| HostFacts {
        hostname: name.into(),
        rdma: vec![port("mlx5_0", rate), port("mlx5_3", rate)],
        ..HostFacts::default()
    };
    let (a, b) = (host("a", 400.0), host("b", 400.0));
    let seats = |b| [&a, &a, b, b].map(|facts| RankHost { facts: Some(facts), gpu: None });
    let cell = Cell { transport: Transport::Nccl, op: Op::AllReduce, ..cell() };
    let settings =
        |far: &str| [("nics".into(), "mlx5_0:1, mlx5_3:1".into()), ("nics_remote".into(), far.into())].into();
    let both = LinkRecord {
        settings: settings("mlx5_0:1, mlx5_3:1"),
        ..record("GPU 0", LinkLayer::Infiniband, Carrier::NcclIb, None)
    };
    // Two ports of 397.4 Gb/s are 99.4 GB/s; four ranks on two hosts may show 3/4 over 1/2 of that with a tree.
    close(of_nccl(&both, &seats(&b), &cell).unwrap(), 99.4 * 1.5, 0.1);
    let one = LinkRecord { settings: settings("mlx5_0:1"), ..both.clone() };
    close(of_nccl(&one, &seats(&b), &cell).unwrap(), 49.7 * 1.5, 0.1);
    let slow = host("b", 200.0);
    close(of_nccl(&both, &seats(&slow), &cell).unwrap(), 49.7 * 1.5, 0.1);
    // An unknown port, and reduction inside the switches.
    assert_eq!(of_nccl(&LinkRecord { settings: settings("mlx5_7:1"), ..both.clone() }, &seats(&b), &cell), None);
    let mut sharp = both.clone();
    sharp.settings.insert(COLLNET.into(), "true".into());
    assert_eq!(of_nccl(&sharp, &seats(&b), &cell), None);
}

pub(super) fn cell() -> Cell {
    Cell {
        only: None,
        neighbours: None,
        applied: None,
        manner: None,
        op: Op::Write,
        metric: TestMetric::Bandwidth,
        transport: Transport::Verbs,
        service: Service::Rc,
        memory: PerEnd::same(Memory::Host),
        size: Bytes(65536),
        qps: 1,
    }
}
