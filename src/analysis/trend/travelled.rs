//! Whether slow values went with a part that was taken to another slot, or stayed with the slot. It is told from the values on both
//! sides of the move, at both slots: one of them alone may have changed for any reason.

use std::collections::HashMap;

use railgauge_stats::{
    changepoint::Night,
    robust::{MAD_TO_SIGMA, median},
};
use serde::Serialize;

use super::{assemble::Everything, parts::Part};

/// Nights on each side of a move that are looked at, at most: what happened later has nothing to do with it.
const NIGHTS: usize = 14;
/// Fewest nights on each side of a move that say anything. One is noise, and of two nobody knows which is right.
const FEWEST: usize = 3;
/// Fewest places that must tell at each slot: a single link has another end, which may have changed.
const PLACES: usize = 2;
/// Share of the slowness by which a level must have moved to count: halfway is nearer to the one than to the other.
const SHARE: f64 = 0.5;
/// Standard errors by which it must have moved besides.
const SURE: f64 = 3.0;

/// With what slow values went when their part was taken to another slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Travelled {
    /// With the part: where it came they fell, and where it was they rose.
    WithPart,
    /// They stayed with the slot: where the part was they are as slow as before, and where it came all was well and is so.
    WithSlot,
    /// It cannot be told.
    Unknown,
}

/// The nights of the two slots that a part went from and to, first and last of each: as long as it is known which part was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nights {
    /// Without the part.
    pub without: (i64, i64),
    /// With it.
    pub with: (i64, i64),
}

/// What the levels of the places of a slot did when a part came or left.
#[derive(Default)]
struct Told {
    /// Places that tell.
    all: usize,
    fell: usize,
    rose: usize,
    /// Places whose level is known to have stayed, and that of the new slot to have been good before.
    stayed: usize,
}

/// Test, metric, size and class of part: levels of places with the same are compared.
type Kind = (String, &'static str);

/// With what slow values went. `old` and `new` are the places that pass the old slot and those that pass the new one, and not both, with
/// the nights of each slot; `slow` is by how much they were slow, as a difference of logarithms, above zero.
pub(super) fn travelled(
    everything: &Everything,
    old: (&[usize], Nights),
    new: (&[usize], Nights),
    slow: f64,
) -> Travelled {
    let look = Look { everything };
    let (mut left, mut levels) = (Told::default(), HashMap::<Kind, Vec<f64>>::new());
    for &place in old.0 {
        let Some(step) = look.step(place, old.1.with, old.1.without) else { continue };
        left.add(&step, slow, true);
        levels.entry(look.kind(place)).or_default().push(step.was);
    }
    // Slow values are below a good level by what they are slow.
    let good: HashMap<Kind, f64> =
        levels.into_iter().filter_map(|(kind, levels)| Some((kind, median(&levels).ok()? + slow))).collect();
    let mut came = Told::default();
    for &place in new.0 {
        let Some(step) = look.step(place, new.1.without, new.1.with) else { continue };
        // Where all was slow before the part came, nothing tells whether the part is slow.
        let was_good = good.get(&look.kind(place)).is_some_and(|good| step.was >= good - SHARE * slow);
        came.add(&step, slow, was_good);
    }
    if left.all < PLACES || came.all < PLACES {
        return Travelled::Unknown;
    }
    let most = |some: usize, of: &Told| 2 * some > of.all;
    match () {
        () if most(came.fell, &came) && most(left.rose, &left) => Travelled::WithPart,
        () if most(came.stayed, &came) && most(left.stayed, &left) => Travelled::WithSlot,
        () => Travelled::Unknown,
    }
}

impl Told {
    fn add(&mut self, step: &Step, slow: f64, was_good: bool) {
        let Step { by, error, .. } = *step;
        self.all += 1;
        let moved = by.abs() >= SHARE * slow && by.abs() > SURE * error;
        self.fell += usize::from(moved && by < 0.0);
        self.rose += usize::from(moved && by > 0.0);
        // What may have moved by half of the slowness is not known to have stayed.
        self.stayed += usize::from(was_good && by.abs() + SURE * error < SHARE * slow);
    }
}

struct Look<'a> {
    everything: &'a Everything,
}

