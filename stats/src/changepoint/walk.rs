//! Night by night: the state of a series each evening.

use super::{
    Alert, AlertEnd, Grade, Kind, Night, Repeat, Rules, Watch,
    flicker::Flicker,
    last::{Depth, depth},
    last_night, level,
    level::{Found, Level},
    standing::{BEFORE, Standing},
};
use crate::{
    refusal::Refusal,
    robust::{MAD_TO_SIGMA, mad, median, median_in_place},
    shift::{Shift, shift},
};

/// Nights of a level until full detection, and until any result.
const WATCHED: (usize, usize) = (28, 7);
/// Runs of a night that refute the one before them.
const RERUNS: usize = 3;

/// Processes the nights in the given order and raises alerts with what was known each night.
///
/// After an alert, history restarts at the night of the change, so a change is reported once. A change for the worse stays open until the
/// series is shown to be back at the level before it, whatever happens in between, or until an epoch is declared; then the old history
/// continues.
///
/// # Errors
/// No night with a value, a night without a run, nights out of order, or a value that is not finite.
pub fn watch(nights: &[Night], rules: &Rules) -> Result<Watch, Refusal> {
    let nothing = |night: &Night| night.runs.is_empty() && night.lost == 0;
    if nights.iter().all(|night| night.runs.is_empty()) || nights.iter().any(nothing) {
        return Err(Refusal::TooFew { need: 1, got: 0 });
    }
    if let Some(at) = nights.iter().position(|night| night.runs.iter().any(|v| !v.is_finite())) {
        return Err(Refusal::NotFinite { at });
    }
    if nights.windows(2).any(|pair| pair[0].day >= pair[1].day) {
        return Err(Refusal::Parameter("nights are not in rising order of days"));
    }
    let values = nights.iter().map(middle).collect();
    let mut walk = Walk { nights, least: rules.least, values, ..Walk::default() };
    for at in 0..nights.len() {
        walk.night(at)?;
    }
    walk.result()
}

#[derive(Default)]
struct Walk<'a> {
    nights: &'a [Night],
    least: f64,
    /// Median of each night's runs; NaN for none.
    values: Vec<f64>,
    /// Indices of the nights of the present level, and their values.
    history: Vec<usize>,
    recent: Vec<f64>,
    level: Level,
    seen: Vec<f64>,
    standing: Standing,
    flicker: Flicker,
    declared: bool,
    alerts: Vec<Alert>,
}

