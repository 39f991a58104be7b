//! A resolved plan: names expanded, sizes in bytes, times in nanoseconds, defaults filled in.
//!
//! What is here has passed every check that needs no host.

use std::{collections::BTreeMap, time::Duration};

use railgauge_wire::{
    group::Training,
    link::Knobs,
    step::Window,
    terms::{
        Algorithm, Carrier, Datatype, Distance, GpuPath, Memory, Metric, Op, Reduction, Service, TestMetric, Transport,
    },
    unit::{Bytes, GigabitsPerSecond},
};
use serde::{Deserialize, Serialize};

pub use super::alert::Alert;
use super::baseline::Baseline;
pub use super::beside::{Beside, Command as BesideCommand, On as BesideOn, Way as BesideWay, is_loss};
pub use super::launch::{HostKeys, Launcher, Way, settings::*};
pub use super::soak::{Degraded, RateLimit, Soak};
pub use super::subset::{LeftOut, Subset};
use crate::topology::told::Told;

pub use super::flows::{AtOnce, Cut, Victim};

/// A checked plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name, used for the run directory.
    pub name: String,
    /// What it is for, in the author's words.
    pub description: String,
    /// Seed of everything random: schedules, patterns, tokens' salt.
    pub seed: u64,
    /// Whether every night measures other pairs: the turn, which the run takes from the day it starts on (days since 1970,
    /// UTC) and records. A checked plan has turn 0; `None` is a plan whose runs all measure the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate: Option<u64>,
    /// Whether ports are watched while tests run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watch: bool,
    /// Time between two readings of all counters of watched ports, drivers' statistics among them; `None` for the usual times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_every: Option<Duration>,
    /// Time that the whole run may take; what does not fit is not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Duration>,
    /// To what of the plan the run was limited on the command line; `None` for all of it. Hosts, groups and tests are then
    /// those that are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset: Option<Subset>,
    /// How agents are started.
    pub launch: Launch,
    /// The pods that the hosts are; `None` where hosts were named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Pods>,
    /// Hosts in the plan's order, every name once.
    pub hosts: Vec<Host>,
    /// Named groups: host names in the plan's order.
    pub groups: BTreeMap<String, Vec<String>>,
    /// In which rack and slot hosts are, by their names: `rack12/u07`. Hosts of which nothing is said are not in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, String>,
    /// What is known of switches and cables; `None` where the plan names no source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// How bad parts are looked for.
    #[serde(default)]
    pub localise: Localise,
    /// After how many nights a fault is reported.
    #[serde(default, skip_serializing_if = "Alert::is_default")]
    pub alert: Alert,
    /// What the hosts' configuration must be.
    #[serde(default)]
    pub preflight: Preflight,
    /// The baseline for expectations that use one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// Tests in the plan's order, every name once.
    pub tests: Vec<Test>,
    /// Traffic for hours after the tests, while ports are watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Soak>,
    /// Tests that are measured in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interleave: Vec<Interleave>,
}

/// What is known of switches and cables.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Topology {
    /// What each source says, in the order in which they are joined.
    pub told: Vec<Told>,
}

/// Pods in place of names of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pods {
    /// Selector of labels, as Kubernetes writes them.
    pub selector: String,
    /// How many must run.
    pub pods: usize,
}

/// Two tests that are measured in turn, and compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interleave {
    /// Name of the first test.
    pub a: String,
    /// Name of the second test.
    pub b: String,
    /// How often both are measured twice, in the order A B B A or B A A B.
    pub blocks: u32,
}

/// The required configuration of the hosts, and which checks are overridden.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Preflight {
    /// What the plan wants.
    pub wanted: Wanted,
    /// Names of checks whose findings are only notices.
    pub waive: Vec<String>,
    /// Names of checks whose findings are failures.
    pub escalate: Vec<String>,
}

/// Values the plan wants; where it wants none, hosts are compared with each other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// MTU of the interfaces behind RDMA ports, in bytes.
    pub mtu: Option<u32>,
    /// Rate of RDMA ports.
    pub link_rate_gbps: Option<GigabitsPerSecond>,
    /// RDMA ports of every host.
    pub rdma_ports: Option<usize>,
    /// GPUs of every host.
    pub gpus: Option<usize>,
    /// Priorities with flow control, rising.
    pub pfc_priority: Option<Vec<u8>>,
    /// `dscp` or `pcp`.
    pub trust: Option<String>,
    /// Largest PCIe read request in bytes.
    pub max_read_request: Option<u32>,
    /// Firmware versions by device, board id or driver.
    pub firmware: BTreeMap<String, String>,
    /// Versions of kernel modules; `*` is any.
    pub modules: BTreeMap<String, String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Version of the GPUs' driver.
    pub gpu_driver: Option<String>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// `off`, `passthrough` or `translated`.
    pub iommu: Option<String>,
}

