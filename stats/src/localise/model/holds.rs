//! Whether a part is the right name for its cells.

use std::collections::BTreeSet;

use foldhash::HashMap;

use super::{ALL, CLEAR, Expected, Fit, LOW, MARGIN, MEDIAN_ERROR, MOST, Taken, UNEVEN_MOST, price::loss};
use crate::{
    localise::{Part, Port, Way},
    robust::median_in_place,
};

impl Fit<'_> {
    /// As [`Fit::holds_against`], for a part not taken yet.
    pub(super) fn holds(&self, taken: &Taken) -> bool {
        let cells = &self.cover.cells[taken.part];
        let before: Vec<(usize, Expected)> =
            cells.iter().map(|&at| (at as usize, self.expected[at as usize])).collect();
        self.holds_against(taken, &before)
    }

    /// As [`Fit::holds_against`], for a part already taken.
    pub(super) fn holds_for(&self, number: usize) -> bool {
        let cells = self.cover.cells[self.taken[number].part].iter().map(|&at| at as usize);
        let before: Vec<(usize, Expected)> = cells.map(|at| (at, self.expected_of(at, Some(number)))).collect();
        self.holds_against(&self.taken[number], &before)
    }

    /// `before` is the effect of other parts on the cells: nearly all that the part alone explains is off, in each of its members, and
    /// the opposite side is more than one thing.
    pub(super) fn holds_against(&self, taken: &Taken, before: &[(usize, Expected)]) -> bool {
        let Taken { part, effect, spread } = *taken;
        let (table, name) = (self.table, &self.cover.parts[part]);
        let of = |at: usize| effect[self.kind(at)];
        if effect.iter().any(|effect| *effect > 0.0) {
            // If several ends are faster where they meet, their meeting part is the cause.
            let own = || before.iter().filter(|(at, other)| other.effect < of(*at) / 2.0);
            let fast = own().filter(|(at, _)| self.left[*at] > of(*at) / 2.0).count();
            return 2 * own().count() >= before.len() && fast as f64 >= MOST * own().count() as f64;
        }
        let seen: Vec<(usize, Expected)> = before.iter().copied().filter(|(at, _)| of(*at) < 0.0).collect();
        let own: Vec<usize> =
            seen.iter().filter(|(at, other)| other.effect > of(*at) / 2.0).map(|(at, _)| *at).collect();
        if own.is_empty() {
            return false;
        }
        let between = own.iter().filter(|&&at| self.kind(at) == 1).count();
        let kind = usize::from(2 * between > own.len());
        let mut scores: Vec<f64> = own.iter().map(|&at| self.left[at] / self.scale(at)).collect();
        let z = median_in_place(&mut scores) * (own.len() as f64).sqrt() / MEDIAN_ERROR;
        // Larger unequal shares are low, too.
        let usual = |at: usize| -(LOW * self.scale(at)).max(table.least);
        let limit = |at: usize| if is_uneven(name, spread) { usual(at).max(of(at) / 2.0) } else { of(at) / 2.0 };
        let low = |at: usize| self.left[at] < limit(at);
        let clear = own.iter().all(|&at| -of(at) > CLEAR * self.scale(at));
        let most = match () {
            () if is_uneven(name, spread) => UNEVEN_MOST,
            () if clear && name.is_shared() => ALL,
            () => MOST,
        };
        let are_low = own.iter().filter(|&&at| low(at)).count() as f64 >= most * own.len() as f64;
        z <= -self.cut[kind] && are_low && self.is_right(name, taken, &self.seen(name, &seen, low))
    }

    fn seen(&self, name: &Part, cells: &[(usize, Expected)], low: impl Fn(usize) -> bool) -> Seen {
        let mut seen = Seen::default();
        for &(at, _) in cells {
            let cell = &self.table.cells[at];
            let mut touched = self.cover.members(name, cell);
            if touched[0] == touched[1] {
                touched[1] = None;
            } else if touched.iter().all(Option::is_some) {
                seen.inside[usize::from(low(at))] += 1;
            }
            seen.low += usize::from(low(at));
            for member in touched.into_iter().flatten() {
                seen.members.entry(member).or_default()[usize::from(low(at))] += 1;
            }
            seen.others.extend(self.cover.others(name, cell).into_iter().flatten());
        }
        seen
    }

    fn is_right(&self, name: &Part, &Taken { effect, spread, .. }: &Taken, seen: &Seen) -> bool {
        let (members, others) = (seen.members.len(), seen.others.len());
        let low = seen.members.values().filter(|[usual, low]| low > usual).count();
        let members_low = low as f64 >= if is_uneven(name, spread) { UNEVEN_MOST } else { MOST } * members as f64;
        let inside_low = seen.inside[1] >= seen.inside[0];
        // If one member has all low results, it is the member.
        let of_one = seen.members.values().map(|[_, low]| *low).max();
        if name.is_shared() && of_one == Some(seen.low) {
            return false;
        }
        let partners = |way: Way| others >= if way == Way::Both { 3 } else { 2 };
        match *name {
            Part::Host(_, way) => (!self.cover.several_rails || members >= 2 && members_low) && partners(way),
            Part::Nic(port, way) => partners(way) && !self.is_whole_host(port, effect),
            Part::Rail(_) => members >= 3 && members_low,
            Part::Group(_) => members >= 2 && members_low && seen.inside != [0; 2] && inside_low,
            Part::GroupRail { .. } => {
                let all_kinds = effect.iter().all(|effect| *effect < 0.0);
                members >= 3 && (all_kinds || others >= 2) && members_low && inside_low
            }
            Part::Uplink(..) => members >= 2 && others >= 2 && members_low,
            Part::Boundary(a, b, _) => {
                let side = |group: u32| seen.members.keys().filter(|&&host| self.cover.group(host) == group).count();
                side(a).min(side(b)) >= 2 && members_low
            }
            Part::Cut(ref side) => members_low && self.is_cut(side, effect[0].max(effect[1])),
            Part::Hosts(..) | Part::Link(..) | Part::Paths(..) => false,
        }
    }

    /// Whether the results of a host's other NICs are as low, unless another part explains them.
    fn is_whole_host(&self, port: Port, effect: [f64; 2]) -> bool {
        let Some(host) = self.cover.find(&Part::Host(port.host, Way::Both)) else { return false };
        let cells = self.cover.cells[host].iter().map(|&at| at as usize);
        let is_other = |at: &usize| {
            let cell = &self.table.cells[*at];
            cell.from != port && cell.to != port && self.expected[*at].effect > effect[self.kind(*at)] / 2.0
        };
        let others: Vec<usize> = cells.filter(is_other).collect();
        let low = others.iter().filter(|&&at| self.left[at] < effect[self.kind(at)] / 2.0).count();
        low > 0 && low as f64 >= MOST * others.len() as f64
    }

    /// Whether pairs are good on both sides of a cut, and those on the smaller one would be low if its hosts were bad.
    fn is_cut(&self, side: &[u32], effect: f64) -> bool {
        let mut inner = [[0_usize; 2]; 2];
        let mut shown = 0.0;
        for (at, cell) in self.table.cells.iter().enumerate().filter(|(at, _)| self.expected[*at].effect == 0.0) {
            let [from, to] = [cell.from.host, cell.to.host].map(|host| side.contains(&host));
            if from == to {
                inner[usize::from(from)][usize::from(self.left[at] > effect / 2.0)] += 1;
                // Frequent low results do not show that a pair is good.
                let costs = |expected: f64| loss((self.left[at] - expected) / self.scale(at));
                shown += if from { costs(effect) - costs(0.0) } else { 0.0 };
            }
        }
        let are_good = |[low, good]: [usize; 2]| good as f64 >= MOST * (low + good) as f64;
        let on_side: usize = inner[1].iter().sum();
        inner.into_iter().all(are_good) && on_side >= side.len().div_ceil(4) && shown > 2.0 * MARGIN
    }
}

/// Whether some pairs of a part may get all that they can carry. Where other parts are low, so are many pairs of a good group.
pub(super) fn is_uneven(name: &Part, spread: f64) -> bool {
    spread > 0.0 && matches!(name, Part::Cut(_) | Part::Boundary(..))
}

/// By member: usual and low cells, and those with both ends in the part; and the opposite side.
#[derive(Default)]
struct Seen {
    members: HashMap<u32, [usize; 2]>,
    inside: [usize; 2],
    low: usize,
    others: BTreeSet<u32>,
}
