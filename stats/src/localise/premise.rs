//! What is taken for good: most pairs, or the better of two clusters, or all that a part does not touch.
//!
//! The shortest half is right as long as most pairs are good. Where one uplink of three, one leaf of two or three hosts of
//! eight are slow, most pairs are low, and what is good looks like the exception. A fault takes bandwidth away and adds
//! none, so the better cluster of pairs of one kind is what good pairs reach. Each such premise is tried with a peel of
//! its own; the one that explains most with the fewest parts is kept.

use std::{
    collections::BTreeMap,
    panic::resume_unwind,
    thread::{self, Builder, ScopedJoinHandle},
};

use super::{
    Part, Setting,
    cover::{Cover, Premise, Table},
    links::{Links, links},
    peel::{CUT, MEDIAN_ERROR, Peeled, peel},
    split::{Split, split},
};
use crate::robust::median_in_place;

/// Share of the pairs of one kind that a part must touch before all that it does not touch is tried as what is good. Below,
/// the shortest half is.
const LARGE: f64 = 0.3;
/// Standard deviations at which the distance of a single pair from what is expected counts no more.
const CAP: f64 = 8.0;
/// How many times more a pair that is better than expected counts, and at most: no fault makes one so. From twice this on it
/// counts half of its square, the logarithm of how unlikely a normal value so far off is.
const UP: f64 = 2.0;
/// See [`UP`].
const CAP_UP: f64 = 60.0;
/// What a named part or path costs in the same unit, so that a name must explain more than one pair.
const NAME: f64 = 10.0;
/// Share of the low pairs that parts must explain before the better cluster is taken for good.
const EXPLAINED: f64 = 0.8;
/// Cells from which on a second thread saves more than it costs.
const MANY: usize = 20_000;
/// Standard deviations below which a pair is low for that.
const LOW: f64 = 5.0;

/// A peel under a premise.
pub(super) struct Attempt {
    pub(super) table: Table,
    pub(super) peeled: Peeled,
    pub(super) links: Links,
    /// For each part whether it is an end.
    ends: Vec<bool>,
}

impl Attempt {
    fn new(mut table: Table, cover: &Cover, setting: &Setting<'_>) -> Self {
        table.settle();
        let peeled = peel(&mut table, cover, setting);
        let links = links(&table, cover, &peeled, setting);
        Self { table, peeled, links, ends: cover.parts.iter().map(Part::is_end).collect() }
    }

    /// What each cell differs by from its level and what was found.
    pub(super) fn unexplained(&self) -> Vec<f64> {
        // A good result of a part that is bad at times is no riddle.
        let mut at_end = vec![false; self.table.cells.len()];
        let ends = self.peeled.taken.iter().filter(|(part, _)| self.ends[*part]);
        ends.flat_map(|(_, cells)| cells).for_each(|&at| at_end[at as usize] = true);
        let of = |at: usize| {
            let residual = self.table.residual(at);
            let left = residual - self.links.explained[at];
            if at_end[at] && left > 0.0 && residual.abs() < left { residual } else { left }
        };
        let mut left: Vec<f64> = (0..self.table.cells.len()).map(of).collect();
        self.links.found.iter().flat_map(|(_, cells)| cells).for_each(|&at| left[at as usize] = 0.0);
        left
    }

    /// How badly the results fit, in standard deviations and names.
    fn cost(&self, scale: f64) -> f64 {
        let cost = |left: f64| {
            let z = left / scale;
            if z > 0.0 { (z * UP.max(z / 2.0)).min(CAP_UP) } else { (-z).min(CAP) }
        };
        let distance: f64 = self.unexplained().into_iter().map(cost).sum();
        distance + NAME * (self.peeled.taken.len() + self.links.found.len()) as f64
    }

    fn scale(&self) -> f64 {
        self.table.levels[0].scale.min(self.table.levels[1].scale)
    }

