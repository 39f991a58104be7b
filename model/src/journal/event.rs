//! The one event enum. Everything that is shown or recorded derives from it: the journal (one line per event), the
//! progress on the terminal, the frame and the report.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use railgauge_wire::{
    case::Spent,
    copies::Copies,
    facts::HostFacts,
    failure::Failure,
    gpu_state::GpuSeen,
    link::WriteOrder,
    measure::{Latency, Measurement},
    remedy::Remedy,
    step::Checked,
    terms::{Carrier, GpuPath, LinkLayer, Transport},
    unit::{GigabitsPerSecond, Nanoseconds, NanosecondsI64},
    watch::Watched,
};
use serde::{Deserialize, Serialize};
use thin_vec::ThinVec;

pub use super::{
    changes::Changes,
    imported::{Imported, ImportedFile, ImportedValue},
    soak::{Soaked, SoakedFlow, SoakedGpu, Stall},
    started::Started,
};
use super::{read, shared};
use crate::{
    journal::stages::Stages,
    plan::Plan,
    schedule::{CaseIndex, Cell, Flow, Port, Schedule},
    topology::fabric::Hop,
};

pub const VERSION: u32 = 5;

/// The oldest version that is still read. Version 4 has the run's name in every line, and in an outcome fields that are 0 and a second date.
/// Version 3 has lists of whole cases, every outcome with its whole link, and fields that are `null` besides.
/// A reader refuses lines of other versions.
pub const OLDEST: u32 = 3;

/// Setting of a [`LinkRecord`]: it is there where switches of the network reduce (CollNet, SHARP).
pub const COLLNET: &str = "collnet";

/// What a journal line says; [`super::line`] writes and reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// When, in UTC (RFC 3339 with milliseconds).
    pub at: String,
    pub event: Event,
}

/// What happens in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// Always first.
    Started {
        /// Identity of the run, the run directory's name by default.
        run_id: String,
        plan: String,
        /// SHA-256 of the plan file, and of what was chosen of it where only a part is run, hexadecimal.
        plan_hash: String,
        /// The plan with everything resolved: a report or a resumed run needs no other file.
        resolved: Box<Plan>,
        version: String,
        /// What the controller runs on, in words.
        controller: String,
        launcher: String,
    },
    /// Always first where another tool measured: everything that was taken from its outputs. Only `Finished` follows.
    Imported(Box<Imported>),
    HostUp {
        host: String,
        facts: Box<HostFacts>,
        /// Monotonic clock of the host minus the controller's, and half the round trip.
        clock: Option<(NanosecondsI64, Nanoseconds)>,
        #[serde(default)]
        wall: Option<NanosecondsI64>,
    },
    /// A host could not be used, or is no longer.
    HostLost {
        host: String,
        failure: Failure,
    },
    /// Everything that will be tried: what has no outcome at the end was not run.
    Planned {
        #[serde(with = "super::cases")]
        cases: Vec<Case>,
    },
    /// The ways through the fabric that the forwarding tables of its switches give to the planned flows of pairs.
    Routes {
        /// One for each pair of ends on each transport.
        routes: Vec<FlowRoute>,
    },
    /// Further cases, which settle what the tests left open. They are no part of the tests; their numbers go on behind
    /// the planned ones, and each is measured once.
    Confirming {
        #[serde(with = "super::cases")]
        cases: Vec<Case>,
        /// Whether they settle which cable or switch is bad; else which host, NIC, path or group.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        links: bool,
    },
    /// Copies of a GPU that pairs will use, measured before the tests.
    Copies {
        host: String,
        copies: Copies,
    },
    /// Commands of the plan begin to change the cluster for a test, or to take that back.
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
        /// What failed at which host, if anything did.
        failure: Option<Failure>,
    },
    /// A round begins.
    Round {
        test: String,
        round: u32,
        /// Repeat, counted from 0.
        repeat: u32,
    },
    /// What the links of later outcomes are: these name the number of this line.
    Link(Box<LinkRecord>),
    /// One case was tried once.
    Outcome(Box<Outcome>),
    /// What an agent saw of its ports while traffic ran. Times are nanoseconds since 1970 by the controller's clock.
    Watched {
        host: String,
        /// How far off the times may be: half the round trip of the question.
        error: Nanoseconds,
        /// What was added to the times of the agent's CLOCK_MONOTONIC_RAW, so that windows of its flows can be placed beside them; `None`
        /// in journals of versions that did not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clock: Option<NanosecondsI64>,
        /// Whether it was seen during the soak; else during the tests.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        soak: bool,
        seen: Box<Watched>,
    },
    Soaked(Box<Soaked>),
    /// Something a reader should know that is no failure.
    Note {
        /// Host it is about; empty if about the run.
        host: String,
        text: String,
    },
    /// Where the wall time of this process of the run went; right before its end.
    Stages(Stages),
    Resumed {
        /// Line numbers that it could not read, first and last: what they held is measured again.
        unread: Vec<(u64, u64)>,
    },
    /// The run was interrupted.
    Interrupted,
    /// The cluster or the disk did not let the run go on.
    Prevented {
        why: String,
        /// What to do before the plan is run again, where a run that is taken up again would end in the same way; `None` where
        /// `--resume` goes on with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
    /// Always last in a complete run.
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

/// The identity of a case: equal cases of two runs are comparable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Number in the run, counted from 0 in the schedule's order.
    pub id: u64,
    /// Name of the test. Shared, because a test has thousands of cases.
    #[serde(serialize_with = "shared::write", deserialize_with = "shared::read_text")]
    pub test: Arc<str>,
    pub round: u32,
    pub flow: Flow,
    /// What is measured. Shared, because every flow of a test runs all of its cells.
    #[serde(serialize_with = "shared::write", deserialize_with = "shared::read")]
    pub cell: Arc<Cell>,
}

