//! Explains all results by the fewest parts.
//!
//! A result is the level of good pairs times the slowest part on its way, times noise. An explanation is a set of parts, each with its
//! effect within groups and between them. Its cost is the remaining misfit, a price for each part (the logarithm of how many of its kind
//! there are, and half of that of its results: Schwarz 1978, Rissanen 1978), and a price for each unexplained low result, which depends
//! on their number: one is a path, many are a share of all ways, whichever hosts.
//!
//! The search adds the part that saves most and drops parts that no longer save their price. It also partitions the hosts by the low
//! results, so that a trunk between switches that no plan names is a candidate. It starts from each possible level of good pairs and
//! keeps the cheapest explanation.

mod fit;
mod holds;
mod levels;
mod price;
mod search;

use std::collections::BTreeSet;

use foldhash::HashMap;

use super::{
    Part, Setting, Way,
    cover::{Cover, Table},
    cuts,
    links::{Links, links},
};
use crate::robust::{Level, median_in_place, outlier};
use levels::{CUT, FEW, LOW, bases};
pub(super) use levels::{FEW_BETTER, MEDIAN_ERROR};
use price::{MARGIN, NARROW, prices};

/// A part has a spread of its own if it exceeds that of good pairs by this factor.
const UNEVEN: f64 = 2.0;
/// Tried spreads of a part, relative to the median estimate.
const SPREADS: [f64; 3] = [0.5, 1.0, 2.0];
/// Share of the results of a part with unequal shares that must be low: a flow with few concurrent others gets all it can carry.
const UNEVEN_MOST: f64 = 0.6;
/// Cost of a good result of a part with unequal shares: the logarithm of one in five.
const ALONE: f64 = 1.6;
/// Extra cost of a part that is faster than all others.
const FAST: f64 = 3.0;
/// Share of a part's results that must be low; [`ALL`] for a shared part.
const MOST: f64 = 0.8;
const ALL: f64 = 0.95;
/// Effect in standard deviations from which a single pair shows a part.
const CLEAR: f64 = 6.0;
/// Most unexplained low results that count as single paths.
const FEW_PATHS: usize = 8;
/// Share of all results from which more of them are a share of all ways.
const SHARE: f64 = 0.05;
/// The same for more than half as many as paths may be.
const LARGE: f64 = 0.2;
/// Hosts from which two may be bad at times, and nothing else.
const MANY_HOSTS: usize = 12;
/// Share of low results from which they are the level of most, and the others are better.
const MOST_SHARE: f64 = 0.75;
/// Half of that share must be this many standard deviations below the level.
const FAR: f64 = 8.0;
/// Number of ends that hosts may share.
const SEVERAL: usize = 2;
const SIMPLE: usize = 2;
/// An explanation is nearly as good if its cost exceeds the best by at most this.
pub(super) const CLOSE: f64 = 1.0;
/// The same for another partition of the hosts, which further measurements separate; and most of these.
const CLOSE_CUT: f64 = 5.0;
pub(super) const CUTS: usize = 5;
/// Fewest low pairs within a group for a finding about that group alone.
const FEWEST_WITHIN: usize = 3;

pub(super) struct Explanation {
    pub(super) table: Table,
    pub(super) taken: Vec<(usize, Vec<u32>)>,
    pub(super) links: Links,
    /// The low cells, where these are a share of all ways.
    pub(super) share: BTreeSet<u32>,
    /// Numbers of bad parts that another explanation, nearly as cheap, omits.
    pub(super) contested: Vec<usize>,
    /// Other partitions that explain the results nearly as well as the one taken.
    pub(super) other_cuts: Vec<Part>,
    /// In standard errors of a part's median, for pairs of either kind.
    pub(super) cut: [f64; 2],
    /// In standard deviations of a single pair.
    pub(super) link_cut: [f64; 2],
}

impl Explanation {
    pub(super) fn unexplained(&self) -> Vec<f64> {
        let of = |at: usize| {
            (self.table.residual(at) - self.links.explained[at]) * (self.table.scale(at) / self.links.scales[at])
        };
        let mut left: Vec<f64> = (0..self.table.cells.len()).map(of).collect();
        self.links.found.iter().flat_map(|(_, cells)| cells).for_each(|&at| left[at as usize] = 0.0);
        left
    }
}

#[derive(Clone, Copy)]
struct Taken {
    part: usize,
    /// Effect for each kind of pairs; positive where it is faster than all others.
    effect: [f64; 2],
    /// Standard deviation of the effect among pairs: concurrent flows get unequal shares of a part.
    spread: f64,
}

/// Median and standard deviation of the effect of parts on a cell.
#[derive(Clone, Copy, Default, PartialEq)]
struct Expected {
    effect: f64,
    spread: f64,
    /// Whether a flow with few others at once gets all that it can carry.
    is_shared: bool,
}

