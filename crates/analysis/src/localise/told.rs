//! Findings about a test and about a part that stands out.

use std::{fmt, ops::Deref};

use railgauge_model::schedule::Flow;
use railgauge_stats::localise::{self, Way};
use railgauge_wire::{Better, remedy::Entry};
use serde::{Serialize, Serializer};

use crate::{
    case::CaseResult,
    status::Status,
    words::{count, texts},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Pairs {
        between_groups: Option<bool>,
        across_rails: Option<bool>,
    },
    /// Groups of a collective, by their count of hosts.
    Groups(usize),
    Parts,
}

impl Which {
    pub const ALL: Self = Self::Pairs { between_groups: None, across_rails: None };

    #[must_use]
    pub fn on_rails(self, across: bool) -> Self {
        match self {
            Self::Pairs { between_groups, .. } => Self::Pairs { between_groups, across_rails: Some(across) },
            Self::Groups(_) | Self::Parts => self,
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (between_groups, across_rails) = match self {
            Self::Pairs { between_groups, across_rails } => (between_groups, across_rails),
            Self::Parts => return f.write_str("all parts"),
            Self::Groups(hosts) => return write!(f, "good groups of {}", count(*hosts, "host")),
        };
        f.write_str(match (between_groups, across_rails) {
            (None, None) => "all pairs",
            (None, Some(_)) => "pairs",
            (Some(false), _) => "pairs within a group",
            (Some(true), _) => "pairs between groups",
        })?;
        f.write_str(match across_rails {
            None => "",
            Some(false) => " on one rail",
            Some(true) => " across rails",
        })
    }
}

impl Serialize for Which {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Good {
    pub which: Which,
    /// In the metric's unit.
    pub centre: f64,
    /// Standard deviation in percent of the centre.
    pub spread_percent: f64,
    pub n: usize,
}

texts! {
    /// Gravest first. The texts are for people; programs read [`Named::open`] where a part is not settled.
    #[derive(Default)]
    Standing {
        /// Measured again and bad, while control pairs were good: lower than these by at least the least effect, in nearly every result.
        Confirmed: "confirmed",
        /// Bad in a share of its results ([`Named::bad_share`]), while control pairs were good.
        Intermittent: "intermittent",
        #[default]
        Suspect: "suspect",
        /// Neither bad nor good; [`Named::open`] says why.
        Open: "undecided",
        /// Measured again and good: no bad result, and half of the suspected effect is ruled out.
        Cleared: "cleared",
    }
}

impl Standing {
    /// Whether further measurements show that it is bad.
    pub const fn is_certain(self) -> bool {
        matches!(self, Self::Confirmed | Self::Intermittent)
    }

