//! Grounds of the verdict on an expectation.

use std::fmt;

use railgauge_model::plan::model::Expectation;
use railgauge_wire::{terms::Metric, unit::Bytes};
use serde::Serialize;

use super::{Blamed, Place};
use crate::analysis::{
    baseline::{OtherParts, Refusal, SetUp},
    percentile::TooFew,
    words::{self, count, number, sizes},
};

/// What became of the cases in an expectation's scope.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OfExpectation {
    /// Wrong bytes arrived.
    WrongBytes {
        /// In how many cases.
        cases: usize,
        /// All in scope.
        of: usize,
        /// The first of them.
        first: Blamed,
    },
    /// Values break it.
    Broken {
        /// Of how many cases.
        cases: usize,
        /// All in scope.
        of: usize,
        /// The one that is farthest over its limit.
        worst: Box<Compared>,
    },
    /// The test does not have the metric.
    NotYielded {
        /// The metric.
        metric: Metric,
    },
    /// No case lies in its scope.
    NothingInScope(Scope),
    /// No case was run.
    NoneRun {
        /// All in scope.
        of: usize,
        /// Why the first was not, in words.
        error: String,
    },
    /// Cases have no value.
    NotMeasured {
        /// How many of them.
        cases: usize,
        /// All in scope.
        of: usize,
        /// What stands against the first of them, in words.
        error: String,
    },
    /// Cases have a value that must not be trusted.
    NotTrusted {
        /// How many of them.
        cases: usize,
        /// All in scope.
        of: usize,
        /// The first of them.
        first: Blamed,
    },
    /// There is no limit for cases.
    Unlimited {
        /// How many of them.
        cases: usize,
        /// All in scope.
        of: usize,
        /// Why there is none for the first of them.
        first: Unlimited,
    },
    /// Some cases keep it, beside others of which that is not known.
    OthersKept {
        /// How many of them.
        cases: usize,
    },
    /// Every case keeps it.
    Kept {
        /// All in scope.
        of: usize,
        /// The value nearest to its limit.
        nearest: Option<Box<Compared>>,
    },
    /// Hosts are set up differently from what the baseline was measured with.
    SetUpDifferently(SetUp),
    /// Parts were replaced since the baseline was made, or it is not known whether they were.
    OtherParts(OtherParts),
    /// Members of a bond carry nothing, and the ceiling is that of the others.
    FewerMembers(FewerMembers),
}

/// A bond behind a ceiling, some of whose members carry nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FewerMembers {
    /// The host.
    pub host: String,
    /// The bond's interface.
    pub bond: String,
    /// Members that carry nothing.
    pub idle: Vec<String>,
    /// How many carry traffic.
    pub carrying: usize,
    /// How many it has.
    pub of: usize,
}

/// `gpu02: the ceiling is that of 1 of the 2 members of bond0: eth1 carries nothing`.
impl fmt::Display for FewerMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, bond, idle, carrying, of } = self;
        let (verb, idle) = (if idle.len() == 1 { "carries" } else { "carry" }, idle.join(", "));
        write!(f, "{host}: the ceiling is that of {carrying} of the {of} members of {bond}: {idle} {verb} nothing")
    }
}

/// What an expectation is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// Smallest and largest message size in bytes; `None` for all.
    pub sizes: Option<(Bytes, Bytes)>,
    /// Rails; all if empty.
    pub rails: Vec<u32>,
    /// Group that both ends must belong to.
    pub group: Option<String>,
}

impl Scope {
    /// That of an expectation.
    pub fn of(wanted: &Expectation) -> Self {
        Self { sizes: wanted.sizes, rails: wanted.rails.clone(), group: wanted.group.clone() }
    }

    /// `None` where it leaves nothing of the test out.
    #[must_use]
    pub fn narrowed(self) -> Option<Self> {
        (self.sizes.is_some() || !self.rails.is_empty() || self.group.is_some()).then_some(self)
    }

    /// In words, what leaves something out: `64 KiB to 8 MiB`, `rails 0, 1`, `group leaf1`.
    pub fn parts(&self) -> Vec<String> {
        let rails = match self.rails.as_slice() {
            [] => None,
            [rail] => Some(format!("rail {rail}")),
            rails => Some(format!("rails {}", rails.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))),
        };
        let group = self.group.as_ref().map(|group| format!("group {group}"));
        [self.sizes.map(sizes), rails, group].into_iter().flatten().collect()
    }
}

/// `64 KiB to 8 MiB, rails 0, 1, group leaf1`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.sizes.is_none().then(|| "all sizes".to_owned());
        f.write_str(&all.into_iter().chain(self.parts()).collect::<Vec<_>>().join(", "))
    }
}

/// A value beside its limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The case.
    #[serde(flatten)]
    pub place: Place,
    /// What was observed, in `unit`.
    pub value: Option<f64>,
    /// What was wanted, in `unit`.
    pub limit: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// What was bad about its GPUs while it was measured, in words, of a value that breaks its limit; `None` where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<String>,
    /// The expectation: values are told in the unit in which the plan writes its limit.
    #[serde(skip)]
    pub wanted: Expectation,
}

