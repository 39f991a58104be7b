//! What the parts found so far explain, and what one more would.

use super::{
    Fabric, Part,
    table::{Table, counted},
};

/// Standard deviations from its part's effect within which a result counts for that effect.
const NEAR: f64 = 4.0;
/// Most first values of an effect that are tried.
const TRIALS: usize = 6;
/// Steps by which the best of them is refined.
const STEPS: usize = 3;
/// Standard deviations below the level from which a result may be a first value.
const LOW: f64 = 1.5;

/// Parts found, and how well they explain every flow.
pub(super) struct State<'a> {
    fabric: &'a Fabric,
    table: &'a Table,
    effects: Vec<f64>,
    /// What each route of each flow is expected to differ by from its level; the routes of flow c begin at `starts[c]`.
    expected: Vec<f64>,
    starts: Vec<usize>,
    /// Sum over the routes of each flow of how likely its result is.
    mass: Vec<f64>,
    /// Most that one flow costs: whatever its result, it may be a stray.
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

    /// What a flow costs now: half of the square of its distance in standard deviations, where its route is known.
    pub(super) fn cost(&self, cell: u32) -> f64 {
        self.cost_of(self.mass[cell as usize], cell as usize)
    }

    pub(super) fn total(&self) -> f64 {
        (0..self.mass.len() as u32).map(|cell| self.cost(cell)).sum()
    }

    /// Mass of a flow if these of its routes had the effect, and the part of it that those routes make.
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

    /// By how much the flows cost less if these routes had the effect.
    pub(super) fn gain(&self, touches: &[(u32, u16)], effect: f64) -> f64 {
        let of = |touches: &[(u32, u16)]| {
            let at = touches[0].0;
            self.cost(at) - self.cost_of(self.with(touches, effect).0, at as usize)
        };
        touches.chunk_by(|a, b| a.0 == b.0).map(of).sum()
    }

    /// Most that a part of these routes could explain.
    pub(super) fn bound(&self, touches: &[(u32, u16)]) -> f64 {
        let low = |cell: u32| self.table.cells[cell as usize].residual < 0.0;
        counted(touches).filter(|(cell, _)| low(*cell)).map(|(cell, _)| self.cost(cell)).sum()
    }

    /// The effect of a part of these routes that explains most, with its gain.
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

    /// Mean of the results that an effect explains, each by how likely it passes these routes and by its precision.
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

    /// What other parts take from the flow on every one of its routes.
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

    /// Computes anew what these links and the flows on them are expected to do.
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
        // Other parts on the same routes.
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

/// Likelihood of a normal value so many standard deviations from its centre, 1 at the centre.
fn likelihood(z: f64) -> f64 {
    (-z * z / 2.0).exp()
}
