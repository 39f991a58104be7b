//! Nights on which several series are low at once, drawn with fixed seeds.

use railgauge_stats::changepoint::{Joint, Several, joint};

/// Uniform numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Nights of so many series, each low on its own with this chance; on the nights that are named so many are.
fn drawn(dice: &mut Dice, nights: usize, of: usize, chance: f64, bad: &[usize], low: usize) -> Vec<Several> {
    let own = |at: usize, dice: &mut Dice| match bad.contains(&at) {
        true => low,
        false => (0..of).filter(|_| dice.uniform() < chance).count(),
    };
    (0..nights).map(|at| Several { of, low: own(at, dice) }).collect()
}

#[test]
fn healthy_series_are_hardly_ever_suspected_together() {
    // Bars: the promised chance of 0.001 with three standard errors on top; the rates that were seen are far below.
    let trials = 4000;
    for of in [2, 3, 7, 31, 200] {
        for chance in [0.002, 0.02, 0.05, 0.1] {
            let mut dice = Dice(1000 * of as u64 + (1000.0 * chance) as u64);
            let found: Vec<Joint> = (0..trials)
                .filter_map(|trial| joint(&drawn(&mut dice, 20 + trial % 60, of, chance, &[], 0), 1))
                .collect();
            let sure = found.iter().filter(|found| found.sure).count();
            println!("{of} series, each low on {chance} of nights: {} of {trials} suspected, {sure} sure", found.len());
            assert!(
                found.len() <= 10 && sure == 0,
                "{of} series at {chance}: {} of {trials}, {sure} sure",
                found.len()
            );
        }
    }
}

#[test]
fn series_that_differ_are_no_more_suspected_than_equal_ones() {
    let mut dice = Dice(9);
    let chances = [0.0, 0.0, 0.0, 0.001, 0.01, 0.02, 0.15, 0.3];
    let night = |dice: &mut Dice| {
        let low = chances.iter().filter(|chance| dice.uniform() < **chance).count();
        Several { of: chances.len(), low }
    };
    let found =
        (0..4000).filter(|_| joint(&(0..41).map(|_| night(&mut dice)).collect::<Vec<_>>(), 1).is_some()).count();
    assert!(found <= 10, "{found} of 4000");
}

#[test]
fn a_few_bad_nights_in_common_are_found() {
    for seed in 0..200 {
        let mut dice = Dice(seed);
        // All links of a host, or of everything, on 3 of 41 nights, among sixty labels.
        for of in [3, 7, 31] {
            let found = joint(&drawn(&mut dice, 41, of, 0.002, &[12, 25, 38], of), 60).expect("three of 41 nights");
            assert_eq!(found.nights, [12, 25, 38]);
        }
        // Two nights in a row, and another one.
        assert!(joint(&drawn(&mut dice, 41, 7, 0.002, &[20, 21, 35], 7), 60).is_some());
        // Every sixth to tenth night, among a thousand labels.
        for every in 6..=10 {
            let bad: Vec<usize> = (0..41).filter(|night| night % every == 3).collect();
            let found = joint(&drawn(&mut dice, 41, 7, 0.002, &bad, 7), 1000).expect("now and then");
            assert!(found.sure || bad.len() < 6, "every {every}th night: {found:?}");
        }
    }
}

#[test]
fn what_happened_once_or_is_over_is_not_told() {
    let mut dice = Dice(3);
    // A week that went by, and a single night.
    let week: Vec<usize> = (20..27).collect();
    assert_eq!(joint(&drawn(&mut dice, 41, 7, 0.0, &week, 7), 1), None);
    assert_eq!(joint(&drawn(&mut dice, 41, 7, 0.0, &[30], 7), 1), None);
    // Ten bad nights of twenty, and then good ones.
    let bad: Vec<usize> = (20..40).step_by(2).collect();
    assert!(joint(&drawn(&mut dice, 41, 7, 0.0, &bad, 7), 1).is_some());
    assert_eq!(joint(&drawn(&mut dice, 60, 7, 0.0, &bad, 7), 1), None);
    assert_eq!(joint(&[], 1), None);
}