/// How bad parts are looked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Localise {
    /// Smallest effect that gets a name, in percent.
    pub least_percent: f64,
    /// Whether the run measures suspects again.
    pub confirm: bool,
    /// Time after which no further round of that begins.
    pub at_most: Duration,
    /// Queue pairs over which a confirmed path is measured one at a time, so that bad source ports show; 0 for none.
    pub ports: u32,
    /// Parts that are known to be bad, or that nobody wants judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waive: Vec<Waiver>,
}

/// Parts whose being worse than their peers has no effect on the run's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiver {
    /// All of them.
    All,
    /// A host, its NICs and the paths at it.
    Host(String),
    /// A group, its rails, uplinks and boundaries.
    Group(String),
    /// A rail of all hosts or of one.
    Rail(u32),
}

impl Waiver {
    /// Whether it is about something of these hosts, groups and rails.
    pub fn covers(&self, hosts: &[&str], groups: &[&str], rails: &[u32]) -> bool {
        match self {
            Self::All => true,
            Self::Host(host) => hosts.contains(&host.as_str()),
            Self::Group(group) => groups.contains(&group.as_str()),
            Self::Rail(rail) => rails.contains(rail),
        }
    }
}

impl Localise {
    /// Queue pairs of the cases that measure them one by one, where the test itself has `qps` and the plan wants `ports`.
    #[must_use]
    pub const fn queue_pairs(qps: u32, ports: u32) -> u32 {
        if ports > qps { ports } else { qps }
    }
}

impl Default for Localise {
    fn default() -> Self {
        Self { least_percent: 1.0, confirm: true, at_most: Duration::from_secs(300), ports: 8, waive: Vec::new() }
    }
}

/// How agents are started on hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Which launcher.
    pub via: Launcher,
    /// Hosts brought up at the same time.
    pub in_flight: usize,
    /// Retries for a host that does not come up.
    pub retries: u32,
    /// Time limit of one attempt, from connecting to the agent's greeting.
    pub timeout: Duration,
    /// Whether agents stay on the hosts after the run.
    pub keep_agent: bool,
    /// Directory on the hosts that holds agents; a private one under the user's cache directory if `None`.
    pub agent_dir: Option<String>,
    /// Environment of every agent.
    pub env: BTreeMap<String, String>,
    /// Names of further variables, whose values are those of the controller's own environment.
    pub send_env: Vec<String>,
}

/// One host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Name in the plan, the frame and the report.
    pub name: String,
    /// What the launcher connects to; the name unless overridden.
    pub address: String,
    /// Login name for this host.
    pub user: Option<String>,
    /// Port for this host.
    pub port: Option<u16>,
    /// RDMA devices to use, in rail order; found by the agent if empty. `mlx5_0:2` names port 2.
    pub devices: Vec<String>,
    /// Addresses or interfaces for TCP, in rail order; found by the agent if empty.
    pub tcp: Vec<String>,
}

/// One `[[test]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// Name.
    pub name: String,
    /// Operation.
    pub op: Op,
    /// What is measured: bandwidth, latency or a training step.
    pub metric: TestMetric,
    /// Verbs or TCP.
    pub transport: Transport,
    /// Queue pair service.
    pub service: Service,
    /// Where the data is.
    pub memory: Memory,
    /// Required path of GPU memory.
    pub gpu_path: Option<GpuPath>,
    /// Message sizes, rising, each once.
    pub sizes: Vec<Bytes>,
    /// Queue pairs or streams: one set of cases for each.
    pub qps: Vec<u32>,
    /// Threads that the queue pairs of a link are divided among.
    #[serde(default = "one")]
    pub threads: u32,
    /// Whether both directions run at once.
    pub bidirectional: bool,
    /// Which hosts send to which.
    pub pattern: Pattern,
    /// Share of the links between switches that the flows must load, in percent; `None` if nothing is demanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links_covered: Option<f64>,
    /// Which rails.
    pub rails: Rails,
    /// Hosts that take part, in the plan's order.
    pub hosts: Vec<String>,
    /// How often everything is measured.
    pub repeats: u32,
    /// How long one measurement is.
    pub window: Window,
    /// Untimed time before each window.
    pub warm_up: Duration,
    /// Whether bytes are verified before and after.
    pub verify: bool,
    /// Time over the window after which a case is given up and the silent host is named.
    pub deadline: Duration,
    /// Everything that may be turned.
    pub knobs: Knobs,
    /// CUDA devices: of each rail for a pair, of each rank of a host for a collective. The nearest ones, or those with
    /// the same numbers, if empty.
    #[serde(default)]
    pub gpus: Vec<u32>,
    /// How far the GPU of each end must be from its NIC; the nearest one is taken if `None`.
    #[serde(default)]
    pub gpu_distance: Option<Distance>,
    /// What makes the test a collective; `None` for pairs.
    #[serde(default)]
    pub collective: Option<Collective>,
    /// What changes the cluster for the test; `None` measures it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configure: Option<Configure>,
    /// Traffic of the same two hosts beside which each flow is measured again; `None` measures flows without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// Limits for the results.
    pub expect: Vec<Expectation>,
}

