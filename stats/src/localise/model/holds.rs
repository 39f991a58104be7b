//! Whether a part is the right name for its cells.

use foldhash::HashMap;

use super::{ALL, CLEAR, Fit, MEDIAN_ERROR, MOST};
use crate::{
    localise::{Part, Way},
    robust::median_in_place,
};

impl Fit<'_> {
    pub(super) fn holds(&self, part: usize, effect: [f64; 2]) -> bool {
        let cells = &self.cover.cells[part];
        let before: Vec<(usize, f64)> = cells.iter().map(|&at| (at as usize, self.expected[at as usize])).collect();
        self.holds_against(part, effect, &before)
    }

    /// Whether a low part is the right name for its cells, `before` being what others say of them: nearly all that it alone explains is
    /// low, in each of its members, and what lies opposite is more than one thing.
    pub(super) fn holds_against(&self, part: usize, effect: [f64; 2], before: &[(usize, f64)]) -> bool {
        let (cover, table, name) = (self.cover, self.table, &self.cover.parts[part]);
        let of = |at: usize| effect[table.cells[at].stratum];
        if effect.iter().any(|effect| *effect > 0.0) {
            let cells: Vec<usize> = before.iter().map(|(at, _)| *at).collect();
            let fast = cells.iter().filter(|&&at| self.left[at] > of(at) / 2.0).count();
            return fast as f64 >= MOST * cells.len() as f64;
        }
        let seen: Vec<(usize, f64)> = before.iter().copied().filter(|(at, _)| of(*at) < 0.0).collect();
        let own: Vec<usize> = seen.iter().filter(|(at, other)| *other > of(*at) / 2.0).map(|(at, _)| *at).collect();
        let mut scores: Vec<f64> = own.iter().map(|&at| self.left[at] / self.scale(at)).collect();
        if own.is_empty() {
            return false;
        }
        let between = own.iter().filter(|&&at| table.cells[at].stratum == 1).count();
        let kind = usize::from(2 * between > own.len());
        let z = median_in_place(&mut scores) * (own.len() as f64).sqrt() / MEDIAN_ERROR;
        if z > -self.cut[kind] {
            return false;
        }
        let low = |at: usize| self.left[at] < of(at) / 2.0;
        let mut members: HashMap<u32, (usize, usize)> = HashMap::default();
        let (mut others, mut inside, mut inside_low) = (Vec::new(), 0, 0);
        for &(at, _) in &seen {
            let cell = &table.cells[at];
            let mut touched = cover.members(name, cell);
            if touched[0] == touched[1] {
                touched[1] = None;
            } else if touched.iter().all(Option::is_some) {
                inside += 1;
                inside_low += usize::from(low(at));
            }
            for member in touched.into_iter().flatten() {
                let counts = members.entry(member).or_default();
                *counts = (counts.0 + 1, counts.1 + usize::from(low(at)));
            }
            others.extend(cover.others(name, cell).into_iter().flatten());
        }
        others.sort_unstable();
        others.dedup();
        let low_members = members.values().filter(|(all, low)| 2 * low > *all).count();
        let members_low = low_members as f64 >= MOST * members.len() as f64;
        let clear = own.iter().all(|&at| -of(at) > CLEAR * self.scale(at));
        let most = if clear && name.is_shared() { ALL } else { MOST };
        let pairs_low = own.iter().filter(|&&at| low(at)).count() as f64 >= most * own.len() as f64;
        let all_members = members.len();
        if !pairs_low {
            return false;
        }
        match *name {
            Part::Host(_, way) => {
                (!cover.several_rails || all_members >= 2 && members_low)
                    && others.len() >= if way == Way::Both { 3 } else { 2 }
            }
            Part::Nic(_, way) => others.len() >= if way == Way::Both { 3 } else { 2 },
            Part::Rail(_) => all_members >= 3 && members_low,
            Part::Group(_) => all_members >= 2 && members_low && inside > 0 && 2 * inside_low >= inside,
            Part::GroupRail { .. } => {
                let all_kinds = effect.iter().all(|effect| *effect < 0.0);
                all_members >= 3 && (all_kinds || others.len() >= 2) && members_low && 2 * inside_low >= inside
            }
            Part::Uplink(..) => all_members >= 2 && others.len() >= 2 && members_low,
            Part::Boundary(a, b, _) => {
                let side = |group: u32| members.keys().filter(|&&host| cover.group(host) == group).count();
                side(a).min(side(b)) >= 2 && members_low
            }
            // Without pairs on the smaller side that are good it may as well be its hosts.
            Part::Cut(ref side) => {
                let inner = |is: bool| {
                    let of = move |at: &usize| {
                        let cell = &table.cells[*at];
                        [cell.from.host, cell.to.host].iter().all(|host| side.contains(host) == is)
                            && self.expected[*at] == 0.0
                    };
                    let cells: Vec<usize> = (0..table.cells.len()).filter(of).collect();
                    let good = cells.iter().filter(|&&at| self.left[at] > effect[0].max(effect[1]) / 2.0).count();
                    (cells.len(), good as f64 >= MOST * cells.len() as f64)
                };
                let (few, many) = (inner(true), inner(false));
                members_low && few.0 >= side.len().div_ceil(4).max(2) && few.1 && many.1
            }
            Part::Hosts(..) | Part::Link(..) | Part::Paths(..) => false,
        }
    }
}