/// `gpu01:0 → gpu02:0, 64 KiB: 45.20 Gb/s, 50.2 % of the limit of 90 Gb/s`, in the plan's own unit.
impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, value, limit, gpus, wanted, .. } = self;
        let text = value.map_or_else(String::new, |value| words::held_against(wanted, value));
        let share = match value.map(|value| value / limit).filter(|share| share.is_finite()) {
            Some(share) if share > 2.0 => format!(", {}", words::share(share)),
            Some(share) => format!(", {} of", words::share(share)),
            None => ", against".to_owned(),
        };
        let limit = words::limit(wanted).unwrap_or_else(|| words::held_against(wanted, *limit));
        write!(f, "{place}: {text}{share} the limit of {limit}")?;
        gpus.as_ref().map_or(Ok(()), |gpus| write!(f, " (while it was measured {gpus})"))
    }
}

/// Why a value has no limit to be held against.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Unlimited {
    /// There is no value.
    NoValue {
        /// What stands against the case, in words.
        error: String,
    },
    /// No ceiling is known for the link.
    NoCeiling,
    /// The value is so far above the ceiling that the ceiling must be wrong.
    AboveCeiling {
        /// Initiator's host.
        src_host: String,
        /// Responder's host.
        dst_host: String,
        /// What was observed, in `unit`.
        value: f64,
        /// The computed ceiling, in `unit`.
        ceiling: f64,
        /// Unit of both.
        unit: String,
    },
    /// Too few other links of the same size and rail were measured.
    FewPeers {
        /// How many are needed.
        needed: usize,
    },
    /// The plan has no baseline.
    NoBaseline,
    /// The baseline cannot be used for this value.
    Baseline(Refusal),
    /// Too few operations carry the percentile.
    TooFewOperations(TooFew),
    /// Hosts that are one machine: what their ports share is no part of the fabric.
    OneMachine {
        /// Their names in the plan.
        hosts: Vec<String>,
    },
    /// Too few repeats to tell it from noise.
    NoScatter {
        /// How many have a value.
        repeats: u32,
    },
    /// The limit lies within what the repeats leave open.
    WithinNoise {
        /// What was observed, in `unit`.
        value: f64,
        /// Lower end of its 95 % interval, in `unit`.
        low: f64,
        /// Upper end, in `unit`.
        high: f64,
        /// Unit of all three.
        unit: String,
    },
}

impl fmt::Display for Unlimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoValue { error } => f.write_str(error),
            Self::NoCeiling => f.write_str(
                "no ceiling is known for the link (its rate is not reported, or it is emulated in software)",
            ),
            Self::AboveCeiling { src_host, dst_host, value, ceiling, unit } => {
                let [value, ceiling] = [value, ceiling].map(|value| format!("{} {unit}", number(*value)));
                write!(
                    f,
                    "{src_host} → {dst_host} reached {value}, and its ceiling was reckoned to be {ceiling}: the rate of the \
                     link or its slot was read wrong (docs/reading-the-report.md; what was read is in facts.json)"
                )
            }
            Self::FewPeers { needed } => {
                write!(f, "fewer than {needed} other links of the same size and rail were measured")
            }
            Self::NoBaseline => f.write_str("the plan has no baseline"),
            Self::Baseline(refusal) => refusal.fmt(f),
            Self::TooFewOperations(few) => few.fmt(f),
            Self::OneMachine { hosts } => {
                write!(f, "{} are one machine, whose ports share more than the fabric", hosts.join(" and "))
            }
            Self::NoScatter { repeats } => {
                write!(f, "{} are too few to tell it from noise", count(*repeats as usize, "repeat"))
            }
            Self::WithinNoise { value, low, high, unit } => {
                let [value, low, high] = [value, low, high].map(|value| number(*value));
                write!(
                    f,
                    "it is {value} {unit}, and by the scatter of the repeats anything from {low} to {high} {unit}"
                )
            }
        }
    }
}

impl From<Refusal> for Unlimited {
    fn from(refusal: Refusal) -> Self {
        Self::Baseline(refusal)
    }
}

impl fmt::Display for OfExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = |of: &usize| count(*of, "case");
        match self {
            Self::WrongBytes { cases, of, first } => {
                write!(f, "{cases} of {} delivered wrong bytes: {first}", total(of))
            }
            Self::Broken { cases, of, worst } => write!(f, "{cases} of {} broke it; worst: {worst}", total(of)),
            Self::NotYielded { metric } => write!(f, "this test does not yield {metric}, so nothing was judged"),
            Self::NothingInScope(scope) => {
                write!(f, "no case lies within its scope ({scope}), so nothing was judged")
            }
            Self::NoneRun { of, error } => write!(f, "none of its {} was run: {error}", total(of)),
            Self::NotMeasured { cases, of, error } => write!(f, "{cases} of {} not measured: {error}", total(of)),
            Self::NotTrusted { cases, of, first } => {
                write!(f, "{cases} of {} not to be trusted: {first}", total(of))
            }
            Self::Unlimited { cases, of, first } => {
                write!(f, "{cases} of {} cannot be held against it: {first}", total(of))
            }
            Self::OthersKept { cases } => write!(f, "the other {cases} kept it"),
            Self::Kept { of, nearest } => {
                let all = if *of == 1 { "" } else { "all " };
                write!(f, "{all}{} kept it", total(of))?;
                nearest.as_ref().map_or(Ok(()), |nearest| write!(f, "; nearest to it: {nearest}"))
            }
            Self::SetUpDifferently(differences) => differences.fmt(f),
            Self::OtherParts(parts) => parts.fmt(f),
            Self::FewerMembers(bond) => bond.fmt(f),
        }
    }
}
