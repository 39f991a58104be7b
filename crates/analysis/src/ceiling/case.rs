use railgauge_model::{journal::event::LinkRecord, schedule::Cell};
use railgauge_wire::{
    Algorithm, Bond, Bytes, Carrier, GigabitsPerSecond, HostFacts, Interface, LinkLayer, Op, RateOrigin, RateSource,
    RdmaDevice, RdmaPort, Sriov, TestMetric, drivers::known, facts::port_name, link::GRH,
};

use super::{Ceiling, Group, Link, Pcie, Traffic, bandwidth, busbw, wire};

/// The bandwidth ceiling of a case, from its link and the facts of its two hosts.
///
/// An emulated device has one only with known interface speeds at both ends; a latency case, a case inside one NIC and
/// a link of unknown rate have none.
pub(crate) fn of_case(
    record: &LinkRecord,
    from: Option<&HostFacts>,
    to: Option<&HostFacts>,
    cell: &Cell,
    bidirectional: bool,
) -> Option<Ceiling> {
    let inside = from.zip(to).is_some_and(|(from, to)| from.hostname == to.hostname);
    if cell.metric != TestMetric::Bandwidth || (inside && record.from_device == record.to_device) {
        return None;
    }
    let streams = cell.only.map_or(cell.qps, |_| 1);
    let (link, traffic) = described(record, from, to, cell, (bidirectional, Some(streams)))?;
    bandwidth(&link, &traffic)
}

/// The most payload in Gb/s that one NIC can send or receive in cases like this, by its own rate and slot. `None` if its rate is unknown.
pub(crate) fn of_nic(record: &LinkRecord, facts: &HostFacts, device: &str, cell: &Cell, sends: bool) -> Option<f64> {
    let port = LinkEnd::find(Some(facts), device).port;
    let record = LinkRecord {
        from_device: device.to_owned(),
        to_device: device.to_owned(),
        rate_gbps: port.and_then(|port| port.rate_gbps),
        ..record.clone()
    };
    let (mut link, traffic) = described(&record, Some(facts), Some(facts), cell, (false, None))?;
    // Both ends of this link are the NIC itself: the slot of the other end is left out.
    let counts_from = sends != traffic.op.pulls();
    *(if counts_from { &mut link.to_pcie } else { &mut link.from_pcie }) = None;
    bandwidth(&link, &traffic).map(|ceiling| ceiling.gbps)
}

/// Ceiling of a collective's bus bandwidth in GB/s, from the ports of its first and last rank; `nics` ports of every
/// host take part. `None` as for [`of_case`], and for a group on one host.
pub(crate) fn of_group(
    record: &LinkRecord,
    from: Option<&HostFacts>,
    to: Option<&HostFacts>,
    cell: &Cell,
    (ranks, hosts, nics): (u32, u32, u32),
) -> Option<f64> {
    if cell.metric != TestMetric::Bandwidth {
        return None;
    }
    // The algorithm cuts data into messages: packets are full, as in one long message.
    let stream = Cell { op: Op::Send, size: Bytes(STREAM), ..cell.clone() };
    let (link, traffic) = described(record, from, to, &stream, (false, None))?;
    let port = bandwidth(&link, &traffic)?.gbps;
    let halving = Algorithm::HalvingDoubling.word();
    let ring = record.settings.get("algorithm").is_some_and(|algorithm| algorithm != halving);
    busbw(cell.op, Group { ranks, hosts, nics, ring }, port)
}

const STRIPED: &str = "balance-rr";
/// Four lanes of SDR, in Gb/s.
const SDR: f64 = 10.0;

/// Bytes; long enough that the last partial packet does not matter.
pub(super) const STREAM: u64 = 1 << 30;

/// Upper bound in Gb/s per direction for anything on the link's wire: the slower port, or for a bond all members that carry traffic. Only
/// proven rates count, of either end. `None` without one, inside one host, and for an emulated device.
pub(crate) fn wire_rate(record: &LinkRecord, from: Option<&HostFacts>, to: Option<&HostFacts>) -> Option<f64> {
    let inside = from.zip(to).is_some_and(|(from, to)| from.hostname == to.hostname);
    let ends = [LinkEnd::find(from, &record.from_device), LinkEnd::find(to, &record.to_device)];
    if inside || record.software || record.link_layer == LinkLayer::Loopback {
        return None;
    }
    let rate = match ends.map(|end| end.is_proven(None)) {
        [true, true] => rate(record, ends, None),
        [true, false] => ends[0].usable(None),
        [false, true] => ends[1].usable(None),
        [false, false] => None,
    };
    rate.map(|rate| rate.0)
}