    /// The effect on a verdict; `None` for a part that was measured again and good.
    pub const fn status(self) -> Option<Status> {
        match self {
            Self::Confirmed | Self::Intermittent => Some(Status::Fail),
            Self::Suspect | Self::Open => Some(Status::Inconclusive),
            Self::Cleared => None,
        }
    }
}

texts! { OpenReason {
    TooFew: "too few further tests have a result",
    /// Too few values can be compared with those of good pairs, whatever they are.
    TooFewToTell: "too few of them can be compared with good pairs to rule out chance",
    Mixed: "some further results are bad and some are good",
    /// Bad with some partners nearly throughout, good with all others: the ways to those are bad. Reported only where
    /// no such way is named itself.
    Ways: "it is bad with some partners only: the paths to them may be bad, and not the end",
    /// A bad way with no other pair that shows both ends to be good: further cases of an end settled nothing.
    EndUnknown: "one of its ends was good with no other partner",
    Unclear: "further results show it as neither bad nor good",
    /// Low as a whole under the test's traffic, but a few pairs measured alone are good: that clears no part that many hosts share.
    UnderLoad: "a few pairs alone are good, so it is bad only under other traffic, or no longer",
    NoControls: "no known-good pair to compare it with",
    /// The control pairs, good before, were bad or scattered when measured again: the time was measured, not the part.
    ControlsUnsteady: "control pairs were as bad in the same rounds",
    /// Bad, but other parts ([`Named::alternatives`]) or another explanation fit as well, or nothing separates good values from bad ones.
    Undecided: "it is bad, or something else explains the values as well, such as a fabric that carries less there by design",
    /// Bad, but a host was busy with something else, and the effect is not far beyond that of control pairs.
    Busy: "its values were bad again, but a host ran other work",
    /// As `Busy`, for a virtual machine, which shares its host.
    VirtualMachine: "its values were bad again, but a host is a virtual machine, which shares its machine with others",
    /// Bad, but several of the plan's hosts are one machine, whose parts cannot be distinguished.
    SharedMachine: "its values were bad again, but several of these hosts are one machine and share its parts",
    /// Bad, but another program used its GPU in all results but at most one.
    SharedGpu: "its values were bad again, but another program used its GPU",
} }

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    Ceiling,
    Floor,
    /// Parts and pairs of the same kind are good: a fault reduces bandwidth and never adds any.
    Peers,
    FurtherMeasurement,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PartName {
    /// `host`, `nic`, `rail`, `group`, `group rail`, `uplink`, `boundary`, `cut`, `path`; within hosts `host`, `GPU`, `NUMA node`, `way`.
    pub kind: &'static str,
    /// For example `host gpu07`, `rail 3 of gpu07 (mlx5_3)`, `path between gpu01 rail 0 and gpu04 rail 0`.
    pub name: String,
    /// Empty for a part that many hosts share.
    pub hosts: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    pub rail: Option<u32>,
    #[serde(skip)]
    pub way: Way,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TwoClusters {
    pub good: Cluster,
    pub bad: Cluster,
    pub change_percent: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cluster {
    pub centre: f64,
    pub n: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    pub cases: Vec<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Named {
    #[serde(flatten)]
    pub part: PartName,
    /// Percent of good pairs: negative for a low bandwidth, positive for a high latency.
    pub change_percent: f64,
    /// 95 %; `None` below six pairs.
    pub interval_percent: Option<(f64, f64)>,
    pub n: usize,
    pub bad: usize,
    pub partners: usize,
    pub standard_errors: f64,
    pub needed: f64,
    pub method: &'static str,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<String>,
    #[serde(skip)]
    pub meanwhile_remedy: Option<Entry>,
    pub cases: Vec<u64>,
    pub standing: Standing,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waived: bool,
    pub open: Option<OpenReason>,
    pub decided_by: Option<DecidedBy>,
    /// Parts that the results cannot distinguish from this one: any of them may be bad.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<PartName>,
    /// Share of bad results, from 0 to 1; `None` if all are bad or the share is unknown.
    pub bad_share: Option<f64>,
    pub further: Vec<Further>,
    /// `None` without further cases, or with too few.
    pub confirmation: Option<Confirmation>,
    #[serde(skip)]
    pub(crate) reach: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<Lane>,
}

/// A place in the hosts (a GPU, a NUMA node, a way between two) that is lower than others on all of them: by design, or
/// by a fault that all share. Other parts are judged apart from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alike {
    pub place: String,
    /// Difference from the median of all parts, in percent.
    pub change_percent: f64,
}

/// Fewest hosts of one state that are reported together: `hosts gpu[0065-0096]`.
pub const TOGETHER: usize = 4;

impl Deref for Named {
    type Target = PartName;

    fn deref(&self) -> &PartName {
        &self.part
    }
}

impl Named {
    pub(super) fn new(part: PartName, method: &'static str) -> Self {
        Self { reach: part.hosts.clone(), part, method, ..Self::default() }
    }

    pub fn host(&self) -> Option<&str> {
        match (self.kind, self.hosts.as_slice()) {
            ("host", [host]) if self.alternatives.is_empty() => Some(host),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lane {
    pub kind: &'static str,
    /// Counted from 1 where no port is known.
    pub number: u32,
    /// Whether the port follows from the kernel's rule instead of the socket.
    pub predicted: bool,
    /// Median in the metric's unit; `None` without a trusted value.
    pub value: Option<f64>,
    pub n: usize,
    pub slow: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Further {
    pub case: u64,
    pub link: String,
    /// `None` if not trusted.
    pub value: Option<f64>,
    pub error: Option<String>,
}

impl Further {
    pub(super) fn of(result: &CaseResult<'_>, value: Option<f64>) -> Self {
        Self { case: result.case.id, link: result.link_name(), value, error: result.error() }
    }
}

/// Result of a suspect's further cases. They were not selected for being bad, so their effect has no selection bias.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Confirmation {
    pub change_percent: f64,
    pub interval_percent: Option<(f64, f64)>,
    pub n: usize,
    pub bad: usize,
    pub controls: usize,
    /// Change of the control pairs from their first level, in percent: how far the whole cluster moved meanwhile.
    pub controls_change_percent: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Position in [`Localisation::suspects`](super::Localisation::suspects).
    pub suspect: usize,
    /// The initiator first.
    pub flow: Flow,
    pub control: bool,
    /// `None` with too few hosts to confirm anything.
    pub(super) raw: Option<localise::Probe>,
}

/// In the metric's unit, from the scale of the judgement, on which higher is better.
pub(super) fn value(better: Better, log: f64) -> f64 {
    if better == Better::Higher { log.exp() } else { (-log).exp() }
}

/// In percent of the metric, from a difference on that scale.
pub(super) fn percent(better: Better, log: f64) -> f64 {
    100.0 * if better == Better::Higher { log.exp_m1() } else { (-log).exp_m1() }
}
