//! Detection power of several passes: whether the observations rule out slow paths.
//!
//! Two kinds of damage are the hardest to detect. Two paths whose rates add up to a good one's look like a full path whenever the hash
//! puts as many flows on one as on the other: a pass then loses half of its evidence. And a slightly slow path: flows that share it
//! nearly fill it. Everything else is detected more often.

use statrs::{
    distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal},
    function::factorial::factorial,
};

/// Allowed share of flows on slow paths that are classified as colliding, for either kind.
const FALSE: f64 = 5e-4;

/// Mildest damage to detect: missing share of a path's rate.
pub(super) const MILDEST: f64 = 0.1;

/// Flows on a path counted one by one: with as many flows as paths, more occur once in ten thousand million.
const MOST: u64 = 12;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setting {
    pub load: f64,
    pub noise: f64,
    /// A flow is low if it lacks this much of a path.
    pub low: f64,
    /// Standard deviation of the sum of equal groups in a pass, in paths.
    pub deviation: f64,
    /// Such a sum is not full if it lacks this many of these.
    pub cut: f64,
}

struct Damage {
    /// Chance that a pass does not show it.
    unseen: f64,
    /// Chance that a flow on a slow path looks colliding, in a pass that does not show it.
    mimics: f64,
}

impl Setting {
    /// Chance of k flows on a path (Poisson: many flows, each on any path with a small chance).
    fn on_path(&self, flows: u64) -> f64 {
        (-self.load).exp() * self.load.powf(flows as f64) / factorial(flows)
    }

    fn two(&self) -> Damage {
        let both = |flows: u64| self.on_path(flows).powi(2);
        Damage {
            unseen: (0..=MOST).map(both).sum(),
            mimics: (1..=MOST).map(|flows| flows as f64 * both(flows)).sum::<f64>() / self.load,
        }
    }

    fn mild(&self) -> Damage {
        let normal = Normal::standard();
        let alone = normal.cdf((MILDEST - self.low) / ((1.0 - MILDEST) * self.noise));
        let shared = normal.cdf(MILDEST / self.deviation - self.cut);
        let (none, one) = (self.on_path(0), self.on_path(1));
        let more = 1.0 - none - one;
        Damage { unseen: none + one * (1.0 - alone) + more * (1.0 - shared), mimics: (1.0 - none) * (1.0 - shared) }
    }

    /// Odd passes allowed while flows on slow paths are misclassified at most as often as [`FALSE`]; `None` if even none is too many.
    pub(super) fn allowed(&self, passes: usize) -> Option<u64> {
        let others = passes.checked_sub(1)? as u64;
        let is_safe = |odd: u64| {
            [self.two(), self.mild()].iter().all(|damage| {
                let seen = (1.0 - damage.unseen).clamp(0.0, 1.0);
                let missed = Binomial::new(seen, others).map_or(1.0, |of| of.cdf(odd));
                damage.mimics * missed <= FALSE
            })
        };
        (0..others).take_while(|odd| is_safe(*odd)).last().or_else(|| (others == 0 && is_safe(0)).then_some(0))
    }

    /// Fewest passes without an odd one for a result; `None` if hundreds are not enough.
    pub(super) fn needed(&self) -> Option<usize> {
        (1..500).find(|passes| self.allowed(*passes).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Setting = Setting { load: 1.0, noise: 0.01, low: 0.05, deviation: 0.016, cut: 3.0 };

    #[test]
    fn few_passes_show_too_little() {
        assert_eq!(QUIET.allowed(3), None);
        let needed = QUIET.needed().unwrap();
        assert!((5..=8).contains(&needed), "{needed}");
        assert_eq!(QUIET.allowed(needed), Some(0));
        assert!(QUIET.allowed(30).unwrap() > 3);
        // Where slow paths have flows less often, or noise hides them, more passes are needed.
        assert!(Setting { load: 0.5, ..QUIET }.needed().unwrap() > needed);
        assert!(Setting { noise: 0.03, low: 0.09, deviation: 0.04, ..QUIET }.needed().unwrap() > needed);
        assert_eq!(Setting { noise: 0.3, low: 0.1, deviation: 0.5, load: 1e-3, ..QUIET }.needed(), None);
    }
}
