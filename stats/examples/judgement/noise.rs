//! Noise of many kinds, each with standard deviation 1 and median or mean near 0, from a seed.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Normal,
    /// Student's t with 3 degrees of freedom, scaled to standard deviation 1.
    Heavy,
    /// Normal, and one value in 50 lower by 8.
    Dips,
    /// Autocorrelated normal noise of order 1 with this correlation of neighbours.
    Correlated(f64),
    /// Skewed to the left: the negative of a log-normal variable with this shape, standardised.
    LeftSkewed(f64),
    RightSkewed(f64),
    /// Two states, each with a fifth of this distance as its own spread, drawn anew for every value.
    Bimodal(f64),
}

/// A source of noise.
#[derive(Debug, Clone)]
pub struct Noise {
    random: ChaCha8Rng,
    kind: Kind,
    last: Option<f64>,
}

impl Noise {
    /// A source from a seed.
    pub fn new(kind: Kind, seed: u64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed), kind, last: None }
    }

    /// A uniform number in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.random.random()
    }

    /// A whole number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.uniform() * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// A normal number (Box & Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    pub fn next(&mut self) -> f64 {
        match self.kind {
            Kind::Normal => self.normal(),
            Kind::Heavy => {
                let z = self.normal();
                let chi: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
                z / (chi / 3.0).sqrt() / 3f64.sqrt()
            }
            Kind::Dips => self.normal() - if self.uniform() < 0.02 { 8.0 } else { 0.0 },
            Kind::Correlated(r) => {
                let fresh = self.normal();
                let value = self.last.map_or(fresh, |last| r * last + (1.0 - r * r).sqrt() * fresh);
                self.last = Some(value);
                value
            }
            Kind::RightSkewed(shape) => self.skewed(shape),
            Kind::LeftSkewed(shape) => -self.skewed(shape),
            Kind::Bimodal(distance) => {
                let state = if self.uniform() < 0.5 { -0.5 } else { 0.5 };
                distance * (state + 0.2 * self.normal()) / (distance * (0.25f64 + 0.04).sqrt())
            }
        }
    }

    /// A standardised log-normal number: mean 0, standard deviation 1.
    fn skewed(&mut self, shape: f64) -> f64 {
        let (mean, variance) = ((shape * shape / 2.0).exp(), (shape * shape).exp_m1() * (shape * shape).exp());
        ((shape * self.normal()).exp() - mean) / variance.sqrt()
    }
}
