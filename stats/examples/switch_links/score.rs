//! Many fabrics with one kind of fault: what every method names, against the truth.

use std::{collections::BTreeSet, num::NonZero, thread};

use railgauge_stats::fabric::{Fabric, Part};

use crate::{
    bisection, netbouncer, ours,
    tree::Tree,
    world::{Fault, World},
};

#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub tree: &'a Tree,
    pub fault: Fault,
    pub noise: f64,
    /// Share of results that are a fifth low for no reason.
    pub strays: f64,
    pub heavy: bool,
    pub screen: usize,
    pub beside: bool,
}

impl<'a> Scene<'a> {
    /// A healthy fabric with plain noise; no other method is tried.
    pub fn healthy(tree: &'a Tree, noise: f64) -> Self {
        Self { tree, fault: Fault::None, noise, strays: 0.0, heavy: false, screen: ours::SCREEN, beside: false }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Score {
    pub truth: usize,
    pub named: usize,
    /// Of them, those that are bad, exactly so and without an alternative.
    pub right: usize,
    /// Of them, those that are bad or have a bad part among their alternatives.
    pub among: usize,
    /// Bad parts that are named, or are among the alternatives of a name.
    pub covered: usize,
    /// Cables that the names leave open, the named ones included; a device counts once.
    pub open: usize,
    pub fabrics: usize,
    pub suspected: usize,
    pub tests: usize,
    pub probes: usize,
}

impl Score {
    fn count(&mut self, fabric: &Fabric, truth: &[Part], named: &[(Part, Vec<Part>)]) {
        self.truth += truth.len();
        self.named += named.len();
        self.right += named.iter().filter(|(part, others)| others.is_empty() && truth.contains(part)).count();
        let holds = |(part, others): &(Part, Vec<Part>), of: &Part| part == of || others.contains(of);
        self.among += named.iter().filter(|name| truth.iter().any(|of| holds(name, of))).count();
        self.covered += truth.iter().filter(|of| named.iter().any(|name| holds(name, of))).count();
        let whole = |part: &Part| if let Part::Link(link) = *part { fabric.cable(link) } else { *part };
        let open =
            |(part, others): &(Part, Vec<Part>)| others.iter().chain([part]).map(whole).collect::<BTreeSet<_>>().len();
        self.open += named.iter().map(open).sum::<usize>();
        self.fabrics += usize::from(!named.is_empty());
    }

    fn add(&mut self, other: &Self) {
        self.truth += other.truth;
        self.named += other.named;
        self.right += other.right;
        self.among += other.among;
        self.covered += other.covered;
        self.open += other.open;
        self.fabrics += other.fabrics;
        self.suspected += other.suspected;
        self.tests += other.tests;
        self.probes += other.probes;
    }
}

/// The scores of our method, of the fit in the manner of NetBouncer on the same tests, and of bisection with as many tests.
pub type Scores = [Score; 3];

/// So many fabrics of a situation, on all processors. `seed` and the number of a fabric are its own seed.
pub fn score(scene: &Scene<'_>, runs: usize, seed: u64) -> Scores {
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let mut sum = Scores::default();
    thread::scope(|scope| {
        let work = |worker: usize| {
            move || {
                let mut own = Scores::default();
                (worker..runs)
                    .step_by(workers)
                    .for_each(|run| one(scene, seed.wrapping_mul(1_000_003) + run as u64, &mut own));
                own
            }
        };
        let started: Vec<_> = (0..workers).map(|worker| scope.spawn(work(worker))).collect();
        for thread in started {
            #[expect(clippy::expect_used, reason = "a worker that panicked has said why")]
            let own = thread.join().expect("a worker ended");
            sum.iter_mut().zip(&own).for_each(|(sum, own)| sum.add(own));
        }
    });
    sum
}

fn one(scene: &Scene<'_>, seed: u64, scores: &mut Scores) {
    let world = || {
        let mut world = World::new(scene.tree, scene.fault, scene.noise, scene.strays, seed);
        world.heavy = scene.heavy;
        world
    };
    let mut own = world();
    let mut tests = ours::screen(&mut own, scene.screen);
    let screen = tests.len();
    let said = ours::run(&mut own, &mut tests);
    scores[0].count(&scene.tree.fabric, &own.truth, &said.named);
    scores[0].suspected += usize::from(said.suspected);
    scores[0].tests += tests.len();
    scores[0].probes += tests.len() - screen;
    if scene.beside {
        // The others are not asked for the direction: the cable will do.
        let whole = |part: Part| if let Part::Link(link) = part { scene.tree.fabric.cable(link) } else { part };
        let plain = |named: Vec<Part>| {
            let named: BTreeSet<Part> = named.into_iter().map(whole).collect();
            named.into_iter().map(|part| (part, Vec::new())).collect::<Vec<_>>()
        };
        let truth: Vec<Part> = own.truth.iter().copied().map(whole).collect();
        scores[1].count(&scene.tree.fabric, &truth, &plain(netbouncer::named(scene.tree, &tests)));
        scores[1].tests += tests.len();
        let mut other = world();
        scores[2].count(&scene.tree.fabric, &truth, &plain(bisection::named(&mut other, tests.len())));
        scores[2].tests += other.asked;
    }
}
