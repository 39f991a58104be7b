use std::{collections::BTreeSet, ops::Range};

use foldhash::{HashMap, HashMapExt};

use super::{Level, Pair, Part, Port, Setting, Way};
use crate::{lists::Lists, robust::median_in_place};

/// One cell per way: repeats of the same pair and path are combined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) from: Port,
    pub(super) to: Port,
    pub(super) path: u32,
    pub(super) value: f64,
    /// 0 within a group (or without groups), 1 between groups.
    pub(super) stratum: usize,
}

impl Cell {
    fn ends(&self) -> [(Port, Way); 2] {
        [(self.from, Way::Send), (self.to, Way::Receive)]
    }
}

pub(super) struct Table {
    pub(super) cells: Vec<Cell>,
    pub(super) cell_of: Vec<u32>,
    pub(super) live: Vec<bool>,
    pub(super) levels: [Level; 2],
    pub(super) pooled: bool,
    pub(super) noise: f64,
    pub(super) least: f64,
    pub(super) two_levels: bool,
    /// Whether the better cluster is good, and not most pairs.
    pub(super) premise: bool,
}

impl Table {
    pub(super) fn new(pairs: &[Pair], setting: &Setting<'_>) -> Self {
        let mut known: HashMap<(Port, Port, u32), u32> = HashMap::with_capacity(pairs.len());
        let mut cells: Vec<Cell> = Vec::with_capacity(pairs.len());
        let mut cell_of: Vec<u32> = Vec::with_capacity(pairs.len());
        let group = |port: Port| setting.groups.get(port.host as usize);
        for pair in pairs {
            // Without direction, the lower end is first, so that both orders are the same cell.
            let swap = !setting.directed && pair.to < pair.from;
            let (from, to) = if swap { (pair.to, pair.from) } else { (pair.from, pair.to) };
            let at = *known.entry((from, to, pair.path)).or_insert_with(|| {
                let stratum = usize::from(group(from) != group(to));
                cells.push(Cell { from, to, path: pair.path, value: 0.0, stratum });
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
        // With two groups, a lower level between them may be a fault there.
        let mut crossed: Vec<_> = cells
            .iter()
            .filter(|cell| cell.stratum == 1)
            .map(|cell| {
                let (a, b) = (group(cell.from), group(cell.to));
                (a.min(b), a.max(b))
            })
            .collect();
        crossed.sort_unstable();
        crossed.dedup();
        Self {
            live: vec![true; cells.len()],
            cells,
            cell_of,
            levels: [Level { centre: 0.0, scale: 1.0, n: 0 }; 2],
            pooled: true,
            noise: setting.noise,
            least: setting.least,
            two_levels: setting.two_levels || crossed.len() > 1,
            premise: false,
        }
    }

    pub(super) fn left(&self, levels: [Level; 2]) -> Vec<f64> {
        self.cells.iter().map(|cell| cell.value - levels[cell.stratum].centre).collect()
    }

    pub(super) fn residual(&self, at: usize) -> f64 {
        self.cells[at].value - self.levels[self.cells[at].stratum].centre
    }

    pub(super) fn scale(&self, at: usize) -> f64 {
        self.levels[self.cells[at].stratum].scale
    }

    pub(super) fn score(&self, at: usize) -> f64 {
        self.residual(at) / self.scale(at)
    }
}

/// Every part that can be a suspect as a whole, with its cells.
pub(super) struct Cover {
    pub(super) parts: Vec<Part>,
    pub(super) cells: Vec<Vec<u32>>,
    /// Parts of each cell in sequence, without partitions; and the end of each cell's parts.
    of_cells: (Vec<u32>, Vec<usize>),
    known: HashMap<Part, u32>,
    directed: bool,
    /// Whether hosts have several rails, so that a NIC differs from its host.
    pub(super) several_rails: bool,
    /// By host; empty with fewer than two groups.
    groups: Vec<u32>,
    pub(super) cuts: Range<usize>,
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
            of_cells: (Vec::new(), Vec::with_capacity(table.cells.len())),
            known: HashMap::default(),
            directed: setting.directed,
            several_rails: rails.len() > 1,
            groups: if several_groups { setting.groups.to_vec() } else { Vec::new() },
            cuts: 0..0,
        };
        // Many cells share an end or the switches between.
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
                for part in numbers.into_iter().flatten() {
                    cover.of_cells.0.push(part);
                    let cells = &mut cover.cells[part as usize];
                    // Both ends of a pair may be the same.
                    if cells.last() != Some(&at) {
                        cells.push(at);
                    }
                }
            }
            let numbers = of_way.entry(cover.way(cell)).or_insert_with(|| {
                cover.between(cell, &mut parts);
                parts.drain(..).map(|part| cover.number(part)).collect()
            });
            numbers.iter().for_each(|part| cover.cells[*part as usize].push(at));
            cover.of_cells.0.extend(numbers.iter());
            cover.of_cells.1.push(cover.of_cells.0.len());
        }
        cover.cuts = cover.parts.len()..cover.parts.len();
        cover
    }

    /// Adds partitions of the hosts, except known groups.
    pub(super) fn add(&mut self, table: &Table, cuts: Vec<Part>) {
        let known = |part: &Part| matches!(part, Part::Uplink(_, Way::Both) | Part::Boundary(_, _, Way::Both));
        for cut in cuts {
            let crosses = |at: &u32| {
                let cell = &table.cells[*at as usize];
                cut.passed(cell.from, cell.to, &[])
            };
            let cells: Vec<u32> = (0..table.cells.len() as u32).filter(crosses).collect();
            let is_known = self.parts.iter().zip(&self.cells).any(|(part, of)| known(part) && *of == cells);
            if !is_known && !self.known.contains_key(&cut) {
                let number = self.number(cut) as usize;
                self.cells[number] = cells;
                self.cuts.end = number + 1;
            }
        }
    }

    pub(super) fn find(&self, part: &Part) -> Option<usize> {
        self.known.get(part).map(|number| *number as usize)
    }

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

    /// Without partitions of the hosts.
    pub(super) fn of_cell(&self, at: u32) -> &[u32] {
        let ends = &self.of_cells.1;
        let start = (at as usize).checked_sub(1).map_or(0, |before| ends[before]);
        &self.of_cells.0[start..ends[at as usize]]
    }

    /// What determines a pair's switches: group and rail of both ends.
    fn way(&self, cell: &Cell) -> [(u32, u32); 2] {
        [cell.from, cell.to].map(|end| (self.groups.get(end.host as usize).copied().unwrap_or_default(), end.rail))
    }

    fn at_end(&self, (port, way): (Port, Way), parts: &mut Vec<Part>) {
        for way in [Some(Way::Both), self.directed.then_some(way)].into_iter().flatten() {
            parts.push(Part::Host(port.host, way));
            if self.several_rails {
                parts.push(Part::Nic(port, way));
            }
        }
    }

    /// Adds the switches and ways between the ends of a pair.
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

    pub(super) fn is_grouped(&self) -> bool {
        !self.groups.is_empty()
    }

    pub(super) fn group(&self, host: u32) -> u32 {
        self.groups[host as usize]
    }

    /// Members of a part that a pair touches: each must be low for the part to be named.
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
            Part::Boundary(..) | Part::Cut(_) => ends.map(|end| Some(end.host)),
            _ => [None, None],
        }
    }

    /// Other side of a part: it must be more than one thing, or that would be the part.
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

pub(super) fn partners(table: &Table, cells: &[u32], part: &Part) -> usize {
    let own = |port: &Port| match part {
        Part::Host(host, _) => port.host == *host,
        Part::Nic(nic, _) => port == nic,
        _ => false,
    };
    let ends = cells.iter().flat_map(|&at| [table.cells[at as usize].from, table.cells[at as usize].to]);
    ends.filter(|port| !own(port)).map(|port| port.host).collect::<BTreeSet<u32>>().len()
}
