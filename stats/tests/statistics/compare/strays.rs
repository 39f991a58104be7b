//! Bad runs, second states and missing values: nothing of that is called equivalent.

use railgauge_stats::compare::{Judged, Obstacle, RunSet, Variant, Verdict, paired, strays, verdict, verdicts};

use crate::{
    compare::runs::{FRESH, compared, orders, series, within, words},
    generators::Noise,
};

/// Cells in turn with values after that are changed: the number of the run after, and by how much.
fn with(noise: &mut Noise, bad: &[(usize, f64)]) -> (Vec<Variant>, Vec<Vec<f64>>) {
    let order = [Variant::A, Variant::B].repeat(10);
    let mut cells: Vec<Vec<f64>> = (0..50).map(|_| series("normal", 20, noise)).collect();
    for cell in &mut cells {
        bad.iter().for_each(|(run, by)| cell[2 * run + 1] += by);
    }
    (order, cells)
}

fn equivalent(judged: &Judged) -> bool {
    matches!(judged.verdict, Verdict::Equivalent | Verdict::Negligible)
}

const NONE: [Vec<usize>; 2] = [vec![], vec![]];

#[test]
fn a_bad_run_or_two_of_ten_are_told_and_not_called_equivalent() {
    let mut noise = Noise::new(FRESH + 11);
    // Without them most cells are.
    let (order, cells) = with(&mut noise, &[]);
    assert!(words(&cells, &order, within(0.03)).iter().filter(|one| equivalent(one)).count() >= 45);
    for bad in [&[(3, -0.7)][..], &[(3, -0.7), (8, -0.6)], &[(0, -0.15)], &[(5, 0.3), (6, 0.3)]] {
        let (order, cells) = with(&mut noise, bad);
        for (cell, judged) in compared(&cells, &order, within(0.03)).iter().zip(words(&cells, &order, within(0.03))) {
            assert_eq!(cell.strays, [0, bad.len()], "{bad:?}");
            assert!(!equivalent(&judged), "{bad:?}: {judged:?}");
        }
        // Which ones is known.
        let whole: Vec<Vec<Option<f64>>> = cells.iter().map(|cell| cell.iter().copied().map(Some).collect()).collect();
        let runs = RunSet::new(order);
        let far = runs.strays(&whole[0], 0.03);
        assert_eq!(
            far.iter().map(|(place, _)| *place).collect::<Vec<_>>(),
            bad.iter().map(|(run, _)| 2 * run + 1).collect::<Vec<_>>()
        );
        assert!(far.iter().zip(bad).all(|((_, found), (_, by))| (found - by).abs() < 0.05), "{far:?}");
    }
    // Of four runs a side one that lost half of its value is seen too.
    let order = [Variant::A, Variant::B].repeat(4);
    let mut cell = series("normal", 8, &mut noise);
    cell[3] -= 0.7;
    assert_eq!(compared(&[cell], &order, within(0.03))[0].strays, [0, 1]);
}

#[test]
fn a_bad_run_keeps_equivalence_away_within_any_margin_it_lies_beyond() {
    let mut noise = Noise::new(FRESH + 12);
    let (order, cells) = with(&mut noise, &[(4, -0.7)]);
    for judged in words(&cells, &order, within(0.25)) {
        assert_eq!((judged.verdict, judged.obstacle), (Verdict::Inconclusive, Some(Obstacle::Strays)));
    }
    assert!(words(&cells, &order, within(0.9)).iter().all(equivalent));
}

