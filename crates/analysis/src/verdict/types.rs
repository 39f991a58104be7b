//! Verdicts as data.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::plan::model::{Expectation, Source, Subset};
use railgauge_preflight::Holding;
use railgauge_wire::{Failure, Metric, remedy::Remedy};
use serde::{Deserialize, Serialize};

use super::{Offender, Scope, Tally, Trouble, Untested};
use crate::{
    collisions::Collisions,
    compare::Interleaved,
    costs::ValueCost,
    localise::{Localisation, Searched},
    proven::NeverRun,
    reason::Reasons,
    soak::Soaking,
    status::Status,
    sums::Sums,
    switches::Switches,
    together::Beside,
};

pub const VERSION: u32 = 2;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    #[default]
    Run,
    Records,
    Hosts,
    Configure,
    Preflight,
    Expectation,
    EveryCase,
    Parts,
    Links,
    Soak,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Verdict {
    pub kind: Kind,
    pub test: String,
    /// The key of `[preflight]`, such as `mtu` or `firmware.mlx5_core`, or the demand on the soak: `for`, `watched`,
    /// `longest_outage`, `limits.symbol_error`, `bytes`, `gpus`. `None` for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// In the plan's unit; only for `[preflight]`.
    #[serde(skip)]
    pub wanted: Option<String>,
    pub demand: String,
    /// In words; empty for the whole run.
    pub scope: String,
    #[serde(skip)]
    pub narrowed: Option<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<Searched>,
    /// `None` for an implicit verdict.
    #[serde(skip)]
    pub expectation: Option<Expectation>,
    pub line: Option<usize>,
    pub metric: Option<Metric>,
    pub unit: Option<String>,
    /// Where the limit was published, and for what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    pub status: Status,
    pub waived: bool,
    #[serde(flatten)]
    pub reason: Reasons,
    pub worst: Option<Offender>,
    /// Worst first; at most [`OFFENDERS`].
    pub offenders: Vec<Offender>,
    /// Cases that the demand was compared with, and whether they break it.
    #[serde(skip)]
    pub compared: Vec<(u64, bool)>,
    /// Hosts and devices that differ from `[preflight]`, or could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holdings: Vec<Holding>,
    /// Parts that stand out: those that count first, then the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    pub tally: Tally,
    /// Places of the hosts in its reason, by name, if known and it does not pass: rack, or rack and slot joined by `/`;
    /// at most [`OFFENDERS`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub place: BTreeMap<String, String>,
    /// Next step, if it does not pass and the step follows from the demand or from the GPUs of what broke it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl Verdict {
    pub(super) fn new(kind: Kind, test: &str, demand: impl Into<String>, status: Status, reason: Reasons) -> Self {
        Self { kind, test: test.to_owned(), demand: demand.into(), status, reason, ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    pub status: Status,
    pub waived: bool,
    /// Place of its host, for a part of one host, if known: rack, or rack and slot joined by `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    Good,
    Undecided,
    Faulty,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// `host`, `nic`, `GPU`, `NUMA node`, `rail`, `path`, or another kind of [`Named`](crate::localise::Named).
    pub kind: String,
    /// `host gpu07`, `rail 3 of gpu07`.
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rail: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// `None` where it was measured, and nothing shows whether its values are good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Judged>,
    /// Median in the test's metric, at the largest size for a bandwidth, otherwise at the smallest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// For kinds outside [`LISTED`](super::LISTED): the links that pass it, as keys of [`Measured::links`] and a hostlist of hosts there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub links: BTreeSet<(String, String)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The test, `preflight mtu`, or `soak`.
    pub test: String,
    /// [`measures`](railgauge_model::plan::model::Test::measures) of the test; empty for requirements and the soak.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub measures: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    pub passed: bool,
    /// Whether values were compared with those of peers. Only then can a fault end that such a comparison showed.
    #[serde(default)]
    pub peers: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub components: Vec<Component>,
    /// Good links: from `gpu07 rail 3` to a hostlist; in a group from `gpu07` to its members.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cases {
    pub planned: usize,
    pub measured: usize,
    pub short: usize,
    /// Without the requested verification.
    pub unverified: usize,
    pub contaminated: usize,
    pub impossible: usize,
    pub no_value: usize,
    pub failed: usize,
    pub not_run: usize,
    pub wrong: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdicts {
    pub version: u32,
    pub run_id: String,
    pub plan: String,
    pub status: Status,
    pub exit_code: u8,
    /// Exit code of the process that last ran the plan: that of the verdicts if the run finished, 4 if it was stopped,
    /// 130 if it was interrupted; `None` if it was killed or still runs.
    pub run_exit_code: Option<u8>,
    /// The answer: the first cause, or what passed; with the part of the plan that was run.
    pub sentence: String,
    /// A line for each cause, the gravest first.
    pub causes: Vec<String>,
    pub cases: Cases,
    pub verdicts: Vec<Verdict>,
    /// Cases that do not simply count as measured; of the further cases those with wrong bytes.
    pub troubles: Vec<Trouble>,
    /// Parts that stand out, for every test of pairs and every collective taken apart: the basis of verdicts on parts.
    pub localisation: Vec<Localisation>,
    /// Switches between the hosts, and which of their links were loaded; absent where the plan names no source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<Switches>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// Cost of the values of `[test.configure]` against the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<ValueCost>,
    /// Low flows that share a path with others, for tests with several numbers of queue pairs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collisions: Vec<Collisions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Soaking>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interleaved: Vec<Interleaved>,
    /// Why hosts were lost, and why the configuration could not be undone, with the remedy of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset: Option<Subset>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, String>,
    /// Drivers of RDMA devices in its cases that railgauge's authors never ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers_never_run: Vec<NeverRun>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<Untested>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Measured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sums: Option<Sums>,
}

impl Verdicts {
    /// # Errors
    /// Only serde's signature: no set of verdicts causes one.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub fn with(&self, status: Status) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.status == status && !verdict.waived).count()
    }
}
