//! A series walked night by night, as if each night were the last.

use super::{Fast, by_chance, change_points, fast, slow, slow::FEWEST, variance_split, wandering};
use crate::{
    rank::normal_cdf,
    refusal::Refusal,
    robust::{MAD_TO_SIGMA, mad, median, median_in_place, winsorise},
    shift::{Interval, shift},
};

/// One night's results.
#[derive(Debug, Clone, PartialEq)]
pub struct Night {
    /// Number of the day, by which nights are ordered; days without results are left out.
    pub day: i64,
    /// Natural logarithms of the runs, the scheduled one first, then repeats of the same night; at least one.
    pub runs: Vec<f64>,
    /// A number that changes when something was changed on purpose (driver, firmware, plan): history begins anew.
    pub epoch: u64,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Smallest effect worth an alert, as a difference of logarithms.
    pub least: f64,
    /// Share of a run's variance that arises within the night, if known from elsewhere; estimated from nights with several
    /// runs otherwise. The fast alert needs 0.9.
    pub within_share: Option<f64>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { least: 0.01, within_share: None }
    }
}

/// Which rule raised an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One night and its repeats.
    Fast,
    /// About a week.
    Slow,
}

/// What became of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The series is still at the new level.
    Open,
    /// The series is back at the old level since this day.
    WentAway(i64),
    /// Another change, or a declared epoch, came on this day.
    Overtaken(i64),
}

/// A change that was reported.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// Night of the alert.
    pub raised: i64,
    /// First night of the new level, as far as it can be placed.
    pub since: i64,
    /// Rule.
    pub kind: Kind,
    /// Shift from up to 40 nights before to the nights since (Hodges–Lehmann), as a difference of logarithms.
    pub effect: f64,
    /// 95 % interval; `None` where the nights since are too few.
    pub interval: Option<Interval>,
    /// By how many standard deviations (fast), or how many times what alerts (slow).
    pub strength: f64,
    /// Nights before and since that the effect rests on.
    pub nights: (usize, usize),
    /// What became of it.
    pub end: End,
}

/// The state of a series after its last night.
#[derive(Debug, Clone, PartialEq)]
pub struct Watch {
    /// All alerts in the order of nights.
    pub alerts: Vec<Alert>,
    /// First night of the history that the last night was judged by.
    pub since: i64,
    /// Nights in that history. Fewer than 28 can raise no slow alert: only the plan's own limits guard the series.
    pub history: usize,
    /// Median of that history.
    pub centre: f64,
    /// 1.4826 · MAD of that history; 0 for a single night.
    pub scale: f64,
    /// How far off the last night is, in standard deviations, if it should be repeated tonight.
    pub repeat: Option<f64>,
    /// Share of variance within nights that was used, if known.
    pub within_share: Option<f64>,
}

/// Share of variance within nights from which on repeats tell noise from change.
const WITHIN: f64 = 0.9;
/// Nights with several runs from which that share is estimated.
const SPLIT_NIGHTS: usize = 8;
/// Nights before a change that its effect is measured against.
const BEFORE: usize = 40;
/// A change is looked for among the last nights only.
const PLACED: usize = 20;
/// Nights to either side of a change point among which the best is taken.
const NEARBY: usize = 5;
/// Chance of an alert in a night of a series that wanders by itself, above which the alert is not raised: 0.2 a year if
/// alerts of one week count once.
const CHANCE: f64 = 0.004;
/// Drawn series for that chance.
const DRAWS: usize = 500;
/// p of the change points that place a change.
const PLACING: f64 = 1e-4;
/// Chance of taking nights at the new level for a return to the old one.
const RETURN: f64 = 3e-4;
/// Fewest nights of a return.
const RETURN_NIGHTS: usize = 3;

/// Walks the nights in the order given and raises alerts with what was known each night.
///
/// After an alert, history begins anew at the night of the change, so a change is reported once. If as many nights in a row
/// as rule out chance (three at least) are closer to the old level than to the new one, the alert went away and the old
/// history is taken up again.
///
/// # Errors
/// No night, a night without a run, nights out of order, or a value that is not finite.
pub fn watch(nights: &[Night], rules: &Rules) -> Result<Watch, Refusal> {
    if nights.is_empty() || nights.iter().any(|night| night.runs.is_empty()) {
        return Err(Refusal::TooFew { need: 1, got: 0 });
    }
    if let Some(at) = nights.iter().position(|night| night.runs.iter().any(|v| !v.is_finite())) {
        return Err(Refusal::NotFinite { at });
    }
    if nights.windows(2).any(|pair| pair[0].day >= pair[1].day) {
        return Err(Refusal::Parameter("nights are not in rising order of days"));
    }
    let mut walk = Walk::new(nights, rules);
    for at in 0..nights.len() {
        walk.night(at)?;
    }
    walk.result()
}