/// For this number of queue pairs or streams; `None` for any number. The record has the facts' rate when the link was
/// opened, or in older builds the driver's.
fn rate(record: &LinkRecord, ends: [LinkEnd<'_>; 2], streams: Option<u32>) -> Option<GigabitsPerSecond> {
    let speed = || least(ends.map(|end| end.interface.and_then(|found| found.speed_mbps))).map(GigabitsPerSecond::from);
    if record.software {
        return speed();
    }
    if !ends.iter().all(|end| end.is_proven(streams)) {
        return None;
    }
    if ends.iter().all(|end| end.corrected(streams).is_none()) {
        return record.rate_gbps.or_else(speed);
    }
    least(ends.map(|end| end.usable(streams)))
}

/// Payload over bytes on the wire, in the busier direction. `None` without a wire or with unknown packets.
pub(crate) fn wire_efficiency(
    record: &LinkRecord,
    from: Option<&HostFacts>,
    to: Option<&HostFacts>,
    cell: &Cell,
    bidirectional: bool,
) -> Option<f64> {
    let (link, traffic) = described(record, from, to, cell, (bidirectional, None))?;
    wire::efficiency(&link, &traffic)
}

/// With this number of queue pairs or streams (see [`rate`]). `None` for an iWARP link with unknown interfaces.
fn described(
    record: &LinkRecord,
    from: Option<&HostFacts>,
    to: Option<&HostFacts>,
    cell: &Cell,
    (bidirectional, streams): (bool, Option<u32>),
) -> Option<(Link, Traffic)> {
    let ends = [LinkEnd::find(from, &record.from_device), LinkEnd::find(to, &record.to_device)];
    let rate_gbps = rate(record, ends, streams);
    let interface_mtu = least(ends.each_ref().map(|end| end.interface.and_then(|found| found.mtu)));
    let mtu = match record.link_layer {
        LinkLayer::Iwarp => interface_mtu?,
        _ if record.transport == Carrier::Tcp => interface_mtu.unwrap_or(record.mtu),
        _ => record.mtu,
    };
    let ipv6 = record.link_layer == LinkLayer::RoceV2 && ends[0].gid_is_ipv6(record);
    let [from_pcie, to_pcie] = ends.map(|end| end.slot().filter(|_| !record.software));
    let link = Link {
        layer: record.link_layer,
        rate_gbps: rate_gbps.map(|rate| rate.0),
        mtu,
        ipv6,
        vlan: false,
        grh: record.settings.contains_key(GRH),
        from_pcie,
        to_pcie,
    };
    Some((link, Traffic { op: cell.op, service: cell.service, size: cell.size.0, bidirectional }))
}

/// A host's facts about one end of a link. Devices are named as in plans: an RDMA device, `mlx5_0:2` for its second
/// port, or a network interface.
#[derive(Clone, Copy, Default)]
pub(crate) struct LinkEnd<'a> {
    /// The RDMA device, or the one in the same slot as a plain interface.
    pub device: Option<&'a RdmaDevice>,
    pub port: Option<&'a RdmaPort>,
    pub interface: Option<&'a Interface>,
    pub facts: Option<&'a HostFacts>,
}

impl<'a> LinkEnd<'a> {
    /// Unknown facts stay `None`.
    pub(crate) fn find(facts: Option<&'a HostFacts>, name: &str) -> Self {
        let Some(facts) = facts else { return Self::default() };
        let interface = |wanted: &str| facts.interfaces.iter().find(|interface| interface.name == wanted);
        let (base, number) = port_name(name);
        if let Some(device) = facts.rdma.iter().find(|device| device.name == base) {
            let port = device.ports.iter().find(|port| port.number == number.unwrap_or(1));
            let below = port.and_then(|port| port.netdev.as_deref()).and_then(interface);
            return Self { device: Some(device), port, interface: below, facts: Some(facts) };
        }
        // The slot of a plain interface is known if it has an RDMA device.
        let on = |device: &&RdmaDevice| {
            !device.software && device.ports.iter().any(|port| port.netdev.as_deref() == Some(name))
        };
        Self { device: facts.rdma.iter().find(on), port: None, interface: interface(name), facts: Some(facts) }
    }

