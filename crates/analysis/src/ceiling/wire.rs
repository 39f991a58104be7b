//! Header bytes per packet and message, by link layer. All sizes in bytes.
//!
//! Sources: InfiniBand Architecture Specification, volume 1 (headers, annexes A16 and A17 for RoCE v1 and v2); IEEE
//! 802.3 (frame, preamble, gap); RFC 791, 8200, 768, 9293, 7323 (IP, UDP, TCP, its time stamps); RFC 5040, 5041, 5044
//! (RDMAP, DDP, MPA: iWARP). Worked numbers in `docs/methods.md`.

use railgauge_wire::{LinkLayer, Op, Service};

use super::pcie::Pcie;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Link {
    pub layer: LinkLayer,
    /// Of the slower end, as the port reports it; `None` means no ceiling. For an emulated device, the speed of the
    /// interface below it and never its own claim.
    pub rate_gbps: Option<f64>,
    /// Payload bytes per packet for InfiniBand and RoCE (path MTU); bytes per IP packet for TCP and iWARP.
    pub mtu: u32,
    /// Whether packets use IPv6 (RoCE v2, iWARP, TCP).
    pub ipv6: bool,
    pub vlan: bool,
    /// Whether packets of InfiniBand carry a global route header.
    pub grh: bool,
    pub from_pcie: Option<Pcie>,
    pub to_pcie: Option<Pcie>,
}

/// The traffic on a link. The number of queue pairs or streams only affects the rate of a bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// A collective has no ceiling here, see [`busbw`](super::busbw).
    pub op: Op,
    pub service: Service,
    /// Bytes; atomics always move 8.
    pub size: u64,
    pub bidirectional: bool,
}

/// Preamble with start delimiter, gap between frames, addresses with type, frame check sequence.
const ETHERNET: u64 = 8 + 12 + 14 + 4;
const VLAN: u64 = 4;
const IPV4: u64 = 20;
const IPV6: u64 = 40;
const UDP: u64 = 8;
const TCP: u64 = 20;
/// Padded to a multiple of four; on by default in Linux.
const TCP_TIMESTAMPS: u64 = 12;

const LRH: u64 = 8;
const GRH: u64 = 40;
const BTH: u64 = 12;
const ICRC: u64 = 4;
const VCRC: u64 = 2;
/// In bytes: datagram, RDMA (address, key, length), acknowledgement, immediate data, atomic and its answer.
const DETH: u64 = 8;
const RETH: u64 = 16;
const AETH: u64 = 4;
const IMMEDIATE: u64 = 4;
const ATOMIC_ETH: u64 = 28;
const ATOMIC_ACK_ETH: u64 = 8;
const ATOMIC: u64 = 8;

/// MPA: a length before and a checksum after every unit, whose length is a multiple of four bytes.
const MPA_LENGTH: u64 = 2;
const MPA_CRC: u64 = 4;
/// Tagged units are writes and read answers; untagged ones are sends.
const TAGGED: u64 = 14;
const UNTAGGED: u64 = 18;

/// Data rate from the rate that a port reports: equal except for old InfiniBand, whose ports report the signalling
/// rate. `None` if the report is ambiguous.
pub(super) fn data_rate(layer: LinkLayer, reported: f64) -> Option<f64> {
    if !reported.is_finite() || reported <= 0.0 {
        return None;
    }
    match (layer, reported) {
        // SDR, DDR and narrow QDR: 8b/10b.
        (LinkLayer::Infiniband, ..40.0) => Some(reported * 0.8),
        // QDR carries 32 and FDR10 carries 40, and both report 40.
        (LinkLayer::Infiniband, 40.0) => None,
        // FDR reports 56: four lanes of 14.0625 with 64b/66b.
        (LinkLayer::Infiniband, 56.0) => Some(56.25 * 64.0 / 66.0),
        _ => Some(reported),
    }
}

/// Payload over bytes on the wire, in the busier direction. `None` without a wire or for a collective.
pub(super) fn efficiency(link: &Link, traffic: &Traffic) -> Option<f64> {
    if traffic.op.is_collective() {
        return None;
    }
    let vlan = if link.vlan { VLAN } else { 0 };
    let ip = if link.ipv6 { IPV6 } else { IPV4 };
    match link.layer {
        LinkLayer::Infiniband => packets(LRH + if link.grh { GRH } else { 0 } + BTH + ICRC + VCRC, link, traffic),
        LinkLayer::RoceV1 => packets(ETHERNET + vlan + GRH + BTH + ICRC, link, traffic),
        LinkLayer::RoceV2 => packets(ETHERNET + vlan + ip + UDP + BTH + ICRC, link, traffic),
        LinkLayer::Ethernet => stream(ETHERNET + vlan, ip + TCP + TCP_TIMESTAMPS, link),
        LinkLayer::Iwarp => {
            let units = units(traffic, u64::from(link.mtu).checked_sub(ip + TCP)?)?;
            Some(units * stream(ETHERNET + vlan, ip + TCP, link)?)
        }
        LinkLayer::Loopback
        | LinkLayer::Nvlink
        | LinkLayer::Xgmi
        | LinkLayer::Pcie
        | LinkLayer::Memory
        | LinkLayer::Unknown => None,
    }
}

/// InfiniBand transport: `overhead` bytes on every packet, more on some.
fn packets(overhead: u64, link: &Link, Traffic { op, service, size, bidirectional }: &Traffic) -> Option<f64> {
    let mtu = u64::from(link.mtu);
    let size = if op.is_atomic() { ATOMIC } else { *size };
    if mtu == 0 || size == 0 {
        return None;
    }
    let overhead = overhead + if *service == Service::Ud { DETH } else { 0 };
    let count = size.div_ceil(mtu);
    let data = count * overhead + size.next_multiple_of(4);
    // Bytes of one operation in the payload's direction, and in the other if the operation needs an answer.
    let (with, against) = match op {
        Op::Write => (data + RETH, 0),
        Op::WriteImm => (data + RETH + IMMEDIATE, 0),
        // The first and the last packet of an answer carry an AETH.
        Op::Read => (data + AETH * count.min(2), overhead + RETH),
        Op::AtomicFadd | Op::AtomicCas => (overhead + AETH + ATOMIC_ACK_ETH, overhead + ATOMIC_ETH),
        _ => (data, 0),
    };
    let busiest = if *bidirectional { with + against } else { with.max(against) };
    Some(size as f64 / busiest as f64)
}

/// A TCP stream in full segments: `headers` inside the IP packet, `frame` around it.
fn stream(frame: u64, headers: u64, link: &Link) -> Option<f64> {
    let packet = u64::from(link.mtu);
    let payload = packet.checked_sub(headers).filter(|payload| *payload > 0)?;
    Some(payload as f64 / (packet + frame) as f64)
}

/// iWARP: payload over bytes of the TCP stream, with `segment` bytes in a segment and no unit across two segments.
fn units(Traffic { op, size, .. }: &Traffic, segment: u64) -> Option<f64> {
    let (header, size) = match op {
        Op::Send => (UNTAGGED, *size),
        Op::AtomicFadd | Op::AtomicCas => return None,
        _ => (TAGGED, *size),
    };
    let unit = |payload: u64| (MPA_LENGTH + header + payload).next_multiple_of(4) + MPA_CRC;
    let most = (segment - segment % 4).checked_sub(MPA_LENGTH + header + MPA_CRC).filter(|most| *most > 0)?;
    let rest = size % most;
    let bytes = size / most * unit(most) + if rest > 0 { unit(rest) } else { 0 };
    (size > 0).then(|| size as f64 / bytes as f64)
}
