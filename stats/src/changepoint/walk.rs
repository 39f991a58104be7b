//! The walk from night to night: what is known of a series each evening.

use super::{
    Alert, AlertEnd, Fast, Grade, Kind, Night, Repeat, Rules, Watch, by_chance, fast,
    fast::RERUNS,
    flicker::Flicker,
    last::{Depth, depth},
    last_night,
    place::place,
    slow,
    slow::FEWEST,
    standing::Standing,
    variance_split, wandering, young,
};
use crate::{
    refusal::Refusal,
    robust::{MAD_TO_SIGMA, mad, median, median_in_place, winsorise},
    shift::shift,
};

/// Share of variance within nights from which on repeats tell noise from change.
const WITHIN: f64 = 0.9;
/// Nights with several runs from which that share is estimated.
const SPLIT_NIGHTS: usize = 12;
/// Nights before a change that its effect is measured against.
pub(super) const BEFORE: usize = 40;
/// Chance of an alert in a night of a series that wanders by itself, above which the alert is not raised: 0.05 a year if
/// alerts of one week count once, half of what is allowed for dips.
const CHANCE: f64 = 0.001;
/// Drawn series for that chance.
const DRAWS: usize = 1000;
/// Nights of a level from which on the slow rule sees it, and from which on anything is said.
const WATCHED: (usize, usize) = (FEWEST + 8, 7);
/// Standard deviations of the level before a declared epoch that a step after a single night must have.
const SUDDEN: f64 = 15.0;

