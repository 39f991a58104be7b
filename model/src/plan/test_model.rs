//! A resolved test: what it measures, between which hosts, and what is expected of it.

use std::{collections::BTreeMap, fmt, time::Duration};

use railgauge_wire::{
    Algorithm, Bytes, Carrier, Datatype, Distance, GigabitsPerSecond, GpuPath, Knobs, Memory, Metric, Op, Reduction,
    Service, TestMetric, Training, Transport, Window,
};
use serde::{Deserialize, Serialize};

use super::{PerEnd, Traffic, grammar::quantity::Written, source::Source};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Test {
    pub name: String,
    pub op: Op,
    pub metric: TestMetric,
    pub transport: Transport,
    pub service: Service,
    pub memory: PerEnd<Memory>,
    pub gpu_path: Option<GpuPath>,
    /// Ascending, unique.
    pub sizes: Vec<Bytes>,
    /// Queue pairs or streams: one set of cases for each.
    pub qps: Vec<u32>,
    /// The queue pairs of a link are divided among these threads.
    #[serde(default = "one")]
    pub threads: u32,
    pub bidirectional: bool,
    pub pattern: Pattern,
    /// Minimum share of the links between switches that the flows load, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links_covered: Option<f64>,
    pub rails: Rails,
    pub hosts: Vec<String>,
    pub repeats: u32,
    pub window: Window,
    pub warm_up: Duration,
    pub verify: bool,
    /// Time over the window after which a case is given up and the silent host is named.
    pub deadline: Duration,
    pub knobs: Knobs,
    /// How fast each flow sends at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// CUDA devices: of each rail for a pair, of each rank of a host for a collective. If empty, the nearest ones, or those with the same
    /// numbers.
    #[serde(default)]
    pub gpus: PerEnd<Vec<u32>>,
    /// Demanded distance between the GPU of each end and its NIC; the nearest GPU if `None`.
    pub gpu_distance: Option<Distance>,
    /// `None` for pairs.
    pub collective: Option<Collective>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configure: Option<Configure>,
    /// Traffic between the same two hosts with which each flow is measured again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    pub expect: Vec<Expectation>,
}

/// Commands of this machine that change the cluster for a test, and undo that. Already split into words; those with `{host}`, `{name}`,
/// `{user}` or `{port}` run for every host of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configure {
    pub apply: Vec<String>,
    pub undo: Vec<String>,
    pub timeout: Duration,
    /// Successive values of `{value}`: the test is measured at each, and the others are compared with the first. Empty where the commands
    /// make one change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// TCP connections between the interfaces of a flow's NICs, a command on its hosts, or an operation of a second communicator. In every
/// repeat the flow is measured without, then with each number of connections or with the command. A case of a collective has both.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Numbers of connections per direction, ascending, unique; only zero with a command.
    pub flows: Vec<u32>,
    pub direction: BesideWay,
    /// Total rate of all connections of one direction; unlimited if `None`.
    pub rate: Option<GigabitsPerSecond>,
    /// Replaces connections.
    pub command: Option<BesideCommand>,
    /// Replaces connections alongside a collective of NCCL: the operation of a second communicator.
    pub op: Option<Op>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BesideCommand {
    /// Already split; `{host}`, `{name}`, `{user}` and `{port}` are replaced with values of the host.
    pub words: Vec<String>,
    pub on: BesideOn,
}

railgauge_wire::words! {
    BesideOn {
        Source = "source",
        Destination = "destination",
        Both = "both",
    }
}

impl BesideOn {
    /// `on both hosts`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Source => "on its source",
            Self::Destination => "on its destination",
            Self::Both => "on both hosts",
        }
    }
}

railgauge_wire::words! {
    BesideWay {
        Same = "same",
        Opposite = "opposite",
        Both = "both",
    }
}

impl BesideWay {
    pub const fn ways(self) -> (bool, bool) {
        (!matches!(self, Self::Opposite), !matches!(self, Self::Same))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimit {
    Rate(GigabitsPerSecond),
    /// Percent of the smaller rate of both ports.
    Percent(f64),
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => write!(f, "at {rate} Gb/s"),
            Self::Percent(percent) => write!(f, "at {percent} % of the rate of its ports"),
        }
    }
}

impl Test {
    pub fn values(&self) -> &[String] {
        self.configure.as_ref().map_or(&[], |configure| &configure.values)
    }

    /// What its values are of: tests of the same words measure the same property of a component, whatever their names and sizes.
    pub fn measures(&self) -> String {
        let Self { op, metric, transport, memory, .. } = self;
        let of_op = self.collective.is_some() || transport.is_within_host();
        let op = if of_op { format!("{op} ") } else { String::new() };
        format!("{op}{metric}, {transport}, {memory} memory")
    }

    pub fn at_once(&self) -> bool {
        self.collective.is_none() && matches!(self.pattern, Pattern::AtOnce(_))
    }

    pub fn flows_at_once(&self) -> Option<&AtOnce> {
        match &self.pattern {
            Pattern::AtOnce(pattern) if self.collective.is_none() => Some(pattern),
            _ => None,
        }
    }

    /// Whether flows with few queue pairs are compared with those with many, to distinguish collisions on a path from damage: bandwidth in
    /// one direction between pairs, at most one flow out of and into every NIC port. Other flows slow each other, and with both directions
    /// together it is unknown which one is slow.
    pub fn compares_paths(&self) -> bool {
        let apart = match &self.pattern {
            Pattern::AtOnce(AtOnce::Permutation(_) | AtOnce::Ring | AtOnce::Bisection(_)) => true,
            Pattern::AtOnce(_) => false,
            _ => true,
        };
        let bandwidth = self.metric == TestMetric::Bandwidth && !self.bidirectional;
        apart && self.collective.is_none() && bandwidth && self.qps.iter().min() != self.qps.iter().max()
    }