impl Walk<'_> {
    fn night(&mut self, at: usize) -> Result<(), Refusal> {
        let night = &self.nights[at];
        if at > 0 && night.epoch != self.nights[at - 1].epoch {
            self.flicker.accept(&mut self.alerts, at, night.day);
            self.declared = true;
        }
        if !night.runs.is_empty() {
            self.step(at)?;
        }
        let day = |night: usize| self.nights[night].day;
        // As if the lost values were the worst.
        let lost = night.lost > 0 && night.lost >= night.runs.len();
        let over = self.flicker.night((&self.values[..=at], lost), self.least, day, &mut self.alerts);
        if let Some(low) = over {
            // Nights of no level: the rest shows whether the level before is back.
            self.leave_out(&low);
            // So are changes that these nights caused.
            self.returned(low.first().map(|&first| self.nights[first].day));
            self.leave_out(&low);
        }
        Ok(())
    }

    fn leave_out(&mut self, nights: &[usize]) {
        self.set_history(self.history.iter().copied().filter(|night| !nights.contains(night)).collect());
    }

    fn step(&mut self, at: usize) -> Result<(), Refusal> {
        if std::mem::take(&mut self.declared) {
            self.standing.accept(&mut self.alerts, self.nights[at].day);
            self.set_history(Vec::new());
        }
        self.history.push(at);
        self.recent.push(self.values[at]);
        self.seen.push(self.values[at]);
        self.returned(None);
        match self.level.night(&self.recent, &self.seen, self.least) {
            Some(found) => self.change(at, found),
            None => Ok(()),
        }
    }

    /// Whether a finding continues the last change, which a line explains better: that is one alert.
    fn goes_on(&mut self, found: Found) -> bool {
        let Some((alert, centre)) = self.standing.last() else { return false };
        let step = if let Found::Step { at, .. } = found { Some(self.history[at]) } else { None };
        let alert = &mut self.alerts[alert];
        let first = self.nights.partition_point(|night| night.day < alert.since);
        // Without nights of changes that went away since.
        let present = self.history.iter().copied().filter(|&night| night >= first);
        let history: Vec<usize> =
            (first..self.history[0]).filter(|&night| self.values[night].is_finite()).chain(present).collect();
        let values: Vec<f64> = history.iter().map(|&night| self.values[night]).collect();
        let step = step.map(|step| history.partition_point(|&night| night < step));
        let Some(slope) = self.level.on_a_line(&values, step, centre).filter(|slope| slope * alert.effect > 0.0) else {
            return false;
        };
        let n = history.len();
        let since = &values[n - n / 3..];
        alert.kind = Kind::Drift;
        alert.effect = median_in_place(&mut since.to_vec()) - centre;
        (alert.interval, alert.nights) = (None, (0, n));
        self.standing.moved_on(alert.effect);
        self.set_history(history[n - n / 3..].to_vec());
        self.level.restart(slope);
        true
    }

    /// Reports a change, if it is large enough and not a return to an earlier level.
    fn change(&mut self, at: usize, found: Found) -> Result<(), Refusal> {
        let n = self.recent.len();
        // For a slope, the nights between its ends are of neither level.
        let (until, place, slope) = match found {
            Found::Step { at, .. } => (at, at, 0.0),
            Found::Drift { slope, .. } => (n / 3, n - n / 3, slope),
        };
        let (before, since) = (&self.recent[until.saturating_sub(BEFORE)..until], &self.recent[place..]);
        let (kind, strength, first, nights, moved) = match found {
            Found::Step { excess, .. } => {
                (Kind::Step, excess, place, (before.len(), since.len()), shift(before, since, 0.95)?)
            }
            Found::Drift { excess, .. } => {
                let moved = Shift { estimate: slope * (n - 1) as f64, interval: None };
                (Kind::Drift, excess, 0, (0, n), moved)
            }
        };
        let ended = matches!(found, Found::Step { moved: from_line, .. } if from_line * moved.estimate < 0.0);
        if moved.estimate.abs() < self.least || ended {
            // The slope has ended.
            if self.level.is_sloped() {
                self.set_history(self.history[place..].to_vec());
            }
            return Ok(());
        }
        if self.goes_on(found) {
            return Ok(());
        }
        let alert = Alert {
            raised: self.nights[at].day,
            since: self.nights[self.history[first]].day,
            kind,
            effect: moved.estimate,
            interval: moved.interval,
            strength,
            nights,
            lost: 0,
            end: AlertEnd::Open,
        };
        let old: Vec<f64> = self.recent.drain(..place).take(until).collect();
        let history: Vec<usize> = self.history.drain(..place).take(until).collect();
        self.level.restart(slope);
        let moved = self.standing.moved(alert, (history, &old), &self.recent, self.least, &mut self.alerts);
        if let Some(earlier) = moved {
            self.set_history(earlier.into_iter().chain(self.history.iter().copied()).collect());
        }
        Ok(())
    }

    /// Ends recovered changes, and continues the history before them.
    fn returned(&mut self, unfounded: Option<i64>) {
        let day = |night: usize| self.nights[night].day;
        if let Some((earlier, from)) =
            self.standing.returned(&self.recent, unfounded, |at| day(self.history[at]), &mut self.alerts)
        {
            self.set_history(earlier.into_iter().chain(self.history[from..].iter().copied()).collect());
        }
    }

    fn set_history(&mut self, history: Vec<usize>) {
        self.recent = history.iter().map(|&at| self.values[at]).collect();
        self.level.restart(0.0);
        self.history = history;
    }

    /// Whether the last night is far below its level and unreported.
    fn repeat(&self) -> Option<Repeat> {
        let (&value, before) = self.recent.split_last()?;
        let last = self.nights[*self.history.last()?].day;
        let reported = self.alerts.last().is_some_and(|alert| alert.raised == last);
        if reported { None } else { last_night(before, value, self.least).or_else(|| self.single()) }
    }

    /// A run of a last night of several that is far off, whatever their median, unless three later runs were not. Each of these requires
    /// half as much again.
    fn single(&self) -> Option<Repeat> {
        let (last, earlier) = self.history.split_last()?;
        let runs = &self.nights[*last].runs;
        if runs.len() < 2 {
            return None;
        }
        let before: Vec<f64> = earlier.iter().map(|&night| self.nights[night].runs[0]).collect();
        let Depth { centre, scale, most } = depth(&before, self.least)?;
        let far = |(answers, &run): (usize, &f64)| {
            let drop = run - centre;
            let doubt = 1.0 + answers as f64 / 2.0;
            (drop < -most * doubt).then_some(Repeat { z: drop / scale, drop })
        };
        runs.iter().rev().take(RERUNS).enumerate().find_map(far)
    }

    fn result(self) -> Result<Watch, Refusal> {
        let repeat = self.repeat();
        let centre = median(&self.recent)?;
        let nights = self.history.len().max(self.standing.accepted().map_or(0, |(_, nights)| nights));
        let scale = MAD_TO_SIGMA * mad(&self.recent)?;
        Ok(Watch {
            since: self.nights[self.history[0]].day,
            history: self.history.len(),
            centre,
            scale,
            accepted: self.standing.accepted().map_or(centre, |(centre, _)| centre),
            grade: match nights {
                nights if nights >= WATCHED.0 => Grade::Full,
                nights if nights >= WATCHED.1 => Grade::Weak,
                _ => Grade::TooYoung,
            },
            sees: level::sees(&self.recent, self.least),
            repeat,
            marks: self.flicker.marks(|night| self.nights[night].day),
            suspicious: self.flicker.suspicion(&self.values, |night| self.nights[night].day),
            blind: self.recent.len() >= WATCHED.1 && level::is_blind(&self.recent, self.least),
            noise: level::deviation(&self.recent, self.least),
            alerts: self.alerts,
        })
    }
}

/// NaN without runs.
fn middle(night: &Night) -> f64 {
    if night.runs.is_empty() { f64::NAN } else { median_in_place(&mut night.runs.clone()) }
}
