//! What must not matter does not matter: order, shifts, scales, mirrors, and which of two algorithms is taken.

use proptest::prelude::*;
use railgauge_stats::{
    Refusal,
    multiple::benjamini_hochberg,
    rank::{Null, mann_whitney, normal_cdf, normal_quantile, signed_rank},
    robust::{mad, median, quantile},
    shift::{paired_shift, shift},
    student::paired,
};

/// Whole numbers as floats: sums and differences are exact, and ties happen.
fn whole(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-60i32..60).prop_map(f64::from), len)
}

fn mapped(values: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    values.iter().map(|&v| f(v)).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn centres_and_scales_follow_shift_scale_and_mirror(values in whole(2..60), by in -50i32..50, times in 1i32..9) {
        let (by, times) = (f64::from(by), f64::from(times));
        let moved = mapped(&values, |v| v * times + by);
        let mirrored = mapped(&values, |v| -v);
        prop_assert_eq!(median(&moved).unwrap(), median(&values).unwrap() * times + by);
        prop_assert_eq!(median(&mirrored).unwrap(), -median(&values).unwrap());
        prop_assert_eq!(mad(&moved).unwrap(), mad(&values).unwrap() * times);
    }

    #[test]
    fn order_does_not_matter(mut values in whole(2..60), p in 0.0..=1.0f64) {
        let before = (median(&values).unwrap(), mad(&values).unwrap(), quantile(&values, p).unwrap());
        values.reverse();
        let half = values.len() / 2;
        values.rotate_left(half);
        let after = (median(&values).unwrap(), mad(&values).unwrap(), quantile(&values, p).unwrap());
        prop_assert_eq!(before, after);
    }

    #[test]
    fn two_samples_swapped_are_mirrored(x in whole(1..20), y in whole(1..20), by in -50i32..50) {
        let by = f64::from(by);
        let (a, b) = (mann_whitney(&x, &y).unwrap(), mann_whitney(&y, &x).unwrap());
        prop_assert!(near(a.less, b.greater) && near(a.two_sided, b.two_sided));
        let moved = mann_whitney(&mapped(&x, |v| 3.0 * v + by), &mapped(&y, |v| 3.0 * v + by)).unwrap();
        prop_assert_eq!(a, moved);
        let (there, back) = (shift(&x, &y, 0.9).unwrap(), shift(&y, &x, 0.9).unwrap());
        prop_assert_eq!(there.estimate, -back.estimate);
        if let (Some(there), Some(back)) = (there.interval, back.interval) {
            prop_assert_eq!((there.low, there.high, there.level), (-back.high, -back.low, back.level));
            prop_assert!(there.level >= 0.9);
        }
        let later = shift(&x, &mapped(&y, |v| v + by), 0.9).unwrap();
        prop_assert_eq!(later.estimate, there.estimate + by);
    }

    /// The interval holds exactly the shifts that the test does not reject, ends excepted.
    #[test]
    fn interval_and_test_agree(x in prop::collection::vec(-1.0..1.0f64, 4..12), y in prop::collection::vec(-1.0..1.0f64, 4..12)) {
        let test = mann_whitney(&x, &y).unwrap();
        if let Some(interval) = shift(&x, &y, 0.95).unwrap().interval {
            let inside = interval.low < 0.0 && 0.0 < interval.high;
            prop_assert_eq!(inside, test.two_sided > 1.0 - interval.level + 1e-12);
        }
    }

    #[test]
    fn signed_ranks_follow_the_mirror(d in whole(1..30)) {
        let (a, b) = (signed_rank(&d).unwrap(), signed_rank(&mapped(&d, |v| -v)).unwrap());
        prop_assert!(near(a.less, b.greater) && near(a.two_sided, b.two_sided));
        let (there, back) = (paired_shift(&d, 0.9).unwrap(), paired_shift(&mapped(&d, |v| -v), 0.9).unwrap());
        prop_assert_eq!(there.estimate, -back.estimate);
    }

    #[test]
    fn tied_null_is_that_of_all_arrangements(x in prop::collection::vec(0i32..4, 1..6), y in prop::collection::vec(0i32..4, 1..6)) {
        let (x, y): (Vec<f64>, Vec<f64>) = (x.into_iter().map(f64::from).collect(), y.into_iter().map(f64::from).collect());
        let all: Vec<f64> = x.iter().chain(&y).copied().collect();
        let u = |of: &[f64], to: &[f64]| of.iter().flat_map(|a| to.iter().map(move |b| if a > b { 1.0 } else if a == b { 0.5 } else { 0.0 })).sum::<f64>();
        let seen = u(&x, &y);
        let (mut less, mut greater, mut total) = (0.0, 0.0, 0.0);
        for choice in 0u32..1 << all.len() {
            if choice.count_ones() as usize == x.len() {
                let (a, b): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(|i| choice >> i & 1 == 1);
                let value = u(&a.iter().map(|&i| all[i]).collect::<Vec<_>>(), &b.iter().map(|&i| all[i]).collect::<Vec<_>>());
                total += 1.0;
                less += f64::from(u8::from(value <= seen));
                greater += f64::from(u8::from(value >= seen));
            }
        }
        let test = mann_whitney(&x, &y).unwrap();
        prop_assert!(near(test.less, less / total) && near(test.greater, greater / total));
    }

    #[test]
    fn adjusted_p_keep_order_and_grow(p in prop::collection::vec(0.0..=1.0f64, 0..40)) {
        let bh = benjamini_hochberg(&p).unwrap();
        for i in 0..p.len() {
            prop_assert!(bh[i] >= p[i] && bh[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || bh[i] <= bh[j]);
            }
        }
    }
}

