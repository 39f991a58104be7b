//! Before and after on data that we generate: how often noise is called a change, how often a change is found, and whether
//! intervals hold what they should.
//!
//! The figures of docs/statistics.md are printed by
//! `cargo test -p railgauge-stats --test compare -- --nocapture`.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod generators;

use generators::{Noise, on_cpu};
use proptest::prelude::*;
use railgauge_stats::compare::{
    Comparison, Judged, LEVEL, Luck, Margin, Obstacle, Order, RunSet, Turns, Variant, Verdict, WIDEST,
    block_difference, block_orders, margin, noise_floor_of_differences, noise_floor_of_samples, paired,
    paired_headline, unpaired_headline, verdict, verdicts,
};

/// Never used while the rules were made; development used 577215664.
const FRESH: u64 = 299_792_458;
/// Comparisons of each kind of noise.
const COMPARISONS: usize = 2_000;

/// Only every so many comparisons have a headline, whose bootstrap takes longest.
const HEADLINES: usize = 5;

/// A series of logarithms of spread 1 % in which nothing changes.
fn series(kind: &str, n: usize, noise: &mut Noise) -> Vec<f64> {
    let mut last = noise.normal();
    let mut slow = false;
    (0..n)
        .map(|_| {
            0.01 * match kind {
                "normal" => noise.normal(),
                "log-normal" => noise.normal().exp() / 2.16,
                "autocorrelated .3" | "autocorrelated .6" => {
                    let r = if kind.ends_with(".3") { 0.3_f64 } else { 0.6 };
                    last = r * last + (1.0 - r * r).sqrt() * noise.normal();
                    last
                }
                // Two states, a tenth of the time the slower one, in which a link tends to stay.
                "bimodal" => {
                    if noise.chance(if slow { 0.3 } else { 0.033 }) {
                        slow = !slow;
                    }
                    0.5 * noise.normal() - if slow { 3.0 } else { 0.0 }
                }
                other => panic!("no noise called {other}"),
            }
        })
        .collect()
}

const KINDS: [&str; 5] = ["normal", "log-normal", "autocorrelated .3", "autocorrelated .6", "bimodal"];

/// Differences of interleaved blocks, cut from one series.
fn blocks(series: &[f64], seed: u64) -> Vec<f64> {
    let orders = block_orders(series.len() / 4, seed);
    let difference = |(values, order): (&[f64], &[Variant; 4])| {
        let side =
            |which| -> Vec<f64> { values.iter().zip(order).filter(|(_, v)| **v == which).map(|(x, _)| *x).collect() };
        block_difference(&side(Variant::A), &side(Variant::B)).unwrap()
    };
    series.chunks_exact(4).zip(&orders).map(difference).collect()
}

/// Orders of ten runs a side: one side first, by chance, in turn.
fn orders(noise: &mut Noise) -> [Vec<Variant>; 3] {
    let first = [[Variant::A; 10], [Variant::B; 10]].concat();
    let mut shuffled = first.clone();
    noise.shuffle(&mut shuffled);
    [first, shuffled, [Variant::A, Variant::B].repeat(10)]
}

/// A margin that is asked for.
fn within(value: f64) -> Margin {
    margin(Some(value), 0.0)
}

/// Cells, each of runs in the order of time, as they are compared.
fn compared(cells: &[Vec<f64>], order: &[Variant], margin: Margin) -> Vec<Comparison> {
    let cells: Vec<Vec<Option<f64>>> = cells.iter().map(|runs| runs.iter().map(|v| Some(*v)).collect()).collect();
    let mut runs = RunSet::new(order.to_vec(), cells.iter().map(Vec::as_slice));
    cells.iter().map(|cell| runs.compare(cell, margin).unwrap()).collect()
}

/// Cells judged together.
fn words(cells: &[Vec<f64>], order: &[Variant], margin: Margin) -> Vec<Judged> {
    let compared: Vec<_> = compared(cells, order, margin).into_iter().map(|cell| (cell, true)).collect();
    verdicts(&compared).unwrap()
}

