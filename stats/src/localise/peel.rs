//! The peel: take the part whose pairs are all low, set its pairs aside, look again.

use std::collections::{BTreeSet, HashMap};

use super::{
    Part, Setting, Way,
    cover::{Cell, Cover, Table},
};
use crate::robust::{median_in_place, outlier, quantile_sorted};

/// Standard error of the median of n normal values, times √n / σ: √(π / 2).
pub(super) const MEDIAN_ERROR: f64 = 1.253_314_137_315_500_3;
/// Least standard errors below the centre for a part to be a suspect.
pub(super) const CUT: f64 = 4.0;
/// Share of a shared part's pairs, and of its members, that must be low.
const MOST: f64 = 0.8;
/// Share of a shared part's pairs that must be low where every single pair shows whether it is: a pair is as slow as the
/// slowest thing on its way, so a good one shows that what it passes is good. A few may be what noise with long tails makes.
const ALL: f64 = 0.95;
/// Standard deviations that a part takes from which a single pair shows it: half of it is then three of them away.
const CLEAR: f64 = 6.0;
/// Most ends that are set aside for a trial.
const AHEAD: usize = 4;
/// Fewest pairs by which a part can be judged.
fn fewest(part: &Part) -> usize {
    match part {
        Part::Host(_, Way::Both) | Part::Nic(_, Way::Both) => 3,
        Part::Host(..) | Part::Nic(..) => 2,
        // Few rounds take few pairs across each of many boundaries; two hosts on either side are asked for in `holds`.
        Part::Boundary(..) | Part::Uplink(_, Way::Send | Way::Receive) => 3,
        _ => 6,
    }
}

/// What the peel took.
pub(super) struct Peeled {
    /// Part numbers with the cells that were live when the part was taken, in the order of taking.
    pub(super) taken: Vec<(usize, Vec<u32>)>,
    /// Cut in standard errors of a part's median, for parts most of whose pairs are of either kind.
    pub(super) cut: [f64; 2],
    /// Cut in standard deviations of a single pair, for pairs of either kind.
    pub(super) link_cut: [f64; 2],
}

/// How a part looks.
#[derive(Clone, Copy)]
struct Look {
    /// Standard errors from the centre.
    z: f64,
    /// Median difference from the centre.
    effect: f64,
    /// By which parts are ordered: the upper quartile in standard errors. A part that is bad has nearly all its pairs
    /// low; its partners have some.
    key: f64,
    /// The kind of pairs that most of its pairs are of.
    stratum: usize,
    /// Whether the part was looked at closely since its pairs last changed, and did not hold.
    rejected: bool,
}

impl Look {
    /// Of a part that is no candidate.
    const USUAL: Self = Self { z: 0.0, effect: 0.0, key: 0.0, stratum: 0, rejected: true };
}

pub(super) fn peel(table: &mut Table, cover: &Cover, setting: &Setting<'_>) -> Peeled {
    // Directions of an end are no further looks: what one shows the other shares.
    let ends = cover.parts.iter().filter(|p| matches!(p, Part::Host(_, Way::Both) | Part::Nic(_, Way::Both))).count();
    let mut peeled = Peeled { taken: Vec::new(), cut: [CUT; 2], link_cut: [outlier::LEAST; 2] };
    loop {
        table.settle();
        peeled.cut = cut(table, setting, ends, CUT);
        peeled.link_cut = cut(table, setting, table.cells.len(), outlier::LEAST);
        let before = peeled.taken.len();
        sweep(table, cover, setting, &mut peeled);
        if peeled.taken.len() == before && !look_ahead(table, cover, setting, &mut peeled, ends) {
            return peeled;
        }
    }
}

