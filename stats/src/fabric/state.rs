//! Explained results of the parts found so far, and of one more.

use super::{
    Fabric, Part,
    table::{Table, counted},
};

/// A result counts for its part's effect within this many standard deviations.
const NEAR: f64 = 4.0;
const TRIALS: usize = 6;
const STEPS: usize = 3;
/// An initial value is at least this many standard deviations below the level.
const LOW: f64 = 1.5;

pub(super) struct State<'a> {
    fabric: &'a Fabric,
    table: &'a Table,
    effects: Vec<f64>,
    /// Expected difference of each route of each flow from its level; the routes of flow c begin at `starts[c]`.
    expected: Vec<f64>,
    starts: Vec<usize>,
    /// By flow: summed likelihood of its result over its routes.
    mass: Vec<f64>,
    /// Maximum cost of a flow, which may be a stray.
    cap: f64,
    least: f64,
    pub(super) found: Vec<(Part, f64)>,
}

impl<'a> State<'a> {
    pub(super) fn new(fabric: &'a Fabric, table: &'a Table, cap: f64, least: f64) -> Self {
        let mut starts = Vec::with_capacity(table.cells.len());
        let mut routes = 0;
        for cell in &table.cells {
            starts.push(routes);
            routes += cell.routes;
        }
        let mass = table.cells.iter().map(|cell| cell.routes as f64 * likelihood(cell.residual / cell.error)).collect();
        let effects = vec![0.0; fabric.links().len()];
        Self { fabric, table, effects, expected: vec![0.0; routes], starts, mass, cap, least, found: Vec::new() }
    }

    fn cost_of(&self, mass: f64, cell: usize) -> f64 {
        (-(mass / self.table.cells[cell].routes as f64).ln()).min(self.cap)
    }

    /// Half of the squared distance in standard deviations, for a known route.
    pub(super) fn cost(&self, cell: u32) -> f64 {
        self.cost_of(self.mass[cell as usize], cell as usize)
    }

    pub(super) fn total(&self) -> f64 {
        (0..self.mass.len() as u32).map(|cell| self.cost(cell)).sum()
    }

    /// Mass of a flow if these routes had the effect, and their part of it.
    fn with(&self, touches: &[(u32, u16)], effect: f64) -> (f64, f64) {
        let at = touches[0].0 as usize;
        let cell = &self.table.cells[at];
        let (mut mass, mut own) = (self.mass[at], 0.0);
        for &(_, route) in touches {
            let before = self.expected[self.starts[at] + usize::from(route)];
            if effect < before {
                let after = likelihood((cell.residual - effect) / cell.error);
                mass += after - likelihood((cell.residual - before) / cell.error);
                own += after;
            }
        }
        (mass.max(own), own)
    }

    /// Cost reduction if these routes had the effect.
    pub(super) fn gain(&self, touches: &[(u32, u16)], effect: f64) -> f64 {
        let of = |touches: &[(u32, u16)]| {
            let at = touches[0].0;
            self.cost(at) - self.cost_of(self.with(touches, effect).0, at as usize)
        };
        touches.chunk_by(|a, b| a.0 == b.0).map(of).sum()
    }

    pub(super) fn bound(&self, touches: &[(u32, u16)]) -> f64 {
        let low = |cell: u32| self.table.cells[cell as usize].residual < 0.0;
        counted(touches).filter(|(cell, _)| low(*cell)).map(|(cell, _)| self.cost(cell)).sum()
    }

    /// The effect of these routes that explains most, with its gain.
    pub(super) fn best(&self, touches: &[(u32, u16)]) -> Option<(f64, f64)> {
        let cells = counted(touches).map(|(cell, _)| &self.table.cells[cell as usize]);
        let low = cells.filter(|cell| cell.residual < -(LOW * cell.error).max(self.least));
        let mut low: Vec<f64> = low.map(|cell| cell.residual).collect();
        low.sort_unstable_by(f64::total_cmp);
        let trials = low.len().min(TRIALS);
        let trial = |number: usize| low[(2 * number + 1) * low.len() / (2 * trials)];
        let tried = (0..trials).map(|number| (trial(number), self.gain(touches, trial(number))));
        let mut best = tried.max_by(|a, b| a.1.total_cmp(&b.1))?;
        for _ in 0..STEPS {
            let effect = self.centre(touches, best.0).min(-self.least);
            let gain = self.gain(touches, effect);
            if gain <= best.1 {
                break;
            }
            best = (effect, gain);
        }
        Some(best)
    }

    /// Mean of the explained results, weighted by probability of these routes and precision.
    fn centre(&self, touches: &[(u32, u16)], effect: f64) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for of in touches.chunk_by(|a, b| a.0 == b.0) {
            let cell = &self.table.cells[of[0].0 as usize];
            let (mass, own) = self.with(of, effect);
            if (cell.residual - effect).abs() < NEAR * cell.error && own > 0.0 {
                let weight = own / mass / (cell.error * cell.error);
                sum += weight * cell.residual;
                weights += weight;
            }
        }
        if weights > 0.0 { sum / weights } else { effect }
    }

    /// Probability that a flow passes one of these routes, given its result, if they have the effect.
    pub(super) fn responsible(&self, touches: &[(u32, u16)], effect: f64) -> f64 {
        let (mass, own) = self.with(touches, effect);
        if mass > 0.0 { own / mass } else { 0.0 }
    }

    /// Smallest effect of other parts over all routes of the flow.
    pub(super) fn expected(&self, cell: u32) -> f64 {
        let start = self.starts[cell as usize];
        let routes = &self.expected[start..start + self.table.cells[cell as usize].routes];
        routes.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    pub(super) fn add(&mut self, part: Part, effect: f64) {
        self.found.push((part, effect));
        self.settle(&self.fabric.links_of(&part));
    }

    pub(super) fn remove(&mut self, at: usize) -> (Part, f64) {
        let gone = self.found.remove(at);
        self.settle(&self.fabric.links_of(&gone.0));
        gone
    }

    pub(super) fn insert(&mut self, at: usize, part: Part, effect: f64) {
        self.found.insert(at, (part, effect));
        self.settle(&self.fabric.links_of(&part));
    }

    fn settle(&mut self, links: &[u32]) {
        for &link in links {
            self.effects[link as usize] = 0.0;
        }
        for (part, effect) in &self.found {
            for link in self.fabric.links_of(part) {
                let of = &mut self.effects[link as usize];
                *of = of.min(*effect);
            }
        }
        let touches = self.table.touching(links);
        for &(cell, route) in &touches {
            self.expected[self.starts[cell as usize] + usize::from(route)] = 0.0;
        }
        let mut bad: Vec<u32> = self.found.iter().flat_map(|(part, _)| self.fabric.links_of(part)).collect();
        bad.sort_unstable();
        bad.dedup();
        for link in bad {
            for &(cell, route) in &self.table.passing[link as usize] {
                let of = &mut self.expected[self.starts[cell as usize] + usize::from(route)];
                *of = of.min(self.effects[link as usize]);
            }
        }
        for (cell, _) in counted(&touches) {
            let (at, of) = (cell as usize, &self.table.cells[cell as usize]);
            let expected = &self.expected[self.starts[at]..self.starts[at] + of.routes];
            self.mass[at] = expected.iter().map(|expected| likelihood((of.residual - expected) / of.error)).sum();
        }
    }
}

/// Relative to the centre, at this many standard deviations.
fn likelihood(z: f64) -> f64 {
    (-z * z / 2.0).exp()
}
