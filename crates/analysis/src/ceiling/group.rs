//! The bus bandwidth of a collective over hosts.
//!
//! Source of the bound: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations"
//! (2009): of S bytes reduced over h hosts each must send 2(h-1)/h × S. Bus bandwidth is nccl-tests' (PERFORMANCE.md).

use railgauge_wire::Op;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    pub ranks: u32,
    pub hosts: u32,
    pub nics: u32,
    /// Whether the algorithm is a ring over all ranks, which crosses every host's NICs with all of its bus bandwidth;
    /// an algorithm that first reduces inside a host can show more than the NICs carry.
    pub ring: bool,
}

/// In GB/s (1e9 bytes), from the one-way ceiling of one NIC in Gb/s. Not for reductions inside the switches. `None` for
/// one host, for uneven groups and for operations of a pair.
pub(crate) fn busbw(op: Op, group: Group, nic_gbps: f64) -> Option<f64> {
    let Group { ranks, hosts, nics, ring } = group;
    if hosts < 2 || nics == 0 || ranks < hosts || !ranks.is_multiple_of(hosts) {
        return None;
    }
    let host = nic_gbps * f64::from(nics) / 8.0;
    let (n, h, local) = (f64::from(ranks), f64::from(hosts), f64::from(ranks / hosts));
    match op {
        Op::AllReduce | Op::AllGather | Op::ReduceScatter if !ring => Some(host * ((n - 1.0) / n) / ((h - 1.0) / h)),
        Op::AllReduce | Op::AllGather | Op::ReduceScatter | Op::Broadcast | Op::Reduce | Op::SendRecv => Some(host),
        // Every rank of a host sends to all n - local ranks elsewhere.
        Op::AllToAll => Some(host * (n - 1.0) / (local * (n - local))),
        _ => None,
    }
}