#[test]
fn two_states_are_not_equivalent_by_ranks_alone() {
    let mut noise = Noise::new(FRESH + 13);
    let order = [Variant::A, Variant::B].repeat(10);
    let (mut by_ranks, mut far) = (0, 0);
    for _ in 0..200 {
        // Two of ten runs after are in a state that lies four standard deviations lower, which their median does not show.
        let mut cell = series("normal", 20, &mut noise);
        [3, 8].iter().for_each(|run| cell[2 * run + 1] -= 0.04);
        let found = compared(std::slice::from_ref(&cell), &order, within(0.02))[0];
        let judged = words(&[cell], &order, within(0.02))[0];
        let [inside, means] =
            [found.interval95, found.mean95].map(|i| i.is_some_and(|i| -0.02 < i.low && i.high < 0.02));
        assert!(!equivalent(&judged) || inside && means && found.strays == [0, 0], "{judged:?}");
        by_ranks += usize::from(inside && judged.obstacle == Some(Obstacle::Means));
        far += usize::from(judged.obstacle == Some(Obstacle::Strays));
    }
    println!(
        "200 cells of two states: {by_ranks} inside the margin by ranks and not by means, {far} with a run far off"
    );
    assert!(by_ranks > 20);
}

#[test]
fn ordinary_runs_are_rarely_far_off() {
    let mut noise = Noise::new(FRESH + 14);
    for n in [4, 6, 10, 20] {
        let trials = 5_000;
        let of = |noise: &mut Noise| series("normal", n, noise);
        let seen = (0..trials).filter(|_| strays([&of(&mut noise), &of(&mut noise)], 0.0) != NONE).count();
        println!("{n} runs a side: far off in {seen} of {trials} cells");
        assert!(seen <= 15, "{n} runs: {seen} of {trials}");
    }
    // Values that are all the same are not far from each other.
    assert_eq!(strays([&[24.3; 10], &[24.3; 10]], 0.1), NONE);
    assert_eq!(strays([&[0.0; 10], &[0.0; 10]], 0.1), NONE);
    // Nothing can be said of three.
    assert_eq!(strays([&[0.0, 0.0, 9.0], &[]], 0.1), NONE);
    assert_eq!(strays([&[0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0]], 0.1), [vec![2]]);
    assert_eq!(strays([&[0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0]], 10.0), [Vec::<usize>::new()]);
}

#[test]
fn a_bad_block_is_told() {
    let blocks = [0.001, -0.001, 0.002, -0.4, 0.0, -0.002, 0.001, 0.0015];
    let cell = paired(&blocks, within(0.03)).unwrap();
    assert_eq!(cell.strays, [1, 0]);
    assert_eq!(verdict(&cell, cell.p_change, cell.p_equivalent, true), Verdict::Inconclusive);
}

#[test]
fn a_missing_value_after_is_no_pass() {
    let mut noise = Noise::new(FRESH + 15);
    let [_, _, turns] = orders(&mut noise);
    let judge = |side: Variant, lost: usize, by: f64, noise: &mut Noise| {
        let mut cells: Vec<Vec<Option<f64>>> = (0..20)
            .map(|_| {
                let runs = series("normal", 20, noise).into_iter().zip(&turns);
                runs.map(|(v, side)| Some(v + if *side == Variant::B { by } else { 0.0 })).collect()
            })
            .collect();
        let places: Vec<usize> = (0..20).filter(|&at| turns[at] == side).take(lost).collect();
        cells.iter_mut().for_each(|cell| places.iter().for_each(|&at| cell[at] = None));
        let mut runs = RunSet::new(turns.clone());
        let found: Vec<_> = cells.iter().map(|cell| (runs.compare(cell, within(0.03)).unwrap(), true)).collect();
        let missing = if side == Variant::A { [lost, 0] } else { [0, lost] };
        assert!(found.iter().all(|(cell, _)| cell.missing == missing));
        verdicts(&found).unwrap()
    };
    for by in [0.0, 0.1] {
        for judged in judge(Variant::B, 1, by, &mut noise) {
            assert_eq!((judged.verdict, judged.obstacle), (Verdict::Inconclusive, Some(Obstacle::Missing)));
        }
    }
    // What is worse is still worse.
    assert!(judge(Variant::B, 2, -0.1, &mut noise).iter().all(|one| one.verdict == Verdict::Regressed));
    // What was missing before and is there after is judged by the rest.
    assert!(judge(Variant::A, 2, 0.0, &mut noise).iter().filter(|one| equivalent(one)).count() >= 15);
    assert!(judge(Variant::A, 9, 0.0, &mut noise).iter().all(|one| one.obstacle == Some(Obstacle::FewRuns)));
}
