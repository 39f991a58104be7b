//! Nightly runs: what changed when, which changed together, and whether it is still so.
//!
//! | file | does |
//! | --- | --- |
//! | `history` | collects runs, in any order |
//! | `assemble` | makes series of nights of them |
//! | `breaks` | ends the series of a link where one of its parts was replaced |
//! | `lines` | which plans are versions of one another: an edited plan goes on |
//! | `absent` | runs in which a series should have a value and has none |
//! | `dates` | dates that cannot be right |
//! | `calendar` | which runs are one night |
//! | `epochs` | what was changed on purpose, from which night on |
//! | `parts` | hosts, NICs and rails of plans that measure other pairs each night |
//! | `last` | the states of components after all runs |
//! | `places` | which series took the place of others |
//! | `presence` | which series should have a value of the last night |
//! | `unread` | runs that gave nothing |
//! | `judge` | watches every series, groups what moved together |
//! | `fellows` | links that were bad, or bad on some nights, from their first night on |
//! | `joint` | nights on which several series are low at once |
//! | `replaced` | what became of changes whose series ended |
//! | `swapped` | parts that took the place of others, in words |
//! | `moves` | what was replaced, and what that means for changes |
//! | `passing` | which series pass which part, and what stood against a part |
//! | `through` | which devices each link went through |
//! | `totals` | what several changes of one series come to |
//! | `sum` | what all of it comes to |
//! | `reason` | changes in sentences |
//!
//! The arithmetic is [`railgauge_stats::changepoint`]; `docs/watch.md` says when to trust it.

mod absent;
mod assemble;
mod behind;
mod breaks;
mod calendar;
mod dates;
mod epochs;
mod fellows;
mod history;
mod joint;
mod judge;
mod last;
mod lines;
mod moves;
mod parts;
mod passing;
mod places;
mod presence;
mod reason;
mod replaced;
mod sum;
mod swapped;
mod through;
mod totals;
mod unread;

use railgauge_stats::{Refusal, changepoint::Grade};
use railgauge_wire::terms::{Better, Metric};
use serde::Serialize;

use super::{history::Shared, verdict::Status};

pub use calendar::{NotADate, date, day, nights};
pub use epochs::Epoch;
pub use history::History;
pub use last::{Component, Reported};
pub use replaced::{How, Taken};
pub use swapped::{Elsewhere, Replaced, Slow};
pub use totals::Total;

