//! Tests as flows, relative to the level of their kind.

use std::collections::BTreeMap;

use super::{DEAD, FEWEST, Fabric, Route, Setting, Test};
use crate::{
    refusal::Refusal,
    robust::{Level, median_in_place},
};

/// Share of the variance between good paths that repeats do not reduce: paths differ by nature. A conservative half.
const OWN: f64 = 0.5;
/// A better cluster is this many standard deviations above the centre, with at least this share of values.
const ABOVE: (f64, f64) = (4.0, 0.1);

/// A flow: tests of the same ports over the same route.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) tests: Vec<usize>,
    /// [`DEAD`] where most of its tests had no result.
    pub(super) residual: f64,
    pub(super) error: f64,
    pub(super) routes: usize,
    kind: u32,
    dead: bool,
}

#[derive(Clone)]
pub(super) struct Table {
    pub(super) cells: Vec<Cell>,
    /// By link: the flows and routes that pass it, in order.
    pub(super) passing: Vec<Vec<(u32, u16)>>,
    pub(super) levels: BTreeMap<u32, Level>,
    /// Levels of the better cluster, for kinds that have one.
    better: BTreeMap<u32, Level>,
}

struct Flow<'a> {
    tests: Vec<usize>,
    kind: u32,
    value: Option<f64>,
    routes: &'a [Route],
}

type Key<'a> = ([u32; 4], &'a [Route]);

fn flows<'a>(tests: &'a [Test]) -> Vec<Flow<'a>> {
    let mut found: BTreeMap<Key<'a>, Vec<usize>> = BTreeMap::new();
    for (at, test) in tests.iter().enumerate() {
        found.entry(([test.from, test.to, test.flow, test.kind], &test.routes)).or_default().push(at);
    }
    let flow = |(([.., kind], routes), of): (Key<'a>, Vec<usize>)| {
        let mut values: Vec<f64> = of.iter().filter_map(|&at| tests[at].value).collect();
        let dead = 2 * values.len() <= of.len();
        Flow { value: (!dead).then(|| median_in_place(&mut values)), tests: of, kind, routes }
    };
    found.into_iter().map(flow).collect()
}

impl Table {
    /// With the shortest half of the values of each kind as good.
    pub(super) fn new(fabric: &Fabric, tests: &[Test], setting: &Setting) -> Result<Self, Refusal> {
        let flows = flows(tests);
        let mut values: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for flow in &flows {
            values.entry(flow.kind).or_default().extend(flow.value);
        }
        let most = values.values().map(Vec::len).max().unwrap_or(0);
        values.retain(|_, of| of.len() >= FEWEST);
        if values.is_empty() {
            return Err(Refusal::TooFew { need: FEWEST, got: most });
        }
        let (mut levels, mut upper) = (BTreeMap::new(), BTreeMap::new());
        for (kind, of) in values {
            let level = Level::of(&of, setting.noise)?;
            levels.insert(kind, level);
            if let Some(of) = better(&of, &level) {
                upper.insert(kind, Level::of(&of, setting.noise)?);
            }
        }
        let passing = vec![Vec::new(); fabric.links().len()];
        let mut table = Self { cells: Vec::new(), passing, levels, better: upper };
        for flow in flows {
            let Some(level) = table.levels.get(&flow.kind) else { continue };
            let residual = flow.value.map_or(DEAD, |value| (value - level.centre).max(DEAD));
            let error = error(level, flow.tests.len());
            let at = table.cells.len() as u32;
            for (route, links) in flow.routes.iter().enumerate() {
                links.iter().for_each(|&link| table.passing[link as usize].push((at, route as u16)));
            }
            let (routes, kind, dead) = (flow.routes.len(), flow.kind, flow.value.is_none());
            table.cells.push(Cell { tests: flow.tests, residual, error, routes, kind, dead });
        }
        // A route may pass a link twice.
        table.passing.iter_mut().for_each(Vec::dedup);
        Ok(table)
    }

    /// With the better cluster of each kind as good; `None` without one.
    pub(super) fn above(&self) -> Option<Self> {
        if self.better.is_empty() {
            return None;
        }
        let mut table = self.clone();
        for cell in &mut table.cells {
            let (Some(old), Some(new)) = (self.levels.get(&cell.kind), self.better.get(&cell.kind)) else { continue };
            if !cell.dead {
                cell.residual = (cell.residual + old.centre - new.centre).max(DEAD);
            }
            cell.error = error(new, cell.tests.len());
        }
        table.levels.extend(self.better.clone());
        Some(table)
    }

    /// Every flow that may pass one of these links, with the routes that do.
    pub(super) fn touching(&self, links: &[u32]) -> Vec<(u32, u16)> {
        let mut touches: Vec<(u32, u16)> =
            links.iter().flat_map(|&link| &self.passing[link as usize]).copied().collect();
        if links.len() > 1 {
            touches.sort_unstable();
            touches.dedup();
        }
        touches
    }
}

fn error(level: &Level, tests: usize) -> f64 {
    level.scale * (OWN + (1.0 - OWN) / tests as f64).sqrt()
}

/// The values far above the level, if their share is large enough.
fn better(values: &[f64], level: &Level) -> Option<Vec<f64>> {
    let from = level.centre + ABOVE.0 * level.scale;
    let above: Vec<f64> = values.iter().copied().filter(|value| *value > from).collect();
    (above.len() >= FEWEST && above.len() as f64 >= ABOVE.1 * values.len() as f64).then_some(above)
}

/// Touched flows without duplicates, with their number of touched routes.
pub(super) fn counted(touches: &[(u32, u16)]) -> impl Iterator<Item = (u32, u16)> {
    touches.chunk_by(|a, b| a.0 == b.0).map(|of| (of[0].0, of.len() as u16))
}
