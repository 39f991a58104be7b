//! Two sets of runs in the order of time, and their cells.

use std::collections::HashMap;

use super::{Comparison, Headline, Margin, Order, Variant, noise_floor, strays::strays, unpaired, unpaired_headline};
use crate::{refusal::Refusal, robust::median};

/// Runs in their order, which all cells share. A cell has one value (natural logarithm) per run, in the order of time; `None` without a
/// value.
#[derive(Debug)]
pub struct RunSet {
    sides: Vec<Variant>,
    whole: Option<Order>,
    orders: HashMap<Vec<bool>, Option<Order>>,
}

impl RunSet {
    pub fn new(sides: Vec<Variant>) -> Self {
        let whole = Order::new(&sides.iter().map(|side| Some(*side)).collect::<Vec<_>>());
        Self { sides, whole, orders: HashMap::new() }
    }

    /// `None` without a run on both sides or below three in all.
    pub fn order(&self) -> Option<&Order> {
        self.whole.as_ref()
    }

    pub fn split(&self, cell: &[Option<f64>]) -> [Vec<f64>; 2] {
        let side = |which| {
            let of_side = cell.iter().zip(&self.sides).filter(|(_, side)| **side == which);
            of_side.filter_map(|(value, _)| *value).collect()
        };
        [side(Variant::A), side(Variant::B)]
    }

    fn placed(&mut self, cell: &[Option<f64>]) -> Option<&Order> {
        let pattern: Vec<bool> = cell.iter().map(Option::is_some).collect();
        let sides = &self.sides;
        let of = |pattern: &Vec<bool>| {
            Order::new(&sides.iter().zip(pattern).map(|(side, has)| has.then_some(*side)).collect::<Vec<_>>())
        };
        self.orders.entry(pattern).or_insert_with_key(of).as_ref()
    }

    /// Every run without a value counts as missing.
    ///
    /// # Errors
    /// As [`unpaired`].
    pub fn compare(&mut self, cell: &[Option<f64>], margin: Margin) -> Result<Comparison, Refusal> {
        let [before, after] = self.split(cell);
        let missing = [(Variant::A, &before), (Variant::B, &after)]
            .map(|(which, has)| self.sides.iter().filter(|side| **side == which).count() - has.len());
        Ok(Comparison { missing, ..unpaired(&before, &after, self.placed(cell), margin)? })
    }

    /// Runs, by their places in time, whose value of a cell is far from the others of its side ([`strays()`]), with the distance from
    /// their median.
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

    /// Noise floor of a group of cells: the median of [`noise_floor`] for uncorrelated runs, so that a bad order makes answers rarer and
    /// not margins wider. `None` without a cell of two values a side.
    pub fn floor(&self, cells: &[&[Option<f64>]]) -> Option<f64> {
        let of = |cell: &&[Option<f64>]| {
            let [before, after] = self.split(cell);
            noise_floor(&[&before, &after]).ok()
        };
        median(&cells.iter().filter_map(of).collect::<Vec<f64>>()).ok()
    }

    /// Mean effect over cells from each run's mean over them: [`unpaired_headline`].
    ///
    /// # Errors
    /// No run on a side, or a value that is not finite.
    pub fn headline(&mut self, means: &[Option<f64>]) -> Result<Headline, Refusal> {
        let [before, after] = self.split(means);
        unpaired_headline(&before, &after, self.placed(means))
    }
}