fn is_change(judged: &Judged) -> bool {
    matches!(judged.verdict, Verdict::Improved | Verdict::Regressed)
}

/// Two sides of runs, in turn as long as both have some; `first` is the side of the first.
fn sides(first: Variant, one: &[f64], other: &[f64], margin: Margin) -> Comparison {
    let second = if first == Variant::A { Variant::B } else { Variant::A };
    let (mut order, mut runs) = (Vec::new(), Vec::new());
    for i in 0..one.len().max(other.len()) {
        for (side, values) in [(first, one), (second, other)] {
            if let Some(value) = values.get(i) {
                order.push(side);
                runs.push(*value);
            }
        }
    }
    compared(&[runs], &order, margin)[0]
}

/// One cell, judged alone.
fn judged(runs: &[f64], order: &[Variant]) -> Comparison {
    compared(&[runs.to_vec()], order, margin(None, 0.0))[0]
}

/// Two standard errors above a share of 5 %.
fn five_percent() -> f64 {
    LEVEL + 2.0 * (LEVEL * (1.0 - LEVEL) / COMPARISONS as f64).sqrt()
}

#[test]
fn nothing_changed_is_rarely_called_a_change() {
    println!(
        "noise | blocks: p at most 5 %, verdict | runs one side first, in any order, in turn: p at most 5 %, verdict | headline of blocks misses 0"
    );
    let mut noise = Noise::new(FRESH);
    for kind in KINDS {
        let (mut p_blocks, mut v_blocks, mut missed) = (0, 0, 0);
        let (mut p_runs, mut v_runs) = ([0; 3], [0; 3]);
        for i in 0..COMPARISONS {
            let differences = blocks(&series(kind, 32, &mut noise), FRESH + i as u64);
            let floor = noise_floor_of_differences(&differences, 256, 1).unwrap();
            let cell = paired(&differences, margin(Some(0.001), floor)).unwrap();
            let changed = |cell: &Comparison| {
                matches!(verdict(cell, cell.p_change, cell.p_equivalent, true), Verdict::Improved | Verdict::Regressed)
            };
            p_blocks += usize::from(cell.p_change <= LEVEL);
            v_blocks += usize::from(changed(&cell));
            if i % HEADLINES == 0 {
                let headline = paired_headline(&differences, i as u64).unwrap();
                missed += usize::from(headline.interval.is_some_and(|interval| !interval.holds(0.0)));
            }
            let runs = series(kind, 20, &mut noise);
            for (at, order) in orders(&mut noise).iter().enumerate() {
                let cell = judged(&runs, order);
                p_runs[at] += usize::from(cell.p_change <= LEVEL);
                v_runs[at] += usize::from(changed(&cell));
            }
        }
        let share = |count: usize| count as f64 / COMPARISONS as f64;
        println!(
            "{kind} | {:.3} {:.3} | {:.3?} {:.3?} | {:.3}",
            share(p_blocks),
            share(v_blocks),
            p_runs.map(share),
            v_runs.map(share),
            HEADLINES as f64 * share(missed)
        );
        // Blocks are safe under any noise, because the coin decides their sign.
        assert!(share(p_blocks) <= five_percent() && share(v_blocks) <= five_percent(), "{kind}");
        // p is safe as long as runs do not depend on each other; the word is safe also where they do.
        let dependent = kind.starts_with("auto") || kind == "bimodal";
        assert!(dependent || p_runs.iter().all(|&count| share(count) <= five_percent()), "{kind}: {p_runs:?}");
        assert!(v_runs.iter().all(|&count| share(count) <= five_percent()), "{kind}: {v_runs:?}");
    }
}

