//! Margins, and the words that comparisons come to.

use proptest::prelude::*;
use railgauge_stats::compare::{LEVEL, Obstacle, Variant, Verdict, WIDEST, margin, noise_floor, paired, verdict};

use crate::{
    compare::runs::{FRESH, blocks, orders, series, sides, within, words},
    generators::{Noise, on_cpu},
};

#[test]
fn a_margin_of_noise_is_too_wide_to_mean_anything() {
    assert!(margin(None, WIDEST).too_wide && margin(Some(0.01), 1.01 * WIDEST).too_wide);
    assert!(!margin(None, WIDEST / 2.1).too_wide);
    // Who asks for a wide margin knows what it means.
    assert!(!margin(Some(2.0 * WIDEST), 0.01).too_wide);
    let noisy: Vec<f64> = (0..12).map(|i| 0.5 * f64::from(i % 3) + 0.01 * f64::from(i)).collect();
    let order = [Variant::A, Variant::B].repeat(6);
    let judged = words(&[noisy], &order, margin(None, 0.4));
    assert_eq!((judged[0].verdict, judged[0].obstacle), (Verdict::TooNoisy, Some(Obstacle::Noise)));
    // Beyond the margin a change is still one.
    let halved: Vec<f64> = order
        .iter()
        .enumerate()
        .map(|(i, side)| 0.02 * i as f64 - if *side == Variant::B { 2.0 } else { 0.0 })
        .collect();
    assert_eq!(words(&[halved], &order, margin(None, 0.4))[0].verdict, Verdict::Regressed);
}

#[test]
fn what_is_equal_is_shown_equal_with_the_runs_asked_for() {
    let mut noise = Noise::new(FRESH + 2);
    let (mut shown, mut wrong, trials) = (0, 0, 500);
    for i in 0..trials {
        let first = blocks(&series("normal", 24, &mut noise), i);
        let need = paired(&first, within(0.01)).unwrap().need.unwrap();
        let more = blocks(&series("normal", 4 * need, &mut noise), FRESH + i);
        let cell = paired(&more, within(0.01)).unwrap();
        shown += usize::from(verdict(&cell, cell.p_change, cell.p_equivalent, true) == Verdict::Equivalent);
        // A true effect of exactly the margin must not be called equivalent more often than in 5 %.
        let edge: Vec<f64> = more.iter().map(|d| d + 0.01).collect();
        let cell = paired(&edge, within(0.01)).unwrap();
        wrong += usize::from(matches!(
            verdict(&cell, cell.p_change, cell.p_equivalent, true),
            Verdict::Equivalent | Verdict::Negligible
        ));
    }
    println!(
        "{trials} equal variants: {shown} shown to be equal with the blocks asked for; at the margin's edge {wrong}"
    );
    assert!(shown as f64 >= 0.75 * trials as f64);
    assert!(wrong as f64 <= (LEVEL + 2.0 * 0.0098) * trials as f64);
}

#[test]
fn five_words() {
    let around =
        |centre: f64, spread: f64| (0..8).map(|i| centre + spread * (f64::from(i) - 3.5)).collect::<Vec<f64>>();
    let word = |d: &[f64]| {
        let cell = paired(d, within(0.01)).unwrap();
        verdict(&cell, cell.p_change, cell.p_equivalent, true)
    };
    assert_eq!(word(&around(0.05, 0.001)), Verdict::Improved);
    assert_eq!(word(&around(-0.05, 0.001)), Verdict::Regressed);
    assert_eq!(word(&around(0.0, 0.001)), Verdict::Equivalent);
    assert_eq!(word(&around(0.004, 0.0001)), Verdict::Negligible);
    assert_eq!(word(&around(0.0, 0.02)), Verdict::Inconclusive);
    // Five blocks cannot show a change however large it is, and say so.
    let cell = paired(&around(0.5, 0.001)[..5], within(0.01)).unwrap();
    assert_eq!(verdict(&cell, cell.p_change, cell.p_equivalent, true), Verdict::Inconclusive);
    assert_eq!((cell.interval95, cell.need), (None, Some(6)));
    let lower = paired(&around(-0.05, 0.001), within(0.01)).unwrap();
    assert_eq!(verdict(&lower, lower.p_change, lower.p_equivalent, false), Verdict::Improved);
}