    /// A function's MaxPayload limits packets in both directions (PCI Express Base Specification, Max_Payload_Size).
    pub(super) fn slot(self) -> Option<Pcie> {
        let device = self.device?;
        let (gigatransfers, lanes) = device.pcie?;
        Some(Pcie { gigatransfers, lanes, max_payload: device.function.max_payload })
    }

    /// The rate if the facts know it better than the driver: the interface's speed for a driver that loses it, and for
    /// a bond the sum of the members that this number of queue pairs or streams can use, one member each.
    fn corrected(self, streams: Option<u32>) -> Option<GigabitsPerSecond> {
        let members = match (self.port, self.interface) {
            (Some(port), _) => match port.rate_source? {
                RateSource::Driver => return None,
                RateSource::Interface => return port.rate_gbps,
                RateSource::Members => self.facts?.member_rates(port)?,
            },
            (None, Some(interface)) => interface.member_rates()?,
            (None, None) => return None,
        };
        let spread = self.interface.is_some_and(|interface| interface.bond == Some(Bond::Master(STRIPED.to_owned())));
        let used = streams.filter(|_| !spread).map_or(members.len(), |streams| streams as usize);
        Some(GigabitsPerSecond(members.iter().take(used).map(|rate| rate.0).sum())).filter(|rate| rate.0 > 0.0)
    }

    fn usable(self, streams: Option<u32>) -> Option<GigabitsPerSecond> {
        self.corrected(streams).or_else(|| self.reported())
    }

    /// Whether nothing exceeds the rate with this number of queue pairs or streams. Several of a virtual function over Ethernet may: it
    /// reports one uplink of a bonded NIC while its queue pairs use all (kernel: drivers/infiniband/hw/mlx5/main.c,
    /// `mlx5_query_port_roce`; hence `ibv_query_port_speed` of rdma-core 62). So may SDR, as which the kernel shows every speed of
    /// InfiniBand that it does not know (drivers/infiniband/core/sysfs.c, `rate_show`).
    fn is_proven(self, streams: Option<u32>) -> bool {
        let infiniband = self.port.is_some_and(|port| port.link_layer.as_deref() == Some("InfiniBand"));
        let function = self.device.filter(|_| self.port.is_some()).and_then(|device| device.function.sriov.as_ref());
        let of_many = self.is_unknown_bond() || (function == Some(&Sriov::Virtual) && !infiniband);
        let sdr = infiniband && self.reported().is_some_and(|rate| rate.0 <= SDR);
        // One queue pair uses one uplink or member, whose rate the driver reports.
        !(sdr || self.rate_is_made_up() || (of_many && streams != Some(1)))
    }

    /// A bond of unknown members: its reported rate may be that of one of them.
    fn is_unknown_bond(self) -> bool {
        let named = self.device.is_some_and(|device| device.name.contains("_bond"));
        let master = self.interface.is_some_and(|interface| matches!(interface.bond, Some(Bond::Master(_))));
        // Each port of the bond has a device of its own.
        let one = self.port.is_some_and(|port| port.members.len() == 1);
        (named || master) && !one && self.corrected(None).is_none()
    }

    /// Whether the rate is unknown: what the driver reports is a constant, or capped.
    fn rate_is_made_up(self) -> bool {
        let driver = self.device.and_then(|device| known(device.driver.as_deref()?));
        let made_up = driver.is_some_and(|driver| driver.rate != RateOrigin::Device && !driver.interface_counts());
        made_up && self.port.is_some_and(|port| port.rate_gbps.is_none())
    }

    fn reported(self) -> Option<GigabitsPerSecond> {
        match self.port {
            Some(port) => port.rate_gbps,
            None => self.interface?.speed_mbps.map(GigabitsPerSecond::from),
        }
    }

    /// IPv4 addresses are mapped into ::ffff:0:0/96 (RFC 4291).
    fn gid_is_ipv6(self, record: &LinkRecord) -> bool {
        let index = record.settings.get("gid_index").and_then(|index| index.parse::<u32>().ok());
        let gid = self.port.zip(index).and_then(|(port, index)| port.gids.iter().find(|gid| gid.index == index));
        gid.is_some_and(|gid| !gid.gid.starts_with("0000:0000:0000:0000:0000:ffff:"))
    }
}

/// `None` if either is unknown.
fn least<T: PartialOrd>([a, b]: [Option<T>; 2]) -> Option<T> {
    let (a, b) = (a?, b?);
    Some(if b < a { b } else { a })
}
