//! Lanes of one pair that we generate: how often a bad path's lanes are named, and how often good ones.
//!
//! The figures of docs/methods.md are printed by `cargo test -p railgauge-stats --test statistics lanes -- --nocapture`.

use crate::generators::Noise;
use proptest::prelude::*;
use railgauge_stats::{
    Refusal,
    localise::{Lanes, lanes},
};

/// Not used while the rule was made; development used 1 and 2.
const FRESH: u64 = 1_618_033_988;
const LANES: usize = 8;
const REPEATS: usize = 3;
const LEAST: f64 = 0.01;

/// What disturbs the result of a lane, by the number of the result in time.
type Disturb = fn(&mut Noise, &mut f64) -> f64;

/// 2 % of noise of several kinds; the state is what goes on from result to result.
const KINDS: [(&str, Disturb); 5] = [
    ("normal", |noise, _| 0.02 * noise.normal()),
    ("Student's t, 3 degrees", |noise, _| 0.02 * noise.t3()),
    ("one in 200 low by 20 %", |noise, _| 0.02 * noise.normal() + if noise.chance(0.005) { 0.8_f64.ln() } else { 0.0 }),
    ("autocorrelated, r = 0.6", |noise, state| {
        *state = 0.6 * *state + 0.8 * noise.normal();
        0.02 * *state
    }),
    ("two states", |noise, _| 0.005 * noise.normal() + if noise.chance(0.5) { 0.02 } else { -0.02 }),
];

/// One pair: its lanes in turn, and again. The first `bad` of them reach `factor` of what the others do.
fn pair(noise: &mut Noise, disturb: Disturb, bad: usize, factor: f64) -> Vec<Vec<f64>> {
    let mut state = noise.normal();
    let mut results = vec![Vec::new(); LANES];
    for _ in 0..REPEATS {
        for (lane, values) in results.iter_mut().enumerate() {
            let slow = if lane < bad { factor.ln() } else { 0.0 };
            values.push(391.0_f64.ln() + slow + disturb(noise, &mut state));
        }
    }
    results
}

fn judged(results: &[Vec<f64>], suspicion: f64) -> Lanes {
    lanes(results, 0.0, suspicion, LEAST).unwrap()
}

#[test]
fn lanes_that_are_alike_are_not_told_apart() {
    for (number, (kind, disturb)) in KINDS.into_iter().enumerate() {
        let mut noise = Noise::new(FRESH + number as u64);
        // The hardest case: the pair was suspected for no more than the least effect.
        let named = (0..4_000).filter(|_| !judged(&pair(&mut noise, disturb, 0, 1.0), LEAST).slow.is_empty()).count();
        println!("alike, {kind}: {named} of 4000 pairs named");
        assert!(named <= 20, "{kind}: {named}");
        // A pair that is half as fast on every lane is a bad pair.
        let half = pair(&mut noise, disturb, LANES, 0.5);
        assert_eq!(judged(&half, 0.5_f64.ln()).slow, [0; 0], "{kind}");
    }
}

#[test]
fn the_lanes_of_a_path_at_half_the_rate_are_named() {
    for (number, (kind, disturb)) in KINDS.into_iter().enumerate() {
        for bad in [1, 2, 4, 6] {
            let mut noise = Noise::new(FRESH + 100 + number as u64);
            let all: Vec<usize> = (0..bad).collect();
            let exact =
                (0..500).filter(|_| judged(&pair(&mut noise, disturb, bad, 0.5), 0.5_f64.ln()).slow == all).count();
            println!("half the rate on {bad} of {LANES} lanes, {kind}: {exact} of 500 named exactly");
            assert!(exact >= 490, "{kind}, {bad}: {exact}");
        }
    }
}

#[test]
fn drops_of_a_few_percent_are_seen_as_far_as_the_noise_allows() {
    for (drop, at_least) in [(0.05, 0), (0.10, 50), (0.20, 190)] {
        let mut noise = Noise::new(FRESH);
        let (_, disturb) = KINDS[0];
        let wanted: f64 = (1.0_f64 - drop).ln();
        let exact =
            (0..200).filter(|_| judged(&pair(&mut noise, disturb, 2, 1.0 - drop), wanted).slow == [0, 1]).count();
        println!("{} % on 2 of {LANES} lanes, noise 2 %: {exact} of 200 named exactly", 100.0 * drop);
        assert!(exact >= at_least, "{drop}: {exact}");
    }
}

#[test]
fn too_few_lanes_or_results_are_no_answer() {
    let few = lanes(&[vec![1.0, 1.0], vec![0.5, 0.5]], 0.0, 0.0, LEAST);
    assert_eq!(few, Err(Refusal::TooFew { need: 3, got: 2 }));
    let once = lanes(&[vec![1.0], vec![0.5], vec![1.0], vec![1.0]], 0.0, 0.0, LEAST);
    assert_eq!(once, Err(Refusal::TooFew { need: 3, got: 0 }));
    let wild = lanes(&[vec![1.0, f64::NAN]], 0.0, 0.0, LEAST);
    assert_eq!(wild, Err(Refusal::NotFinite { at: 1 }));
}

proptest! {
    /// Lanes in another order get the same names, and a common factor changes nothing.
    #[test]
    fn order_and_scale_do_not_matter(seed in any::<u64>(), bad in 0..5_usize, shift in -5.0..5.0_f64) {
        let mut noise = Noise::new(seed);
        let results = pair(&mut noise, KINDS[0].1, bad, 0.5);
        let mut order: Vec<usize> = (0..LANES).collect();
        noise.shuffle(&mut order);
        let moved: Vec<Vec<f64>> =
            order.iter().map(|&at| results[at].iter().map(|value| value + shift).collect()).collect();
        let mut names: Vec<usize> = judged(&moved, 0.5_f64.ln()).slow.into_iter().map(|at| order[at]).collect();
        names.sort_unstable();
        prop_assert_eq!(names, judged(&results, 0.5_f64.ln()).slow);
    }
}
