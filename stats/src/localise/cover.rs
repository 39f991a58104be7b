//! Which pairs speak of which part.

use std::{collections::BTreeMap, sync::Arc};

use foldhash::{HashMap, HashMapExt};

use super::{Level, Pair, Part, Port, Setting, Way, peel::MEDIAN_ERROR};
use crate::{lists::Lists, robust::median_in_place};

/// With fewer pairs than this the noise is not taken to be below the least effect: a handful of results lie close together
/// by chance too often.
const FEW: usize = 12;

/// One result a way: repeats of the same pair and path are one cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) from: Port,
    pub(super) to: Port,
    pub(super) path: u32,
    pub(super) value: f64,
    /// 0 within a group (or without groups), 1 between groups.
    pub(super) stratum: usize,
    /// The group of the sending end, if groups are known.
    pub(super) group: Option<u32>,
}

impl Cell {
    /// Both ends with what they do.
    fn ends(&self) -> [(Port, Way); 2] {
        [(self.from, Way::Send), (self.to, Way::Receive)]
    }
}

/// Which cells are taken for good, where that is not to be told from the values alone.
#[derive(Debug, Clone)]
pub(super) struct Premise {
    /// Whether a cell may count for the levels.
    pub(super) good: Vec<bool>,
    /// Standard deviation within both sides, which bounds the scale where few cells are good.
    pub(super) scale: f64,
    /// Cells that this rests on.
    pub(super) n: usize,
}

/// A value with its cell, in the order of values.
#[derive(Debug, Clone, Copy)]
struct Rising {
    value: f64,
    at: u32,
    stratum: u32,
}

/// All results, what they are compared with, and which of them still count. What does not change is shared by copies: every premise
/// has one, and there may be millions of cells.
#[derive(Clone)]
pub(super) struct Table {
    pub(super) cells: Arc<[Cell]>,
    /// Cell of each pair that was given.
    pub(super) cell_of: Arc<[u32]>,
    /// Whether the cell is not yet explained by a suspect.
    pub(super) live: Vec<bool>,
    /// What each stratum is compared with.
    pub(super) levels: [Level; 2],
    /// Whether both strata share one level.
    pub(super) pooled: bool,
    /// The cells in rising order of value, so that levels need no sorting again.
    rising: Arc<[Rising]>,
    pub(super) noise: f64,
    pub(super) least: f64,
    /// Whether the kinds may have levels of their own.
    two_levels: bool,
    /// What is taken for good; everything that lies together with most where it is `None`.
    pub(super) premise: Option<Premise>,
}

impl Table {
    pub(super) fn new(pairs: &[Pair], setting: &Setting<'_>) -> Self {
        let mut known: HashMap<(Port, Port, u32), u32> = HashMap::with_capacity(pairs.len());
        let mut cells: Vec<Cell> = Vec::with_capacity(pairs.len());
        let mut cell_of: Vec<u32> = Vec::with_capacity(pairs.len());
        let group = |port: Port| setting.groups.get(port.host as usize);
        for pair in pairs {
            // Without direction, the lower end comes first, so that both orders are the same cell.
            let swap = !setting.directed && pair.to < pair.from;
            let (from, to) = if swap { (pair.to, pair.from) } else { (pair.from, pair.to) };
            let at = *known.entry((from, to, pair.path)).or_insert_with(|| {
                let stratum = usize::from(group(from) != group(to));
                cells.push(Cell { from, to, path: pair.path, value: 0.0, stratum, group: group(from).copied() });
                cells.len() as u32 - 1
            });
            cell_of.push(at);
        }
        drop(known);
        let of_cell =
            Lists::new(cells.len(), cell_of.iter().map(|at| *at as usize).zip(pairs.iter().map(|pair| pair.value)));
        let mut values = Vec::new();
        for (at, cell) in cells.iter_mut().enumerate() {
            values.clear();
            values.extend_from_slice(of_cell.of(at));
            cell.value = median_in_place(&mut values);
        }
        drop(of_cell);
        let rising = (0..).zip(&cells).map(|(at, cell)| Rising { value: cell.value, at, stratum: cell.stratum as u32 });
        let mut rising: Vec<Rising> = rising.collect();
        // Equal values stay in the order of their cells.
        rising.sort_unstable_by(|a, b| a.value.total_cmp(&b.value).then(a.at.cmp(&b.at)));
        let level = Level { centre: 0.0, scale: 1.0, n: 0 };
        let mut table = Self {
            live: vec![true; cells.len()],
            cells: cells.into(),
            cell_of: cell_of.into(),
            levels: [level; 2],
            pooled: true,
            rising: rising.into(),
            noise: setting.noise,
            least: setting.least,
            two_levels: true,
            premise: None,
        };
        // Of two groups, a lower level between them may as well be a fault there.
        let mut crossed: Vec<_> = table
            .cells
            .iter()
            .filter(|cell| cell.stratum == 1)
            .map(|cell| {
                let (a, b) = (group(cell.from), group(cell.to));
                (a.min(b), a.max(b))
            })
            .collect();
        crossed.sort_unstable();
        crossed.dedup();
        table.two_levels = setting.two_levels || crossed.len() > 1;
        table.settle();
        table
    }

