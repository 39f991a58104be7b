//! What is told of a test and of a part that stands out.

use std::fmt;

use railgauge_stats::localise::Way;
use railgauge_wire::remedy::Entry;
use serde::{Serialize, Serializer};

use crate::analysis::words::count;

/// Which pairs, or groups, a level is of. Written as its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Pairs {
        /// Whether between groups of hosts or within one; `None` for both.
        between_groups: Option<bool>,
        /// Whether across rails or on one; `None` for both.
        across_rails: Option<bool>,
    },
    /// Groups of a collective, by their count of hosts.
    Groups(usize),
    Parts,
}

impl Which {
    pub const ALL: Self = Self::Pairs { between_groups: None, across_rails: None };

    /// Those of these pairs that are on one rail, or that are across rails.
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
    /// Centre in the metric's unit.
    pub centre: f64,
    /// Standard deviation in percent of the centre.
    pub spread_percent: f64,
    pub n: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Not followed up.
    #[default]
    Suspect,
    /// Shown to be bad when measured again, while control pairs were good: lower than they, by the least effect at
    /// least, in nearly every result.
    Confirmed,
    /// Shown to be bad in a share of its results ([`Named::bad_share`]), while control pairs were good.
    Intermittent,
    /// Shown to be good when measured again: no result was bad, and an effect of half of what was suspected is ruled out.
    Cleared,
    /// Neither shown to be bad nor good; [`Named::open`] says why.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenReason {
    /// Too few of the further cases have a value that may be trusted.
    TooFew,
    /// They have values, but too few that can be held against those of good pairs, however they come out.
    TooFewToTell,
    /// Some further results were bad and some good, and no more can be said: results of two kinds neither clear nor
    /// confirm.
    Mixed,
    /// An end that is bad with some partners, nearly throughout, and good with all others: it is the ways to those. Reported only
    /// where no such way is named itself.
    Ways,
    /// A way that is bad, and no other pair shows that both its ends are good: further cases of an end settled nothing.
    EndUnknown,
    /// Neither shown to be bad nor to be good: the results scatter too much for the effect.
    Unclear,
    /// A few of its pairs measured alone are good, while as a whole it was low beside the traffic of the test: good alone
    /// clears no part that many hosts share.
    UnderLoad,
    /// No pair is known to be good, so that nothing shows what good pairs reach now.
    NoControls,
    /// The control pairs, good before, were bad or scattered when measured again: what was measured is the time and not
    /// the part.
    ControlsUnsteady,
    /// It is bad, but other parts ([`Named::alternatives`]) or another explanation fit as well, or nothing separates good values from bad
    /// ones.
    Undecided,
    /// It is bad, but one of its hosts was busy with something else, and the effect is not far beyond what control pairs
    /// show.
    Busy,
    /// The same on a virtual machine, which shares its host with others.
    VirtualMachine,
    /// It is bad, but several of the plan's hosts are one machine, and so no parts that can be told apart.
    SharedMachine,
    /// It is bad, but another program used its GPU in all results, or in all but one.
    SharedGpu,
}

/// What decided which side of two is the sick one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// The good side reaches its links' ceiling, and the bad side does not.
    Ceiling,
    /// The good side is above the plan's floor, and the bad side is below.
    Floor,
    /// Parts and pairs of the same kind are good: a fault takes bandwidth away and adds none.
    Peers,
    /// Measured again, pairs that pass only one of the possible parts told them apart.
    FurtherMeasurement,
}

/// A part's name without what is said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartName {
    /// As [`Named::kind`].
    pub kind: &'static str,
    /// As [`Named::name`].
    pub name: String,
    /// Hosts that the name holds; empty for a part that many hosts share.
    pub hosts: Vec<String>,
    pub rail: Option<u32>,
}

/// The values of a test fall into two clusters that nothing separates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TwoClusters {
    pub good: Cluster,
    pub bad: Cluster,
    /// The worse against the better cluster in percent: negative for a bandwidth, positive for a latency.
    pub change_percent: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cluster {
    /// Median in the metric's unit.
    pub centre: f64,
    pub n: usize,
    /// Of groups of a collective: hosts that are in it only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The plan's groups that are groups of a collective in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    pub cases: Vec<u64>,
}