/// Commands of this machine that change the cluster for a test, and take that back. Already split into words; those that
/// say `{host}`, `{name}`, `{user}` or `{port}` are run for every host of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configure {
    /// What makes the change.
    pub apply: Vec<String>,
    /// What takes it back.
    pub undo: Vec<String>,
    /// Time for either of them at one host.
    pub timeout: Duration,
    /// What stands for `{value}` in them, one after the other: the test is measured at each, and the first is what the others are held
    /// against. Empty where the commands make one change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl Test {
    /// The values of its `configure`, in the plan's order; empty where it has none.
    pub fn values(&self) -> &[String] {
        self.configure.as_ref().map_or(&[], |configure| &configure.values)
    }
}

fn one() -> u32 {
    1
}

/// A collective over groups of hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collective {
    /// Which hosts form a group.
    pub grouping: Grouping,
    /// Ranks on every host.
    pub ranks_per_host: u32,
    /// Types of elements: one set of cases for each.
    pub datatypes: Vec<Datatype>,
    /// Reductions: one set of cases for each; empty for operations that only move data.
    pub reductions: Vec<Reduction>,
    /// Algorithms over host memory: one set of cases for each; `None` leaves it to the agents, or to the library.
    pub algorithms: Vec<Option<Algorithm>>,
    /// Whether the result takes the place of the input.
    pub in_place: bool,
    /// Whether a CUDA graph launches the operations.
    pub graph: bool,
    /// Environments of the ranks' processes: one set of cases for each; one empty environment at least.
    pub env: Vec<BTreeMap<String, String>>,
    /// NCCL to open instead of the one the loader finds.
    pub library: Option<String>,
    /// Demanded carrier of the bytes.
    pub carried_by: Option<Carrier>,
    /// The training step around each operation; `Some` exactly where steps are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
}

/// Which hosts form groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grouping {
    /// All hosts of the test form one.
    All,
    /// Each named group of the plan, as far as it takes part.
    Each,
    /// Every pair of hosts.
    Pairs,
    /// The first half and the second half.
    Halves,
    /// Every so many hosts, in the plan's order.
    Every(u32),
}

/// Which hosts send to which.
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
    /// These pairs: source and destination.
    Pairs(Vec<(String, String)>),
    /// Flows that run at the same time whatever they share.
    AtOnce(AtOnce),
    /// Pairs that are chosen by where their ends are in the plan's topology.
    Fabric(OnFabric),
    /// Each host by itself: tests within hosts.
    Within,
}

/// Patterns that need to know the switches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFabric {
    /// NIC ports below one leaf switch with each other: this many rounds, all pairs if `None`.
    SameLeaf(Option<u32>),
    /// NIC ports below different leaf switches: this many rounds, as many as let every two leaves meet if `None`.
    CrossLeaf(Option<u32>),
    /// The fewest rounds found in which every switch link is loaded to this many percent of its rate.
    CoverLinks(f64),
}

/// Which rails of two hosts are connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rails {
    /// Rail i with rail i, all rails at once.
    Aligned,
    /// Every rail with every rail of the peer, one NIC once per round.
    Crossed,
    /// Rail i with rail i, one rail after the other.
    Each,
    /// Only these rails, aligned.
    Only(Vec<u32>),
}

/// One demand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// The metric it is about.
    pub metric: Metric,
    /// What is demanded.
    pub limit: Limit,
    /// The limit as the plan writes it; `None` for percentages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
    /// Smallest and largest message size it is about.
    pub sizes: Option<(Bytes, Bytes)>,
    /// Rails it is about; all if empty.
    pub rails: Vec<u32>,
    /// Group that both ends must belong to.
    pub group: Option<String>,
    /// Line of the plan it was written on, counted from 1.
    pub line: usize,
}

/// A limit in the plan's own spelling, so that what is told of it needs no conversion in the reader's head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// The number as it is written: `1`, `0.50`.
    pub number: String,
    /// The unit as it is written: `s`, `Gbit/s`.
    pub unit: String,
    /// What one of this unit is in the metric's own.
    pub factor: f64,
}

/// The demanded limit, in the metric's own unit or in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Not lower than this (metrics for which higher is better).
    AtLeast(f64),
    /// Not higher than this (metrics for which lower is better).
    AtMost(f64),
    /// Not lower than this percentage of the computed ceiling.
    PercentOfCeiling(f64),
    /// Not worse than the robust centre of all peers by more than this percentage.
    WithinPercentOfPeers(f64),
    /// Not worse than the plan's baseline by more than this percentage.
    WithinPercentOfBaseline(f64),
}