/// The state while walking.
pub(super) struct Walk<'a> {
    nights: &'a [Night],
    rules: &'a Rules,
    /// Median of each night's runs; not a number where it has none.
    values: Vec<f64>,
    /// Positions of the nights of the present level, and their values.
    history: Vec<usize>,
    recent: Vec<f64>,
    /// Changes that are open, the oldest first.
    standing: Standing,
    flicker: Flicker,
    /// Whether an epoch was declared since the last night with a value.
    declared: bool,
    /// Scale of the level before the last declared epoch.
    earlier: Option<f64>,
    alerts: Vec<Alert>,
    within_share: Option<f64>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(nights: &'a [Night], rules: &'a Rules) -> Self {
        Self {
            nights,
            rules,
            values: nights.iter().map(middle).collect(),
            history: Vec::new(),
            recent: Vec::new(),
            standing: Standing::default(),
            flicker: Flicker::default(),
            declared: false,
            earlier: None,
            alerts: Vec::new(),
            within_share: rules.within_share,
        }
    }

    pub(super) fn night(&mut self, at: usize) -> Result<(), Refusal> {
        let night = &self.nights[at];
        if at > 0 && night.epoch != self.nights[at - 1].epoch {
            self.flicker.accept(&mut self.alerts, at, night.day);
            self.declared = true;
        }
        if !night.runs.is_empty() {
            self.step(at)?;
        }
        let day = |night: usize| self.nights[night].day;
        // As the median would be if what is lost were the worst.
        let lost = night.lost > 0 && night.lost >= night.runs.len();
        let over = self.flicker.night((&self.values[..=at], lost), self.rules.least, day, &mut self.alerts);
        if let Some(low) = over {
            // Known to have been of no level: what is left shows whether the level before is back.
            self.leave_out(&low);
            // So are changes that these nights made a rule raise.
            self.returned(low.first().map(|&first| self.nights[first].day));
            self.leave_out(&low);
        }
        Ok(())
    }

    /// Takes nights out of the history.
    fn leave_out(&mut self, nights: &[usize]) {
        self.set_history(self.history.iter().copied().filter(|night| !nights.contains(night)).collect());
    }

    /// The alerts of a level that changed.
    fn step(&mut self, at: usize) -> Result<(), Refusal> {
        let night = &self.nights[at];
        if std::mem::take(&mut self.declared) {
            self.standing.accept(&mut self.alerts, night.day);
            self.earlier = (self.recent.len() >= WATCHED.1).then(|| self.scale()).transpose()?;
            self.set_history(Vec::new());
        }
        let quick = self.quick(at)?;
        self.history.push(at);
        self.recent.push(self.values[at]);
        if let Some(z) = quick {
            return self.change(at, self.history.len() - 1, Kind::Fast, z);
        }
        self.returned(None);
        if self.recent.len() >= WATCHED.0
            && let Some((place, excess)) = self.slow(at)?
        {
            return self.change(at, place, Kind::Slow, excess);
        }
        if let Some(step) = young(&self.recent, self.rules.least) {
            return self.change(at, step.at, Kind::Young, step.excess);
        }
        if let Some(excess) = self.sudden() {
            return self.change(at, 1, Kind::Young, excess);
        }
        Ok(())
    }

    /// Smallest deviation that is believed. An alert needs a change of `least`, and the cuts then still are below it.
    fn floor(&self) -> f64 {
        self.rules.least / 4.0
    }

    fn scale(&self) -> Result<f64, Refusal> {
        Ok((MAD_TO_SIGMA * mad(&self.recent)?).max(self.floor()))
    }

    /// The fast rule; the z of an alert.
    fn quick(&mut self, at: usize) -> Result<Option<f64>, Refusal> {
        let runs = &self.nights[at].runs;
        if self.recent.len() < FEWEST || runs.len() < 2 {
            return Ok(None);
        }
        let Fast::Alert { z } = self.fast(at)? else { return Ok(None) };
        Ok(self.repeats_tell(at)?.then_some(z))
    }

    /// The fast rule on single runs: the scheduled run of each night, which varies as the one that is judged does.
    fn fast(&self, at: usize) -> Result<Fast, Refusal> {
        let runs = &self.nights[at].runs;
        let before = self.history.iter().filter(|&&night| night != at).map(|&night| self.nights[night].runs[0]);
        fast(&before.collect::<Vec<f64>>(), runs[0], &runs[1..], self.floor())
    }

    /// The slow rule: where a change is, and by how many times what alerts.
    fn slow(&self, at: usize) -> Result<Option<(usize, f64)>, Refusal> {
        let found = slow(&self.recent, self.floor())?;
        let excess = found.excess();
        if excess.abs() <= 1.0 {
            return Ok(None);
        }
        let place = place(&self.recent, excess, found.nights)?;
        // Two nights are a pair of dips as soon as a level; a level shows once more.
        if self.recent.len() - place < young::FEWEST.1 {
            return Ok(None);
        }
        // Chance is judged by the nights before the change, if these are enough.
        let enough = self.recent[..place].len() >= WATCHED.0;
        let before = if enough { &self.recent[..place] } else { &self.recent[..] };
        let near = excess.abs() <= wandering(&winsorise(before)?)?;
        let chance = near || by_chance(before, excess, CHANCE, self.floor(), DRAWS, at as u64)? > CHANCE;
        Ok((!chance).then_some((place, excess)))
    }

    /// A step after the first night of a declared level, judged by the scale of the level before.
    fn sudden(&self) -> Option<f64> {
        let (scale, [first, since @ ..]) = (self.earlier?, &self.recent[..]) else { return None };
        if !(young::FEWEST.1..=FEWEST).contains(&since.len()) {
            return None;
        }
        let z = (median_in_place(&mut since.to_vec()) - first) / scale;
        let held = since.iter().all(|value| ((value - first) / scale).abs() > SUDDEN / 2.0);
        (held && z.abs() > SUDDEN).then_some(z / SUDDEN)
    }

    /// Whether noise arises within nights, so that repeats of the same night tell it from change.
    fn repeats_tell(&mut self, at: usize) -> Result<bool, Refusal> {
        if self.rules.within_share.is_none() {
            self.within_share = self.split(at)?;
        }
        Ok(self.within_share.is_some_and(|share| share >= WITHIN))
    }

    /// Share of variance within nights, from earlier nights with several runs whose first run was nothing special: nights
    /// that were repeated because they looked bad would make it too large.
    fn split(&self, at: usize) -> Result<Option<f64>, Refusal> {
        let firsts: Vec<f64> = self.nights[..at].iter().filter_map(|night| night.runs.first().copied()).collect();
        let (centre, scale) = (median(&firsts)?, MAD_TO_SIGMA * mad(&firsts)?);
        let ordinary = |night: &&Night| night.runs.len() >= 2 && (night.runs[0] - centre).abs() <= 3.0 * scale;
        let nights: Vec<&[f64]> =
            self.nights[..at].iter().filter(ordinary).map(|night| night.runs.as_slice()).collect();
        if nights.len() < SPLIT_NIGHTS {
            return Ok(None);
        }
        Ok(variance_split(&nights)?.within_share())
    }

    /// Reports a change at a position of the history, if it is large enough and no return to a level before.
    fn change(&mut self, at: usize, place: usize, kind: Kind, strength: f64) -> Result<(), Refusal> {
        let before = &self.recent[place.saturating_sub(BEFORE)..place];
        let runs = &self.nights[at].runs;
        let since = if kind == Kind::Fast { &runs[..] } else { &self.recent[place..] };
        let found = shift(before, since, 0.95)?;
        if found.estimate.abs() < self.rules.least {
            return Ok(());
        }
        let alert = Alert {
            raised: self.nights[at].day,
            since: self.nights[self.history[place]].day,
            kind,
            effect: found.estimate,
            interval: found.interval,
            strength,
            nights: (before.len(), self.recent.len() - place),
            lost: 0,
            end: AlertEnd::Open,
        };
        let new = self.history.split_off(place);
        let old = std::mem::replace(&mut self.history, new);
        let level = self.recent.split_off(place);
        let old_values = std::mem::replace(&mut self.recent, level);
        let moved = self.standing.moved(alert, (old, &old_values), &self.recent, self.rules.least, &mut self.alerts);
        if let Some(earlier) = moved {
            self.set_history(earlier.into_iter().chain(self.history.iter().copied()).collect());
        }
        Ok(())
    }

    /// Ends what is over, and takes up the history before it again.
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
        self.history = history;
    }

    /// Whether the last night should be repeated: it is far below its level, and nothing was reported yet.
    fn repeat(&mut self) -> Result<Option<Repeat>, Refusal> {
        let (Some((&value, before)), Some(&at)) = (self.recent.split_last(), self.history.last()) else {
            return Ok(None);
        };
        if self.alerts.last().is_some_and(|alert| alert.raised == self.nights[at].day) {
            return Ok(None);
        }
        let far = last_night(before, value, self.rules.least).or_else(|| self.single());
        if far.is_some() || before.len() < FEWEST {
            return Ok(far);
        }
        let Fast::Repeat { z } = self.fast(at)? else { return Ok(None) };
        let drop = value - median(before)?;
        Ok((z < 0.0 && self.repeats_tell(at)?).then_some(Repeat { z, drop, urgent: false }))
    }

    /// A run of a last night of several that is far off, whatever their median says, unless three runs after it were not. Each
    /// of these asks for half as much again. Single runs against single runs.
    fn single(&self) -> Option<Repeat> {
        let (last, earlier) = self.history.split_last()?;
        let runs = &self.nights[*last].runs;
        if runs.len() < 2 {
            return None;
        }
        let before: Vec<f64> = earlier.iter().map(|&night| self.nights[night].runs[0]).collect();
        let Depth { centre, scale, most } = depth(&before, self.rules.least)?;
        let far = |(answers, &run): (usize, &f64)| {
            let drop = run - centre;
            let doubt = 1.0 + answers as f64 / 2.0;
            (drop < -most * doubt).then_some(Repeat { z: drop / scale, drop, urgent: true })
        };
        runs.iter().rev().take(RERUNS).enumerate().find_map(far)
    }

    pub(super) fn result(mut self) -> Result<Watch, Refusal> {
        let repeat = self.repeat()?;
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
            sees: young::sees(&self.recent, self.rules.least),
            repeat,
            marks: self.flicker.marks(|night| self.nights[night].day),
            suspicious: self.flicker.suspicion(&self.values, |night| self.nights[night].day),
            blind: self.recent.len() >= WATCHED.1 && young::is_blind(&self.recent, self.rules.least),
            noise: young::noise(&self.recent, self.rules.least),
            within_share: self.within_share,
            alerts: self.alerts,
        })
    }
}

/// Median of a night's runs; not a number where it has none.
fn middle(night: &Night) -> f64 {
    if night.runs.is_empty() { f64::NAN } else { median_in_place(&mut night.runs.clone()) }
}