#[test]
fn many_cells_are_judged_together() {
    // With one side first an effect must be larger, because runs that resemble their neighbours would do as much.
    let sizes = [(0.06, 0.98), (0.03, 0.95), (0.03, 0.9985)];
    for (order, (drop, least)) in orders(&mut Noise::new(FRESH + 1)).iter().zip(sizes) {
        many_cells(order, drop, least);
    }
}

fn many_cells(order: &[Variant], drop: f64, least: f64) {
    let mut noise = Noise::new(FRESH + 1);
    let (mut runs_with_false, runs) = (0, 100);
    let (mut found, mut named, mut there) = (0, 0, 0);
    for _ in 0..runs {
        let draw = |shift: f64, noise: &mut Noise| {
            let moved = |(value, side): (f64, &Variant)| value + if *side == Variant::B { shift } else { 0.0 };
            series("normal", 20, noise).into_iter().zip(order).map(moved).collect::<Vec<f64>>()
        };
        let healthy: Vec<_> = (0..200).map(|_| draw(0.0, &mut noise)).collect();
        runs_with_false += usize::from(words(&healthy, order, margin(None, 0.0)).iter().any(is_change));
        let mixed: Vec<_> = (0..200).map(|i| draw(if i < 40 { -drop } else { 0.0 }, &mut noise)).collect();
        let judged = words(&mixed, order, margin(None, 0.0));
        found += judged[..40].iter().filter(|v| v.verdict == Verdict::Regressed).count();
        named += judged.iter().filter(|v| is_change(v)).count();
        there += 40;
    }
    println!(
        "200 cells, 10 runs a side, {:?}: {runs_with_false} of {runs} comparisons without change name one; of {there} drops of \
         {:.0} sigma {found} are found, {} of {named} names are false",
        Order::new(&order.iter().map(|side| Some(*side)).collect::<Vec<_>>(), 0.0).unwrap().turns(),
        100.0 * drop,
        named - found
    );
    assert!(runs_with_false as f64 <= (LEVEL + 2.0 * 0.0218) * runs as f64);
    assert!(found as f64 >= least * there as f64 && (named - found) as f64 <= LEVEL * named as f64);
}

/// A cell with a luck of its own, everybody's, or half of either.
fn lucky(own: &[f64], common: &[f64], share: f64) -> Vec<f64> {
    let mix = |(own, common): (&f64, &f64)| (1.0 - share).sqrt() * own + share.sqrt() * common;
    own.iter().zip(common).map(mix).collect()
}

#[test]
fn correlated_runs_are_no_change_in_any_order() {
    let mut noise = Noise::new(FRESH + 6);
    for kind in ["autocorrelated .3", "autocorrelated .6"] {
        for share in [0.0, 0.5, 1.0] {
            let (mut named, comparisons) = ([0; 3], 60);
            for _ in 0..comparisons {
                let common = series(kind, 20, &mut noise);
                let cells: Vec<Vec<f64>> =
                    (0..200).map(|_| lucky(&series(kind, 20, &mut noise), &common, share)).collect();
                for (at, order) in orders(&mut noise).iter().enumerate() {
                    named[at] += usize::from(words(&cells, order, margin(None, 0.0)).iter().any(is_change));
                }
            }
            println!("{kind}, {share} shared: a change named in {named:?} of {comparisons} (first, any, turn)");
            assert!(named.iter().all(|&named| named as f64 <= 0.05 * f64::from(comparisons)), "{kind}: {named:?}");
        }
    }
}

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
                    // So many cells with a luck of their own tell how much runs resemble each other.
                    assert!(!cell.at_least);
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
            assert!((held / n - stated / n).abs() <= 0.03, "{kind}, order {at}");
            assert!(wrong / n <= 0.05, "{kind}, order {at}");
        }
    }
}

