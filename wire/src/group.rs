//! One rank of a collective: what to open for it, how the ranks of a group find each other, what they do together.
//!
//! ```text
//! controller   OpenMember to every rank   → MemberOpened: its ticket
//! controller   JoinMember with all tickets → Done, once the group stands
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

/// What an agent opens for one rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSpec {
    /// Which rank this is, counted from 0.
    pub rank: u32,
    pub ranks: u32,
    /// What carries the bytes.
    pub transport: Transport,
    /// CUDA device index, where the data lives on a GPU.
    pub gpu: Option<u32>,
    /// Library to open instead of the one the loader finds.
    pub library: Option<String>,
    /// Environment of the rank's process, on top of the agent's.
    pub env: BTreeMap<String, String>,
    /// Largest size this rank will be asked for (see [`CollectiveSpec::size`]).
    pub max_size: Bytes,
    /// Ranks of the group on this rank's host: they share its memory.
    pub siblings: u32,
    /// What a rank over host memory sends and receives by, and the host it is on; `None` where a library sees to that.
    pub endpoint: Option<Box<RankEndpoint>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankEndpoint {
    /// The host's name in the plan, for the words of the other ranks.
    pub host: String,
    /// Device or address, secret and settings. Its role and number of queue pairs have no meaning here.
    pub link: LinkSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ticket {
    /// NCCL's unique id, 256 hexadecimal digits; rank 0 makes it, the others have none.
    Nccl { id: Option<String> },
    /// Of a rank over host memory: the others connect to it, or their queue pairs to its own.
    Host {
        host: String,
        /// Where it listens; or its queue pairs, one for each rank of the group, by rank.
        endpoint: Endpoint,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberOpened {
    pub ticket: Ticket,
    /// Device the data lives on, in words: `GPU 0 (NVIDIA H200)`.
    pub device: String,
    /// Resolved settings and versions, by name.
    pub settings: BTreeMap<String, String>,
    /// Link rate as the port reports it, where the rank's own port is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_gbps: Option<GigabitsPerSecond>,
    /// MTU of that port in bytes; 0 where it is not known.
    #[serde(default)]
    pub mtu: u32,
    /// Whether the port's device is an emulation in software.
    #[serde(default)]
    pub software: bool,
}

/// How a collective works on its data, beside operation and size.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CollectiveOptions {
    pub datatype: Datatype,
    /// Reduction; `None` for operations that only move data.
    pub reduction: Option<Reduction>,
    /// Whether the result takes the place of the input.
    pub in_place: bool,
    /// Whether the operations are captured into a CUDA graph and the graph is launched.
    pub graph: bool,
    pub ranks_per_host: u32,
    /// Algorithm over host memory; `None` leaves it to size and number of ranks, or to the library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The training step around it; `Some` exactly for [`TestMetric::Step`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
}

/// How a training step reduces its gradients: in buckets, each of which is reduced as soon as the backward pass has
/// filled it and the one before is done, as PyTorch's DistributedDataParallel does it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Training {
    /// Name of the model in the plan, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub bucket: Bytes,
    /// Size of the first bucket.
    pub first_bucket: Bytes,
    /// Time of the backward pass. Nothing is computed: a timer stands for it.
    pub compute: Nanoseconds,
}

/// One measurement of one collective. Equal on all ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectiveSpec {
    pub op: Op,
    /// `Bandwidth` pipelines operations as nccl-tests does; `Latency` separates each from the next by a barrier; `Step`
    /// makes each a training step, behind a barrier.
    pub metric: TestMetric,
    /// Size as nccl-tests counts it: the larger of what a rank sends and what it receives.
    pub size: Bytes,
    pub options: CollectiveOptions,
    pub window: Window,
    pub warm_up: Nanoseconds,
    /// Whether the result is compared with what it must be: before the timed operations, and what the last timed one
    /// left behind.
    pub verify: bool,
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectiveMeasurement {
    /// Time of each batch of operations, in order. All ranks have the same number of batches.
    pub times: Vec<Nanoseconds>,
    /// Operations of each batch.
    pub batch: u64,
    /// For each training step the time of the same buckets one after another, without a backward pass; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<Nanoseconds>,
    pub checked: Checked,
    pub cpu: Nanoseconds,
    /// From the begin of the first timed batch to the end of the last, on the monotonic clock of the rank's host; `None` where it was not
    /// looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<(Nanoseconds, Nanoseconds)>,
    /// The state of the rank's GPU meanwhile; `None` for one over host memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Box<GpuSeen>>,
    /// What carried the bytes, where this rank found evidence of it.
    pub carried: Option<Carried>,
    /// The algorithm that was used, where it is ours.
    pub algorithm: Option<Algorithm>,
}

/// What carried the bytes, by evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The slowest kind among the connections of this rank: network before shared memory before peer to peer.
    pub transport: Carrier,
    pub link_layer: Option<LinkLayer>,
    /// How GPU memory reached the network; `None` where no network took part.
    pub gpu_path: GpuPath,
    /// The evidence, in the library's own words, and how often it stands there.
    pub evidence: BTreeMap<String, u64>,
    /// Whether some connection of this rank goes over a network.
    #[serde(default)]
    pub networked: bool,
    #[serde(default)]
    pub collnet: bool,
    /// Channels the library works with, by the kind of operation they are for; empty where it does not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, u64>,
    /// Devices or interfaces this rank's connections to other hosts use, as plans name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<String>,
}

impl CollectiveSpec {
    /// Elements every rank contributes (`count` of the operation's call) among `ranks` ranks; `None` if the size does
    /// not divide into whole elements for each.
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
