//! How often a change is named where there is none, and how often where there is one.

use railgauge_stats::compare::{
    Comparison, LEVEL, Order, Variant, Verdict, margin, noise_floor, paired, paired_headline, verdict,
};

use crate::{
    compare::runs::{
        COMPARISONS, FRESH, HEADLINES, KINDS, blocks, five_percent, is_change, judged, orders, series, words,
    },
    generators::Noise,
};

#[test]
#[ignore = "slow: a simulation"]
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
            let floor = noise_floor(&[&differences]).unwrap();
            let cell = paired(&differences, margin(Some(0.001), floor)).unwrap();
            let changed = |cell: &Comparison| {
                matches!(verdict(cell, cell.p_change, cell.p_equivalent, true), Verdict::Improved | Verdict::Regressed)
            };
            p_blocks += usize::from(cell.p_change <= LEVEL);
            v_blocks += usize::from(changed(&cell));
            if i % HEADLINES == 0 {
                let headline = paired_headline(&differences).unwrap();
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
        Order::new(&order.iter().map(|side| Some(*side)).collect::<Vec<_>>()).unwrap().turns(),
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
#[ignore = "slow: a simulation"]
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
