//! Nightly runs: what changed when, which series changed together, and whether the change persists.
//!
//! The arithmetic is in [`railgauge_stats::changepoint`]; `docs/watch.md` says when to trust it.

mod alerts;
mod assemble;
mod behind;
mod breaks;
mod calendar;
mod epochs;
mod history;
mod joint;
mod judge;
mod last;
mod lines;
mod moves;
mod parts;
mod passing;
mod peers;
mod places;
mod presence;
mod reason;
mod replaced;
mod runs;
mod sum;
mod swapped;
mod through;

use railgauge_stats::changepoint::Grade;
use railgauge_wire::{Better, Metric};
use serde::Serialize;

use crate::status::Status;

pub use calendar::{NotADate, date, day, nights};
pub use history::History;
pub use railgauge_stats::changepoint::Kind as Rule;
pub use sum::trend;
pub use swapped::{Elsewhere, Replaced, Slow};

pub(crate) use assemble::Everything;
pub(crate) use history::{Key, Order, Past, PlanVersion, Watch};
pub(crate) use lines::Lines;
pub(crate) use parts::{Ends, Groups, Part};
pub(crate) use passing::{NEARBY, Passing};
pub(crate) use places::Place;
pub(crate) use presence::{Collected, Standing};
pub(crate) use through::Through;

#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub least_percent: f64,
    /// Days from 1970 at which every series starts again, with the reason.
    pub epochs: Vec<(i64, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { least_percent: 1.0, epochs: Vec::new() }
    }
}

railgauge_wire::words! {
    Way { Worse = "worse", Better = "better", }

    State {
        Open = "open",
        /// Open when its series ended, or started with the successor of its series, and nothing shows that it is over.
        Left = "left",
        /// Its series ended. A change for the worse is over if its successor is back at the level before, or if all that remains is unchanged.
        Ended = "ended",
        /// A change for the better that another change replaced. A change for the worse is never overtaken.
        Overtaken = "overtaken",
        Accepted = "accepted",
        WentAway = "went-away",
    }

    Watched {
        /// At least 28 nights of a level.
        Fully = "fully",
        /// At least 7 nights: large steps are found, small ones are not.
        Weakly = "weakly",
        TooYoung = "too-young",
        TooNoisy = "too-noisy",
        Missing = "missing",
        Stopped = "stopped",
        Retired = "retired",
    }

    /// Why a series ended.
    How { Hardware = "hardware", Edit = "edit", Host = "host", Plan = "plan", }
}