/// Several bad hosts in a small cluster spoil so many pairs that the spread looks large and none stands out. So the ends
/// that look worst are set aside for a trial, the levels are computed without them, and those that are low against these
/// levels are taken; the others come back. Tells whether any was taken.
fn look_ahead(table: &mut Table, cover: &Cover, setting: &Setting<'_>, peeled: &mut Peeled, ends: usize) -> bool {
    let mut looks = Looks::new(table, cover);
    let mut trials: Vec<(usize, Vec<u32>)> = Vec::new();
    for _ in 0..(ends / 4).clamp(1, AHEAD) {
        let candidates = looks.all.iter().enumerate().filter_map(|(part, look)| Some((part, (*look)?)));
        let worst = candidates
            .filter(|(part, look)| cover.parts[*part].is_end() && look.effect < -setting.least && !look.rejected)
            .min_by(|a, b| a.1.key.total_cmp(&b.1.key).then_with(|| cover.parts[a.0].cmp(&cover.parts[b.0])));
        let Some((part, _)) = worst else { break };
        trials.push((part, looks.take(table, cover, part).0));
    }
    table.settle();
    let limit = cut(table, setting, ends, CUT);
    let mut any = false;
    for (part, cells) in trials {
        cells.iter().for_each(|&at| table.live[at as usize] = true);
        let low = look(table, cover, part)
            .filter(|look| !look.rejected && look.z < -limit[look.stratum] && look.effect < -setting.least);
        if low.is_some_and(|look| holds(table, cover, part, look.effect)) {
            cells.iter().for_each(|&at| table.live[at as usize] = false);
            peeled.taken.push((part, cells));
            any = true;
        }
    }
    table.settle();
    any
}

/// All parts as they look at levels that stay: what is set aside changes the looks of few.
struct Looks {
    all: Vec<Option<Look>>,
    /// Live cells of each part, and those of them that are low by the least effect at least.
    counts: Vec<[u32; 2]>,
}

impl Looks {
    fn new(table: &Table, cover: &Cover) -> Self {
        let low: Vec<bool> = (0..table.cells.len()).map(|at| table.is_low(at)).collect();
        let count = |cells: &Vec<u32>| {
            cells
                .iter()
                .map(|&at| at as usize)
                .filter(|&at| table.live[at])
                .fold([0, 0], |[live, of_low], at| [live + 1, of_low + u32::from(low[at])])
        };
        let mut looks = Self { all: vec![None; cover.parts.len()], counts: cover.cells.iter().map(count).collect() };
        (0..cover.parts.len()).for_each(|part| looks.look(table, cover, part));
        looks
    }

    /// Looks at a part. Of few of a large cluster more than a count is needed: where most cells are not low, their median is not, and all
    /// live cells of most parts are those by which they are judged.
    fn look(&mut self, table: &Table, cover: &Cover, part: usize) {
        let ([live, low], name) = (self.counts[part], &cover.parts[part]);
        let by_all = kind_in_sight(table, name).is_none() && live as usize >= fewest(name);
        let is_usual = by_all && 2 * low < live;
        self.all[part] = if is_usual { Some(Look::USUAL) } else { look(table, cover, part) };
    }

