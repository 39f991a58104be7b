//! Detects whether and where a level ended: optimal partitioning with a bounded cost.

use super::noise::{noise, scatter};
use crate::robust::{SMALLEST, median_in_place};

const WINDOW: usize = 120;
/// Maximum cost of one night, in variances: the distance of an outlier does not matter.
const MOST: f64 = 16.0;
/// Cost of a change where it is placed: the same everywhere, because a price that rises with the nights before it moves the change to
/// fewer of them.
const PLACED: f64 = 10.0;
/// Price of a change; the price with two nights before it; and the increase per further one: few nights before are weak evidence.
const PRICE: (f64, f64, f64) = (29.0, 10.0, 2.0);
/// Price of a drop after the first night of a level that was declared.
const DECLARED: f64 = 8.0;
/// Fewest nights before a change, and since it.
pub(super) const FEWEST: (usize, usize) = (2, 3);
/// Further price, over the nights since: more of them will come.
const HASTE: f64 = 16.0;
/// Further price with so few nights before and so many since: each night tests the same few again.
const STALE: (usize, usize, f64) = (7, 10, 10.0);
/// Each night since a change that is back at the level before requires so many others, and as many once more: with two alternating
/// levels, a change has few of them.
const BACK: usize = 4;
/// Weight, in nights, of the prior that two levels give the noise, and of each night before the level.
const PRIOR: f64 = 2.0;
const EARLIER: f64 = 0.3;
/// Fewest nights to measure a slope again.
const SLOPE: usize = 20;
/// A level of n nights is summed again after n² over so many further ones, so that this costs as much as they do.
const ANEW: usize = 360;
/// Nights of the level before, and of the next one, for detecting half the rate.
const WEEK: (usize, usize) = (35, 7);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Found {
    /// It ended before the night at this position; the next one is so much higher, apart from a slope of both.
    Step {
        at: usize,
        moved: f64,
        excess: f64,
    },
    Drift {
        slope: f64,
        excess: f64,
    },
}

/// One of two levels: number of nights, mean, and squared distances from it in variances of the noise.
struct Side {
    nights: f64,
    mean: f64,
    squares: f64,
}

/// The nights of the present level, and the cost of each explanation.
///
/// A night costs the square of its distance from its level in standard deviations, [`MOST`] at most (the biweight loss of Fearnhead &
/// Rigaill 2019), and a change its price. `begins[t]` is the least cost of the first t nights and of a change. For each level θ,
/// `moves[θ] = min(moves[θ], begins[t]) + cost(night, θ)`, so adding a night takes linear time (optimal partitioning, Jackson et al.
/// 2005). The tried levels are the values themselves.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// The nights without their slope.
    values: Vec<f64>,
    slope: f64,
    /// Earlier nights that also count for the deviation.
    earlier: usize,
    weight: f64,
    /// Nights when the scale was last computed; 0 to restart.
    built: usize,
    /// Whether the level was declared, after nights that show the deviation.
    declared: bool,
    /// Whether the first of the values is the first of the level.
    whole: bool,
    /// Least cost of a new level after so many nights.
    begins: Vec<f64>,
    /// Least cost with the last nights at the value of each night, and where they begin.
    moves: Vec<(f64, usize)>,
    /// Cost of all nights at the value of each night.
    stays: Vec<f64>,
}

impl Level {
    /// Restarts with other nights of this slope per night.
    pub(super) fn restart(&mut self, slope: f64) {
        (self.built, self.slope, self.declared) = (0, slope, false);
    }

    pub(super) fn is_sloped(&self) -> bool {
        self.slope != 0.0
    }

    /// Adds the last night of a level; `seen` are all nights of the series up to it.
    pub(super) fn night(&mut self, level: &[f64], seen: &[f64], least: f64) -> Option<Found> {
        if level.len() == 1 {
            self.declared = seen.len() > WEEK.1;
        }
        if ANEW * (self.values.len() + 1).saturating_sub(self.built) >= self.built * self.built {
            self.build(level, seen, least);
        } else {
            self.values.push(level[level.len() - 1] - self.slope * self.values.len() as f64);
            self.add();
        }
        let found = self.found(&level[level.len() - self.values.len()..], least);
        if let (Some(Found::Drift { slope, .. }), true) = (found, self.is_sloped()) {
            // Known to move, and by how much was not.
            self.slope = slope;
            self.build(level, seen, least);
            return None;
        }
        found.map(|found| match found {
            Found::Step { at, moved, excess } => {
                Found::Step { at: at + level.len() - self.values.len(), moved, excess }
            }
            drift @ Found::Drift { .. } => drift,
        })
    }