#[test]
fn few_cells_or_one_luck_for_all_give_levels_of_at_least() {
    let mut noise = Noise::new(FRESH + 8);
    let first = &orders(&mut noise)[0];
    let (mut held, mut stated, trials) = ([0; 2], [0.0; 2], 400);
    for _ in 0..trials {
        let runs = series("autocorrelated .6", 20, &mut noise);
        for (at, cells) in
            [vec![runs.clone()], (0..50).map(|i| runs.iter().map(|v| v + 1e-9 * f64::from(i)).collect()).collect()]
                .iter()
                .enumerate()
        {
            let cell = compared(cells, first, within(0.01))[0];
            assert!(cell.at_least);
            held[at] += usize::from(cell.interval95.unwrap().holds(0.0));
            stated[at] += cell.interval95.unwrap().level;
        }
    }
    println!("one series, r = 0.6, one side first: {held:?} of {trials} hold the truth");
    for (held, stated) in held.iter().zip(stated) {
        assert!(*held as f64 >= stated - 0.03 * trials as f64);
    }
}

#[test]
fn an_order_that_cannot_carry_a_change_is_the_obstacle() {
    let mut noise = Noise::new(FRESH + 9);
    let [first, _, turns] = orders(&mut noise);
    let cells: Vec<Vec<f64>> = (0..20).map(|_| series("normal", 20, &mut noise)).collect();
    let moved = |order: &[Variant], by: f64| -> Vec<Vec<f64>> {
        let mut cells = cells.clone();
        cells[0].iter_mut().zip(order).for_each(|(v, side)| *v += if *side == Variant::B { by } else { 0.0 });
        cells
    };
    let of = |order: &[Variant], by: f64| words(&moved(order, by), order, within(0.005))[0];
    assert_eq!(of(&turns, -0.03).verdict, Verdict::Regressed);
    let held_back = of(&first, -0.03);
    assert_eq!((held_back.verdict, held_back.obstacle), (Verdict::Inconclusive, Some(Obstacle::Order)));
    assert_eq!(of(&first, -0.5).verdict, Verdict::Regressed);
}

#[test]
fn what_the_runs_tell_of_their_correlation() {
    let mut noise = Noise::new(FRESH + 10);
    for order in orders(&mut noise) {
        let sides: Vec<Option<Variant>> = order.iter().map(|side| Some(*side)).collect();
        let order = Order::new(&sides, 0.0).unwrap();
        for (kind, r) in [("normal", 0.0), ("autocorrelated .3", 0.3), ("autocorrelated .6", 0.6)] {
            let cells: Vec<Vec<f64>> = (0..200).map(|_| series(kind, 20, &mut noise)).collect();
            let luck = Luck::learn(&order, &cells);
            assert!((luck.r - r).abs() < 0.1 && luck.low <= r + 0.05 && luck.high >= r - 0.05, "{kind}: {luck:?}");
            assert!(luck.cells > 50.0, "{luck:?}");
            let alike: Vec<Vec<f64>> = (0..200).map(|_| cells[0].clone()).collect();
            let luck = Luck::learn(&order, &alike);
            assert!(luck.cells < 2.0 && luck.low == 0.0 && luck.high >= 0.6, "{luck:?}");
        }
    }
    assert!(
        Luck::learn(&Order::new(&[Some(Variant::A), Some(Variant::A), Some(Variant::B)], 0.0).unwrap(), &[]).cells
            == 0.0
    );
}

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
fn headline_intervals_hold_the_truth() {
    let mut noise = Noise::new(FRESH + 3);
    println!("noise, blocks | share of 95 % intervals of the headline that hold the truth: blocks, runs");
    for kind in ["normal", "log-normal"] {
        for n in [6, 10] {
            let (mut paired_held, mut runs_held, trials) = (0, 0, 500);
            // The mean of the log-normal kind.
            let truth = if kind == "normal" { 0.0 } else { 0.01 * 0.5_f64.exp() / 2.16 };
            for seed in 0..trials {
                let holds =
                    |h: railgauge_stats::compare::Headline, truth| usize::from(h.interval.unwrap().holds(truth));
                let (a, b) = (series(kind, n, &mut noise), series(kind, n, &mut noise));
                paired_held += holds(paired_headline(&a, seed).unwrap(), truth);
                runs_held += holds(unpaired_headline(&a, &b, seed).unwrap(), 0.0);
            }
            let share = |held: usize| held as f64 / trials as f64;
            println!("{kind}, {n} | {:.3}, {:.3}", share(paired_held), share(runs_held));
            assert!(kind != "normal" || share(paired_held).min(share(runs_held)) >= 0.93);
        }
    }
}

