//! Whether slow values went with a part that was taken to another slot, or stayed with the slot. It is told from the values on both
//! sides of the move, at both slots: one of them alone may have changed for any reason.

use railgauge_stats::{
    changepoint::Night,
    robust::{MAD_TO_SIGMA, median},
};
use serde::Serialize;

use super::assemble::Everything;

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
    /// They stayed with the slot: where the part was they are as slow as before, and where it came nothing fell.
    WithSlot,
    /// It cannot be told.
    Unknown,
}

/// The nights on which a part went from one slot to another.
pub(super) struct Move {
    /// First and last night in the old slot.
    pub old: (i64, i64),
    /// First and last night in the new one.
    pub new: (i64, i64),
}

/// What the levels of the places of a slot did.
#[derive(Default)]
struct Told {
    /// Places that tell.
    all: usize,
    fell: usize,
    rose: usize,
}

/// With what slow values went. `old` and `new` are the places that pass the old slot and those that pass the new one, and not both;
/// `slow` is by how much they were slow, as a difference of logarithms, above zero.
pub(super) fn travelled(
    everything: &Everything,
    (old, new): (&[usize], &[usize]),
    moved: &Move,
    slow: f64,
) -> Travelled {
    // What is there after the part left the old slot, and what was there before it came to the new one.
    let left = told(everything, old, (moved.old.0, moved.old.1), (moved.old.1 + 1, i64::MAX), slow);
    let came = told(everything, new, (i64::MIN, moved.new.0 - 1), moved.new, slow);
    if left.all < PLACES || came.all < PLACES {
        return Travelled::Unknown;
    }
    let most = |some: usize, of: &Told| 2 * some > of.all;
    match () {
        () if most(came.fell, &came) && most(left.rose, &left) => Travelled::WithPart,
        () if most(came.all - came.fell, &came) && most(left.all - left.rose, &left) => Travelled::WithSlot,
        () => Travelled::Unknown,
    }
}

fn told(everything: &Everything, places: &[usize], before: (i64, i64), since: (i64, i64), slow: f64) -> Told {
    let mut told = Told::default();
    for &place in places {
        let place = &everything.places[place];
        // A place of one series has the nights of that series.
        let nights = match place.members.as_slice() {
            [only] => &everything.series[*only].nights,
            _ => &place.nights,
        };
        let Some((step, error)) = step(nights, before, since) else { continue };
        told.all += 1;
        let moved = step.abs() >= SHARE * slow && step.abs() > SURE * error;
        told.fell += usize::from(moved && step < 0.0);
        told.rose += usize::from(moved && step > 0.0);
    }
    told
}

/// By how much a level moved, and its standard error; `None` with too few nights. Nights are in the order of time.
fn step(nights: &[Night], before: (i64, i64), since: (i64, i64)) -> Option<(f64, f64)> {
    let within = |(first, last): (i64, i64)| {
        let first = nights.partition_point(|night| night.day < first);
        let end = nights.partition_point(|night| night.day <= last).max(first);
        nights[first..end].iter().filter_map(|night| median(&night.runs).ok())
    };
    let (mut old, new): (Vec<f64>, Vec<f64>) =
        (within(before).rev().take(NIGHTS).collect(), within(since).take(NIGHTS).collect());
    old.reverse();
    if old.len().min(new.len()) < FEWEST {
        return None;
    }
    let (was, is) = (median(&old).ok()?, median(&new).ok()?);
    let away: Vec<f64> =
        old.iter().map(|value| (value - was).abs()).chain(new.iter().map(|value| (value - is).abs())).collect();
    let sigma = MAD_TO_SIGMA * median(&away).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "a handful of nights")]
    let error = sigma * (1.0 / old.len() as f64 + 1.0 / new.len() as f64).sqrt();
    Some((is - was, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nights(values: &[f64]) -> Vec<Night> {
        let night = |(day, value): (i64, &f64)| Night { day, runs: vec![value.ln()], lost: 0, epoch: 0 };
        (0..).zip(values).map(night).collect()
    }

    #[test]
    fn a_step_is_that_of_the_nights_around_it() {
        let all = nights(&[50.0, 50.0, 100.0, 101.0, 99.0, 100.0, 50.0, 51.0, 49.0]);
        let (step, error) = super::step(&all, (2, 5), (6, i64::MAX)).unwrap();
        assert!((step - 0.5_f64.ln()).abs() < 0.02 && error < 0.02, "{step} {error}");
        assert!(super::step(&all, (2, 5), (7, i64::MAX)).is_none(), "two nights say nothing");
        assert!(super::step(&all, (8, 2), (6, i64::MAX)).is_none(), "no night at all");
    }
}