    /// The same results under a premise.
    pub(super) fn under(&self, premise: Premise) -> Self {
        Self { premise: Some(premise), ..self.clone() }
    }

    /// Computes the levels from the cells that are live. Pairs within and between groups have levels of their own only if
    /// these differ beyond doubt, because two levels from few pairs are less sure than one from all.
    pub(super) fn settle(&mut self) {
        let counts = |at: usize| self.premise.as_ref().is_none_or(|premise| premise.good[at]);
        let (mut all, mut split) = (Vec::with_capacity(self.cells.len()), [Vec::new(), Vec::new()]);
        let live = |one: &&Rising| self.live[one.at as usize] && counts(one.at as usize);
        for Rising { value, stratum, .. } in self.rising.iter().filter(live) {
            all.push(*value);
            split[*stratum as usize].push(*value);
        }
        if all.is_empty() {
            return;
        }
        let floor = |n: usize| match &self.premise {
            Some(premise) if n < FEW => self.noise.max(premise.scale),
            None if n < FEW => self.noise.max(self.least),
            _ => self.noise,
        };
        let level = |values: &[f64]| {
            let level = Level::of_sorted(values, floor(values.len()));
            match &self.premise {
                Some(premise) if values.len() < FEW => Level { n: premise.n, ..level },
                _ => level,
            }
        };
        let together = level(&all);
        self.levels = [together; 2];
        self.pooled = true;
        // With a premise all the others were set aside, and a few good pairs between groups are all there are.
        let enough = if self.premise.is_some() { 3 } else { 8 };
        if self.two_levels && (1..enough).contains(&split[0].len()) && split[1].len() >= enough {
            self.few_within(&split);
            return;
        }
        let enough = if self.premise.is_some() { 1 } else { enough };
        if !self.two_levels || split.iter().any(|values| values.len() < enough) {
            return;
        }
        let sizes = [0, 1].map(|at: usize| split[at].len() as f64);
        let own = match &self.premise {
            Some(_) => [0, 1].map(|at: usize| level(&split[at])),
            None => [0, 1].map(|at: usize| Level::of_sorted(&split[at], self.noise)),
        };
        let counts = |at: usize| if self.premise.is_some() { sizes[at] } else { own[at].n as f64 };
        let error = [0, 1].map(|at| (1.2533 * own[at].scale).powi(2) / counts(at)).iter().sum::<f64>().sqrt();
        let less = own[0].centre - own[1].centre;
        if less.abs() <= (4.0 * error).max(self.least / 2.0) || less < 0.0 && split[1].len() < 3 {
            return;
        }
        self.levels = own;
        self.pooled = false;
        if less < 0.0 && !self.in_most_groups() {
            // A few groups have less within than lies between all: what is bad is in them.
            let limit = own[1].centre - 4.0 * own[1].scale;
            let mut good: Vec<f64> = split[0].iter().copied().filter(|value| *value > limit).collect();
            self.pooled = good.is_empty();
            let centre = if self.pooled { own[1].centre } else { median_in_place(&mut good) };
            self.levels[0] = Level { centre, ..own[1] };
        }
    }

    /// Whether pairs within three groups or more, and within most of those measured, are below all between groups.
    fn in_most_groups(&self) -> bool {
        let mut of_group: BTreeMap<Option<u32>, Vec<f64>> = BTreeMap::new();
        for at in self.counted(0) {
            of_group.entry(self.cells[at].group).or_default().push(self.cells[at].value);
        }
        let all = of_group.len();
        let low =
            of_group.values_mut().map(|values| median_in_place(values)).filter(|m| *m < self.levels[1].centre).count();
        low >= 3 && 2 * low > all
    }

