//! The search for the parts of an explanation.

use std::collections::BTreeMap;

use super::{
    CUT, Expected, FAST, FEWEST_WITHIN, Fit, NARROW, NONE, SPREADS, Saving, Taken, UNEVEN, holds::is_uneven,
    price::fewest,
};
use crate::{
    localise::{Part, Way},
    robust::{MAD_TO_SIGMA, median_in_place},
};

impl Fit<'_> {
    fn with(&self, at: usize, more: Expected) -> Expected {
        let now = self.expected[at];
        let is_more =
            if more.effect < 0.0 { more.effect < now.effect } else { now.effect >= 0.0 && more.effect > now.effect };
        if is_more { more } else { now }
    }

    fn gain(&self, cells: impl Iterator<Item = usize>, more: Expected) -> f64 {
        cells.map(|at| self.cost_of(at, self.expected[at]) - self.cost_of(at, self.with(at, more))).sum()
    }

    /// The median residual of the cells, those first that no part explains.
    fn effect(&self, cells: &[u32], kind: Option<usize>) -> f64 {
        let of_kind = |at: &&u32| kind.is_none_or(|kind| self.kind(**at as usize) == kind);
        let free = cells.iter().filter(of_kind).filter(|at| self.expected[**at as usize].effect == 0.0);
        let mut values: Vec<f64> = free.map(|&at| self.left[at as usize]).collect();
        if values.len() < 2 || 4 * values.len() < cells.len() {
            values = cells.iter().filter(of_kind).map(|&at| self.left[at as usize]).collect();
        }
        if values.is_empty() { 0.0 } else { median_in_place(&mut values) }
    }

    /// Whether half of a part's cells, of either kind or of both, exceed the least effect.
    pub(super) fn is_candidate(&self, part: usize) -> bool {
        let (cells, name) = (&self.cover.cells[part], &self.cover.parts[part]);
        let is_allowed = (self.with_ends || !name.is_end()) && (self.with_cuts || !matches!(name, Part::Cut(_)));
        if cells.len() < fewest(name) || !is_allowed {
            return false;
        }
        let errors = (CUT / (cells.len() as f64).sqrt()).min(2.0);
        let mut counts = [[0_usize; 3]; 2];
        for &at in cells {
            let at = at as usize;
            let kind = self.kind(at);
            let off = (errors * self.levels[kind].scale).max(self.table.least);
            let left = self.left[at];
            counts[kind][usize::from(left < -off) + 2 * usize::from(left > off)] += 1;
        }
        let half = |[usual, low, high]: [usize; 3]| 2 * low.max(high) + 1 >= usual + low + high && low.max(high) > 0;
        let both = [0, 1, 2].map(|which| counts[0][which] + counts[1][which]);
        half(counts[0]) || half(counts[1]) || half(both)
    }

    pub(super) fn saving(&self, part: usize) -> Option<Saving> {
        let cells = &self.cover.cells[part];
        let name = &self.cover.parts[part];
        let least = self.table.least;
        let all = || cells.iter().map(|&at| at as usize);
        let median = self.effect(cells, None);
        let mut best: Option<Saving> = None;
        let mut offer = |gain: f64, effect: [f64; 2], spread: f64| {
            let taken = Taken { part, effect, spread };
            let gain = gain - self.price(&taken);
            if gain > self.margin() && best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, taken));
            }
        };
        let alike = Expected { effect: median, ..Expected::default() };
        if median < -least {
            let explained = all().filter(|&at| self.is_low(at)).count();
            let is_alone = self.is_alone(name, explained);
            let relief = if is_alone { self.relief(explained) } else { 0.0 };
            offer(relief + self.gain(all(), alike), [median; 2], 0.0);
            let uneven = if is_alone { self.uneven(cells, median) } else { 0.0 };
            for spread in SPREADS.map(|factor| factor * uneven).into_iter().filter(|spread| *spread > 0.0) {
                let is_shared = is_uneven(name, spread);
                offer(relief + self.gain(all(), Expected { spread, is_shared, ..alike }), [median; 2], spread);
            }
        } else if median > least && matches!(name, Part::Host(_, Way::Both) | Part::Nic(_, Way::Both)) {
            offer(self.gain(all(), alike) - FAST, [median; 2], 0.0);
        }
        if !(name.is_end() || matches!(name, Part::Group(_) | Part::GroupRail { .. })) {
            return best;
        }
        let kinds = [0, 1].map(|kind| all().filter(|&at| self.kind(at) == kind).count());
        if kinds.contains(&0) {
            return best;
        }
        let each = [0, 1].map(|kind| {
            let effect = self.effect(cells, Some(kind)).min(0.0);
            let own = all().filter(|&at| self.kind(at) == kind);
            let gain = if effect < -least { self.gain(own, Expected { effect, ..alike }) } else { 0.0 };
            let extra = 0.5 * (kinds[kind] as f64).ln() + NARROW;
            if gain > extra { (gain - extra, effect) } else { (0.0, 0.0) }
        });
        // What leaves a group without a fault within it is its uplinks.
        let is_few = each[0].1 > each[1].1 / 2.0 || each[1].1 == 0.0 && kinds[0] < FEWEST_WITHIN;
        if !(matches!(name, Part::Group(_)) && is_few) {
            offer(each[0].0 + each[1].0, [each[0].1, each[1].1], 0.0);
        }
        best
    }

    /// Spread of a part's effect beyond that of good pairs; 0 for no more.
    fn uneven(&self, cells: &[u32], effect: f64) -> f64 {
        let free = cells.iter().map(|&at| at as usize).filter(|&at| self.expected[at].effect > effect);
        let mut away: Vec<f64> = free.map(|at| (self.left[at] - effect).abs() / self.scale(at)).collect();
        if away.len() < 3 {
            return 0.0;
        }
        let scale = self.levels[0].scale.max(self.levels[1].scale);
        let times = MAD_TO_SIGMA * median_in_place(&mut away);
        if times > UNEVEN { scale * times } else { 0.0 }
    }

    /// Adds parts while one saves more than it costs, and drops those that no longer do.
    pub(super) fn search(&mut self) {
        self.open = (0..self.cover.parts.len()).map(|part| self.is_candidate(part)).collect();
        let open = (0..self.open.len()).filter(|part| self.open[*part]);
        let mut savings: BTreeMap<usize, Saving> = open.filter_map(|part| Some((part, self.saving(part)?))).collect();
        for _ in 0..3 {
            loop {
                let best = savings.iter().max_by(|a, b| {
                    let parts = &self.cover.parts;
                    a.1.0.total_cmp(&b.1.0).then_with(|| parts[*b.0].cmp(&parts[*a.0]))
                });
                let Some((&part, &(_, taken))) = best else { break };
                if !self.holds(&taken) {
                    self.open[part] = false;
                    savings.remove(&part);
                    continue;
                }
                self.take(taken);
                self.renew(part, &mut savings);
            }
            if !self.refine(&mut savings) {
                return;
            }
        }
    }

    /// Updates the cells of a part, and the savings of all parts that they touch.
    fn renew(&mut self, part: usize, savings: &mut BTreeMap<usize, Saving>) {
        let mut touched: Vec<u32> = Vec::new();
        for &at in &self.cover.cells[part] {
            let at = at as usize;
            let is = self.expected_of(at, None);
            if is != self.expected[at] {
                self.expected[at] = is;
                touched.extend(self.cover.of_cell(at as u32));
            }
        }
        // Unchanged cells leave savings of partitions unchanged.
        if !touched.is_empty() {
            touched.extend(self.cover.cuts.clone().map(|part| part as u32));
        }
        touched.push(part as u32);
        touched.sort_unstable();
        touched.dedup();
        let touched = touched.into_iter().map(|part| part as usize).filter(|part| self.open[*part]);
        for part in touched.collect::<Vec<_>>() {
            let is_taken = self.place[part] != NONE;
            match self.saving(part).filter(|_| !is_taken) {
                Some(saving) => savings.insert(part, saving),
                None => savings.remove(&part),
            };
        }
    }

    pub(super) fn take(&mut self, taken: Taken) {
        self.place[taken.part] = self.taken.len() as u32;
        self.taken.push(taken);
    }

    pub(super) fn drop_from(&mut self, number: usize) -> Vec<Taken> {
        let dropped = self.taken.split_off(number);
        dropped.iter().for_each(|taken| self.place[taken.part] = NONE);
        dropped
    }

    pub(super) fn expected_of(&self, at: usize, without: Option<usize>) -> Expected {
        let (mut slow, mut fast) = (Expected::default(), Expected::default());
        let passes = |cut: &usize| self.cover.cells[*cut].binary_search(&(at as u32)).is_ok();
        let is_taken = |part: &usize| self.place[*part] != NONE && Some(self.place[*part] as usize) != without;
        let parts = self.cover.of_cell(at as u32).iter().map(|part| *part as usize).filter(is_taken);
        for part in parts.chain(self.cover.cuts.clone().filter(is_taken).filter(passes)) {
            let taken = &self.taken[self.place[part] as usize];
            let effect = taken.effect[self.kind(at)];
            let now = if effect < 0.0 { &mut slow } else { &mut fast };
            if effect.abs() > now.effect.abs() {
                *now = Expected {
                    effect,
                    spread: taken.spread,
                    is_shared: is_uneven(&self.cover.parts[part], taken.spread),
                };
            }
        }
        if slow.effect < 0.0 { slow } else { fast }
    }

    /// Measures each part again by what no other explains, and drops those below their price. Returns whether anything was dropped.
    fn refine(&mut self, savings: &mut BTreeMap<usize, Saving>) -> bool {
        let mut dropped = false;
        let mut number = 0;
        while number < self.taken.len() {
            let part = self.taken[number].part;
            let cells = &self.cover.cells[part];
            let before: Vec<(usize, Expected)> =
                cells.iter().map(|&at| (at as usize, self.expected_of(at as usize, Some(number)))).collect();
            for kind in 0..2 {
                let effect = self.taken[number].effect[kind];
                let own = before.iter().filter(|(at, other)| self.kind(*at) == kind && other.effect > effect / 2.0);
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
            let low = before.iter().filter(|(at, other)| self.is_below(*at, *other)).count();
            let is_alone = self.is_alone(&self.cover.parts[part], low);
            let saves = saves + if is_alone { self.relief(low) } else { 0.0 };
            let fits = self.holds_against(&self.taken[number], &before);
            if saves < self.price(&self.taken[number]) + self.margin() || !fits {
                self.drop_from(number).into_iter().skip(1).for_each(|taken| self.take(taken));
                dropped = true;
            } else {
                number += 1;
            }
            self.renew(part, savings);
        }
        dropped
    }
}