#[test]
fn margins_and_floors() {
    assert!((margin(None, 0.001).value - 1.01_f64.ln()).abs() < 1e-15 && margin(None, 0.02).value == 0.04);
    assert_eq!((margin(Some(0.005), 0.02).value, margin(Some(0.005), 0.02).raised), (0.02, true));
    assert!(!margin(Some(0.05), 0.02).raised);
    let mut noise = Noise::new(FRESH + 5);
    // The floor is what an effect stays below in 95 % of cases where nothing changed.
    let (mut below, trials) = (0, 400);
    for i in 0..trials {
        let first = blocks(&series("normal", 40, &mut noise), i);
        let second = blocks(&series("normal", 40, &mut noise), i + 1);
        let effect = paired(&second, within(0.01)).unwrap().effect.abs();
        below += usize::from(effect <= noise_floor(&[&first]).unwrap());
    }
    println!("{below} of {trials} effects of nothing lie below the noise floor of another measurement");
    assert!(below as f64 >= 0.88 * trials as f64);
    let (x, y) = (series("normal", 10, &mut noise), series("normal", 10, &mut noise));
    let apart: Vec<f64> = y.iter().map(|v| v + 5.0).collect();
    let floor = noise_floor(&[&x, &apart]).unwrap();
    assert!((0.002..0.02).contains(&floor), "{floor}");
}

#[test]
fn twenty_thousand_cells_are_judged() {
    let mut noise = Noise::new(FRESH + 4);
    let [first, _, turns] = orders(&mut noise);
    let cells: Vec<Vec<f64>> = (0..20_000).map(|_| series("normal", 20, &mut noise)).collect();
    for order in [first, turns] {
        let start = on_cpu();
        let judged = words(&cells, &order, within(0.01));
        // `bench/analysis` compares the time with a bar.
        println!("20,000 cells of 10 against 10 runs: {:.0?} of processor time", on_cpu() - start);
        assert_eq!(judged.len(), 20_000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Linear drift, however steep, leaves no difference in an A B B A block.
    #[test]
    fn drift_cancels(slope in -100i32..100, level in -100i32..100, seed in 0u64..1000) {
        let drift: Vec<f64> = (0..40).map(|i| f64::from(level) + f64::from(slope) * f64::from(i)).collect();
        prop_assert!(blocks(&drift, seed).iter().all(|&d| d == 0.0));
    }

    /// Exchanging the sides exchanges improved and regressed and nothing else.
    #[test]
    fn sides_are_alike(x in prop::collection::vec(-0.05..0.05f64, 4..12), y in prop::collection::vec(-0.05..0.05f64, 4..12)) {
        let (there, back) = (sides(Variant::A, &x, &y, within(0.01)), sides(Variant::B, &x, &y, within(0.01)));
        prop_assert!((there.effect + back.effect).abs() < 1e-15);
        prop_assert!((there.p_change - back.p_change).abs() < 1e-12 && (there.p_equivalent - back.p_equivalent).abs() < 1e-12);
        let one = verdict(&there, there.p_change, there.p_equivalent, true);
        prop_assert_eq!(one, verdict(&back, back.p_change, back.p_equivalent, false));
        prop_assert_eq!(there.need, back.need);
    }

    /// Equivalence and a change of at least the margin are never both shown.
    #[test]
    fn words_do_not_contradict(d in prop::collection::vec(-0.05..0.05f64, 6..14), shift in -0.1..0.1f64) {
        let moved: Vec<f64> = d.iter().map(|v| v + shift).collect();
        let cell = paired(&moved, within(0.02)).unwrap();
        match verdict(&cell, cell.p_change, cell.p_equivalent, true) {
            Verdict::Improved => prop_assert!(cell.effect >= 0.02 && cell.p_equivalent > 0.05),
            Verdict::Regressed => prop_assert!(cell.effect <= -0.02 && cell.p_equivalent > 0.05),
            Verdict::Equivalent | Verdict::Negligible => prop_assert!(cell.effect.abs() < 0.02),
            Verdict::Inconclusive | Verdict::TooNoisy => {}
        }
    }
}