/// Place of a part that is not taken.
const NONE: u32 = u32::MAX;

struct Fit<'a> {
    table: &'a Table,
    cover: &'a Cover,
    prices: &'a [f64],
    levels: [Level; 2],
    /// Whether each cell is within a group (0) or between groups (1); a separate list, since it is read most.
    kinds: Vec<u8>,
    left: Vec<f64>,
    expected: Vec<Expected>,
    taken: Vec<Taken>,
    /// Index in `taken`, or [`NONE`].
    place: Vec<u32>,
    cap: f64,
    low: usize,
    usual: f64,
    cut: [f64; 2],
    with_ends: bool,
    with_cuts: bool,
    open: Vec<bool>,
}

struct Found {
    cost: f64,
    levels: [Level; 2],
    taken: Vec<Taken>,
    expected: Vec<Expected>,
    low: usize,
    /// Partitions that cost nearly as little as the one taken.
    other_cuts: Vec<usize>,
}

impl Found {
    fn new(levels: [Level; 2]) -> Self {
        let (taken, expected, other_cuts) = Default::default();
        Self { cost: f64::INFINITY, levels, taken, expected, low: 0, other_cuts }
    }
}

pub(super) fn explain(mut table: Table, cover: &mut Cover, setting: &Setting<'_>) -> Explanation {
    let (Found { levels, taken, expected, other_cuts, .. }, contested) = cheapest(&table, cover, setting);
    settle_levels(&mut table, cover, setting, levels, &taken, &expected);
    table.premise = 2 * expected.iter().filter(|expected| expected.effect < 0.0).count() > expected.len();
    let cells_of = |taken: &Taken| -> Vec<u32> {
        let own = |at: &&u32| {
            let effect = taken.effect[table.cells[**at as usize].stratum];
            effect < 0.0 && expected[**at as usize].effect >= effect - 1e-12
        };
        cover.cells[taken.part].iter().filter(own).copied().collect()
    };
    let slow = taken.iter().filter(|taken| taken.effect.iter().any(|effect| *effect < 0.0));
    let taken = slow.map(|taken| (taken.part, cells_of(taken))).collect();
    let cut = cuts_of(&table.levels, setting, ends(cover), CUT);
    let link_cut = cuts_of(&table.levels, setting, table.cells.len(), outlier::LEAST);
    let explained: Vec<f64> = expected.iter().map(|expected| expected.effect.min(0.0)).collect();
    let spread = |(at, expected): (usize, &Expected)| table.scale(at).hypot(expected.spread);
    let scales: Vec<f64> = expected.iter().enumerate().map(spread).collect();
    let mut links = links(&table, link_cut, setting, (explained, scales));
    let mut share: BTreeSet<u32> = links.found.iter().flat_map(|(_, cells)| cells.iter().copied()).collect();
    if is_share(&table, &share) {
        links.found.clear();
    } else {
        share.clear();
    }
    let other_cuts = other_cuts.into_iter().map(|cut| cover.parts[cut].clone()).collect();
    Explanation { table, taken, links, share, contested, other_cuts, cut, link_cut }
}

/// Standard deviations from which one of so many looks stands out, for either kind.
fn cuts_of(levels: &[Level; 2], setting: &Setting<'_>, looks: usize, least: f64) -> [f64; 2] {
    levels.map(|level| outlier::cut(least, looks, (!setting.knows(&level)).then_some(level.n)))
}

/// The cheapest explanation (that of the first level without parts if no part counts), and its parts that nearly as cheap explanations
/// omit.
fn cheapest(table: &Table, cover: &mut Cover, setting: &Setting<'_>) -> (Found, Vec<usize>) {
    let bases = bases(table, cover);
    let expected = vec![Expected::default(); table.cells.len()];
    let mut best = Found { expected, ..Found::new(bases[0]) };
    // Each kind of pairs has one level.
    let is_one = bases.len() <= 1 + usize::from(table.two_levels);
    let mut others: Vec<(f64, Vec<usize>)> = Vec::new();
    for levels in bases {
        cover.add(table, cuts::cuts(table, levels));
        let prices: Vec<f64> = prices(cover);
        let (mut may_be_cut, mut ends) = (false, 0);
        // A partition may save most at first and still be absent from the cheapest explanation.
        for (with_cuts, with_ends) in [(false, true), (true, true), (true, false)] {
            if with_cuts && with_ends && !may_be_cut || !with_ends && ends < SEVERAL {
                continue;
            }
            let mut fit = Fit::new(table, cover, &prices, levels, setting);
            (fit.with_ends, fit.with_cuts) = (with_ends, with_cuts);
            let mut found = fit.settle(setting);
            fit.try_other_cuts(&mut found);
            fit.with_cuts = true;
            may_be_cut = cover.cuts.clone().any(|cut| fit.is_candidate(cut));
            ends = found.taken.iter().filter(|taken| cover.parts[taken.part].is_end()).count();
            // Without ends, hosts share it or there is nothing.
            let is_empty = !with_ends && found.taken.is_empty();
            if is_empty || fit.is_by_design(&found.taken) || found.low as f64 > MOST_SHARE * table.cells.len() as f64 {
                continue;
            }
            others.push((found.cost, found.taken.iter().map(|taken| taken.part).collect()));
            let is_simple = is_one && fit.is_simple(&found);
            if found.cost < best.cost {
                best = found;
            }
            if is_simple {
                return (best, Vec::new());
            }
        }
    }
    others.retain(|(cost, _)| *cost < best.cost + CLOSE);
    // Further measurements determine the direction.
    let both = |part: usize| cover.parts[part].clone().only(Way::Both);
    let is_contested = |part: &usize| {
        others.iter().any(|(_, parts)| !parts.iter().any(|other| other == part || both(*other) == both(*part)))
    };
    let contested = best.taken.iter().map(|taken| taken.part).filter(is_contested).collect();
    (best, contested)
}

