//! Processes a series night by night, as if each night were the last.

use serde::Serialize;

use super::Mark;
use crate::shift::Interval;

#[derive(Debug, Clone, PartialEq)]
pub struct Night {
    /// Number of the day, by which nights are ordered; days without results are left out.
    pub day: i64,
    /// Natural logarithms of the runs: the scheduled one, then repeats of the same night. Higher is better: logarithms of latencies are
    /// negated.
    pub runs: Vec<f64>,
    /// Runs without a value. If these are half of all or more, the night counts as a low one among those that come and go. A night has a
    /// run of either sort.
    pub lost: usize,
    /// Changes when a user declares a new level to be good: history restarts.
    pub epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Smallest effect worth an alert, as a difference of logarithms.
    pub least: f64,
}

impl Default for Rules {
    fn default() -> Self {
        Self { least: 0.01 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Step,
    Drift,
    /// The series was far worse than its peers from its first night on ([`stand_out`](super::stand_out)); [`watch`](super::watch) finds none.
    Peers,
    /// Low nights that come and go ([`intermittent`](super::intermittent)), while others are not.
    Intermittent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertEnd {
    /// The level before the change is not back.
    Open,
    WentAway(i64),
    /// A change for the better that another change replaced on this day. A change for the worse is never overtaken.
    Overtaken(i64),
    /// A new level was declared to be good from this day on.
    Accepted(i64),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    pub raised: i64,
    /// First night of the new level, as far as it can be placed.
    pub since: i64,
    pub kind: Kind,
    /// Shift from up to 40 nights before to the nights since (Hodges–Lehmann), as a difference of logarithms. For [`Kind::Drift`] the
    /// change since its first night; for [`Kind::Intermittent`] the median of the low nights less that of the good ones, −∞ where none of
    /// them gave a value.
    pub effect: f64,
    /// 95 % interval; `None` where the nights since are too few.
    pub interval: Option<Interval>,
    pub strength: f64,
    /// Nights before and since behind the effect (a [`Kind::Drift`] has none before); for [`Kind::Intermittent`] the low nights, and all
    /// nights from the first to the last of them.
    pub nights: (usize, usize),
    /// Low nights of [`Kind::Intermittent`] without a value; otherwise 0.
    pub lost: usize,
    pub end: AlertEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Fewer than 7 nights, and no older level for comparison.
    TooYoung,
    /// Fewer than 28 nights: large steps are found, small ones are not.
    Weak,
    /// 28 nights or more.
    Full,
}

/// The last night is so low that it should be repeated before use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeat {
    /// Standard deviations from the median of the level, negative.
    pub z: f64,
    pub drop: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Watch {
    /// All alerts in the order in which they were raised.
    pub alerts: Vec<Alert>,
    /// First night of the history that the last night was judged by.
    pub since: i64,
    pub history: usize,
    pub centre: f64,
    /// 1.4826 · MAD of that history; 0 for a single night.
    pub scale: f64,
    /// Centre of the last good level: the one before the oldest open change for the worse, or else the present one.
    pub accepted: f64,
    pub grade: Grade,
    /// A drop of about this size, as a difference of logarithms, is found within ten nights in most cases; `None` where nothing can be
    /// found.
    pub sees: Option<f64>,
    pub repeat: Option<Repeat>,
    /// Mark of each night since the last declared epoch, with its day. A night that lost its value is low.
    pub marks: Vec<(i64, Mark)>,
    /// Low nights that come and go, where the evidence is too weak for an alert.
    pub suspicious: Option<Alert>,
    /// Whether the level, of 7 nights or more, is so noisy that even half the rate would not be found within a week in 999 of 1,000
    /// cases.
    pub blind: bool,
    /// Standard deviation behind this and `sees`: of the last nights of the level, including a few very low ones.
    pub noise: Option<f64>,
}