/// The state while walking.
struct Walk<'a> {
    nights: &'a [Night],
    rules: &'a Rules,
    /// Median of each night's runs.
    values: Vec<f64>,
    /// Positions of the nights of the present level, and their values.
    history: Vec<usize>,
    recent: Vec<f64>,
    /// The level before the last alert.
    old: Option<Old>,
    alerts: Vec<Alert>,
    repeat: Option<f64>,
    within_share: Option<f64>,
}

/// The level before an alert.
struct Old {
    history: Vec<usize>,
    centre: f64,
    /// Nights in a row that show a return.
    nights: usize,
}

impl<'a> Walk<'a> {
    fn new(nights: &'a [Night], rules: &'a Rules) -> Self {
        Self {
            nights,
            rules,
            values: nights.iter().map(|night| median_in_place(&mut night.runs.clone())).collect(),
            history: Vec::new(),
            recent: Vec::new(),
            old: None,
            alerts: Vec::new(),
            repeat: None,
            within_share: rules.within_share,
        }
    }

    fn night(&mut self, at: usize) -> Result<(), Refusal> {
        let night = &self.nights[at];
        if at > 0 && night.epoch != self.nights[at - 1].epoch {
            self.overtake(night.day);
            self.old = None;
            self.set_history(Vec::new());
        }
        self.repeat = None;
        let quick = self.quick(at)?;
        self.history.push(at);
        self.recent.push(self.values[at]);
        if let Some(z) = quick {
            return self.change(at, self.history.len() - 1, Kind::Fast, z);
        }
        self.went_away(night.day)?;
        if self.recent.len() < FEWEST + 8 {
            return Ok(());
        }
        let found = slow(&self.recent, self.floor())?;
        let excess = found.excess();
        if excess.abs() <= 1.0 {
            return Ok(());
        }
        let place = self.place(excess, found.nights)?;
        // Chance is judged by the nights before the change, if these are enough.
        let enough = self.recent[..place].len() >= FEWEST + 8;
        let before = if enough { &self.recent[..place] } else { &self.recent[..] };
        let near = excess.abs() <= wandering(&winsorise(before)?)?;
        if near || by_chance(before, excess, CHANCE, self.floor(), DRAWS, at as u64)? > CHANCE {
            return Ok(());
        }
        self.change(at, place, Kind::Slow, excess)
    }

    /// Smallest deviation that is believed. An alert needs a change of `least`, and the cuts then still are below it.
    fn floor(&self) -> f64 {
        self.rules.least / 4.0
    }

    /// The fast rule; the z of an alert.
    fn quick(&mut self, at: usize) -> Result<Option<f64>, Refusal> {
        if self.recent.len() < FEWEST {
            return Ok(None);
        }
        let runs = &self.nights[at].runs;
        let found = fast(&self.recent, runs[0], &runs[1..], self.floor())?;
        if found == Fast::Quiet {
            return Ok(None);
        }
        if self.rules.within_share.is_none() {
            self.within_share = self.split(at)?;
        }
        if self.within_share.is_none_or(|share| share < WITHIN) {
            return Ok(None);
        }
        match found {
            Fast::Repeat { z } => self.repeat = Some(z),
            Fast::Alert { z } => return Ok(Some(z)),
            Fast::Quiet | Fast::Dismissed { .. } => {}
        }
        Ok(None)
    }

    /// Share of variance within nights, from earlier nights with several runs whose first run was nothing special: nights
    /// that were repeated because they looked bad would make it too large.
    fn split(&self, at: usize) -> Result<Option<f64>, Refusal> {
        let firsts: Vec<f64> = self.nights[..at].iter().map(|night| night.runs[0]).collect();
        let (centre, scale) = (median(&firsts)?, MAD_TO_SIGMA * mad(&firsts)?);
        let ordinary = |night: &&Night| night.runs.len() >= 2 && (night.runs[0] - centre).abs() <= 3.0 * scale;
        let nights: Vec<&[f64]> =
            self.nights[..at].iter().filter(ordinary).map(|night| night.runs.as_slice()).collect();
        if nights.len() < SPLIT_NIGHTS {
            return Ok(None);
        }
        Ok(variance_split(&nights)?.within_share())
    }