impl Case {
    /// Every case of a schedule, in its order. The schedule is that of the plan.
    pub fn planned(plan: &Plan, schedule: &Schedule) -> Vec<Self> {
        let names: Vec<Arc<str>> = plan.tests.iter().map(|test| test.name.as_str().into()).collect();
        let mut cells: HashMap<*const Cell, Arc<Cell>> = HashMap::new();
        let case = |place: CaseIndex| {
            let (round, flow, cell) = schedule.resolve(place)?;
            let test = Arc::clone(names.get(round.test)?);
            let cell = cells.entry(cell).or_insert_with(|| Arc::new(cell.clone()));
            Some(Self { id: place.id, test, round: round.number, flow: flow.clone(), cell: Arc::clone(cell) })
        };
        schedule.cases().filter_map(case).collect()
    }

    /// Those of these cases whose flows carry the traffic of a soak by this test: at its largest size and most queue pairs.
    pub fn of_soak<'c>(cases: &'c [Self], test: &str) -> Vec<&'c Self> {
        let of_test = || cases.iter().filter(|case| *case.test == *test);
        let cell = |case: &Self| (case.cell.size, case.cell.qps);
        let most = of_test().map(cell).max();
        of_test().filter(|case| Some(cell(case)) == most).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRoute {
    pub transport: Transport,
    pub from: Port,
    pub to: Port,
    /// Links and their directions in the fabric that the plan's sources make: see [`crate::topology::fabric::Hop`].
    pub path: Vec<Hop>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "read::Outcome")]
