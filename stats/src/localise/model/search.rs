//! The search for the parts of an explanation.

use foldhash::HashSet;

use super::{CUT, FAST, FEWEST_WITHIN, Fit, NARROW, Saving, Taken, price::fewest};
use crate::{
    localise::{Part, Way},
    robust::median_in_place,
};

impl Fit<'_> {
    /// What is expected of a cell with a part more.
    fn with(&self, at: usize, effect: f64) -> f64 {
        let now = self.expected[at];
        if effect < 0.0 {
            now.min(effect)
        } else if now < 0.0 {
            now
        } else {
            now.max(effect)
        }
    }

    fn gain(&self, cells: impl Iterator<Item = usize>, effect: f64) -> f64 {
        cells.map(|at| self.cost_of(at, self.expected[at]) - self.cost_of(at, self.with(at, effect))).sum()
    }

    /// The median of what is left of the cells, those first that no part explains.
    fn effect(&self, cells: &[u32], kind: Option<usize>) -> f64 {
        let of_kind = |at: &&u32| kind.is_none_or(|kind| self.table.cells[**at as usize].stratum == kind);
        let free = cells.iter().filter(of_kind).filter(|at| self.expected[**at as usize] == 0.0);
        let mut values: Vec<f64> = free.map(|&at| self.left[at as usize]).collect();
        if values.len() < 2 || 4 * values.len() < cells.len() {
            values = cells.iter().filter(of_kind).map(|&at| self.left[at as usize]).collect();
        }
        if values.is_empty() { 0.0 } else { median_in_place(&mut values) }
    }

    /// Whether half of these cells, of either kind or of both, are off by as much as their median must be at least.
    fn may_save(&self, cells: &[u32]) -> bool {
        let errors = (CUT / (cells.len() as f64).sqrt()).min(2.0);
        let mut counts = [[0_usize; 3]; 2];
        for &at in cells {
            let at = at as usize;
            let kind = self.table.cells[at].stratum;
            let off = (errors * self.levels[kind].scale).max(self.table.least);
            let left = self.left[at];
            counts[kind][usize::from(left < -off) + 2 * usize::from(left > off)] += 1;
        }
        let half = |[usual, low, high]: [usize; 3]| 2 * low.max(high) + 1 >= usual + low + high && low.max(high) > 0;
        let both = [0, 1, 2].map(|which| counts[0][which] + counts[1][which]);
        half(counts[0]) || half(counts[1]) || half(both)
    }

    /// What a part would save beyond its price.
    fn saving(&self, part: usize) -> Saving {
        let cells = &self.cover.cells[part];
        let name = &self.cover.parts[part];
        if cells.len() < fewest(name) || !self.may_save(cells) {
            return None;
        }
        let least = self.table.least;
        let price = self.prices[part];
        let all = || cells.iter().map(|&at| at as usize);
        let effect = self.effect(cells, None);
        let mut best: Saving = None;
        let mut offer = |gain: f64, effect: [f64; 2]| {
            if gain > self.margin() && best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, effect));
            }
        };
        if effect < -least {
            offer(self.gain(all(), effect) - price, [effect; 2]);
        } else if effect > least && matches!(name, Part::Host(_, Way::Both) | Part::Nic(_, Way::Both)) {
            offer(self.gain(all(), effect) - price - FAST, [effect; 2]);
        }
        if !(name.is_end() || matches!(name, Part::Group(_) | Part::GroupRail { .. })) {
            return best;
        }
        let kinds = [0, 1].map(|kind| all().filter(|&at| self.table.cells[at].stratum == kind).count());
        if kinds.contains(&0) {
            return best;
        }
        let each = [0, 1].map(|kind| {
            let effect = self.effect(cells, Some(kind)).min(0.0);
            let own = all().filter(|&at| self.table.cells[at].stratum == kind);
            let gain = if effect < -least { self.gain(own, effect) } else { 0.0 };
            let extra = 0.5 * (kinds[kind] as f64).ln() + NARROW;
            if gain > extra { (gain - extra, effect) } else { (0.0, 0.0) }
        });
        // What leaves a group and is no fault within it is its uplinks.
        let is_few = each[0].1 == 0.0 || each[1].1 == 0.0 && kinds[0] < FEWEST_WITHIN;
        if !(matches!(name, Part::Group(_)) && is_few) {
            offer(each[0].0 + each[1].0 - price, [each[0].1, each[1].1]);
        }
        best
    }

    /// Adds parts as long as one saves more than it costs, and drops those that do not any more.
    pub(super) fn search(&mut self) {
        let mut savings: Vec<Saving> = (0..self.last).map(|part| self.saving(part)).collect();
        let mut rejected: HashSet<usize> = HashSet::default();
        for _ in 0..3 {
            loop {
                let candidates = savings.iter().enumerate().filter_map(|(part, saving)| Some((part, (*saving)?)));
                let best = candidates.filter(|(part, _)| !rejected.contains(part)).max_by(|a, b| {
                    let parts = &self.cover.parts;
                    a.1.0.total_cmp(&b.1.0).then_with(|| parts[b.0].cmp(&parts[a.0]))
                });
                let Some((part, (_, effect))) = best else { break };
                if !self.holds(part, effect) {
                    rejected.insert(part);
                    continue;
                }
                self.taken.push(Taken { part, effect });
                self.renew(part, &mut savings);
            }
            if !self.refine(&mut savings) {
                return;
            }
        }
    }

    /// What is expected now of the cells of a part, and what all parts that they touch would save.
    fn renew(&mut self, part: usize, savings: &mut [Saving]) {
        let mut touched: Vec<u32> = Vec::new();
        for &at in &self.cover.cells[part] {
            let at = at as usize;
            let is = self.expected_of(at, None);
            if is != self.expected[at] {
                self.expected[at] = is;
                touched.extend(self.cover.of_cell(&self.table.cells[at]));
            }
        }
        touched.extend((self.cover.cuts.start..self.last).map(|part| part as u32));
        touched.sort_unstable();
        touched.dedup();
        for part in touched.into_iter().map(|part| part as usize) {
            let is_taken = self.taken.iter().any(|taken| taken.part == part);
            savings[part] = if is_taken { None } else { self.saving(part) };
        }
    }

    /// What the parts say of a cell, one left out.
    pub(super) fn expected_of(&self, at: usize, without: Option<usize>) -> f64 {
        let (mut slow, mut fast) = (0.0_f64, 0.0_f64);
        for (number, taken) in self.taken.iter().enumerate() {
            let effect = taken.effect[self.table.cells[at].stratum];
            let passes = || self.cover.cells[taken.part].binary_search(&(at as u32)).is_ok();
            if effect != 0.0 && without != Some(number) && passes() {
                if effect < 0.0 { slow = slow.min(effect) } else { fast = fast.max(effect) }
            }
        }
        if slow < 0.0 { slow } else { fast }
    }

    /// Measures each part again by what no other explains, and drops those that are not worth their price. Returns whether
    /// anything was dropped.
    fn refine(&mut self, savings: &mut [Saving]) -> bool {
        let mut dropped = false;
        let mut number = 0;
        while number < self.taken.len() {
            let part = self.taken[number].part;
            let cells = &self.cover.cells[part];
            let before: Vec<(usize, f64)> =
                cells.iter().map(|&at| (at as usize, self.expected_of(at as usize, Some(number)))).collect();
            for kind in 0..2 {
                let effect = self.taken[number].effect[kind];
                let own =
                    before.iter().filter(|(at, other)| self.table.cells[*at].stratum == kind && *other > effect / 2.0);
                let mut own: Vec<f64> = own.map(|(at, _)| self.left[*at]).collect();
                if effect < 0.0 && own.len() >= 3 {
                    let renewed = median_in_place(&mut own);
                    self.taken[number].effect[kind] = if renewed < -self.table.least { renewed } else { effect };
                }
            }
            let saves: f64 = before
                .iter()
                .map(|&(at, other)| self.cost_of(at, other) - self.cost_of(at, self.expected_of(at, None)))
                .sum();
            let fits = self.holds_against(part, self.taken[number].effect, &before);
            if saves < self.prices[part] + self.margin() || !fits {
                self.taken.remove(number);
                dropped = true;
            } else {
                number += 1;
            }
            self.renew(part, savings);
        }
        dropped
    }
}
