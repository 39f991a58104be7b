//! Search: adds the best part, then tries replacements of each.

use super::{
    Fabric, Part, Setting,
    candidates::Candidates,
    state::State,
    table::{Table, counted},
};
use crate::student::t_quantile;

/// Share of healthy fabrics with a false suspect in the screen.
const ALARM: f64 = 0.01;
/// Extra cost of a stray over a name: one test alone can then make its links suspects, without outweighing good results.
const STRAY: f64 = 2.0;
/// Most suspects: a fabric with more has one unknown cause.
pub(super) const MOST: usize = 64;
const NOTHING: f64 = 1e-9;
const PASSES: usize = 4;
/// Share of low cables of a device, and of low flows of a cable, for a low device.
const ONE_BY_ONE: f64 = 0.8;

pub(super) struct Found<'a> {
    pub(super) state: State<'a>,
    /// Cost of all flows, with a price for every name.
    pub(super) cost: f64,
    pub(super) price: f64,
}

pub(super) fn search<'a>(
    fabric: &'a Fabric,
    table: &'a Table,
    candidates: &Candidates,
    setting: &Setting,
) -> Found<'a> {
    let freedom = table.levels.values().map(|level| level.n).max().unwrap_or(2).saturating_sub(1).max(1) as f64;
    let price = t_quantile(ALARM / candidates.classes.len().max(2) as f64, freedom).powi(2) / 2.0;
    let mut search =
        Search { fabric, table, candidates, state: State::new(fabric, table, price + STRAY, setting.least) };
    let every: Vec<u32> = (0..candidates.classes.len() as u32).collect();
    let mut cost = search.cost(price);
    while search.state.found.len() < MOST {
        let Some((part, effect, _)) = search.best(&every, price).into_iter().next() else { break };
        search.state.add(part, effect);
        search.polish(price);
        // Polishing may remove what was just added, which would repeat for ever.
        let now = search.cost(price);
        if now >= cost - NOTHING {
            cost = now;
            break;
        }
        cost = now;
    }
    Found { state: search.state, cost, price }
}

pub(super) struct Search<'a, 'b> {
    pub(super) fabric: &'a Fabric,
    pub(super) table: &'a Table,
    pub(super) candidates: &'b Candidates,
    pub(super) state: State<'a>,
}

impl Search<'_, '_> {
    fn cost(&self, price: f64) -> f64 {
        self.state.total() + price * self.state.found.len() as f64
    }

    /// Parts that explain more than the price, the best first: part, effect, gain.
    pub(super) fn best(&self, classes: &[u32], price: f64) -> Vec<(Part, f64, f64)> {
        let mut found: Vec<(Part, f64, f64)> =
            classes.iter().filter_map(|&class| self.of_class(class, price)).collect();
        let size = |part: &Part| self.fabric.links_of(part).len();
        // Among equal gains (up to rounding), the one with fewer links.
        let whole = |gain: f64| (gain * 1e6).round();
        found.sort_by(|a, b| {
            let gain = whole(b.2).total_cmp(&whole(a.2));
            gain.then_with(|| size(&a.0).cmp(&size(&b.0))).then_with(|| a.0.cmp(&b.0))
        });
        found
    }

    fn of_class(&self, class: u32, price: f64) -> Option<(Part, f64, f64)> {
        let taken = |part: &&Part| self.state.found.iter().all(|(found, _)| found != *part);
        let part = *self.candidates.classes[class as usize].members.iter().find(taken)?;
        let touches = self.table.touching(&self.fabric.links_of(&part));
        if self.state.bound(&touches) <= price {
            return None;
        }
        let (effect, gain) = self.state.best(&touches)?;
        (gain > price && self.one_by_one(&part, effect)).then_some((part, effect, gain))
    }

    /// Whether the cables of a device are low one by one, as far as flows surely passed them; always true for other parts.
    fn one_by_one(&self, part: &Part, effect: f64) -> bool {
        let Part::Device(_) = part else { return true };
        let cables = self.fabric.cables(&self.fabric.links_of(part));
        let (mut low, mut all) = (0_usize, 0_usize);
        for cable in &cables {
            let touches = self.table.touching(&self.fabric.links_of(cable));
            let sure = counted(&touches).filter(|(cell, routes)| {
                usize::from(*routes) == self.table.cells[*cell as usize].routes && self.state.expected(*cell) > effect
            });
            let (mut bad, mut n) = (0_usize, 0_usize);
            for (cell, _) in sure {
                n += 1;
                bad += usize::from(self.table.cells[cell as usize].residual < effect / 2.0);
            }
            if n > 0 {
                all += 1;
                low += usize::from(bad as f64 >= ONE_BY_ONE * n as f64);
            }
        }
        all == 0 || low >= 3.min(cables.len()) && low as f64 >= ONE_BY_ONE * all as f64
    }

    /// Replaces or removes found parts where that explains the results better.
    fn polish(&mut self, price: f64) {
        for _ in 0..PASSES {
            let mut changed = false;
            for at in (0..self.state.found.len()).rev() {
                let (part, _) = self.state.remove(at);
                let near = self.rivals(&part);
                match self.best(&near, price).into_iter().next() {
                    Some((other, effect, _)) => {
                        changed |= other != part;
                        self.state.insert(at, other, effect);
                    }
                    None => changed = true,
                }
            }
            if !changed {
                break;
            }
        }
    }

    pub(super) fn rivals(&self, part: &Part) -> Vec<u32> {
        let touches = self.table.touching(&self.fabric.links_of(part));
        let low = |cell: &u32| {
            let of = &self.table.cells[*cell as usize];
            of.residual < -2.0 * of.error
        };
        self.candidates.near(counted(&touches).map(|(cell, _)| cell).filter(low))
    }
}
