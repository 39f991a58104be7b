//! How much a test of several passes would have shown of slow paths: whether what was seen rules them out.
//!
//! Two kinds of damage are the hardest to see. Two paths whose rates add up to a good one's look like a full path whenever the hash puts
//! as many flows on one as on the other: half of a pass's evidence is gone then, and only other passes show it. And one path that is hardly
//! slow: flows that share it nearly fill it. Everything else is seen more often.

use statrs::{
    distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal},
    function::factorial::factorial,
};

/// Share of flows on slow paths that may be told to collide, for either kind of damage.
const FALSE: f64 = 5e-4;

/// The mildest damage that is looked for: a path that lacks so much of its rate.
pub(super) const MILDEST: f64 = 0.1;

/// Flows on a path that are counted one by one: with as many flows as paths more come together once in ten thousand million.
const MOST: u64 = 12;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setting {
    pub load: f64,
    /// Standard deviation of the logarithm of a flow's rate.
    pub noise: f64,
    /// A flow is low if it lacks so much of a path.
    pub low: f64,
    /// Standard deviation of what all groups of the like in a pass fill together, in paths.
    pub deviation: f64,
    /// Such a group is not full if it lacks so many of these.
    pub cut: f64,
}

struct Damage {
    /// The chance that a pass does not show it.
    unseen: f64,
    /// The chance that a flow on a slow path looks as if it collided, in a pass that does not show it.
    mimics: f64,
}

impl Setting {
    /// The chance that k flows are on a path (Poisson: many flows, each on any path with a small chance).
    fn on_path(&self, flows: u64) -> f64 {
        (-self.load).exp() * self.load.powf(flows as f64) / factorial(flows)
    }

    /// Two paths that together have the rate of a good one.
    fn two(&self) -> Damage {
        let both = |flows: u64| self.on_path(flows).powi(2);
        Damage {
            unseen: (0..=MOST).map(both).sum(),
            mimics: (1..=MOST).map(|flows| flows as f64 * both(flows)).sum::<f64>() / self.load,
        }
    }

    /// One path that lacks [`MILDEST`].
    fn mild(&self) -> Damage {
        let normal = Normal::standard();
        let alone = normal.cdf((MILDEST - self.low) / ((1.0 - MILDEST) * self.noise));
        let shared = normal.cdf(MILDEST / self.deviation - self.cut);
        let (none, one) = (self.on_path(0), self.on_path(1));
        let more = 1.0 - none - one;
        Damage { unseen: none + one * (1.0 - alone) + more * (1.0 - shared), mimics: (1.0 - none) * (1.0 - shared) }
    }

    /// How many of so many passes may be odd ones without anybody on a slow path being told to collide more often than [`FALSE`];
    /// `None` if even none is too many.
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

    /// Fewest passes in which nothing odd would tell collisions; `None` if hundreds are not enough.
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