    /// Position in the history where the change is placed: the last change point among the last nights that goes the same
    /// way, or the split that the rank rule found; then the night nearby that leaves the smallest distances to the medians
    /// of both sides.
    fn place(&self, excess: f64, nights: usize) -> Result<usize, Refusal> {
        let n = self.recent.len();
        let clipped = winsorise(&self.recent)?;
        let points = change_points(&clipped, PLACING)?;
        let near = points.iter().rev().find(|p| p.at + PLACED >= n && (p.effect > 0.0) == (excess > 0.0));
        let rough = near.map_or(n - nights, |point| point.at);
        // Without a change point the rank rule's guess may be far too early: a large change shows on its third night.
        let last = near.map_or(n - 1, |_| (rough + NEARBY + 1).min(n - 1));
        let start = n.saturating_sub(BEFORE + PLACED);
        let distances = |values: &[f64]| {
            let centre = median_in_place(&mut values.to_vec());
            values.iter().map(|v| (v - centre).abs()).sum::<f64>()
        };
        let left = |at: &usize| distances(&self.recent[start..*at]) + distances(&self.recent[*at..]);
        let nearby = rough.saturating_sub(NEARBY).max(start + 8)..last;
        Ok(nearby.min_by(|a, b| left(a).total_cmp(&left(b))).unwrap_or(rough))
    }

    /// Reports a change at a position of the history, if it is large enough.
    fn change(&mut self, at: usize, place: usize, kind: Kind, strength: f64) -> Result<(), Refusal> {
        let before = &self.recent[place.saturating_sub(BEFORE)..place];
        let runs = &self.nights[at].runs;
        let since = if kind == Kind::Fast { &runs[..] } else { &self.recent[place..] };
        let found = shift(before, since, 0.95)?;
        if found.estimate.abs() < self.rules.least {
            return Ok(());
        }
        let nights = (before.len(), self.recent.len() - place);
        let (centre, scale) = (median(before)?, MAD_TO_SIGMA * mad(before)?);
        // The chance that one night at the new level is closer to the old one.
        let closer = if scale > 0.0 { normal_cdf(-found.estimate.abs() / (2.0 * scale)) } else { 0.0 };
        let needed = if closer > 0.0 { (RETURN.ln() / closer.ln()).ceil() as usize } else { 0 };
        let day = self.nights[at].day;
        self.overtake(day);
        self.alerts.push(Alert {
            raised: day,
            since: self.nights[self.history[place]].day,
            kind,
            effect: found.estimate,
            interval: found.interval,
            strength,
            nights,
            end: End::Open,
        });
        let new = self.history.split_off(place);
        let history = std::mem::replace(&mut self.history, new);
        self.old = Some(Old { history, centre, nights: needed.max(RETURN_NIGHTS) });
        self.set_history(self.history.clone());
        Ok(())
    }

    /// Ends the last alert if the last nights are closer to the level before it.
    fn went_away(&mut self, day: i64) -> Result<(), Refusal> {
        let Some(old) = &self.old else { return Ok(()) };
        let (Some(alert), n) = (self.alerts.last(), self.recent.len()) else { return Ok(()) };
        if alert.end != End::Open || n <= old.nights {
            return Ok(());
        }
        let new = old.centre + alert.effect;
        let back = self.recent[n - old.nights..].iter().all(|v| (v - old.centre).abs() < (v - new).abs());
        if !back {
            return Ok(());
        }
        let since = n - old.nights;
        let first = self.nights[self.history[since]].day;
        if let Some(alert) = self.alerts.last_mut() {
            alert.end = End::WentAway(first);
        }
        debug_assert!(first <= day);
        let returned = self.history.split_off(since);
        if let Some(old) = self.old.take() {
            self.set_history(old.history.into_iter().chain(returned).collect());
        }
        Ok(())
    }

    fn overtake(&mut self, day: i64) {
        if let Some(alert) = self.alerts.last_mut().filter(|alert| alert.end == End::Open) {
            alert.end = End::Overtaken(day);
        }
    }

    fn set_history(&mut self, history: Vec<usize>) {
        self.recent = history.iter().map(|&at| self.values[at]).collect();
        self.history = history;
    }

    fn result(self) -> Result<Watch, Refusal> {
        Ok(Watch {
            since: self.nights[self.history[0]].day,
            history: self.history.len(),
            centre: median(&self.recent)?,
            scale: MAD_TO_SIGMA * mad(&self.recent)?,
            alerts: self.alerts,
            repeat: self.repeat,
            within_share: self.within_share,
        })
    }
}
