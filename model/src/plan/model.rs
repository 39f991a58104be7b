//! A resolved plan: names expanded, sizes in bytes, times in nanoseconds, defaults filled in. It has passed every check that needs no host.

use std::{collections::BTreeMap, time::Duration};

use railgauge_wire::GigabitsPerSecond;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

pub use super::alert::Alert;
use super::baseline::Baseline;
pub use super::grammar::quantity::Written;
pub use super::hosts::Host;
pub use super::launch::{HostKeys, Launch, Launcher, Way, settings::*};
pub use super::levels::{Level, Levels, LinkValue, Links};
pub use super::soak::{Degraded, Soak};
pub use super::source::{Misfit, Scale, Source, Statistic};
pub use super::subset::{LeftOut, Subset};
pub use super::telemetry::PortTelemetry;
pub use super::test_model::{
    AtOnce, Beside, BesideCommand, BesideOn, BesideWay, Collective, Configure, Cut, Expectation, Grouping, Limit,
    OnFabric, Pattern, Rails, RateLimit, Test, Victim, is_loss,
};
use crate::topology::Told;

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
    /// Of all ports that UFM knows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ufm_telemetry: Vec<PortTelemetry>,
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
