//! Flows that a hash spreads over paths.

use proptest::prelude::*;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use super::super::hashed::flows;

/// Probability that `flows` flows take all of `paths` equal paths, by the same formula; 0 if there are fewer flows than paths.
fn probability(paths: u64, flows: u64) -> f64 {
    if paths == 0 || flows < paths {
        return 0.0;
    }
    if paths == 1 {
        return 1.0;
    }
    let m = paths as f64;
    let missed = ((-1.0 / m).ln_1p() * flows as f64).exp();
    ((-missed).ln_1p() * m).exp()
}

/// Exact, flow by flow: the probability that k paths are taken.
fn exact(paths: usize, flows: u64) -> f64 {
    let mut taken = vec![0.0; paths + 1];
    taken[0] = 1.0;
    for _ in 0..flows {
        for k in (0..=paths).rev() {
            let new = if k == 0 { 0.0 } else { taken[k - 1] * (paths - k + 1) as f64 / paths as f64 };
            taken[k] = taken[k] * k as f64 / paths as f64 + new;
        }
    }
    taken[paths]
}

#[test]
fn the_published_example() {
    assert_eq!(flows(16, 0.9), Some(78));
}

#[test]
fn edges() {
    assert_eq!(flows(1, 0.9), Some(1));
    assert_eq!(flows(1, 0.0), Some(1));
    assert_eq!(flows(8, 0.0), Some(8));
    assert_eq!(flows(0, 0.5), None);
    for p in [1.0, 1.1, -0.1, f64::NAN, f64::INFINITY] {
        assert_eq!(flows(4, p), None, "{p}");
    }
    assert!(flows(16, 1.0 - f64::EPSILON).is_some_and(|n| n > 500));
    assert_eq!(flows(u64::MAX, 0.9), None);
    assert_eq!((probability(0, 5), probability(4, 3), probability(1, 1)), (0.0, 0.0, 1.0));
}

/// The error that the module's text names.
#[test]
fn the_formula_is_near_the_true_probability() {
    for paths in [2_u64, 3, 4, 8, 16, 32, 64, 128, 256] {
        let n = flows(paths, 0.9).unwrap();
        let (formula, truth) = (probability(paths, n), exact(paths as usize, n));
        assert!(
            formula >= 0.9 && truth <= formula && formula - truth < 0.01,
            "{paths} paths, {n} flows: {formula} {truth}"
        );
    }
}

proptest! {
    #[test]
    fn it_is_the_smallest_number(paths in 2..500_u64, p in 0.001..0.9999_f64) {
        let n = flows(paths, p).unwrap();
        prop_assert!(probability(paths, n) >= p * (1.0 - 1e-9));
        prop_assert!(n == paths || probability(paths, n - 1) < p * (1.0 + 1e-9));
    }

    #[test]
    fn no_number_panics(paths in any::<u64>(), p in any::<f64>(), n in any::<u64>()) {
        let _ = flows(paths, p);
        prop_assert!((0.0..=1.0).contains(&probability(paths, n)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn simulation_agrees(paths in 2..33_u64, p in 0.5..0.99_f64, seed in any::<[u8; 32]>()) {
        let n = flows(paths, p).unwrap();
        let mut rng = ChaCha8Rng::from_seed(seed);
        let draws = 2_000;
        let all = (1_u64 << paths) - 1;
        let hits = (0..draws).filter(|_| (0..n).fold(0, |seen, _| seen | 1 << (rng.next_u64() % paths)) == all).count();
        let (truth, formula) = (exact(paths as usize, n), probability(paths, n));
        // Five standard deviations of a share of 2,000 draws.
        prop_assert!((hits as f64 / f64::from(draws) - truth).abs() < 0.056, "{hits} {truth}");
        prop_assert!(truth <= formula + 1e-9 && formula - truth < 0.08, "{formula} {truth}");
    }
}
