//! Whether intervals hold the truth as often as they say.

use railgauge_stats::compare::{Headline, Judged, Order, Variant, Verdict, paired_headline, unpaired_headline};

use crate::{
    compare::runs::{FRESH, blocks, compared, orders, series, within, words},
    generators::Noise,
};

#[test]
fn intervals_hold_what_their_level_says_and_equivalence_is_not_called_at_the_edge() {
    let mut noise = Noise::new(FRESH + 7);
    for kind in ["normal", "autocorrelated .3", "autocorrelated .6"] {
        for at in 0..3 {
            let (mut held, mut stated, mut wrong, mut n) = (0.0, 0.0, 0.0, 0.0);
            for _ in 0..12 {
                let order = &orders(&mut noise)[at];
                let edge = |runs: Vec<f64>| -> Vec<f64> {
                    runs.iter().zip(order).map(|(v, side)| if *side == Variant::B { v + 0.03 } else { *v }).collect()
                };
                let cells: Vec<Vec<f64>> = (0..200).map(|_| edge(series(kind, 20, &mut noise))).collect();
                let found = compared(&cells, order, within(0.03));
                for cell in &found {
                    let interval = cell.interval95.unwrap();
                    held += f64::from(u8::from(interval.holds(0.03)));
                    stated += interval.level;
                    n += 1.0;
                }
                let equivalent = |judged: &&Judged| matches!(judged.verdict, Verdict::Equivalent | Verdict::Negligible);
                wrong += words(&cells, order, within(0.03)).iter().filter(equivalent).count() as f64;
            }
            println!(
                "{kind}, order {at}: {:.3} of intervals hold the truth, {:.3} stated; {:.4} equivalent at the margin",
                held / n,
                stated / n,
                wrong / n
            );
            assert!(held / n >= stated / n - 0.02, "{kind}, order {at}");
            assert!(wrong / n <= 0.05, "{kind}, order {at}");
        }
    }
}

#[test]
fn headline_intervals_hold_the_truth() {
    let mut noise = Noise::new(FRESH + 3);
    println!(
        "noise, blocks or runs a side | share of 95 % intervals of the headline that hold the truth: blocks, runs in turn"
    );
    for kind in ["normal", "log-normal"] {
        for n in [4, 6, 10] {
            let (mut of_blocks, mut of_runs, trials) = (0, 0, 2_000);
            let turns = [Variant::A, Variant::B].repeat(n);
            let order = Order::new(&turns.into_iter().map(Some).collect::<Vec<_>>()).unwrap();
            let holds = |found: Headline| {
                let interval = found.interval.unwrap();
                assert!(interval.low <= found.effect && found.effect <= interval.high);
                usize::from(interval.holds(0.0))
            };
            for seed in 0..trials {
                of_blocks += holds(paired_headline(&blocks(&series(kind, 4 * n, &mut noise), seed)).unwrap());
                let (a, b) = (series(kind, n, &mut noise), series(kind, n, &mut noise));
                of_runs += holds(unpaired_headline(&a, &b, Some(&order)).unwrap());
            }
            let share = |held: usize| held as f64 / trials as f64;
            println!("{kind}, {n} | {:.3}, {:.3}", share(of_blocks), share(of_runs));
            assert!((share(of_blocks) - 0.95).abs() <= 0.03 && share(of_runs) >= 0.93, "{kind}, {n}");
        }
    }
}

#[test]
fn values_that_are_all_the_same_have_an_interval() {
    let turns: Vec<_> = [Some(Variant::A), Some(Variant::B)].repeat(4);
    let order = Order::new(&turns).unwrap();
    for found in [unpaired_headline(&[1.0; 4], &[1.0; 4], Some(&order)), paired_headline(&[0.0; 4])] {
        let found = found.unwrap();
        let interval = found.interval.unwrap();
        assert_eq!((found.effect, interval.low, interval.high), (0.0, 0.0, 0.0));
    }
    assert!(unpaired_headline(&[1.0; 3], &[1.0; 4], Some(&order)).unwrap().interval.is_none());
    assert!(paired_headline(&[0.0; 3]).unwrap().interval.is_none());
}
