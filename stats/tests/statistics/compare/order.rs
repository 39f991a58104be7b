//! What the order of the runs makes of them.

use railgauge_stats::compare::{Luck, Obstacle, Order, Turns, Variant, Verdict};

use crate::{
    compare::runs::{FRESH, orders, series, within, words},
    generators::Noise,
};

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