    /// Whether what lies between groups is low against its like: against other pairs between groups, as far as there are three groups or
    /// more. That it is low against pairs within groups is how many fabrics are built.
    fn has_peers(&self, cover: &Cover) -> bool {
        if cover.boundaries() < 2 {
            return true;
        }
        let median = |cells: &mut dyn Iterator<Item = usize>| {
            let mut values: Vec<f64> =
                cells.filter(|&at| self.table.cells[at].stratum == 1).map(|at| self.table.cells[at].value).collect();
            (!values.is_empty()).then(|| median_in_place(&mut values))
        };
        let good = median(&mut (0..self.table.cells.len()).filter(|&at| self.table.live[at]));
        let between = |part: &usize| matches!(cover.parts[*part], Part::Uplink(..) | Part::Boundary(..));
        self.peeled.taken.iter().filter(|(part, _)| between(part)).all(|(_, cells)| {
            let own = median(&mut cells.iter().map(|&at| at as usize));
            own.zip(good).is_some_and(|(own, good)| own < good - self.table.least)
        })
    }

    /// Whether parts, and not single paths, explain what is low.
    fn explains(&self) -> bool {
        let mut taken = vec![false; self.table.cells.len()];
        self.peeled.taken.iter().flat_map(|(_, cells)| cells).for_each(|&at| taken[at as usize] = true);
        let low = (0..taken.len()).filter(|&at| self.table.residual(at) < -LOW * self.table.scale(at));
        let (mut all, mut explained) = (0, 0);
        for at in low {
            all += 1;
            explained += usize::from(taken[at]);
        }
        all > 0 && explained as f64 >= EXPLAINED * f64::from(all)
    }
}

/// The best of all premises.
pub(super) fn best(table: Table, cover: &Cover, setting: &Setting<'_>) -> Attempt {
    let plain = || Attempt::new(table.clone(), cover, setting);
    let others = || {
        let premises = clusters(&table, cover).into_iter().chain(parts(&table, cover, setting));
        let attempts = premises.map(|premise| Attempt::new(table.under(premise), cover, setting));
        attempts.filter(|attempt| attempt.explains() && attempt.has_peers(cover)).collect::<Vec<Attempt>>()
    };
    let (plain, others) = match table.cells.len() {
        ..MANY => (plain(), others()),
        _ => thread::scope(|scope| {
            let thread = Builder::new().name("premises".into()).spawn_scoped(scope, others);
            let plain = plain();
            let joined = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            (plain, thread.map_or_else(|_| others(), joined))
        }),
    };
    let scale = others.iter().map(Attempt::scale).fold(plain.scale(), f64::min);
    let limit = if plain.has_peers(cover) { plain.cost(scale) - NAME } else { f64::INFINITY };
    let costs = others.into_iter().map(|attempt| (attempt.cost(scale), attempt)).filter(|(cost, _)| *cost < limit);
    costs.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(plain, |(_, attempt)| attempt)
}