/// What a level did.
struct Step {
    /// The level before.
    was: f64,
    /// By how much it moved.
    by: f64,
    /// The standard error of that.
    error: f64,
}

impl Look<'_> {
    fn kind(&self, place: usize) -> Kind {
        let one = &self.everything.series[self.everything.places[place].members[0]];
        (self.everything.subjects[one.subject].kind(one.metric), one.part.as_ref().map_or("pair", Part::class))
    }

    fn step(&self, place: usize, before: (i64, i64), since: (i64, i64)) -> Option<Step> {
        let place = &self.everything.places[place];
        // A place of one series has the nights of that series.
        let nights = match place.members.as_slice() {
            [only] => &self.everything.series[*only].nights,
            _ => &place.nights,
        };
        step(nights, before, since)
    }
}

/// By how much a level moved; `None` with too few nights. Nights are in the order of time.
fn step(nights: &[Night], before: (i64, i64), since: (i64, i64)) -> Option<Step> {
    let within = |(first, last): (i64, i64)| {
        let first = nights.partition_point(|night| night.day < first);
        let end = nights.partition_point(|night| night.day <= last).max(first);
        nights[first..end].iter().filter_map(|night| median(&night.runs).ok()).collect::<Vec<f64>>()
    };
    let (mut old, mut new) = (within(before), within(since));
    // The nights that are nearest to the move.
    old.drain(..old.len().saturating_sub(NIGHTS));
    new.truncate(NIGHTS);
    if old.len().min(new.len()) < FEWEST {
        return None;
    }
    let (was, is) = (median(&old).ok()?, median(&new).ok()?);
    let away: Vec<f64> =
        old.iter().map(|value| (value - was).abs()).chain(new.iter().map(|value| (value - is).abs())).collect();
    let sigma = MAD_TO_SIGMA * median(&away).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "a handful of nights")]
    let error = sigma * (1.0 / old.len() as f64 + 1.0 / new.len() as f64).sqrt();
    Some(Step { was, by: is - was, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nights(values: &[f64]) -> Vec<Night> {
        let night = |(day, value): (i64, &f64)| Night { day, runs: vec![value.ln()], lost: 0, epoch: 0 };
        (0..).zip(values).map(night).collect()
    }

    #[test]
    fn a_level_that_may_have_moved_is_not_known_to_have_stayed() {
        let counts = |by: f64, error: f64, was_good: bool| {
            let mut told = Told::default();
            told.add(&Step { was: 0.0, by, error }, 0.05, was_good);
            (told.fell, told.rose, told.stayed)
        };
        assert_eq!(counts(0.001, 0.002, true), (0, 0, 1));
        // Within noise it may have moved by half of the slowness, and it may not.
        assert_eq!(counts(-0.02, 0.015, true), (0, 0, 0));
        assert_eq!((counts(-0.05, 0.005, true), counts(0.05, 0.005, true)), ((1, 0, 0), (0, 1, 0)));
        // What was slow before the part came tells nothing by staying so.
        assert_eq!(counts(0.001, 0.002, false), (0, 0, 0));
    }

    #[test]
    fn a_step_is_that_of_the_nights_around_it() {
        let all = nights(&[50.0, 50.0, 100.0, 101.0, 99.0, 100.0, 50.0, 51.0, 49.0]);
        let Step { was, by, error } = super::step(&all, (2, 5), (6, i64::MAX)).unwrap();
        assert!((by - 0.5_f64.ln()).abs() < 0.02 && error < 0.02, "{by} {error}");
        assert!((was - 100.0_f64.ln()).abs() < 0.02, "{was}");
        assert!(super::step(&all, (2, 5), (7, i64::MAX)).is_none(), "two nights say nothing");
        assert!(super::step(&all, (8, 2), (6, i64::MAX)).is_none(), "no night at all");
    }
}