    pub fn has_victim(&self) -> bool {
        matches!(self.flows_at_once(), Some(AtOnce::Victim(_)))
    }

    pub fn on_fabric(&self) -> bool {
        self.collective.is_none() && matches!(self.pattern, Pattern::Fabric(_))
    }

    /// Whether all flows of a round are timed from one planned start: they share NICs on purpose, or other traffic runs alongside.
    pub fn timed_together(&self) -> bool {
        self.at_once() || self.collective.is_none() && self.beside.is_some()
    }

    /// The numbers of neighbours to measure, none first. Zero means a command.
    pub fn neighbours(&self) -> Vec<Option<u32>> {
        let beside = self.beside.iter().flat_map(|beside| beside.flows.iter().copied().map(Some));
        std::iter::once(None).chain(beside).collect()
    }
}

fn one() -> u32 {
    1
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collective {
    pub grouping: Grouping,
    pub ranks_per_host: u32,
    /// Types of elements: one set of cases for each.
    pub datatypes: Vec<Datatype>,
    /// One set of cases for each; empty for operations that only move data.
    pub reductions: Vec<Reduction>,
    /// Algorithms over host memory: one set of cases for each; `None` leaves the choice to the agents or the library.
    pub algorithms: Vec<Option<Algorithm>>,
    pub in_place: bool,
    pub graph: bool,
    /// Environments of the ranks' processes: one set of cases for each; at least one, possibly empty.
    pub env: Vec<BTreeMap<String, String>>,
    pub library: Option<String>,
    pub carried_by: Option<Carrier>,
    /// The training step around each operation; `Some` exactly where steps are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
    /// `Some` exactly for `all_to_all_v`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// How many flows of the traffic, the largest ones, are also measured alone.
    #[serde(default, skip_serializing_if = "railgauge_wire::unit::is_zero")]
    pub alone: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grouping {
    All,
    Each,
    Pairs,
    Halves,
    /// Every n-th host, in the plan's order.
    Every(u32),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Every pair once, by the circle method.
    Tournament,
    /// This many rounds of the tournament, chosen by the seed.
    Random(u32),
    /// Each host to the next, the last to the first.
    Ring,
    /// First with second, third with fourth, …
    Neighbours,
    /// One host to every other, one at a time.
    OneToMany(String),
    /// Every other host to one, one at a time.
    ManyToOne(String),
    /// Every host of one group with every host of the other.
    Between(String, String),
    /// Source and destination.
    Pairs(Vec<(String, String)>),
    AtOnce(AtOnce),
    Fabric(OnFabric),
    Within,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtOnce {
    /// Every other host to one; to each in turn if `None`.
    Incast(Option<String>),
    /// One host to every other; from each in turn if `None`.
    Outcast(Option<String>),
    AllToAll,
    Ring,
    /// A random permutation, this many times; every host sends and receives once.
    Permutation(u32),
    Bisection(Cut),
    Victim(Victim),
}

/// A flow measured alone, then during an incast that shares no NIC port with it: all hosts but its ends send to one other. Rounds of a draw
/// are consecutive: even rounds measure the flow alone, odd rounds with the incast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Victim {
    /// Source and sink; random if `None`.
    pub flow: Option<(String, String)>,
    /// Sink of the incast; random if `None`.
    pub to: Option<String>,
    /// How many random choices; each makes two rounds.
    pub draws: u32,
}

impl Victim {
    /// Fewest hosts of such a test: both ends of the flow, the sink of the incast, and two senders, since one sender is not an incast.
    pub const HOSTS: usize = 5;

    pub const fn is_alone_in(round: u32) -> bool {
        round.is_multiple_of(2)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    Drawn(u32),
    /// Two groups: the first host of one with the first of the other, and so on.
    Groups(String, String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFabric {
    /// NIC ports below one leaf switch: this many rounds, all pairs if `None`.
    SameLeaf(Option<u32>),
    /// NIC ports below different leaf switches: this many rounds; if `None`, as many as let every two leaves meet.
    CrossLeaf(Option<u32>),
    /// The fewest rounds found in which every switch link is loaded to this many percent of its rate.
    CoverLinks(f64),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rails {
    Aligned,
    /// Every rail with every rail of the peer, one NIC once per round.
    Crossed,
    /// Rail i with rail i, one rail after the other.
    Each,
    /// Only these rails, aligned.
    Only(Vec<u32>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    pub metric: Metric,
    pub limit: Limit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
    pub sizes: Option<(Bytes, Bytes)>,
    /// All if empty.
    pub rails: Vec<u32>,
    pub group: Option<String>,
    /// Where the limit was published; `None` for a limit of the plan's author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Line in the plan, from 1; 0 if the plan does not have it.
    pub line: usize,
}

/// In the metric's own unit or in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// For metrics where higher is better.
    AtLeast(f64),
    /// For metrics where lower is better.
    AtMost(f64),
    /// Minimum percentage of the computed ceiling.
    PercentOfCeiling(f64),
    /// At most this percentage worse than the robust centre of all peers.
    WithinPercentOfPeers(f64),
    /// At most this percentage worse than the plan's baseline.
    WithinPercentOfBaseline(f64),
}

pub const fn is_loss(metric: Metric) -> bool {
    matches!(metric, Metric::VictimLoss | Metric::BesideLoss | Metric::OverlapLoss | Metric::OverlapLossOther)
}
