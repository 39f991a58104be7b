//! A resolved plan: names expanded, sizes in bytes, times in nanoseconds, defaults filled in. It has passed every check that needs no host.

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
use serde_with::skip_serializing_none;

pub use super::alert::Alert;
pub use super::beside::{Beside, Command as BesideCommand, On as BesideOn, Way as BesideWay, is_loss};
pub use super::launch::{HostKeys, Launcher, Way, settings::*};
pub use super::soak::{Degraded, RateLimit, Soak};
pub use super::subset::{LeftOut, Subset};
use super::{baseline::Baseline, per_end::PerEnd};
use crate::topology::told::Told;

pub use super::flows::{AtOnce, Cut, Victim};

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub name: String,
    pub description: String,
    /// Seed of everything random: schedules, patterns, salt of tokens.
    pub seed: u64,
    /// The turn, if every night measures other pairs: the run takes it from its start day (days since 1970, UTC) and records it. A checked
    /// plan has turn 0.
    pub rotate: Option<u64>,
    /// Time limit of the whole run; what does not fit is not run.
    pub at_most: Option<Duration>,
    /// What the command line selected; `None` for everything. Hosts, groups and tests are then those that are left.
    pub subset: Option<Subset>,
    pub launch: Launch,
    /// The hosts' pods; `None` where hosts were named.
    pub pods: Option<Pods>,
    /// In the plan's order, unique names.
    pub hosts: Vec<Host>,
    pub groups: BTreeMap<String, Vec<String>>,
    /// Rack and slot by host name: `rack12/u07`. Hosts without a place are omitted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, String>,
    pub topology: Option<Topology>,
    #[serde(default)]
    pub localise: Localise,
    #[serde(default, skip_serializing_if = "Alert::is_default")]
    pub alert: Alert,
    #[serde(default)]
    pub preflight: Preflight,
    pub baseline: Option<Baseline>,
    /// In the plan's order, unique names.
    pub tests: Vec<Test>,
    pub soak: Option<Soak>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interleave: Vec<Interleave>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Topology {
    pub told: Vec<Told>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pods {
    pub selector: String,
    pub pods: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interleave {
    pub a: String,
    pub b: String,
    /// How often both are measured twice, in the order A B B A or B A A B.
    pub blocks: u32,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Preflight {
    pub wanted: Wanted,
    pub waive: Vec<String>,
    pub escalate: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// MTU of the interfaces of RDMA ports, in bytes.
    pub mtu: Option<u32>,
    pub link_rate_gbps: Option<GigabitsPerSecond>,
    pub rdma_ports: Option<usize>,
    pub gpus: Option<usize>,
    pub pfc_priority: Option<Vec<u8>>,
    /// `dscp` or `pcp`.
    pub trust: Option<String>,
    /// In bytes.
    pub max_read_request: Option<u32>,
    /// Versions by device, board id or driver.
    pub firmware: BTreeMap<String, String>,
    /// `*` is any version.
    pub modules: BTreeMap<String, String>,
    pub kernel: Option<String>,
    pub gpu_driver: Option<String>,
    pub governor: Option<String>,
    /// `off`, `passthrough` or `translated`.
    pub iommu: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Localise {
    /// Smallest effect that gets a name, in percent.
    pub least_percent: f64,
    pub confirm: bool,
    /// Time after which no further round of the search begins.
    pub at_most: Duration,
    /// Queue pairs over which a confirmed path is measured one at a time, to find bad source ports; 0 for none.
    pub ports: u32,
    /// Parts that are known to be bad, or excluded from judgement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waive: Vec<Waiver>,
}

/// Parts that do not affect the run's status, even if worse than their peers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiver {
    All,
    Host(String),
    Group(String),
    Rail(u32),
}

impl Waiver {
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
    /// Queue pairs of the cases that measure them one by one, where the test has `qps` and the plan wants `ports`.
    pub const fn queue_pairs(qps: u32, ports: u32) -> u32 {
        if ports > qps { ports } else { qps }
    }
}

impl Default for Localise {
    fn default() -> Self {
        Self { least_percent: 1.0, confirm: true, at_most: Duration::from_secs(300), ports: 8, waive: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    pub via: Launcher,
    pub in_flight: usize,
    pub retries: u32,
    /// Time limit of one attempt, from connecting to the agent's greeting.
    pub timeout: Duration,
    /// Whether agents' files stay on the hosts after the run.
    pub keep_agent: bool,
    /// Directory on the hosts for agents; a private one under the user's cache directory if `None`.
    pub agent_dir: Option<String>,
    pub env: BTreeMap<String, String>,
    /// Names of additional variables, with values from the controller's environment.
    pub send_env: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub name: String,
    /// The launcher's target; the name unless overridden.
    pub address: String,
    pub user: Option<String>,
    pub port: Option<u16>,
    /// In rail order; the agent finds them if empty. `mlx5_0:2` names port 2.
    pub devices: Vec<String>,
    /// Addresses or interfaces for TCP, in rail order; the agent finds them if empty.
    pub tcp: Vec<String>,
}

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
    #[serde(default)]
    pub gpu_distance: Option<Distance>,
    /// `None` for pairs.
    #[serde(default)]
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
    /// Line in the plan, from 1.
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Written {
    pub number: String,
    pub unit: String,
    /// Factor to the metric's own unit.
    pub factor: f64,
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
