//! State of low nights that come and go.

use super::{
    Alert, AlertEnd, Intermittent, Kind, Mark, intermittent,
    intermittent::is_over,
    last::{Depth, EFFECTS, depth},
};
use crate::robust::median_in_place;

const REFERENCE: usize = 40;

#[derive(Debug, Default)]
pub(super) struct Flicker {
    /// Index of the first of them in the series.
    first: usize,
    good: Vec<f64>,
    marks: Vec<Mark>,
    /// Which of them are low for lack of a value.
    lost: Vec<bool>,
    /// Index of the open alert, and of its first low night among the marks.
    open: Option<(usize, usize)>,
}

impl Flicker {
    pub(super) fn accept(&mut self, alerts: &mut [Alert], at: usize, day: i64) {
        if let Some((alert, _)) = self.open {
            alerts[alert].end = AlertEnd::Accepted(day);
        }
        *self = Self { first: at, ..Self::default() };
    }

    /// Adds a night, and raises, updates or ends the alert. `values` are all nights of the series up to this one, not finite for a night
    /// without a value, and `day` returns the day of each. A night that `lost` its value is low. Returns the indices of its low nights
    /// where the alert ends.
    pub(super) fn night(
        &mut self,
        (values, lost): (&[f64], bool),
        least: f64,
        day: impl Fn(usize) -> i64,
        alerts: &mut Vec<Alert>,
    ) -> Option<Vec<usize>> {
        let &value = values.last()?;
        let known = value.is_finite().then(|| self.mark(value, least));
        let mark = known.filter(|_| !lost).unwrap_or(Mark::Low);
        self.marks.push(mark);
        self.lost.push(lost);
        // A low night does not count for the spread, whatever its level.
        if known.is_some_and(|mark| mark != Mark::Low) {
            if self.good.len() == REFERENCE {
                self.good.remove(0);
            }
            self.good.push(value);
        }
        let last = || self.marks.iter().rposition(|mark| *mark == Mark::Low);
        if let Some((alert, since)) = self.open {
            if mark != Mark::Low && is_over(&self.marks, since) {
                let back = last().map_or(since, |last| last + 1);
                alerts[alert].end = AlertEnd::WentAway(day(self.first + back));
                self.open = None;
                let low = |at: &usize| self.marks[*at] == Mark::Low;
                return Some((since..self.marks.len()).filter(low).map(|at| self.first + at).collect());
            }
            if mark == Mark::Low {
                let Alert { raised, strength, .. } = alerts[alert];
                alerts[alert] = Alert { raised, ..self.alert(values, since, strength, day) };
            }
        } else if mark == Mark::Low
            && let Some(Intermittent { since, strength, sure: true, .. }) = intermittent(&self.marks)
        {
            self.open = Some((alerts.len(), since));
            alerts.push(self.alert(values, since, strength, day));
        }
        None
    }

    /// As of the last night.
    fn alert(&self, values: &[f64], since: usize, strength: f64, day: impl Fn(usize) -> i64) -> Alert {
        let marks = &self.marks[since..];
        Alert {
            raised: day(self.first + self.marks.len() - 1),
            since: day(self.first + since),
            kind: Kind::Intermittent,
            effect: self.effect(values, since),
            interval: None,
            strength,
            nights: (marks.iter().filter(|mark| **mark == Mark::Low).count(), marks.len()),
            lost: self.lost[since..].iter().filter(|lost| **lost).count(),
            end: AlertEnd::Open,
        }
    }

    fn mark(&self, value: f64, least: f64) -> Mark {
        let highest = self.good.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Most nights need no closer look: no depth is less than that.
        if value >= highest - EFFECTS * least / 2.0 {
            return Mark::Good;
        }
        depth(&self.good, least).map_or(Mark::Good, |Depth { centre, most, .. }| Mark::of(value - centre, most))
    }

    fn effect(&self, values: &[f64], since: usize) -> f64 {
        let nights = self.marks.iter().zip(&self.lost).zip(&values[self.first..]).skip(since);
        let is_low = |((mark, lost), _): &((&Mark, &bool), &f64)| **mark == Mark::Low && !**lost;
        let mut low: Vec<f64> = nights.filter(is_low).map(|(_, value)| *value).collect();
        if low.is_empty() {
            return f64::NEG_INFINITY;
        }
        median_in_place(&mut low) - median_in_place(&mut self.good.clone())
    }

    /// Marks since the last declared epoch; `day` as for [`night`](Self::night).
    pub(super) fn marks(&self, day: impl Fn(usize) -> i64) -> Vec<(i64, Mark)> {
        self.marks.iter().enumerate().map(|(at, mark)| (day(self.first + at), *mark)).collect()
    }

    /// Below the threshold of an alert; `values` and `day` as for [`night`](Self::night).
    pub(super) fn suspicion(&self, values: &[f64], day: impl Fn(usize) -> i64) -> Option<Alert> {
        let Intermittent { since, strength, .. } = intermittent(&self.marks).filter(|_| self.open.is_none())?;
        Some(self.alert(values, since, strength, day))
    }
}
