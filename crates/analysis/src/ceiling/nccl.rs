//! The bus bandwidth of an NCCL collective.
//!
//! Inside one host a GPU is what a host is in a group of hosts, and its NVLinks, or its slot, are the NICs: of S bytes
//! reduced over n GPUs each must send 2(n-1)/n × S ([`busbw`]).

use railgauge_model::{
    journal::event::{COLLNET, LinkRecord},
    schedule::Cell,
};
use railgauge_wire::{Carrier, GigabitsPerSecond, Gpu, HostFacts, LinkLayer, Op, Service, TestMetric, link::GRH};

use super::{Group, Link, LinkEnd, Pcie, Traffic, bandwidth, busbw, case::STREAM};

#[derive(Debug, Clone, Copy)]
pub(crate) struct RankHost<'f> {
    /// `None` if the host never reported them.
    pub facts: Option<&'f HostFacts>,
    pub gpu: Option<u32>,
}

/// Ceiling of the bus bandwidth in GB/s: of the narrowest GPU of a group on one host; otherwise of the NICs in NCCL's
/// log for the first and the last host. `None` for unknown rates, where switches may reduce (NVLink SHARP, CollNet),
/// and for a group on one host that used a network.
pub(crate) fn of_nccl(record: &LinkRecord, seats: &[RankHost<'_>], cell: &Cell) -> Option<f64> {
    let channels = |kind: &str| record.settings.get(&format!("channels: {kind}"))?.parse::<u64>().ok();
    // Without the number switches may reduce; NCCL before 2.17 cannot use those of NVLink for it.
    let outside = channels("coll").is_some() && channels("nvls").unwrap_or(0) == 0;
    let sharp = record.settings.contains_key(COLLNET);
    if cell.metric != TestMetric::Bandwidth || sharp {
        return None;
    }
    let ranks = u32::try_from(seats.len()).ok()?;
    let mut names: Vec<&str> = seats.iter().map(|seat| Some(seat.facts?.hostname.as_str())).collect::<Option<_>>()?;
    names.sort_unstable();
    names.dedup();
    let hosts = u32::try_from(names.len()).ok()?;
    if hosts > 1 {
        let [first, last] = [seats.first()?, seats.last()?].map(|seat| seat.facts);
        let gbps = network(record, first, "nics")?.min(network(record, last, "nics_remote")?);
        let algorithm = cell.manner.as_ref().and_then(|manner| manner.env.get("NCCL_ALGO"));
        let ring = algorithm.is_some_and(|algorithm| algorithm.eq_ignore_ascii_case("ring"));
        return busbw(cell.op, Group { ranks, hosts, nics: 1, ring }, gbps);
    }
    let way: fn(&Gpu) -> Option<f64> = match (record.transport, record.link_layer) {
        (Carrier::NcclP2p, LinkLayer::Nvlink) => nvlink,
        // AMD SMI does not report the rate of xGMI in a readable form.
        (Carrier::NcclP2p, LinkLayer::Xgmi) => return None,
        (Carrier::NcclP2p | Carrier::NcclShm, _) => slot,
        _ => return None,
    };
    let gpus = seats.iter().map(|seat| way(seat.facts?.cuda_gpu(seat.gpu?)?));
    let narrowest = gpus.collect::<Option<Vec<f64>>>()?.into_iter().fold(f64::INFINITY, f64::min);
    let group = Group { ranks, hosts: ranks, nics: 1, ring: true };
    busbw(cell.op, group, narrowest).filter(|_| outside)
}

/// All NICs of a host together, in Gb/s; `setting` of the record names them.
fn network(record: &LinkRecord, facts: Option<&HostFacts>, setting: &str) -> Option<f64> {
    let one = |name: &str| {
        let end = LinkEnd::find(facts, name);
        let interface = end.interface.map(|found| (found.speed_mbps.map(GigabitsPerSecond::from), found.mtu));
        let (rate_gbps, mtu) = match record.transport {
            Carrier::NcclIb => end.port.map(|port| (port.rate_gbps, port.mtu)),
            _ => interface,
        }?;
        let pcie = end.slot();
        let link = Link {
            layer: record.link_layer,
            rate_gbps: rate_gbps.map(|rate| rate.0),
            mtu: mtu?,
            // Longer addresses would only lower it.
            ipv6: false,
            vlan: false,
            grh: record.settings.contains_key(GRH),
            from_pcie: pcie,
            to_pcie: pcie,
        };
        let traffic = Traffic { op: Op::Send, service: Service::Rc, size: STREAM, bidirectional: false };
        bandwidth(&link, &traffic).map(|ceiling| ceiling.gbps)
    };
    record.settings.get(setting)?.split(", ").map(one).sum()
}

/// All NVLinks of a GPU in one direction, in Gb/s; `None` without any, or if NVML does not report their rate.
fn nvlink(gpu: &Gpu) -> Option<f64> {
    // Coding takes 2 of 66 bits of NVLink 2 and 3, and 1 of 17 of later ones: NVIDIA's data sheets say 25, 25 and 50 GB/s.
    let each = match gpu.nvlink_mbps?.0 {
        25_781 | 26_562 => 25.0,
        53_125 => 50.0,
        other => f64::from(other) / 1e3,
    };
    gpu.nvlinks.filter(|links| *links > 0).map(|links| f64::from(links) * each * 8.0)
}

/// In Gb/s: the faster of fetching and storing through its slot, since either end of a copy may do it.
fn slot(gpu: &Gpu) -> Option<f64> {
    Pcie::of_gpu(gpu)?.sending()
}
