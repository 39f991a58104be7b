//! What the order of the runs makes of them.

use railgauge_stats::compare::{Obstacle, Order, Turns, Variant, Verdict};

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
fn the_order_of_runs_says_what_they_are_worth() {
    let [first, _, turns] = orders(&mut Noise::new(1));
    let of = |order: &[Variant]| Order::new(&order.iter().map(|side| Some(*side)).collect::<Vec<_>>()).unwrap();
    // By hand: both means have variance 0.325, covariance 0.037; within the sides 0.75 of the variance is seen, so that the
    // standard error is 1.96 times what it seems.
    assert!((of(&first).worth() - 1.0 / 1.96_f64.powi(2)).abs() < 0.003, "{}", of(&first).worth());
    assert_eq!((of(&first).turns(), of(&turns).turns()), (Turns::OneSideFirst, Turns::InTurn));
    assert_eq!(of(&turns).worth(), 1.0);
    let mirrored: Vec<Variant> = first.iter().rev().copied().collect();
    assert!((of(&mirrored).worth() - of(&first).worth()).abs() < 1e-12);
    let halves = [[Variant::A; 5], [Variant::B; 5], [Variant::A; 5], [Variant::B; 5]].concat();
    assert_eq!(of(&halves).turns(), Turns::Mixed);
    assert!(of(&halves).worth() > of(&first).worth() && of(&halves).worth() < 1.0);
    let abba = [Variant::A, Variant::B, Variant::B, Variant::A].repeat(5);
    assert_eq!(of(&abba).turns(), Turns::InTurn);
    // A gap between neighbours makes them less alike.
    let gap: Vec<Option<Variant>> = [vec![Some(Variant::A); 10], vec![None; 10], vec![Some(Variant::B); 10]].concat();
    assert!(Order::new(&gap).unwrap().worth() < of(&first).worth());
    assert!(Order::new(&[Some(Variant::A), Some(Variant::B)]).is_none());
    assert!(Order::new(&[Some(Variant::A); 5]).is_none());
}
