//! One rank of a collective: what to open for it, how the ranks of a group find each other, what they do together.
//!
//! ```text
//! controller   OpenMember to every rank   → MemberOpened: its ticket
//! controller   JoinMember with all tickets → Done, once the group is complete
//! controller   MeasureMember to every rank → MemberMeasured: times of this rank, what it verified, what carried it
//! ```
//! A rank is a link of its agent and has a [`crate::link::LinkId`] of its own: a host may hold several. Ranks agree on
//! the number of operations among themselves, over the group, so that none waits for an operation another left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    gpu_state::GpuSeen,
    link::{Endpoint, LinkSpec},
    step::{Checked, Window},
    terms::{Algorithm, Carrier, Datatype, GpuPath, LinkLayer, Op, Reduction, TestMetric, Transport},
    unit::{Bytes, GigabitsPerSecond, Nanoseconds},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSpec {
    /// Counted from 0.
    pub rank: u32,
    pub ranks: u32,
    pub transport: Transport,
    /// CUDA device index, where the data is on a GPU.
    pub gpu: Option<u32>,
    pub library: Option<String>,
    pub env: BTreeMap<String, String>,
    /// Largest [`CollectiveSpec::size`] of this rank.
    pub max_size: Bytes,
    /// Ranks of the group on this rank's host, which share its memory.
    pub siblings: u32,
    pub endpoint: Option<Box<RankEndpoint>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankEndpoint {
    /// The host's name in the plan, for messages of other ranks.
    pub host: String,
    /// Device or address, secret and settings. Its role and number of queue pairs are unused.
    pub link: LinkSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ticket {
    /// NCCL's unique id, 256 hexadecimal digits; rank 0 makes it, the others have none.
    Nccl { id: Option<String> },
    /// For host memory: the others connect to it, or their queue pairs to its own.
    Host {
        host: String,
        /// Where it listens; or its queue pairs, one for each rank of the group, by rank.
        endpoint: Box<Endpoint>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberOpened {
    pub ticket: Ticket,
    /// As `GPU 0 (NVIDIA H200)`.
    pub device: String,
    pub settings: BTreeMap<String, String>,
    /// Link rate as the port reports it, where the rank's own port is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_gbps: Option<GigabitsPerSecond>,
    pub mtu: u32,
    pub software: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CollectiveOptions {
    pub datatype: Datatype,
    /// `None` for operations that only move data.
    pub reduction: Option<Reduction>,
    pub in_place: bool,
    /// Whether the operations are captured into a CUDA graph and the graph is launched.
    pub graph: bool,
    pub ranks_per_host: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// `Some` exactly for [`TestMetric::Step`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
}

/// Gradient reduction of a training step: each bucket is reduced as soon as the backward pass has filled it and the one before is done,
/// as in PyTorch's DistributedDataParallel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Training {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub bucket: Bytes,
    pub first_bucket: Bytes,
    /// Time of the backward pass, which a timer simulates.
    pub compute: Nanoseconds,
}

/// What one rank sends and receives, in elements, by rank. Blocks are adjacent, in the order of ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Exchange {
    pub send: Vec<u64>,
    pub receive: Vec<u64>,
    /// Where each received block begins in what its sender sends.
    pub offsets: Vec<u64>,
    /// Flows that are also measured alone, in turn: sender and receiver. Equal at all ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<(u32, u32)>,
}

/// A flow of an exchange at its receiver: medians over rounds, from a barrier to the flow's last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowTimes {
    pub from: u32,
    /// In rounds with all flows.
    pub together: Nanoseconds,
    pub alone: Nanoseconds,
}

/// A collective alone and alongside other traffic, which ran from before its first operation to after its last one. Times are those of one
/// operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Overlap {
    pub alone: Nanoseconds,
    pub together: Nanoseconds,
    /// `None` where a command makes the traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<OtherTimes>,
}

/// The operation of a second communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OtherTimes {
    pub alone: Nanoseconds,
    pub together: Nanoseconds,
    /// How many began and ended while those of the first communicator ran; `together` is their time.
    pub operations: u64,
}

impl Overlap {
    /// In percent of the bandwidth alone; negative for a gain.
    pub fn loss(&self) -> Option<f64> {
        loss(self.alone, self.together)
    }