    fn build(&mut self, level: &[f64], seen: &[f64], least: f64) {
        let last = &level[level.len().saturating_sub(WINDOW)..];
        if self.is_sloped() && self.built > 0 && last.len() >= SLOPE {
            self.slope = slope(last);
        }
        self.whole = last.len() == level.len();
        self.weight = 1.0 / noise(&seen[seen.len().saturating_sub(WINDOW)..], least).max(SMALLEST);
        self.built = last.len();
        self.earlier = seen.len().min(WINDOW) - last.len();
        (self.values, self.moves, self.stays, self.begins) = (Vec::new(), Vec::new(), Vec::new(), vec![0.0]);
        for (t, value) in last.iter().enumerate() {
            self.values.push(value - self.slope * t as f64);
            self.add();
        }
    }

    /// Price after so many nights, where `usual` is that of two or more.
    fn price(&self, before: usize, usual: f64) -> f64 {
        match before {
            1 if self.declared => DECLARED,
            _ if before < FEWEST.0 => f64::INFINITY,
            _ => usual,
        }
    }

    fn cost(&self, difference: f64) -> f64 {
        let distance = difference * self.weight;
        (distance * distance).min(MOST)
    }

    fn add(&mut self) {
        let t = self.values.len() - 1;
        let (last, weight) = (self.values[t], self.weight);
        let begin = (self.begins[t], t);
        let (mut own, mut stay) = ((f64::INFINITY, 0), 0.0);
        let levels = self.values.iter().zip(&self.begins).zip(self.moves.iter_mut().zip(&mut self.stays));
        for (at, ((value, &first), (way, all))) in levels.enumerate() {
            let distance = (last - value) * weight;
            let cost = (distance * distance).min(MOST);
            let from = if begin.0 < way.0 { begin } else { *way };
            *way = (from.0 + cost, from.1);
            *all += cost;
            // The same distances are those of the nights before from a level at the last value.
            let from = if first < own.0 { (first, at) } else { own };
            own = (from.0 + cost, from.1);
            stay += cost;
        }
        if begin.0 < own.0 {
            own = begin;
        }
        self.moves.push(own);
        self.stays.push(stay);
        let least = self.moves.iter().map(|way| way.0).fold(f64::INFINITY, f64::min);
        self.begins.push(least + self.price(t + 1, PLACED));
    }

    /// The cheapest explanation unless it is not a change; `level` holds the same nights with their slope.
    fn found(&self, level: &[f64], smallest: f64) -> Option<Found> {
        let n = self.values.len();
        let &(least, at) = self.moves.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let since = n - at;
        if at == 0 || since < FEWEST.1 {
            return None;
        }
        let (before, after) = self.values.split_at(at);
        let stays = self.stays.iter().copied().fold(f64::INFINITY, f64::min);
        let late = if self.whole && at <= STALE.0 && since > STALE.1 { STALE.2 } else { 0.0 };
        let [a, b] = [before, after].map(|side| self.side(side));
        let known = PRIOR + EARLIER * self.earlier as f64;
        let free = a.nights + b.nights - 2.0 + known;
        let left = (a.squares + b.squares + known) / free;
        let moved = b.mean - a.mean;
        let is_back = |v: &&f64| self.cost(**v - b.mean) >= MOST && (**v - a.mean).abs() < (**v - b.mean).abs();
        let back = after.iter().filter(is_back).count();
        if back > 0 && BACK * (back + 1) > since {
            return None;
        }
        let apart = (moved * self.weight).powi(2) * a.nights * b.nights / (a.nights + b.nights);
        let gain = free * (apart / (left * free)).ln_1p();
        // Far nights before are no evidence of their level.
        let usual = if self.whole { price(a.nights) } else { PRICE.0 };
        let needed = self.price(at, usual) + HASTE / since as f64 + late;
        if gain <= needed || moved.abs() < smallest {
            return None;
        }
        // One night that is high may be one of a level that has low ones.
        if at < FEWEST.0 && moved > 0.0 {
            return None;
        }
        let slope = slope(level);
        let line = stays - self.on(level, slope).1;
        if line > stays - least + self.price(at, PLACED) {
            return Some(Found::Drift { slope, excess: line / needed });
        }
        Some(Found::Step { at, moved, excess: gain / needed })
    }

