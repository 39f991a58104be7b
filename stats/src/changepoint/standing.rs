//! Open changes, and the levels that end them.

use super::{Alert, AlertEnd};
use crate::robust::{MAD_TO_SIGMA, median_in_place};

pub(super) const BEFORE: usize = 40;

const RETURN_NIGHTS: usize = 3;
/// Standard errors by which a level must be shown to be within the margin.
const SURE: f64 = 2.0;
/// The margin in standard deviations of a night, in addition to the standard error of the level before: closer levels are
/// indistinguishable.
const MARGIN: f64 = 1.5;
/// Nights after which a better level is expected, so that losing it is a change for the worse.
const GAINED: usize = 14;
/// Variance of a median relative to that of the mean, for normal values.
const MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

/// The oldest first: each began at the level that the one before it led to.
#[derive(Debug, Default)]
pub(super) struct Standing(Vec<Before>);

#[derive(Debug)]
struct Before {
    alert: usize,
    history: Vec<usize>,
    centre: f64,
    scale: f64,
    effect: f64,
    least: f64,
}

impl Before {
    fn new(alert: usize, effect: f64, history: Vec<usize>, values: &[f64], least: f64) -> Self {
        let (centre, scale) = level(values);
        Self { alert, history, centre, scale, effect, least }
    }

    /// Whether these nights are back at the level before a change for the worse, beyond doubt if `sure`.
    fn is_back(&self, nights: &[f64], sure: bool) -> bool {
        let (centre, scale) = level(nights);
        let scale = scale.max(self.scale);
        let error = |nights: usize| scale * (MEDIAN / nights.min(BEFORE) as f64).sqrt();
        // Precision of the level before. Half of the effect: a level halfway between is neither.
        let margin = (MARGIN * scale + error(self.history.len())).max(self.least).min(self.effect.abs() / 2.0);
        centre - if sure { SURE * error(nights.len()) } else { 0.0 } >= self.centre - margin
    }
}

fn level(values: &[f64]) -> (f64, f64) {
    let mut last = values[values.len().saturating_sub(BEFORE)..].to_vec();
    let centre = median_in_place(&mut last);
    last.iter_mut().for_each(|value| *value = (*value - centre).abs());
    (centre, MAD_TO_SIGMA * median_in_place(&mut last))
}

impl Standing {
    /// Centre and nights of the last good level, if a change for the worse is open.
    pub(super) fn accepted(&self) -> Option<(f64, usize)> {
        let oldest = self.0.iter().find(|before| before.effect < 0.0)?;
        Some((oldest.centre, oldest.history.len()))
    }

    pub(super) fn last(&self) -> Option<(usize, f64)> {
        self.0.last().map(|open| (open.alert, open.centre))
    }

    pub(super) fn moved_on(&mut self, effect: f64) {
        if let Some(open) = self.0.last_mut() {
            open.effect = effect;
        }
    }

    pub(super) fn accept(&mut self, alerts: &mut [Alert], day: i64) {
        self.0.drain(..).for_each(|before| alerts[before.alert].end = AlertEnd::Accepted(day));
    }

    /// The series moved from `before` to `level`. Records the alert, unless the series only returned to an earlier level; then returns
    /// the history to continue.
    pub(super) fn moved(
        &mut self,
        alert: Alert,
        (history, before): (Vec<usize>, &[f64]),
        level: &[f64],
        least: f64,
        alerts: &mut Vec<Alert>,
    ) -> Option<Vec<usize>> {
        if alert.effect > 0.0 {
            // More nights show whether that level is really back.
            let back = self.0.iter().any(|open| open.effect < 0.0 && open.is_back(level, false));
            if back {
                return None;
            }
        } else {
            let gained = |open: &Before| open.effect > 0.0 && history.len() < GAINED;
            if self.0.last().is_some_and(|open| gained(open) && open.is_back(level, false))
                && let Some(open) = self.0.pop()
            {
                alerts[open.alert].end = AlertEnd::WentAway(alert.since);
                return Some(open.history);
            }
            while let Some(open) = self.0.pop_if(|open| open.effect > 0.0) {
                alerts[open.alert].end = AlertEnd::Overtaken(alert.since);
            }
        }
        self.0.push(Before::new(alerts.len(), alert.effect, history, before, least));
        alerts.push(alert);
        None
    }

    /// Ends the changes for the worse that the present level has recovered from, beyond doubt. Returns the history before them, and the
    /// first recovered night's position in the level. Changes raised from the day `unfounded` on end if the level shows no sign of them.
    pub(super) fn returned(
        &mut self,
        level: &[f64],
        unfounded: Option<i64>,
        day: impl Fn(usize) -> i64,
        alerts: &mut [Alert],
    ) -> Option<(Vec<usize>, usize)> {
        let back = |open: &Before| {
            // Nights of the change itself are first if the return is not yet a separate change.
            let closer = |value: &f64| (value - open.centre).abs() < (value - open.centre - open.effect).abs();
            let from = level.iter().position(closer)?;
            let nights = &level[from..];
            let sure = unfounded.is_none_or(|first| alerts[open.alert].raised < first);
            (open.effect < 0.0 && nights.len() >= RETURN_NIGHTS && open.is_back(nights, sure)).then_some(from)
        };
        let (oldest, from) = self.0.iter().enumerate().find_map(|(at, open)| Some((at, back(open)?)))?;
        let mut ended = self.0.drain(oldest..);
        let history = ended.next().map(|open| {
            alerts[open.alert].end = AlertEnd::WentAway(day(from));
            open.history
        })?;
        for open in ended {
            let end = if open.effect < 0.0 { AlertEnd::WentAway(day(from)) } else { AlertEnd::Overtaken(day(from)) };
            alerts[open.alert].end = end;
        }
        Some((history, from))
    }
}
