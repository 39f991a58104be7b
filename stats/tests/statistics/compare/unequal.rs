//! Sides whose noise differs.

use railgauge_stats::compare::{RunSet, Variant, margin, noise_floor};

use crate::{
    compare::runs::{FRESH, is_change, series, words},
    generators::Noise,
};

/// One comparison of 50 cells in which nothing changes, in an order, with the noise of runs after this many times as wide.
fn cells(kind: &str, order: &[Variant], after: f64, noise: &mut Noise) -> Vec<Vec<f64>> {
    let wide = |(value, side): (f64, &Variant)| value * if *side == Variant::B { after } else { 1.0 };
    (0..50).map(|_| series(kind, order.len(), noise).into_iter().zip(order).map(wide).collect()).collect()
}

#[test]
fn noise_on_one_side_is_no_change() {
    use Variant::{A, B};
    let mut noise = Noise::new(FRESH + 16);
    let few_noisy = [B, A, A, A, B, A, A, A, B, A, A, A, B, A, A, A, B, A, A, A].to_vec();
    for (name, order) in [("in turn", [A, B].repeat(10)), ("A B B A", [A, B, B, A].repeat(5)), ("few", few_noisy)] {
        for kind in ["normal", "autocorrelated .6"] {
            for after in [0.2, 3.0, 5.0] {
                let (mut named, mut held, mut of, comparisons) = (0, 0, 0, 20);
                for _ in 0..comparisons {
                    let cells = cells(kind, &order, after, &mut noise);
                    let whole: Vec<Vec<Option<f64>>> =
                        cells.iter().map(|cell| cell.iter().copied().map(Some).collect()).collect();
                    let slices: Vec<&[Option<f64>]> = whole.iter().map(Vec::as_slice).collect();
                    let mut runs = RunSet::new(order.clone());
                    let margin = margin(None, runs.floor(&slices).unwrap());
                    named += usize::from(words(&cells, &order, margin).iter().any(is_change));
                    for cell in &slices {
                        held += usize::from(runs.compare(cell, margin).unwrap().interval95.unwrap().holds(0.0));
                        of += 1;
                    }
                }
                println!(
                    "{name}, {kind}, noise 1 : {after}: {named} of {comparisons} name a change, {held} of {of} hold 0"
                );
                // Two standard errors above 5 %.
                assert!(named <= 2, "{name}, {kind}, noise 1 : {after}: {named} of {comparisons}");
                assert!(held * 100 >= of * 93, "{name}, {kind}, noise 1 : {after}: {held} of {of}");
            }
        }
    }
}

#[test]
fn the_noise_floor_is_that_of_both_sides() {
    let mut noise = Noise::new(FRESH + 17);
    // Four noisy runs against sixteen quiet ones: the noisy ones decide.
    let quiet = series("normal", 16, &mut noise);
    let (mut floors, mut below) = (0.0, 0);
    for _ in 0..400 {
        let noisy: Vec<f64> = series("normal", 4, &mut noise).iter().map(|v| 5.0 * v).collect();
        floors += noise_floor(&[&quiet, &noisy]).unwrap() / 400.0;
        below += usize::from(noisy.iter().sum::<f64>().abs() / 4.0 <= 1.96 * 0.05 / 2.0);
    }
    assert!((0.035..0.06).contains(&floors) && below >= 360, "{floors} {below}");
}

/// Of five values a side that hardly overlap, a p that few cells reach is the least that ranks have, though Welch's is a little more.
#[test]
fn a_p_near_the_least_of_ranks_is_the_least() {
    use Variant::{A, B};
    let mut runs = RunSet::new([A, B].repeat(5));
    let mut p = |shift: f64| {
        let values = [0.0, 0.0, -1.0, 1.0, 1.0, -1.0, 2.0, -2.0, -2.0, 2.0];
        let moved = values.iter().enumerate().map(|(at, value)| Some(value + shift * (at % 2) as f64));
        runs.compare(&moved.collect::<Vec<_>>(), margin(None, 0.0)).unwrap().p_change
    };
    let times = [2.8, 3.3, 8.0].map(|shift| p(shift) * 252.0 / 2.0);
    assert!(times[0] > 1.5 && times[1..].iter().all(|times| (times - 1.0).abs() < 1e-9), "{times:?}");
}