/// Above 20,000 sums the order statistics are found without writing the sums down; the answer is the same.
#[test]
fn selection_agrees_with_sorting() {
    let wave = |n: usize, by: f64| (0..n).map(|i| ((i * 7919 % 1013) as f64 * by).sin()).collect::<Vec<f64>>();
    let (x, y) = (wave(210, 0.37), wave(190, 0.91));
    let mut all: Vec<f64> = x.iter().flat_map(|a| y.iter().map(move |b| b - a)).collect();
    all.sort_by(f64::total_cmp);
    let found = shift(&x, &y, 0.95).unwrap();
    assert_eq!(found.estimate, (all[all.len() / 2 - 1] + all[all.len() / 2]) / 2.0);
    let interval = found.interval.unwrap();
    let place = |v: f64| all.partition_point(|&d| d < v);
    assert_eq!(place(interval.low), all.len() - 1 - place(interval.high));
    assert!(interval.level >= 0.95 && interval.level < 0.951);
    let d = wave(260, 1.7);
    let mut walsh: Vec<f64> =
        (0..260).flat_map(|i| (i..260).map(move |j| (i, j))).map(|(i, j)| (d[i] + d[j]) / 2.0).collect();
    walsh.sort_by(f64::total_cmp);
    let middle = (walsh[walsh.len() / 2 - 1] + walsh[walsh.len() / 2]) / 2.0;
    assert!(near(paired_shift(&d, 0.95).unwrap().estimate, middle));
}

#[test]
fn large_counts_do_not_overflow_and_meet_the_normal_approximation() {
    let null = Null::mann_whitney(50, 50).unwrap();
    assert!(near(null.at_most(1250) + null.at_least(1251), 1.0));
    let s = (2500.0 * 101.0 / 12.0_f64).sqrt();
    assert!((null.at_most(1000) - normal_cdf((1000.5 - 1250.0) / s)).abs() < 1e-3);
    // 50 values a side have an exact distribution and 51 the approximation.
    let of = |n: i32| {
        let x: Vec<f64> = (0..n).map(f64::from).collect();
        mann_whitney(&x, &x.iter().map(|v| v + 5.25).collect::<Vec<f64>>()).unwrap().two_sided
    };
    assert!((of(50) - of(51)).abs() < 0.01);
    for p in [1e-12, 1e-3, 0.025, 0.5, 0.9] {
        assert!((normal_cdf(normal_quantile(p)) / p - 1.0).abs() < 1e-12);
    }
}

#[test]
fn smallest_sizes_that_can_say_anything() {
    let six: Vec<f64> = (1..=6).map(f64::from).collect();
    assert_eq!(signed_rank(&six).unwrap().two_sided, 0.03125);
    assert!(paired_shift(&six, 0.95).unwrap().interval.is_some());
    assert!(paired_shift(&six[..5], 0.95).unwrap().interval.is_none());
    assert!(shift(&six[..3], &six[3..], 0.95).unwrap().interval.is_none());
    assert!(shift(&six[..4], &six[2..], 0.95).unwrap().interval.is_some());
}

#[test]
fn what_is_not_a_number_is_refused() {
    let bad = [1.0, f64::NAN, 2.0, 3.0];
    let good = [1.0, 2.0, 3.0, 4.0];
    let refusal = Refusal::NotFinite { at: 1 };
    assert_eq!(median(&bad), Err(refusal));
    assert_eq!(mad(&bad), Err(refusal));
    assert_eq!(quantile(&bad, 0.5), Err(refusal));
    assert_eq!(mann_whitney(&good, &bad), Err(refusal));
    assert_eq!(signed_rank(&bad), Err(refusal));
    assert_eq!(shift(&bad, &good, 0.95), Err(refusal));
    assert_eq!(paired_shift(&bad, 0.95), Err(refusal));
    assert_eq!(paired(&bad), Err(refusal));
    assert_eq!(median(&[]), Err(Refusal::TooFew { need: 1, got: 0 }));
    assert!(benjamini_hochberg(&[f64::NAN]).is_err());
    assert!(shift(&good, &good, 1.0).is_err() && quantile(&good, -0.1).is_err());
}