    /// The slope of nights that move away from a level before them, with a further step at a position, if they cost less on a line that
    /// begins nearer to that level than it ends.
    pub(super) fn on_a_line(&self, nights: &[f64], step: Option<usize>, before: f64) -> Option<f64> {
        let slope = slope(nights);
        let last = slope * (nights.len() - 1) as f64;
        let begin = self.on(nights, slope).0;
        let parts = step.map(|at| nights.split_at(at));
        let steps = parts.is_none_or(|(a, b)| {
            let [a, b] = [a, b].map(|side| self.on(side, self.slope).1);
            self.on(nights, slope).1 < a + b + PRICE.0
        });
        (steps && (begin - before).abs() < last.abs() && (begin + last - before) * last > 0.0).then_some(slope)
    }

    /// Where nights are on a line at the first of them, and what they cost.
    fn on(&self, nights: &[f64], slope: f64) -> (f64, f64) {
        let flat: Vec<f64> = nights.iter().enumerate().map(|(t, value)| value - slope * t as f64).collect();
        let centre = self.side(&flat).mean;
        (centre, flat.iter().map(|value| self.cost(value - centre)).sum())
    }

    /// The nights of a level that are near the median.
    fn side(&self, nights: &[f64]) -> Side {
        let mut all = nights.to_vec();
        let half = all.len() / 2;
        let middle = *all.select_nth_unstable_by(half, f64::total_cmp).1;
        let is_near = |value: &f64| self.cost(value - middle) < MOST;
        // More far nights than that are no dips of a level.
        let far = all.iter().filter(|value| !is_near(value)).count();
        if far <= (all.len() / 4).max(usize::from(all.len() > 2)) {
            all.retain(is_near);
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let squares = all.iter().map(|value| ((value - mean) * self.weight).powi(2)).sum();
        Side { nights: all.len() as f64, mean, squares }
    }
}

/// Median slope of the nights that are a third of all or more apart (Theil 1950; Sen 1968).
fn slope(level: &[f64]) -> f64 {
    let n = level.len();
    let apart = (n / 3).max(1);
    let of = |from: usize| (from + apart..n).map(move |to| (level[to] - level[from]) / (to - from) as f64);
    median_in_place(&mut (0..n - apart).flat_map(of).collect::<Vec<f64>>())
}

/// About the smallest step that ten nights show in most cases: the alert threshold and a standard error.
pub(super) fn sees(level: &[f64], least: f64) -> Option<f64> {
    step(level, least, 10, 1.0)
}

/// Whether half the rate is so small compared with the noise that a week would not show it in 95 of 100 cases: the alert threshold and
/// 1.645 standard errors exceed it.
pub(super) fn is_blind(level: &[f64], least: f64) -> bool {
    step(level, least, WEEK.1, 1.645).is_some_and(|step| step > std::f64::consts::LN_2)
}

/// Standard deviation of the nights for detecting half the rate.
pub(super) fn deviation(level: &[f64], least: f64) -> Option<f64> {
    scatter(level, WEEK.0, least).map(|(_, deviation)| deviation)
}

fn price(before: f64) -> f64 {
    let (most, first, more) = PRICE;
    most.min(first + more * (before - FEWEST.0 as f64))
}

/// Alert threshold after so many nights of a new level, plus so many standard errors.
fn step(level: &[f64], least: f64, nights: usize, errors: f64) -> Option<f64> {
    let (n, deviation) = scatter(level, WEEK.0, least)?;
    let price = price(n as f64) + HASTE / nights as f64;
    let error = deviation * (1.0 / n as f64 + 1.0 / nights as f64).sqrt();
    let free = (n + nights) as f64 - 2.0 + PRIOR;
    let alerts = (free * (price / free).exp_m1()).sqrt();
    // Uncertainty of the estimated deviation (noncentral t).
    let doubt = (1.0 + alerts * alerts / (2.0 * free)).sqrt();
    Some((error * (alerts + errors * doubt)).max(least))
}