pub struct Outcome {
    pub case: u64,
    /// Repeat, counted from 0.
    pub repeat: u32,
    /// Start in UTC: at the hosts for a pair measured by itself, reckoned back from its answer (late by the answer's way, early by the
    /// pauses between cases); before links and groups were opened for all others. In the journal it is `started_at` (RFC 3339 with
    /// milliseconds) or, where that says the same, `ago`: milliseconds before the line's `at`.
    pub started_at: Started,
    /// What was used; `None` if that is not known, or stands in another line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRecord>,
    /// Number of the earlier line of the run that tells what was used ([`Event::Link`]): thousands of cases use equal links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_line: Option<u64>,
    /// The measurement, or why there is none. A host's name stands in the failure's cause.
    pub result: Result<Sample, Failure>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// What carried the bytes.
    pub transport: Carrier,
    pub link_layer: LinkLayer,
    pub gpu_path: GpuPath,
    pub software: bool,
    pub from_device: String,
    pub to_device: String,
    /// Smaller of both ports' rates as the facts have them (of a bond that of all members); `None` where unknown.
    pub rate_gbps: Option<GigabitsPerSecond>,
    /// Path MTU in use, in bytes.
    pub mtu: u32,
    /// What both devices say of the order of bytes, where the last byte of a write is polled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_order: Option<WriteOrder>,
    pub settings: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    pub initiator: Measurement,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder: Option<Box<Measurement>>,
    /// Bytes verified before and after, and how many were wrong.
    pub checked: Checked,
    /// Counter changes over the window at the initiator: name → difference.
    #[serde(default, skip_serializing_if = "nothing_changed")]
    pub from_counters: Changes,
    #[serde(default, skip_serializing_if = "nothing_changed")]
    pub to_counters: Changes,
    /// How long the controller waited for the timed pass by its own clock, warm-up included; `None` where it did not look.
    /// No window of an agent can be longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<Nanoseconds>,
    /// Where the time of the initiator's end went; `None` where the controller led it step by step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Box<Spent>>,
    /// The responder's monotonic clock minus the initiator's, compared a few seconds before a window with both directions at
    /// once, at most; `None` for one direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Box<NanosecondsI64>>,
    /// Where it stands in time beside the other flows of its round; `None` for flows that share no NIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Box<Together>>,
    /// Traffic that ran beside it between its two hosts, one entry for each direction; empty where the plan wanted none.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub neighbours: ThinVec<Neighbour>,
    /// Why this sample must not be trusted although it was measured; empty if it may.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub contaminated: ThinVec<String>,
    /// Every rank's own account of a collective; empty for a pair. The initiator's account is then that of the slowest
    /// rank of each batch of operations, and its latency is the distribution of the time of one operation.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub ranks: ThinVec<RankAccount>,
    /// The state of the GPUs that it used, while its timed pass ran; empty where it used none, and in journals of versions before.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub gpus: ThinVec<GpuDuring>,
    /// Of training steps: the same buckets one after another, without a backward pass, at the slowest rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Box<Latency>>,
}

fn nothing_changed(changes: &Changes) -> bool {
    changes.is_empty()
}

/// The state of a GPU of a host while a case used it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuDuring {
    pub host: String,
    /// What was seen. Times are of the host's monotonic clock.
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
    /// Whether it goes against the initiator's direction: its own initiator is then the responder's host of the flow.
    pub opposite: bool,
    /// Connections.
    pub flows: u32,
    pub from_device: String,
    pub to_device: String,
    pub sender: Measurement,
    pub receiver: Option<Measurement>,
}

/// The planned start of flows at once, as each clock shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    /// Since 1970, by the controller: the same for the flows of one pass, and for no others.
    pub start: Nanoseconds,
    pub from: Moment,
    pub to: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub at: Nanoseconds,
    /// How far off that may be: half the round trip of the reading that compared the clocks.
    pub error: Nanoseconds,
}

/// What one rank of a collective saw. Times are those of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankAccount {
    pub rank: u32,
    pub host: String,
    pub device: String,
    pub gpu: Option<u32>,
    pub p50: Nanoseconds,
    pub max: Nanoseconds,
    /// Operations that it counted.
    #[serde(default)]
    pub operations: u64,
    /// Bytes that it verified, and how many were wrong.
    #[serde(default)]
    pub checked: Checked,
    /// What carried its bytes, where it has evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carrier>,
    /// Devices or interfaces its connections to other hosts use, as plans name them, where NCCL's log tells them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<String>,
}