    /// A few pairs within groups that are better than all between them are no riddle that bad uplinks would explain: a fabric may
    /// have less between its groups. They get a centre of their own, one bad host left out if that hides it. Their spread is that of
    /// the others, and their centre's error is added to it.
    fn few_within(&mut self, [within, between]: &[Vec<f64>; 2]) {
        let other = Level::of_sorted(between, self.noise);
        let least = self.least / 2.0;
        let better = |mut values: Vec<f64>| {
            let error = MEDIAN_ERROR * other.scale / (values.len().max(1) as f64).sqrt();
            let centre = median_in_place(&mut values);
            (centre - other.centre > (4.0 * error).max(least)).then_some((centre, error))
        };
        let found = better(within.clone()).or_else(|| {
            // One bad host may have most of them.
            let (mut hosts, counted) = (Vec::new(), self.counted(0));
            counted.iter().for_each(|&at| hosts.extend([self.cells[at].from.host, self.cells[at].to.host]));
            hosts.sort_unstable();
            hosts.dedup();
            let without = hosts.into_iter().filter_map(|host| {
                let cells = counted.iter().map(|&at| &self.cells[at]);
                let rest = cells.filter(|cell| cell.from.host != host && cell.to.host != host);
                let rest: Vec<f64> = rest.map(|cell| cell.value).collect();
                if rest.is_empty() { None } else { better(rest) }
            });
            without.max_by(|a, b| a.0.total_cmp(&b.0))
        });
        if let Some((centre, error)) = found {
            self.levels = [Level { centre, scale: other.scale.hypot(error), n: other.n }, other];
            self.pooled = false;
        }
    }

    /// Live cells of a kind that count for its level.
    fn counted(&self, stratum: usize) -> Vec<usize> {
        let counts = |at: &usize| self.premise.as_ref().is_none_or(|premise| premise.good[*at]);
        let live = (0..self.cells.len()).filter(|&at| self.live[at] && self.cells[at].stratum == stratum);
        live.filter(counts).collect()
    }

    /// Difference of a cell from its level.
    pub(super) fn residual(&self, at: usize) -> f64 {
        self.cells[at].value - self.levels[self.cells[at].stratum].centre
    }

    /// Whether a cell is more than the least effect below its level.
    pub(super) fn is_low(&self, at: usize) -> bool {
        self.residual(at) < -self.least
    }

    /// Standard deviation of a single pair like this cell.
    pub(super) fn scale(&self, at: usize) -> f64 {
        self.levels[self.cells[at].stratum].scale
    }

    /// The residual in standard deviations of a single pair.
    pub(super) fn score(&self, at: usize) -> f64 {
        self.residual(at) / self.scale(at)
    }
}

/// Every part that can be a suspect as a whole, with the cells that speak of it.
pub(super) struct Cover {
    pub(super) parts: Vec<Part>,
    /// Cells of each part.
    pub(super) cells: Vec<Vec<u32>>,
    /// Numbers of the parts.
    known: HashMap<Part, u32>,
    directed: bool,
    /// Whether hosts have several rails, so that a NIC is not its host.
    pub(super) several_rails: bool,
    /// Group of each host; empty with fewer than two groups.
    groups: Vec<u32>,
}

impl Cover {
    pub(super) fn new(table: &Table, setting: &Setting<'_>) -> Self {
        let mut rails: Vec<u32> = table.cells.iter().flat_map(|c| [c.from.rail, c.to.rail]).collect();
        rails.sort_unstable();
        rails.dedup();
        let several_groups = setting.groups.iter().any(|g| *g != setting.groups[0]);
        let mut cover = Self {
            parts: Vec::new(),
            cells: Vec::new(),
            known: HashMap::default(),
            directed: setting.directed,
            several_rails: rails.len() > 1,
            groups: if several_groups { setting.groups.to_vec() } else { Vec::new() },
        };
        // Many cells have an end or the switches between in common.
        let mut of_end: HashMap<(Port, Way), [Option<u32>; 4]> = HashMap::default();
        let mut of_way: HashMap<[(u32, u32); 2], Vec<u32>> = HashMap::default();
        let mut parts = Vec::with_capacity(16);
        for (at, cell) in table.cells.iter().enumerate() {
            let at = at as u32;
            for end in cell.ends() {
                let numbers = *of_end.entry(end).or_insert_with(|| {
                    cover.at_end(end, &mut parts);
                    let mut numbers = parts.drain(..).map(|part| cover.number(part));
                    std::array::from_fn(|_| numbers.next())
                });
                numbers.into_iter().flatten().for_each(|part| cover.cells[part as usize].push(at));
            }
            let numbers = of_way.entry(cover.way(cell)).or_insert_with(|| {
                cover.between(cell, &mut parts);
                parts.drain(..).map(|part| cover.number(part)).collect()
            });
            numbers.iter().for_each(|part| cover.cells[*part as usize].push(at));
        }
        cover.cells.iter_mut().for_each(Vec::shrink_to_fit);
        cover
    }