const VERSION: u32 = 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Smallest change in percent worth an alert.
    pub least_percent: f64,
    /// Days (counted from 1970) from which on everything is new, with the reason.
    pub epochs: Vec<(i64, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { least_percent: 1.0, epochs: Vec::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    Worse,
    Better,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Open,
    /// It stood when its series ended, or came with what took the place of its series, and nothing shows that it is over.
    Left,
    /// Its series ended. One for the worse is over: the level before it is back in what took its place, or all that remains
    /// is as it was.
    Ended,
    /// For the better, and another change replaced it. A change for the worse is never overtaken.
    Overtaken,
    /// An epoch was declared: the new level is good.
    Accepted,
    WentAway,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    Step,
    Drift,
    /// The series was far worse than its like from its first night on.
    Fellows,
    /// Nights far below the level, or far below its like, come and go.
    Intermittent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watched {
    /// 28 nights of a level or more.
    Fully,
    /// 7 nights or more: large steps are found, small ones are not.
    Weakly,
    TooYoung,
    /// So noisy that even half the rate would not be found within a week.
    TooNoisy,
    /// Its plan was measured on the last night and it has no value of it.
    Missing,
    /// Its plan was edited and measures it no more, although it still has its hosts.
    Stopped,
    /// Its plan is no longer measured or has not its hosts any more, or other hardware took its place.
    Retired,
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

/// A case that should have a value of the last night and has none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Missing {
    pub kind: String,
    /// The link, the group of a collective, or the part.
    pub link: String,
    pub metric: Metric,
    /// Last night with a value; `None` if there never was one.
    pub last: Option<String>,
    /// Nights of the plan since then; since its first night if there never was a value.
    pub nights: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alert {
    /// First night of the new level.
    pub since: String,
    /// The same, counted in days from 1970.
    #[serde(skip)]
    pub day: i64,
    pub raised: String,
    pub rule: Rule,
    pub way: Way,
    /// Change in percent of the level before; −100, or infinite where lower is better, if there was no value at all.
    pub percent: f64,
    /// 95 % interval of it; `None` where the nights since were too few.
    pub interval: Option<(f64, f64)>,
    /// By how many standard deviations (fast), or how many times what alerts (all others).
    pub strength: f64,
    /// Nights before and since that it rested on; of an intermittent series the low nights, and all nights from the first of
    /// them on.
    pub nights: (usize, usize),
    /// Low nights of an intermittent series on which it failed or had no value.
    pub lost: usize,
    pub state: State,
    /// Night of its end; `None` while it lasts.
    pub end: Option<String>,
    /// First night back at the old level, counted in days from 1970; `None` where it did not go away.
    #[serde(skip)]
    pub back: Option<i64>,
    /// How its series ended, where that decided what became of it.
    pub taken: Option<Taken>,
    pub reason: String,
}

/// One series: one metric of one link at one size, with one plan and one hardware.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    pub kind: String,
    /// The link, the group of a collective, or a part of a plan that rotates: a host, a NIC, a rail, every link.
    pub link: String,
    pub part: bool,
    pub metric: Metric,
    pub better: Better,
    /// SHA-256 of the plan, shortened.
    pub plan: String,
    pub hardware: Vec<String>,
    /// First and last night with a value.
    pub span: (String, String),
    pub nights: usize,
    pub state: Watched,
    /// Nights of its plan since its last value; 0 unless it is missing.
    pub missing: usize,
    /// Whether it is not retired.
    pub alive: bool,
    /// First night of the present level, and nights of it.
    pub level: (String, usize),
    /// Median of the present level, in the metric's unit.
    pub centre: f64,
    /// Median of the last level that counts as good, in the metric's unit: the one before the oldest change for the worse
    /// that is open, the present one without any.
    pub accepted: f64,
    /// Standard deviation of most of its nights, in percent.
    pub scale_percent: f64,
    /// Standard deviation of all of its recent nights, by which it is too noisy or not, in percent; `None` with fewer than two.
    pub noise_percent: Option<f64>,
    /// A change for the worse of about this size in percent of the level is found within ten nights; `None` where none is.
    pub sees_percent: Option<f64>,
    /// Whether the present level, or the accepted one, has 28 nights.
    pub watched: bool,
    /// All alerts, in order.
    pub alerts: Vec<Alert>,
    /// How many standard deviations the last night is off, where it is too far off to pass and must be repeated.
    pub repeat: Option<f64>,
    /// The part of a plan that rotates that explains what it has for the worse, and is told in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// Why it may be intermittent, where the evidence is too weak for an alert.
    pub suspicion: Option<String>,
    /// The first of those nights, counted in days from 1970, and by how much they are off in percent.
    #[serde(skip)]
    pub suspected: Option<(i64, f64)>,
    /// Runs of the last night in which it failed or had no value, and all of them, where fewer than three later ones answered.
    pub unanswered: Option<(usize, usize)>,
    /// Night (counted in days from 1970) and value of every night, for charts.
    #[serde(skip)]
    pub points: Vec<(i64, f64)>,
    /// Number of its place: series with the same one took each other's place.
    #[serde(skip)]
    pub place: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// What its series have in common, or the one series.
    pub name: String,
    /// First night of the new level: the median of its series.
    pub since: String,
    /// The same, counted in days from 1970.
    #[serde(skip)]
    pub day: i64,
    pub way: Way,
    /// What became of it: open while one of its series still is.
    pub state: State,
    /// Series that changed, and those with the same in common.
    pub series: (usize, usize),
    /// Median change in percent by metric.
    pub effects: Vec<(Metric, f64)>,
    /// What was changed on purpose at about the same time.
    pub epochs: Vec<String>,
    /// Parts that half of its series pass, or more, and that were replaced when it came or went, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    pub sentence: String,
    /// Position of the series and of the alert in it, the largest change first.
    pub members: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trend {
    pub version: u32,
    /// fail: something became worse and still is. inconclusive: nothing did, but values of the last night are missing, must
    /// be repeated, have too few nights before them, or belong to a series that is too noisy or may be intermittent.
    pub status: Status,
    pub exit_code: u8,
    pub sentence: String,
    /// Smallest change in percent that is an alert.
    pub least_percent: f64,
    /// Runs that were read, and nights of them.
    pub runs: (usize, usize),
    /// First and last night.
    pub span: (String, String),
    /// Directories whose run could not be read, and why.
    pub unreadable: Vec<(String, String)>,
    /// Cases that should have a value of the last night and have none.
    pub missing: Vec<Missing>,
    /// Whether the last run of all could not be read.
    pub torn: bool,
    /// Directories of runs that were read and in which nothing has a value.
    pub silent: Vec<String>,
    /// Directories of runs in which wrong bytes arrived, whenever that was, and in how many cases.
    pub corrupt: Vec<(String, usize)>,
    /// Runs that gave no value, and the number of runs they are a large share of; `None` where they are few.
    pub lacking: Option<(usize, usize)>,
    /// The state of each plan's components after all runs: the trend is no better.
    pub reported: Vec<Reported>,
    /// Epochs that were asked for and accept nothing, and why.
    pub idle: Vec<String>,
    /// Days between the first and the last night that have no run, where most nights follow each other.
    pub gaps: Vec<String>,
    /// Directories of runs whose date does not go with the order of their names, and what it is.
    pub disorder: Vec<(String, String)>,
    /// Whether the last night is in doubt because the date of a run cannot be right.
    pub undated: bool,
    /// Series whose last night must be repeated.
    pub repeats: usize,
    /// Series without a value in a run of the last night that fewer than three later ones answered.
    pub unanswered: usize,
    /// Series of plans that are measured, too young to say anything about.
    pub too_young: usize,
    /// Series that are too noisy to say anything about.
    pub too_noisy: usize,
    /// Series that an edited plan measures no more, although it still has their hosts.
    pub stopped: usize,
    /// Hosts that their plan has no more, with the number of series that ended and their last night.
    pub gone: Vec<(String, usize, String)>,
    pub suspicious: usize,
    /// Changes, those that are still so first, then the latest first.
    pub changes: Vec<Change>,
    /// What several changes for the worse of the same series come to.
    pub totals: Vec<Total>,
    pub epochs: Vec<Epoch>,
    /// Parts that took the place of others, in the order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Replaced>,
    /// Ids that were in several slots at once: nothing is followed by them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<Shared>,
    /// Hosts of which no serial number was read in their last run: their parts cannot be followed, but for those with a GUID or
    /// a UUID.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfollowed: Vec<String>,
    /// Series-years that were watched: false alerts are counted by them.
    pub series_years: f64,
    /// Every series, in the order in which they began.
    pub series: Vec<Series>,
}

/// Watches everything that was collected.
///
/// # Errors
/// A statistic refuses what was collected, which is a mistake of ours.
pub fn trend(history: History, options: &Options) -> Result<Trend, Refusal> {
    let everything = history.finish(options);
    let mut series = judge::watch_all(&everything, options)?;
    let replaced = moves::replaced(&everything, &series);
    moves::follow(&everything, &replaced, &mut series);
    let mut changes = judge::changes(&everything, &series, &replaced);
    last::repaired(&everything, &mut changes, &mut series);
    behind::calm(&everything, &mut series, &judge::rules(options))?;
    Ok(sum::sum(everything, series, (changes, replaced), options))
}