fn is_many(low: usize, table: &Table) -> bool {
    let share = low as f64 / table.cells.len() as f64;
    low > FEW_PATHS && share >= SHARE || 2 * low > FEW_PATHS && share >= LARGE || is_half(low, table.cells.len())
}

/// If half of all cells are low, the others may be better than usual.
pub(super) fn is_half(low: usize, of: usize) -> bool {
    low > 0 && 2 * low >= of
}

/// Whether low cells are so many, and so few at one or two hosts, that they are a share of all ways.
fn is_share(table: &Table, low: &BTreeSet<u32>) -> bool {
    let mut scores: Vec<f64> = low.iter().map(|&at| table.score(at as usize)).collect();
    // A long tail is not a second level.
    if !is_many(low.len(), table) || median_in_place(&mut scores) >= -FAR {
        return false;
    }
    if is_half(low.len(), table.cells.len()) {
        return true;
    }
    let mut rest: Vec<u32> = low.iter().copied().collect();
    let mut hosts: Vec<u32> = table.cells.iter().flat_map(|cell| [cell.from.host, cell.to.host]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    // One host may be bad at times, or two of many.
    for _ in 0..1 + usize::from(hosts.len() >= MANY_HOSTS) {
        let mut of_host: HashMap<u32, usize> = HashMap::default();
        for &at in &rest {
            let cell = &table.cells[at as usize];
            [cell.from.host, cell.to.host].iter().for_each(|host| *of_host.entry(*host).or_default() += 1);
        }
        let Some((&worst, _)) = of_host.iter().max_by_key(|(host, n)| (**n, std::cmp::Reverse(**host))) else { break };
        rest.retain(|&at| {
            let cell = &table.cells[at as usize];
            cell.from.host != worst && cell.to.host != worst
        });
    }
    3 * rest.len() > low.len()
}

fn settle_levels(
    table: &mut Table,
    cover: &Cover,
    setting: &Setting<'_>,
    levels: [Level; 2],
    taken: &[Taken],
    expected: &[Expected],
) {
    for taken in taken {
        for &at in &cover.cells[taken.part] {
            if taken.effect[table.cells[at as usize].stratum] != 0.0 {
                table.live[at as usize] = false;
            }
        }
    }
    let pooled = levels[0] == levels[1];
    let level = |stratum: Option<usize>, was: Level| {
        let counts = |at: usize| {
            let cell = &table.cells[at];
            table.live[at]
                && expected[at].effect == 0.0
                && stratum.is_none_or(|stratum| cell.stratum == stratum)
                && (cell.value - was.centre).abs() < LOW * was.scale
        };
        let mut values: Vec<f64> =
            (0..table.cells.len()).filter(|&at| counts(at)).map(|at| table.cells[at].value).collect();
        values.sort_unstable_by(f64::total_cmp);
        match values.len() {
            0 => was,
            // Few lie close together by chance.
            1..FEW => {
                Level { scale: was.scale, n: was.n.max(values.len()), ..Level::of_sorted(&values, setting.noise) }
            }
            _ => Level::of_sorted(&values, setting.noise),
        }
    };
    table.levels = match pooled {
        true => [level(None, levels[0]); 2],
        false => [level(Some(0), levels[0]), level(Some(1), levels[1])],
    };
    table.pooled = pooled;
}

/// Number of ends that a part may be: directions of one are not further looks.
fn ends(cover: &Cover) -> usize {
    cover.parts.iter().filter(|part| matches!(part, Part::Host(_, Way::Both) | Part::Nic(_, Way::Both))).count()
}

/// Distance in standard deviations between the lowest and the highest tenth of a normal distribution.
const NORMAL_WIDTH: f64 = 2.563;
/// Most repetitions of the search with its estimates of the spread and the share of low results.
const STEPS: usize = 3;

type Saving = (f64, Taken);