    /// The number of a part, a new one where it has none.
    fn number(&mut self, part: Part) -> u32 {
        let next = self.parts.len() as u32;
        if let Some(number) = self.known.get(&part) {
            return *number;
        }
        self.known.insert(part.clone(), next);
        self.parts.push(part);
        self.cells.push(Vec::new());
        next
    }

    /// Numbers of the parts that a cell passes.
    pub(super) fn of_cell(&self, cell: &Cell) -> Vec<u32> {
        let mut parts = Vec::with_capacity(16);
        cell.ends().into_iter().for_each(|end| self.at_end(end, &mut parts));
        self.between(cell, &mut parts);
        parts.iter().filter_map(|part| self.known.get(part).copied()).collect()
    }

    /// By what pairs differ in the switches that they pass: group and rail of both ends.
    fn way(&self, cell: &Cell) -> [(u32, u32); 2] {
        [cell.from, cell.to].map(|end| (self.groups.get(end.host as usize).copied().unwrap_or_default(), end.rail))
    }

    /// Adds the parts that an end is.
    fn at_end(&self, (port, way): (Port, Way), parts: &mut Vec<Part>) {
        for way in [Some(Way::Both), self.directed.then_some(way)].into_iter().flatten() {
            parts.push(Part::Host(port.host, way));
            if self.several_rails {
                parts.push(Part::Nic(port, way));
            }
        }
    }

    /// Adds the switches and ways that a pair passes between its ends.
    fn between(&self, cell: &Cell, parts: &mut Vec<Part>) {
        let directed = self.directed;
        let aligned = cell.from.rail == cell.to.rail;
        if self.several_rails && aligned {
            parts.push(Part::Rail(cell.from.rail));
        }
        if self.groups.is_empty() {
            return;
        }
        let (a, b) = (self.group(cell.from.host), self.group(cell.to.host));
        parts.push(Part::Group(a));
        if self.several_rails {
            parts.push(Part::GroupRail { group: a, rail: cell.from.rail });
        }
        if a != b {
            let boundary = |way: Way| Part::Boundary(a.min(b), a.max(b), way);
            parts.extend([Part::Group(b), Part::Uplink(a, Way::Both), Part::Uplink(b, Way::Both), boundary(Way::Both)]);
            if directed {
                let across = if a < b { Way::Send } else { Way::Receive };
                parts.extend([Part::Uplink(a, Way::Send), Part::Uplink(b, Way::Receive), boundary(across)]);
            }
        }
        if self.several_rails && (a != b || !aligned) {
            parts.push(Part::GroupRail { group: b, rail: cell.to.rail });
        }
    }

    pub(super) fn group(&self, host: u32) -> u32 {
        self.groups[host as usize]
    }

    /// Boundaries between two groups that pairs cross.
    pub(super) fn boundaries(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, Part::Boundary(_, _, Way::Both))).count()
    }

    /// The smaller things a part consists of, as far as a pair touches them: each must be low for the part to be named.
    pub(super) fn members(&self, part: &Part, cell: &Cell) -> [Option<u32>; 2] {
        let ends = [cell.from, cell.to];
        match *part {
            Part::Host(host, _) => ends.map(|end| (end.host == host).then_some(end.rail)),
            Part::Rail(_) => ends.map(|end| Some(end.host)),
            Part::Group(group) | Part::Uplink(group, _) => {
                ends.map(|end| (self.group(end.host) == group).then_some(end.host))
            }
            Part::GroupRail { group, rail } => {
                ends.map(|end| (self.group(end.host) == group && end.rail == rail).then_some(end.host))
            }
            Part::Boundary(..) => ends.map(|end| Some(end.host)),
            _ => [None, None],
        }
    }

    /// What lies on the other side of a part: it must be more than one thing, or that thing would be the part.
    pub(super) fn others(&self, part: &Part, cell: &Cell) -> [Option<u32>; 2] {
        let ends = [cell.from, cell.to];
        match *part {
            Part::Host(host, _) => ends.map(|end| (end.host != host).then_some(end.host)),
            Part::Nic(port, _) => ends.map(|end| (end != port).then_some(end.host)),
            Part::Group(group) | Part::Uplink(group, _) | Part::GroupRail { group, .. } => ends.map(|end| {
                let other = self.group(end.host);
                (other != group).then_some(other)
            }),
            _ => [None, None],
        }
    }
}