    /// Sets the live cells of a part aside, those in which it can be seen, and looks again at all parts that they touch: these cells and
    /// parts.
    fn take(&mut self, table: &mut Table, cover: &Cover, part: usize) -> (Vec<u32>, Vec<u32>) {
        let live = cover.cells[part].iter().map(|&at| at as usize).filter(|&at| table.live[at]).collect();
        let cells: Vec<u32> = in_sight(table, &cover.parts[part], live).into_iter().map(|at| at as u32).collect();
        let mut changed: Vec<u32> = Vec::new();
        for &at in &cells {
            // A pair of two ports of one host, or of a port with itself, stands there twice.
            if !std::mem::replace(&mut table.live[at as usize], false) {
                continue;
            }
            let low = u32::from(table.is_low(at as usize));
            for part in cover.of_cell(&table.cells[at as usize]) {
                let [live, of_low] = &mut self.counts[part as usize];
                (*live, *of_low) = (*live - 1, *of_low - low);
                changed.push(part);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed.iter().for_each(|&part| self.look(table, cover, part as usize));
        (cells, changed)
    }
}

/// `least`, or more where chance would go that far among `looks` looks: quantile of Student's t for as many values as
/// the scale of either kind of pairs rests on, of the normal distribution where the scale is the known noise. Few pairs within
/// groups say nothing of how sure the many between them are.
fn cut(table: &Table, setting: &Setting<'_>, looks: usize, least: f64) -> [f64; 2] {
    table.levels.map(|level| outlier::cut(least, looks, (!setting.knows(&level)).then_some(level.n)))
}

/// Takes parts, with the levels as they are, until none is left that is low.
fn sweep(table: &mut Table, cover: &Cover, setting: &Setting<'_>, peeled: &mut Peeled) {
    let mut looks = Looks::new(table, cover);
    let low = |look: &Look| !look.rejected && look.z < -peeled.cut[look.stratum] && look.effect < -setting.least;
    let is_low = |looks: &Looks, part: usize| looks.all[part].as_ref().is_some_and(low);
    // Few parts of a large cluster are low, and all of them would be looked through for each that is taken.
    let mut candidates: BTreeSet<usize> = (0..looks.all.len()).filter(|&part| is_low(&looks, part)).collect();
    loop {
        let known = candidates.iter().filter_map(|&part| Some((part, looks.all[part]?)));
        let order = |a: &(usize, Look), b: &(usize, Look)| {
            a.1.key.total_cmp(&b.1.key).then_with(|| cover.parts[a.0].cmp(&cover.parts[b.0]))
        };
        let Some((part, found)) = known.min_by(order) else { return };
        if !holds(table, cover, part, found.effect) {
            looks.all[part] = Some(Look { rejected: true, ..found });
            candidates.remove(&part);
            continue;
        }
        let (cells, changed) = looks.take(table, cover, part);
        for part in changed.into_iter().map(|part| part as usize) {
            if is_low(&looks, part) {
                candidates.insert(part)
            } else {
                candidates.remove(&part)
            };
        }
        peeled.taken.push((part, cells));
    }
}

/// Whether an end has as many partners as tell it from a path: three, or two if only one direction is low.
fn enough_partners(way: Way, partners: usize, pairs_low: bool) -> bool {
    if way == Way::Both { partners >= 3 } else { partners >= 2 && pairs_low }
}

/// The cells by which a part is judged: those that are live, of the kind that shows it ([`in_sight`]). Where what is good is known
/// by a premise, an end keeps those that other suspects took, as long as some are live: with two of four hosts bad, each
/// has two others. So does a group that has few left.
fn judged(table: &Table, cover: &Cover, part: usize) -> (Vec<usize>, bool) {
    let all = || cover.cells[part].iter().map(|&at| at as usize);
    let name = &cover.parts[part];
    let live = in_sight(table, name, all().filter(|&at| table.live[at]).collect());
    if live.is_empty() || live.len() >= fewest(name) {
        return (live, false);
    }
    if table.premise.is_some() && name.is_end() {
        return (all().collect(), true);
    }
    if is_left(cover, part, table, &live) { (in_sight(table, name, all().collect()), true) } else { (live, false) }
}

/// Fewest live cells of a shared part most of whose cells others took.
const LEFT: usize = 3;

/// Whether the few live cells of a group or its uplinks are more than a host and more than a boundary: of two that are bad one takes
/// what both have.
fn is_left(cover: &Cover, part: usize, table: &Table, live: &[usize]) -> bool {
    let name = &cover.parts[part];
    if live.len() < LEFT || !matches!(name, Part::Group(_) | Part::Uplink(..) | Part::GroupRail { .. }) {
        return false;
    }
    let several = |of: &dyn Fn(&Cell) -> [Option<u32>; 2]| {
        let mut all: Vec<u32> = live.iter().flat_map(|&at| of(&table.cells[at])).flatten().collect();
        all.sort_unstable();
        all.dedup();
        all.len() >= 2
    };
    several(&|cell| cover.members(name, cell)) && several(&|cell| cover.others(name, cell))
}

/// Standard deviations below the centre from which a part's pairs of one kind are low, and down to which their median is not.
const SEEN: (f64, f64) = (3.0, 2.0);

/// The kind of cells in which a part may have to be seen; `None` where both kinds always count.
fn kind_in_sight(table: &Table, part: &Part) -> Option<usize> {
    match part {
        Part::Host(..) | Part::Nic(..) | Part::Group(_) if !table.pooled => Some(0),
        Part::GroupRail { .. } => Some(1),
        _ => None,
    }
}

/// The cells of the kind in which a part can be seen, where it cannot be seen in the other. Between groups a fabric may give no more
/// than a capped end or switch does, so that the cap shows within the group only. What leaves a group on one rail is low between
/// groups only.
fn in_sight(table: &Table, part: &Part, live: Vec<usize>) -> Vec<usize> {
    let Some(kind) = kind_in_sight(table, part) else { return live };
    let (own, other): (Vec<usize>, Vec<usize>) = live.iter().partition(|&&at| table.cells[at].stratum == kind);
    if own.len() < LEFT || other.is_empty() {
        return live;
    }
    let median = |cells: &[usize]| median_in_place(&mut cells.iter().map(|&at| table.score(at)).collect::<Vec<_>>());
    // A capped end leaves all its pairs the same.
    let lowest = own.iter().map(|&at| table.residual(at)).fold(0.0, f64::min);
    let alike = |&at: &usize| table.score(at) < -SEEN.0 && table.residual(at) < lowest / 2.0;
    let low = if kind == 0 { own.iter().all(alike) } else { median(&own) < -SEEN.0 };
    if low && median(&other) > -SEEN.1 { own } else { live }
}

/// A part by its live cells; `None` if there are too few.
fn look(table: &Table, cover: &Cover, part: usize) -> Option<Look> {
    let (cells, borrowed) = judged(table, cover, part);
    let mut scores: Vec<f64> = cells.iter().map(|&at| table.score(at)).collect();
    let n = scores.len();
    if n < fewest(&cover.parts[part]) {
        return None;
    }
    let root = (n as f64).sqrt();
    let median = median_in_place(&mut scores);
    // Only a part that is low, by the least effect at least, needs the rest: no other is ever a candidate.
    if median >= 0.0 {
        return Some(Look::USUAL);
    }
    let mut residuals: Vec<f64> = cells.iter().map(|&at| table.residual(at)).collect();
    let effect = median_in_place(&mut residuals);
    if effect >= -table.least {
        return Some(Look::USUAL);
    }
    scores.sort_unstable_by(f64::total_cmp);
    // What others took shows nothing against a part, so with borrowed cells all must be low.
    let upper = quantile_sorted(&scores, if borrowed { 1.0 } else { 0.75 }).unwrap_or(0.0);
    let rejected = borrowed && residuals.iter().any(|residual| *residual > effect / 2.0);
    let between = cells.iter().filter(|&&at| table.cells[at].stratum == 1).count();
    let stratum = usize::from(2 * between > n);
    Some(Look { z: median * root / MEDIAN_ERROR, effect, key: upper * root, stratum, rejected })
}

/// Whether a low part is the right name: whether its members are low one by one, and what lies opposite is more than one
/// thing.
fn holds(table: &Table, cover: &Cover, part: usize, effect: f64) -> bool {
    let part_name = &cover.parts[part];
    let (live, _) = judged(table, cover, part);
    let mut members: HashMap<u32, Vec<f64>> = HashMap::new();
    let mut others: Vec<u32> = Vec::new();
    let (mut inside, mut inside_low) = (0, 0);
    let limit = effect / 2.0;
    for &at in &live {
        let cell = &table.cells[at];
        let mut touched = cover.members(part_name, cell);
        if touched[0] == touched[1] {
            touched[1] = None;
        } else if touched.iter().all(Option::is_some) {
            inside += 1;
            inside_low += usize::from(table.residual(at) < limit);
        }
        for member in touched.into_iter().flatten() {
            members.entry(member).or_default().push(table.residual(at));
        }
        others.extend(cover.others(part_name, cell).into_iter().flatten());
    }
    others.sort_unstable();
    others.dedup();
    let low_members = members.values_mut().map(|values| median_in_place(values)).filter(|&m| m < limit).count();
    let all_members = members.len();
    let members_low = low_members as f64 >= MOST * all_members as f64;
    let low = live.iter().filter(|&&at| table.residual(at) < limit).count();
    let clear = live.iter().all(|&at| -effect > CLEAR * table.scale(at));
    let most = if clear && !part_name.is_end() { ALL } else { MOST };
    let pairs_low = low as f64 >= most * live.len() as f64;
    match *part_name {
        Part::Nic(_, way) => enough_partners(way, others.len(), pairs_low),
        Part::Host(_, way) => {
            let rails = if cover.several_rails { all_members >= 2 && members_low } else { true };
            rails && enough_partners(way, others.len(), pairs_low)
        }
        Part::Rail(_) => all_members >= 3 && members_low && pairs_low,
        // With good pairs inside, the fault lies between the group and the rest.
        Part::Group(_) => all_members >= 2 && members_low && pairs_low && inside > 0 && 2 * inside_low >= inside,
        // With good pairs inside, which are left out, it is what leaves the group on that rail, which has no name of its own.
        Part::GroupRail { .. } => {
            let left_out = cover.cells[part].iter().filter(|&&at| table.live[at as usize]).count() > live.len();
            let told = !left_out || others.len() >= 2;
            all_members >= 3 && told && members_low && pairs_low && 2 * inside_low >= inside
        }
        Part::Uplink(..) => all_members >= 2 && others.len() >= 2 && members_low && pairs_low,
        Part::Boundary(a, b, _) => {
            let side = |group: u32| members.keys().filter(|&&host| cover.group(host) == group).count();
            side(a).min(side(b)) >= 2 && members_low && pairs_low
        }
        Part::Hosts(..) | Part::Link(..) | Part::Paths(..) => false,
    }
}