/// A part that stands out, in words and numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Named {
    /// `host`, `nic`, `rail`, `group`, `group rail`, `uplink`, `boundary`, `cut` or `path`; within hosts `host`, `GPU`, `NUMA node` or `way`.
    pub kind: &'static str,
    /// The part: `host gpu07`, `rail 3 of gpu07 (mlx5_3)`, `path between gpu01 rail 0 and gpu04 rail 0`.
    pub name: String,
    pub hosts: Vec<String>,
    pub groups: Vec<String>,
    /// The rail that the name holds, if it holds one.
    pub rail: Option<u32>,
    /// The direction in which it is bad, where that is one only.
    #[serde(skip)]
    pub way: Way,
    /// Change against good pairs in percent of them: negative for a bandwidth that is low, positive for a latency that is
    /// high.
    pub change_percent: f64,
    /// 95 % interval of it; `None` below six pairs.
    pub interval_percent: Option<(f64, f64)>,
    pub n: usize,
    pub bad: usize,
    pub partners: usize,
    /// How many standard errors it stands out.
    pub standard_errors: f64,
    pub needed: f64,
    pub method: &'static str,
    pub reason: String,
    /// What was bad about the state of its GPUs, or lost, while these cases ran, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<String>,
    #[serde(skip)]
    pub meanwhile_remedy: Option<Entry>,
    pub cases: Vec<u64>,
    pub standing: Standing,
    /// Whether the plan waives it: it is told, and does not count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waived: bool,
    /// Why it is open; `None` for any other standing.
    pub open: Option<OpenReason>,
    /// What decided that it is the bad side; `None` as long as nothing did.
    pub decided_by: Option<DecidedBy>,
    /// Parts that the results so far do not tell from this one, so that any of them may be the bad one; empty where the
    /// name is the only one that fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<PartName>,
    /// Share of its results that are bad, from 0 to 1, where some are good; `None` for a part that is bad throughout or
    /// where that cannot be told.
    pub bad_share: Option<f64>,
    pub further: Vec<Further>,
    /// What they came to; `None` without any, or with too few.
    pub confirmation: Option<Confirmation>,
    /// Hosts at the ends of the pairs that speak of it, whose state bounds what can be said.
    #[serde(skip)]
    pub(super) reach: Vec<String>,
    /// A path's source ports, each measured by itself; empty where that was not done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<Lane>,
}

/// A place in the hosts (a GPU, a NUMA node, a way between two) that is lower than others on all of them: by their design, or by a fault that
/// all have. What stands out there is told apart from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alike {
    /// `GPU 7`, `way from GPU 0 to GPU 4`.
    pub place: String,
    /// By how much it differs from the median of all parts, in percent.
    pub change_percent: f64,
}

/// Fewest hosts of one state that are told together: `hosts gpu[0065-0096]`.
pub const TOGETHER: usize = 4;

impl Named {
    /// A suspect by name, before it is measured again.
    pub(super) fn new(kind: &'static str, name: String, hosts: Vec<String>, method: &'static str) -> Self {
        Self { kind, name, reach: hosts.clone(), hosts, method, ..Self::default() }
    }

    /// The host that the part is, where it is one as a whole and nothing else fits its values as well.
    pub fn host(&self) -> Option<&str> {
        match (self.kind, self.hosts.as_slice()) {
            ("host", [host]) if self.alternatives.is_empty() => Some(host),
            _ => None,
        }
    }
}

/// One queue pair or stream of a path, measured by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lane {
    /// What `number` is: `UDP source port`, `TCP source port`, `queue pair`, `stream`.
    pub kind: &'static str,
    /// The port; counted from 1 where no port is known.
    pub number: u32,
    /// Whether the port follows from the kernel's rule and was not read from the socket.
    pub predicted: bool,
    /// Median in the metric's unit; `None` without a value that may be trusted.
    pub value: Option<f64>,
    pub n: usize,
    /// Whether it is slow while the others are not.
    pub slow: bool,
}

/// A further case that was to settle a suspect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Further {
    pub case: u64,
    pub link: String,
    /// Its value, if it may be trusted.
    pub value: Option<f64>,
    pub error: Option<String>,
}

/// What the further cases of a suspect came to. They were not picked for being bad, so their effect is not flattered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Confirmation {
    /// Change against good pairs in percent of them.
    pub change_percent: f64,
    /// 95 % interval of it; `None` below six tests.
    pub interval_percent: Option<(f64, f64)>,
    /// Further cases with a result that may be trusted.
    pub n: usize,
    pub bad: usize,
    /// Control cases with a result that may be trusted, measured in the same rounds.
    pub controls: usize,
    /// What the control pairs came to against their first level, in percent: how far the whole cluster moved meanwhile.
    pub controls_change_percent: f64,
}

impl Standing {
    /// In words, as people read them: programs read `open` where a part is not settled.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Suspect => "suspect",
            Self::Confirmed => "confirmed",
            Self::Intermittent => "intermittent",
            Self::Cleared => "cleared",
            Self::Open => "not settled",
        }
    }
}