/// Premises that take the better cluster for good: of all pairs, and of each kind of pairs by itself.
fn clusters(table: &Table, cover: &Cover) -> Vec<Premise> {
    let values = |stratum: Option<usize>| -> Vec<f64> {
        let cells = table.cells.iter().filter(|cell| stratum.is_none_or(|stratum| cell.stratum == stratum));
        let mut values: Vec<f64> = cells.map(|cell| cell.value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let n = table.cells.len();
    let premise = |froms: [f64; 2], scale: f64| Premise {
        good: table.cells.iter().map(|cell| cell.value >= froms[cell.stratum]).collect(),
        scale,
        n,
    };
    let mut found = Vec::new();
    for split in topmost(&values(None)) {
        let premise = premise([split.from; 2], split.scale);
        if !two_levels(table, cover, &premise.good) {
            found.push(premise);
        }
    }
    if !table.cells.iter().any(|cell| cell.stratum == 0) {
        return found;
    }
    let own = [0, 1].map(|stratum| topmost(&values(Some(stratum))).first().copied());
    if own.iter().any(Option::is_some) {
        let from = own.map(|split| split.map_or(f64::NEG_INFINITY, |split| split.from));
        let scale = own.iter().flatten().map(|split| split.scale).fold(0.0, f64::max);
        found.push(premise(from, scale));
    }
    found
}

/// The split of sorted values, and those of what lies above, from the highest.
fn topmost(sorted: &[f64]) -> Vec<Split> {
    let mut found = Vec::new();
    let mut rest = sorted;
    while let Some(next) = split(rest, 1) {
        rest = &rest[rest.partition_point(|value| *value < next.from)..];
        found.push(next);
    }
    found.reverse();
    found
}

/// Whether good is what stays within a group, and low what crosses a boundary, of three groups at least: a fabric that
/// has less between its groups than in them looks so. One bad host does not hide that.
pub(super) fn two_levels(table: &Table, cover: &Cover, good: &[bool]) -> bool {
    if cover.boundaries() < 2 {
        return false;
    }
    let mut all = Counts::default();
    let mut of_host: BTreeMap<u32, Counts> = BTreeMap::new();
    for (cell, &is_good) in table.cells.iter().zip(good) {
        all.add(cell.stratum, is_good);
        for host in [cell.from.host, cell.to.host] {
            of_host.entry(host).or_default().add(cell.stratum, is_good);
        }
    }
    all.two_levels() || of_host.values().any(|host| all.without(host).two_levels())
}

/// Cells within groups and between them: all, and good ones.
#[derive(Clone, Copy, Default)]
struct Counts {
    all: [usize; 2],
    good: [usize; 2],
}

impl Counts {
    fn add(&mut self, stratum: usize, is_good: bool) {
        self.all[stratum] += 1;
        self.good[stratum] += usize::from(is_good);
    }

    fn without(&self, host: &Self) -> Self {
        let less = |of: [usize; 2], by: [usize; 2]| [0, 1].map(|kind| of[kind] - by[kind]);
        Self { all: less(self.all, host.all), good: less(self.good, host.good) }
    }

    fn two_levels(&self) -> bool {
        let share = |kind: usize| self.good[kind] as f64 / self.all[kind] as f64;
        self.all.iter().all(|all| *all > 0) && share(0) >= 0.9 && share(1) <= 0.1
    }
}

/// Premises that take for good what a large shared part does not touch, for parts that are low against it.
fn parts(table: &Table, cover: &Cover, setting: &Setting<'_>) -> Vec<Premise> {
    let strata = [0, 1].map(|stratum| table.cells.iter().filter(|cell| cell.stratum == stratum).count());
    let large = |cells: &[u32]| {
        let mut touched = [0; 2];
        cells.iter().for_each(|&at| touched[table.cells[at as usize].stratum] += 1);
        touched.iter().zip(strata).any(|(part, all)| all > 0 && f64::from(*part) >= LARGE * all as f64)
    };
    let shared = |part: &Part| matches!(part, Part::Group(_) | Part::Uplink(..) | Part::Boundary(..) | Part::Rail(_));
    let candidates = (0..cover.parts.len()).filter(|&part| shared(&cover.parts[part]) && large(&cover.cells[part]));
    candidates.filter_map(|part| without(table, cover, part, setting)).collect()
}

fn without(table: &Table, cover: &Cover, part: usize, setting: &Setting<'_>) -> Option<Premise> {
    let mut good = vec![true; table.cells.len()];
    cover.cells[part].iter().for_each(|&at| good[at as usize] = false);
    let touched: Vec<usize> = cover.cells[part].iter().map(|&at| at as usize).collect();
    if touched.len() < 3 || touched.len() + 1 > good.len() || two_levels(table, cover, &good) {
        return None;
    }
    let (mut scale, n) = (within(table, &good), table.cells.len());
    scale = scale.max(setting.noise);
    let mut trial = table.under(Premise { good: good.clone(), scale, n });
    trial.settle();
    let mut scores: Vec<f64> = touched.iter().map(|&at| trial.score(at)).collect();
    let mut residuals: Vec<f64> = touched.iter().map(|&at| trial.residual(at)).collect();
    let z = median_in_place(&mut scores) * (touched.len() as f64).sqrt() / MEDIAN_ERROR;
    (z < -CUT && median_in_place(&mut residuals) < -setting.least).then_some(Premise { good, scale, n })
}

/// Standard deviation within both sides, each kind of pairs by itself, from the median absolute deviation.
fn within(table: &Table, good: &[bool]) -> f64 {
    let mut away: Vec<f64> = Vec::with_capacity(good.len());
    for (stratum, side) in [(0, true), (0, false), (1, true), (1, false)] {
        let of = table.cells.iter().zip(good).filter(|(cell, good)| (cell.stratum, **good) == (stratum, side));
        let mut values: Vec<f64> = of.map(|(cell, _)| cell.value).collect();
        if values.len() > 1 {
            let centre = median_in_place(&mut values);
            away.extend(values.iter().map(|value| (value - centre).abs()));
        }
    }
    if away.is_empty() { 0.0 } else { crate::robust::MAD_TO_SIGMA * median_in_place(&mut away) }
}
