//! The event enum. The journal (one line per event), the progress on the terminal, the frame and the report derive from it.

use std::collections::BTreeMap;

use railgauge_wire::{
    Bytes, Carrier, Checked, Failure, GigabitsPerSecond, GpuPath, GpuSeen, HostFacts, Latency, LinkLayer, Measurement,
    Nanoseconds, NanosecondsI64, Overlap, Spent, Transport, Watched, WriteOrder, remedy::Remedy, unit,
};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use thin_vec::ThinVec;

pub use super::{
    cases::Case,
    imported::{Imported, ImportedFile, ImportedValue},
    soak::{Soaked, SoakedFlow, SoakedGpu, Stall},
    started::Started,
};
use crate::{journal::stages::Stages, plan::Plan, schedule::Port, topology::Hop};

pub const VERSION: u32 = 6;

/// Setting of a [`LinkRecord`], present where switches of the network reduce (CollNet, SHARP).
pub const COLLNET: &str = "collnet";

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub at: String,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    Started {
        run_id: String,
        plan: String,
        /// SHA-256, hexadecimal, of the plan file and of the subset if only a part is run. Not of files that it names (traffic, topology,
        /// telemetry, baseline): `resolved` has what they contain, and `compare` and `trend` compare the tests in it.
        plan_hash: String,
        /// The resolved plan: reports and resumed runs need no other file.
        resolved: Box<Plan>,
        version: String,
        controller: String,
        launcher: String,
    },
    /// First in an imported journal, followed only by `Finished`.
    Imported(Box<Imported>),
    HostUp {
        host: String,
        facts: Box<HostFacts>,
        /// Monotonic clock of the host minus the controller's, and half the round trip.
        clock: Option<(NanosecondsI64, Nanoseconds)>,
        wall: Option<NanosecondsI64>,
    },
    HostLost {
        host: String,
        failure: Failure,
    },
    /// Everything that will be tried: cases without an outcome at the end were not run.
    Planned {
        #[serde(with = "super::cases")]
        cases: Vec<Case>,
    },
    Routes {
        routes: Vec<FlowRoute>,
    },
    /// Additional cases that settle what the tests left open. They are not part of the tests; their numbers follow the planned ones, and
    /// each is measured once.
    Confirming {
        #[serde(with = "super::cases")]
        cases: Vec<Case>,
        /// Whether they look for the bad cable or switch; otherwise for the bad host, NIC, path or group.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        links: bool,
    },
    /// Start of the plan's commands that change the cluster for a test or undo that.
    Configuring {
        test: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
        undo: bool,
    },
    Configured {
        test: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
        undo: bool,
        failure: Option<Failure>,
    },
    Round {
        test: String,
        round: u32,
        /// Repeat, counted from 0.
        repeat: u32,
    },
    /// A link that later outcomes refer to by the number of this line.
    Link(Box<LinkRecord>),
    Outcome(Box<Outcome>),
    /// What an agent saw of its ports during the soak. Times are nanoseconds since 1970 by the controller's clock.
    Watched {
        host: String,
        /// Uncertainty of the times: half the round trip of the query.
        error: Nanoseconds,
        seen: Box<Watched>,
    },
    Soaked(Box<Soaked>),
    /// Something to know that is not a failure.
    Note {
        host: String,
        text: String,
    },
    /// Wall time of this process of the run by stage; written right before its end.
    Stages(Stages),
    Resumed {
        /// First and last numbers of unreadable lines; their content is measured again.
        unread: Vec<(u64, u64)>,
    },
    Interrupted,
    Prevented {
        why: String,
        /// What to do before running the plan again, if a resumed run would fail in the same way; `None` if `--resume` works.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
    Finished,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub test: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`", self.test)?;
        self.value.as_ref().map_or(Ok(()), |value| write!(f, " at `{value}`"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRoute {
    pub transport: Transport,
    pub from: Port,
    pub to: Port,
    /// Links and their directions in the fabric of the plan's sources: see [`crate::topology::fabric::Hop`].
    pub path: Vec<Hop>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub case: u64,
    /// Repeat, counted from 0; most plans measure once.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub repeat: u32,
    /// Start in UTC. For a pair measured by itself it is the time at the hosts, estimated from the answer (late by the answer's latency,
    /// early by the pauses between cases); for all others, the time before links and groups were opened.
    pub started_at: Started,
    pub link: Option<LinkRecord>,
    /// Number of the earlier line with the link ([`Event::Link`]): thousands of cases use equal links.
    pub link_line: Option<u64>,
    pub result: Result<Sample, Failure>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    pub transport: Carrier,
    pub link_layer: LinkLayer,
    pub gpu_path: GpuPath,
    pub software: bool,
    pub from_device: String,
    pub to_device: String,
    /// The smaller of both ports' rates according to the facts (of a bond, the sum of its members); `None` where unknown.
    pub rate_gbps: Option<GigabitsPerSecond>,
    pub mtu: u32,
    /// Both devices' guarantees on byte order, where the last byte of a write is polled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_order: Option<WriteOrder>,
    pub settings: BTreeMap<String, String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    pub initiator: Measurement,
    pub responder: Option<Box<Measurement>>,
    pub checked: Checked,
    /// Counter changes over the window at the initiator: name → difference.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub from_counters: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub to_counters: BTreeMap<String, u64>,
    /// How long the controller waited for the timed pass by its own clock, warm-up included; `None` where not measured. An agent's window
    /// cannot be longer.
    pub waited: Option<Nanoseconds>,
    /// How the initiator's end spent the time; `None` where the controller led it step by step.
    pub spent: Option<Box<Spent>>,
    /// The responder's monotonic clock minus the initiator's, compared a few seconds at most before a window with both directions; `None`
    /// for one direction.
    pub offset: Option<Box<NanosecondsI64>>,
    /// Its place in time among the other flows of its round; `None` for flows that share no NIC.
    pub together: Option<Box<Together>>,
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub neighbours: ThinVec<Neighbour>,
    /// Why this sample must not be trusted; empty if it may.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub contaminated: ThinVec<String>,
    /// Each rank's results of a collective; empty for a pair. The initiator's results are then those of the slowest rank of each batch, and
    /// its latency is the distribution of the time of one operation.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub ranks: ThinVec<RankAccount>,
    /// Of the hosts of a collective of NCCL that spans several.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub nics: ThinVec<NicBytes>,
    /// State of the GPUs used, during the timed pass; empty where none was used, and in older journals.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub gpus: ThinVec<GpuDuring>,
    /// Training steps: the same buckets in sequence without a backward pass, at the slowest rank.
    pub alone: Option<Box<Latency>>,
    /// A collective alongside other traffic, at the slowest rank: medians over passes, and the fewest operations of the other.
    pub overlap: Option<Box<Overlap>>,
    /// Flows of an `all_to_all_v` that were also measured alone, the largest first.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub flows: ThinVec<FlowAccount>,
}

/// A flow from rank to rank on the receiver's clock: medians over rounds, from a barrier to the last byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowAccount {
    pub from: u32,
    pub to: u32,
    pub bytes: Bytes,
    /// In rounds with all flows.
    pub together: Nanoseconds,
    pub alone: Nanoseconds,
    /// The bytes of the busier of its two ports in a round, over its own.
    pub share: f64,
}

impl FlowAccount {
    /// In percent.
    pub fn over_alone(&self) -> f64 {
        100.0 * self.together.as_f64() / self.alone.as_f64()
    }

    /// In percent.
    pub fn over_share(&self) -> f64 {
        self.over_alone() / self.share
    }
}

/// What a NIC sent and received from before the warm-up of a pass to the end of its verification, everything on the port included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicBytes {
    pub host: String,
    pub device: String,
    pub bytes: Bytes,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuDuring {
    pub host: String,
    /// Times are of the host's monotonic clock.
    #[serde(flatten)]
    pub seen: GpuSeen,
}

impl GpuDuring {
    pub fn of(host: &str, gpus: Vec<GpuSeen>) -> Vec<Self> {
        gpus.into_iter().map(|seen| Self { host: host.to_owned(), seen }).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Whether it goes against the initiator's direction: its own initiator is then the flow's responder.
    pub opposite: bool,
    pub flows: u32,
    pub from_device: String,
    pub to_device: String,
    pub sender: Measurement,
    pub receiver: Option<Measurement>,
}

/// The planned start of simultaneous flows, as each clock shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    /// Since 1970, by the controller: equal for the flows of one pass, and only for them.
    pub start: Nanoseconds,
    pub from: Moment,
    pub to: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub at: Nanoseconds,
    /// Uncertainty: half the round trip of the clock comparison.
    pub error: Nanoseconds,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankAccount {
    pub rank: u32,
    pub host: String,
    pub device: String,
    pub gpu: Option<u32>,
    pub p50: Nanoseconds,
    pub max: Nanoseconds,
    #[serde(default)]
    pub operations: u64,
    #[serde(default)]
    pub checked: Checked,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carrier>,
    /// Devices or interfaces of its connections to other hosts, as plans name them, where NCCL's log names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<String>,
}