impl Watched {
    const fn of(grade: Grade) -> Self {
        match grade {
            Grade::Full => Self::Fully,
            Grade::Weak => Self::Weakly,
            Grade::TooYoung => Self::TooYoung,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Missing {
    pub kind: String,
    pub link: String,
    pub metric: Metric,
    pub last: Option<String>,
    /// Nights of the plan since then, or since its first night if it never had a value.
    pub nights: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alert {
    pub since: String,
    #[serde(skip)]
    pub day: i64,
    pub raised: String,
    pub rule: Rule,
    pub way: Way,
    /// Percent of the level before; −100 (infinite where lower is better) if there was no value at all.
    pub percent: f64,
    /// 95 % interval; `None` with too few nights since.
    pub interval: Option<(f64, f64)>,
    /// Standard deviations for a fast change; otherwise a multiple of the alert threshold.
    pub strength: f64,
    /// Nights before and since that it rests on. Intermittent: the low nights, and all nights from the first of them on.
    pub nights: (usize, usize),
    pub lost: usize,
    pub state: State,
    /// `None` while it lasts.
    pub end: Option<String>,
    pub taken: Option<Taken>,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Taken {
    pub how: How,
    /// First night of the successor, or the last night of the series without one.
    pub date: String,
    /// The last night on which the old hardware was read, if not the night before: the replacement happened in between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    pub hosts: Vec<String>,
    pub edit: Option<String>,
    /// Median of the last good level, in the metric's unit.
    pub before: f64,
    /// Median of the successor's level, in the metric's unit.
    pub now: Option<f64>,
}

/// A change that may explain others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Epoch {
    pub date: String,
    #[serde(skip)]
    pub day: i64,
    pub what: String,
    /// Empty for everywhere.
    pub hosts: Vec<String>,
    pub declared: bool,
    /// The first versions of the plans whose edit this is.
    #[serde(skip)]
    pub edited: Vec<usize>,
}

/// One series: one metric of one link at one size, with one plan and one hardware.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    pub kind: String,
    /// The link, the group of a collective, or a part of a rotating plan: a host, a NIC, a rail, every link.
    pub link: String,
    pub part: bool,
    pub metric: Metric,
    pub better: Better,
    /// SHA-256 of the plan, shortened.
    pub plan: String,
    pub hardware: Vec<String>,
    pub span: (String, String),
    pub nights: usize,
    pub state: Watched,
    pub missing: usize,
    pub alive: bool,
    pub level: (String, usize),
    pub centre: f64,
    /// Median of the last good level, in the metric's unit: the one before the oldest open change for the worse, otherwise the present one.
    pub accepted: f64,
    /// Standard deviation of most nights, in percent.
    pub scale_percent: f64,
    /// Standard deviation of all recent nights in percent, which decides `TooNoisy`; `None` with fewer than two.
    pub noise_percent: Option<f64>,
    /// Smallest change for the worse, in percent of the level, found within ten nights; `None` if none is.
    pub sees_percent: Option<f64>,
    pub alerts: Vec<Alert>,
    /// Deviation of the last night in standard deviations, if large enough that the night must be repeated.
    pub repeat: Option<f64>,
    /// The part of a rotating plan that explains its changes for the worse and reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// Low nights that come and go, too few for an alert.
    pub suspicion: Option<Alert>,
    /// Runs of the last night without a value, and all its runs, if fewer than three later ones answered.
    pub unanswered: Option<(usize, usize)>,
    #[serde(skip)]
    pub points: Vec<(i64, f64)>,
    #[serde(skip)]
    pub place: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    pub name: String,
    pub since: String,
    #[serde(skip)]
    pub day: i64,
    pub way: Way,
    pub state: State,
    pub series: (usize, usize),
    pub effects: Vec<(Metric, f64)>,
    pub epochs: Vec<String>,
    /// Parts on the path of at least half of its series, replaced when it came or went, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    pub sentence: String,
    /// Position of the series and of the alert in it, largest change first.
    pub members: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reported {
    pub directory: String,
    pub status: Status,
    pub sentence: String,
    pub components: Vec<Component>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Component {
    pub name: String,
    /// `good`, `undecided`, `faulty` or `unknown`; `waived` if the newest plan waives it.
    pub state: &'static str,
    /// Date of the first run with this state; may be empty.
    pub since: String,
    pub measured: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Total {
    pub kind: String,
    /// First night of the first of them.
    pub since: String,
    pub percent: f64,
    pub series: (usize, usize),
    pub sentence: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Trend {
    pub version: u32,
    /// Fail: a change for the worse persists. Inconclusive: none does, but values of the last night are missing, must
    /// be repeated, have too few nights before them, or belong to a series that is too noisy or may be intermittent.
    pub status: Status,
    pub exit_code: u8,
    /// The gravest finding in a few words.
    #[serde(skip)]
    pub word: &'static str,
    pub sentence: String,
    pub least_percent: f64,
    pub runs: (usize, usize),
    pub span: (String, String),
    pub unreadable: Vec<(String, String)>,
    pub missing: Vec<Missing>,
    pub torn: bool,
    pub silent: Vec<String>,
    /// Directories of runs with wrong bytes on any night, and the number of cases.
    pub corrupt: Vec<(String, usize)>,
    /// Runs without a value, and the number of runs they are a large share of; `None` if they are few.
    pub lacking: Option<(usize, usize)>,
    /// State of each plan's components after all runs: the trend is never better than these.
    pub reported: Vec<Reported>,
    pub idle: Vec<String>,
    /// Days without a run between the first and last night, if most nights have one.
    pub gaps: Vec<String>,
    /// Directories of runs whose date contradicts the order of their names, and the date.
    pub disorder: Vec<(String, String)>,
    pub undated: bool,
    pub repeats: usize,
    pub unanswered: usize,
    pub too_young: usize,
    /// Young series of single pairs of a rotating plan, whose hosts and NICs are watched in their place.
    #[serde(skip)]
    pub rotating: usize,
    pub too_noisy: usize,
    pub stopped: usize,
    pub gone: Vec<(String, usize, String)>,
    pub suspicious: usize,
    /// Open changes first, then the latest first.
    pub changes: Vec<Change>,
    pub totals: Vec<Total>,
    pub epochs: Vec<Epoch>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Replaced>,
    /// Series-years watched: the unit of the rate of false alerts.
    pub series_years: f64,
    pub series: Vec<Series>,
}
