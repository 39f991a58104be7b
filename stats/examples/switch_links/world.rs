//! A fabric with a fault, and what tests on it give: the truth that the methods do not see.

use railgauge_stats::fabric::{Part, Route};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::tree::Tree;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    None,
    /// So many cables, both directions, each with this effect.
    Cables(usize, f64),
    OneWay(f64),
    Switch(f64),
    /// The NIC of a host, which is its only cable.
    Nic(f64),
}

pub const DEAD: f64 = f64::NEG_INFINITY;

pub struct World<'a> {
    pub tree: &'a Tree,
    pub truth: Vec<Part>,
    effects: Vec<f64>,
    noise: f64,
    /// How often a single result is a fifth lower for no reason.
    strays: f64,
    /// Whether noise is Student's t with 3 degrees of freedom, scaled to the same standard deviation, and not normal.
    pub heavy: bool,
    random: ChaCha8Rng,
    salt: u64,
    pub asked: usize,
}

impl<'a> World<'a> {
    pub fn new(tree: &'a Tree, fault: Fault, noise: f64, strays: f64, seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        let effects = vec![0.0; tree.fabric.links().len()];
        let mut world =
            Self { tree, truth: Vec::new(), effects, noise, strays, heavy: false, random, salt: 0, asked: 0 };
        world.salt = world.random.random();
        let cables = tree.cables() as u32;
        let (parts, effect): (Vec<Part>, f64) = match fault {
            Fault::None => (Vec::new(), 0.0),
            Fault::Cables(n, effect) => {
                let mut parts: Vec<Part> = Vec::new();
                while parts.len() < n {
                    let part = tree.fabric.cable(2 * world.below(cables));
                    if !parts.contains(&part) {
                        parts.push(part);
                    }
                }
                (parts, effect)
            }
            Fault::OneWay(effect) => (vec![Part::Link(world.below(2 * cables))], effect),
            Fault::Switch(effect) => {
                let at = world.below(tree.switches.len() as u32);
                (vec![Part::Device(tree.switches[at as usize])], effect)
            }
            Fault::Nic(effect) => (vec![tree.fabric.cable(2 * world.below(tree.ports))], effect),
        };
        for part in &parts {
            tree.fabric.links_of(part).iter().for_each(|&link| world.effects[link as usize] = effect);
        }
        world.truth = parts;
        world
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        ((self.random.random::<f64>() * f64::from(n)) as u32).min(n.saturating_sub(1))
    }

    /// The natural logarithm of what a test gives, relative to a good path; `None` if nothing arrives. A flow takes the same of
    /// its routes every time.
    pub fn test(&mut self, from: u32, to: u32, flow: u32, routes: &[Route]) -> Option<f64> {
        self.asked += 1;
        let key = self.salt ^ u64::from(from) << 40 ^ u64::from(to) << 20 ^ u64::from(flow);
        let route = &routes[(mixed(key) % routes.len() as u64) as usize];
        let effect = route.iter().map(|&link| self.effects[link as usize]).fold(0.0, f64::min);
        let mut noise = self.noise * self.normal();
        if self.heavy {
            noise /= (0..3).map(|_| self.normal().powi(2)).sum::<f64>().sqrt();
        }
        let stray = if self.random.random::<f64>() < self.strays { (0.8_f64).ln() } else { 0.0 };
        (effect > DEAD).then_some(effect.min(stray) + noise)
    }

    /// A normal number (Box & Muller 1958).
    fn normal(&mut self) -> f64 {
        let (a, b): (f64, f64) = (1.0 - self.random.random::<f64>(), self.random.random());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

/// The finaliser of SplitMix64 (Steele et al. 2014): what a switch makes of a flow's addresses.
fn mixed(key: u64) -> u64 {
    let a = (key.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let b = (a ^ a >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    b ^ b >> 31
}