#[test]
fn twenty_thousand_cells_take_less_than_a_second() {
    let mut noise = Noise::new(FRESH + 4);
    let [first, _, turns] = orders(&mut noise);
    let cells: Vec<Vec<f64>> = (0..20_000).map(|_| series("normal", 20, &mut noise)).collect();
    for order in [first, turns] {
        let start = on_cpu();
        let judged = words(&cells, &order, within(0.01));
        let took = on_cpu() - start;
        println!("20,000 cells of 10 against 10 runs: {took:.0?}");
        assert_eq!(judged.len(), 20_000);
        assert!(took < std::time::Duration::from_secs(1), "{took:?}");
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
fn the_order_of_runs_says_what_they_are_worth() {
    let [first, _, turns] = orders(&mut Noise::new(1));
    let of = |order: &[Variant]| Order::new(&order.iter().map(|side| Some(*side)).collect::<Vec<_>>(), 0.0).unwrap();
    // By hand: both means have variance 0.325, covariance 0.037; within the sides 0.75 of the variance is seen.
    let worst = of(&first).worst();
    assert!((worst.r - 0.6).abs() < 1e-12 && ((worst.variance / 0.2).sqrt() - 1.96).abs() < 0.01, "{worst:?}");
    assert!((5.0..12.0).contains(&worst.freedom), "{worst:?}");
    assert_eq!((of(&first).turns(), of(&turns).turns()), (Turns::OneSideFirst, Turns::InTurn));
    assert!((of(&turns).worst().r, of(&turns).worth()) == (0.0, 1.0) && of(&turns).stretch(0.6) < 0.7);
    let mirrored: Vec<Variant> = first.iter().rev().copied().collect();
    assert!((of(&mirrored).worst().variance - worst.variance).abs() < 1e-12);
    let halves = [[Variant::A; 5], [Variant::B; 5], [Variant::A; 5], [Variant::B; 5]].concat();
    assert_eq!(of(&halves).turns(), Turns::Mixed);
    assert!(of(&halves).worth() > of(&first).worth() && of(&halves).worth() < 1.0);
    let abba = [Variant::A, Variant::B, Variant::B, Variant::A].repeat(5);
    assert_eq!(of(&abba).turns(), Turns::InTurn);
    // A gap between neighbours makes them less alike.
    let gap: Vec<Option<Variant>> = [vec![Some(Variant::A); 10], vec![None; 10], vec![Some(Variant::B); 10]].concat();
    assert!(Order::new(&gap, 0.0).unwrap().worth() < of(&first).worth());
    assert!(Order::new(&[Some(Variant::A), Some(Variant::B)], 0.0).is_none());
    assert!(Order::new(&[Some(Variant::A); 5], 0.0).is_none());
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
        below += usize::from(effect <= noise_floor_of_differences(&first, 1_000, i).unwrap());
    }
    println!("{below} of {trials} effects of nothing lie below the noise floor of another measurement");
    assert!(below as f64 >= 0.88 * trials as f64);
    let (x, y) = (series("normal", 10, &mut noise), series("normal", 10, &mut noise));
    let apart: Vec<f64> = y.iter().map(|v| v + 5.0).collect();
    let floor = noise_floor_of_samples(&x, &apart, 1_000, 1).unwrap();
    assert!((0.002..0.02).contains(&floor), "{floor}");
    assert_eq!(floor, noise_floor_of_samples(&x, &apart, 1_000, 1).unwrap());
}
