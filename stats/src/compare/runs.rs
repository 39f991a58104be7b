//! Two sets of runs in the order of time, and the cells that they measured.

use std::collections::HashMap;

use super::{
    Comparison, DRAWS, Headline, Luck, Margin, Order, SAMPLED, Stretch, Variant, noise_floor_of_samples,
    strays::strays, unpaired, unpaired_headline,
};
use crate::{refusal::Refusal, robust::median};

/// The runs of a comparison: their order, what they tell of their own correlation, and everything that is judged by it.
///
/// A cell is a slice of as many values (natural logarithms) as there are runs, in the order of time; `None` where a run has
/// no value of it.
#[derive(Debug)]
pub struct RunSet {
    sides: Vec<Variant>,
    luck: Luck,
    whole: Option<Order>,
    /// Orders of the runs that have a value, by which these are.
    orders: HashMap<Vec<bool>, (Option<Order>, Stretch)>,
}

/// Without an order nothing is stretched; such cells have no interval either.
const UNSTRETCHED: Stretch = Stretch { factor: 1.0, at_least: true };

impl RunSet {
    /// Learns how much neighbouring runs resemble each other from the cells that the most runs have in common.
    pub fn new<'c>(sides: Vec<Variant>, cells: impl Iterator<Item = &'c [Option<f64>]> + Clone) -> Self {
        let has = |cell: &[Option<f64>]| cell.iter().map(Option::is_some).collect::<Vec<bool>>();
        let mut patterns: HashMap<Vec<bool>, usize> = HashMap::new();
        cells.clone().for_each(|cell| *patterns.entry(has(cell)).or_default() += 1);
        // The most frequent; of equals the one with the most runs, then the first in the order of time.
        let runs = |pattern: &[bool]| pattern.iter().filter(|has| **has).count();
        let usual = patterns.into_iter().max_by(|a, b| (a.1, runs(&a.0), &a.0).cmp(&(b.1, runs(&b.0), &b.0)));
        let luck = usual.and_then(|(pattern, _)| {
            let order = Order::new(&present(&sides, &pattern), 0.0)?;
            let full: Vec<Vec<f64>> = cells
                .filter(|cell| has(cell) == pattern)
                .map(|cell| cell.iter().flatten().copied().collect())
                .collect();
            Some(Luck::learn(&order, &full))
        });
        let luck = luck.unwrap_or(Luck::UNKNOWN);
        let whole = Order::new(&sides.iter().map(|side| Some(*side)).collect::<Vec<_>>(), luck.at_most());
        Self { sides, luck, whole, orders: HashMap::new() }
    }

    /// What the runs tell of their correlation.
    pub fn luck(&self) -> Luck {
        self.luck
    }

    /// The order of all runs; `None` without a run on both sides or below three in all.
    pub fn order(&self) -> Option<&Order> {
        self.whole.as_ref()
    }

    /// The values of either side.
    pub fn split(&self, cell: &[Option<f64>]) -> [Vec<f64>; 2] {
        let side = |which| {
            let of_side = cell.iter().zip(&self.sides).filter(|(_, side)| **side == which);
            of_side.filter_map(|(value, _)| *value).collect()
        };
        [side(Variant::A), side(Variant::B)]
    }

    fn placed(&mut self, cell: &[Option<f64>]) -> &(Option<Order>, Stretch) {
        let pattern: Vec<bool> = cell.iter().map(Option::is_some).collect();
        let (sides, luck) = (&self.sides, &self.luck);
        self.orders.entry(pattern).or_insert_with_key(|pattern| {
            let order = Order::new(&present(sides, pattern), luck.at_most());
            let stretch = order.as_ref().map_or(UNSTRETCHED, |order| luck.stretch(order));
            (order, stretch)
        })
    }

    /// Compares one cell. Every run without a value counts as missing.
    ///
    /// # Errors
    /// As [`unpaired`].
    pub fn compare(&mut self, cell: &[Option<f64>], margin: Margin) -> Result<Comparison, Refusal> {
        let [before, after] = self.split(cell);
        let missing = [(Variant::A, &before), (Variant::B, &after)]
            .map(|(which, has)| self.sides.iter().filter(|side| **side == which).count() - has.len());
        let (order, stretch) = self.placed(cell);
        Ok(Comparison { missing, ..unpaired(&before, &after, order.as_ref(), *stretch, margin)? })
    }

    /// The runs, by their places in time, whose value of a cell lies far from the others of its side ([`strays()`]), with the
    /// distance from the median of the others.
    pub fn strays(&self, cell: &[Option<f64>], margin: f64) -> Vec<(usize, f64)> {
        let places = |which| {
            let of_side = cell.iter().zip(&self.sides).enumerate().filter(move |(_, (_, side))| **side == which);
            of_side.filter_map(|(place, (value, _))| Some((place, (*value)?))).collect::<Vec<(usize, f64)>>()
        };
        let sides = [places(Variant::A), places(Variant::B)];
        let values = sides.each_ref().map(|side| side.iter().map(|(_, value)| *value).collect::<Vec<f64>>());
        let found = strays([&values[0], &values[1]], margin);
        let of_side = |(side, found): (&Vec<(usize, f64)>, Vec<usize>)| {
            let others: Vec<f64> =
                side.iter().enumerate().filter(|(at, _)| !found.contains(at)).map(|(_, (_, value))| *value).collect();
            let centre = median(&others).unwrap_or_default();
            found.into_iter().map(|at| (side[at].0, side[at].1 - centre)).collect::<Vec<_>>()
        };
        sides.iter().zip(found).flat_map(of_side).collect()
    }

    /// Noise floor of a group of cells: the median over up to [`SAMPLED`] of them, evenly chosen, of
    /// [`noise_floor_of_samples`]: that of runs which do not resemble their neighbours, so that a bad order makes answers
    /// rarer and not margins wider. `None` without a cell of two values a side.
    ///
    /// # Errors
    /// As [`noise_floor_of_samples`].
    pub fn floor(&self, cells: &[&[Option<f64>]], seed: u64) -> Result<Option<f64>, Refusal> {
        let enough: Vec<&[Option<f64>]> =
            cells.iter().copied().filter(|cell| self.split(cell).iter().all(|side| side.len() >= 2)).collect();
        if enough.is_empty() {
            return Ok(None);
        }
        let step = enough.len().div_ceil(SAMPLED);
        let floors = enough.into_iter().step_by(step).map(|cell| {
            let [before, after] = self.split(cell);
            noise_floor_of_samples(&before, &after, DRAWS, seed)
        });
        median(&floors.collect::<Result<Vec<f64>, Refusal>>()?).map(Some)
    }

    /// Mean effect over cells from each run's mean over them: [`unpaired_headline`]. Its interval is made for the worst
    /// correlation up to [`super::NEIGHBOURS`], because a mean over cells keeps what they have in common, of which one series
    /// of runs tells too little. Its level is one of "at least".
    ///
    /// # Errors
    /// No run on a side, or a value that is not finite.
    pub fn headline(&mut self, means: &[Option<f64>]) -> Result<Headline, Refusal> {
        let [before, after] = self.split(means);
        unpaired_headline(&before, &after, self.placed(means).0.as_ref())
    }
}

fn present(sides: &[Variant], pattern: &[bool]) -> Vec<Option<Variant>> {
    sides.iter().zip(pattern).map(|(side, has)| has.then_some(*side)).collect()
}