    pub fn loss_of_other(&self) -> Option<f64> {
        self.other.and_then(|other| loss(other.alone, other.together))
    }
}

fn loss(alone: Nanoseconds, together: Nanoseconds) -> Option<f64> {
    (!alone.is_zero() && !together.is_zero()).then(|| 100.0 * (1.0 - alone.as_f64() / together.as_f64()))
}

/// Where each of adjacent blocks begins.
pub fn starts(counts: &[u64]) -> impl Iterator<Item = u64> {
    counts.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + count)))
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectiveSpec {
    pub op: Op,
    /// `Bandwidth` pipelines operations as nccl-tests does; `Latency` separates them by a barrier; `Step` makes each a training step,
    /// behind a barrier.
    pub metric: TestMetric,
    /// Size as nccl-tests counts it: the larger of what a rank sends and what it receives; of `all_to_all_v` that of the busiest rank.
    pub size: Bytes,
    pub options: CollectiveOptions,
    /// `Some` exactly for `all_to_all_v`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Box<Exchange>>,
    /// Operation of a second communicator of the same ranks, with the same size, alongside which this one is measured again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Op>,
    pub window: Window,
    pub warm_up: Nanoseconds,
    /// Whether to verify the results: before the timed operations, and after the last one.
    pub verify: bool,
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectiveMeasurement {
    /// Times of batches, in order. All ranks have the same number of batches.
    pub times: Vec<Nanoseconds>,
    /// Operations of each batch.
    pub batch: u64,
    /// By training step: the time of the same buckets in sequence, without a backward pass; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<Nanoseconds>,
    /// Those of [`Exchange::alone`] that this rank receives, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowTimes>,
    /// Passes with a second communicator, in order; equally many on all ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlap: Vec<Overlap>,
    pub checked: Checked,
    pub cpu: Nanoseconds,
    /// From the start of the first timed batch to the end of the last, on the monotonic clock of the rank's host; `None` if not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<(Nanoseconds, Nanoseconds)>,
    /// `None` for host memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Box<GpuSeen>>,
    /// `None` if this rank found no evidence.
    pub carried: Option<Carried>,
    pub algorithm: Option<Algorithm>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The slowest kind among the connections of this rank: network before shared memory before peer to peer.
    pub transport: Carrier,
    pub link_layer: Option<LinkLayer>,
    /// `None` where no network took part.
    pub gpu_path: GpuPath,
    /// Lines of the library's log, with their counts.
    pub evidence: BTreeMap<String, u64>,
    #[serde(default)]
    pub networked: bool,
    #[serde(default)]
    pub collnet: bool,
    /// Channels by kind of operation; empty where the library does not report them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, u64>,
    /// Devices or interfaces of this rank's connections to other hosts, by their names in plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<String>,
}

impl CollectiveSpec {
    /// Elements per rank (`count` of the operation's call); `None` if the size does not divide into whole elements.
    pub fn count(&self, ranks: u32) -> Option<u64> {
        let parts = if self.op.is_divided() { u64::from(ranks) } else { 1 };
        let width = self.options.datatype.bytes();
        self.size.is_multiple_of(width * parts).then(|| self.size / parts / width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_divide_among_ranks_or_not_at_all() {
        let options = CollectiveOptions {
            datatype: Datatype::F32,
            reduction: Some(Reduction::Sum),
            in_place: false,
            graph: false,
            ranks_per_host: 1,
            algorithm: None,
            env: BTreeMap::new(),
            training: None,
        };
        let collective = |op, size| CollectiveSpec {
            op,
            metric: TestMetric::Bandwidth,
            size: Bytes(size),
            options: options.clone(),
            exchange: None,
            beside: None,
            window: Window::Iterations(1),
            warm_up: Nanoseconds::ZERO,
            verify: true,
            seed: 0,
        };
        assert_eq!(collective(Op::AllReduce, 8).count(4), Some(2));
        assert_eq!(collective(Op::AllReduce, 6).count(4), None);
        assert_eq!(collective(Op::AllGather, 64).count(4), Some(4));
        assert_eq!(collective(Op::AllGather, 8).count(4), None);
    }
}
