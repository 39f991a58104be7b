//! What must not be called equivalent: bad runs, second states, missing values; and exchanged sides.

use railgauge_stats::compare::{
    Judged, Obstacle, RunSet, Variant, Verdict, block_difference, block_orders, paired_headline,
};

use super::{
    draw::{SIGMA, Situation, Turn, judge},
    rates::trials,
};
use crate::{
    noise::{Kind, Noise},
    row::{Bar, Options, Row},
};

fn equivalent(one: &Judged) -> bool {
    matches!(one.verdict, Verdict::Equivalent | Verdict::Negligible)
}

/// The places of the runs after.
fn after(order: &[Variant]) -> Vec<usize> {
    (0..order.len()).filter(|&at| order[at] == Variant::B).collect()
}

/// Links that are called equivalent or improved though something happened to values after: `what` changes them.
fn called_good(
    name: &str,
    options: &Options,
    situation: &Situation,
    what: &dyn Fn(&mut Option<f64>, usize, &mut Noise),
) -> Row {
    let (mut wrong, mut of) = (0, 0);
    let (situation, seeds) = trials(situation, options);
    for seed in seeds {
        let (order, mut cells) = situation.draw(seed);
        let mut chance = Noise::new(Kind::Normal, seed.wrapping_add(1 << 41));
        for cell in &mut cells {
            after(&order).into_iter().enumerate().for_each(|(number, at)| what(&mut cell[at], number, &mut chance));
        }
        for one in judge(&order, &cells, Some(5.0 * SIGMA)) {
            wrong += usize::from(equivalent(&one) || one.verdict == Verdict::Improved);
            of += 1;
        }
    }
    Row::share(format!("compare: called equivalent: {name}: {}", situation.name()), wrong, of, Bar::AtMost(0.05))
}

fn lower(value: &mut Option<f64>, by: f64) {
    *value = value.map(|value| value - by * SIGMA);
}

/// Bad runs, states and missing values, in an order.
pub fn called_equivalent(situation: &Situation, options: &Options) -> Vec<Row> {
    let bad = |runs: usize, by: f64| {
        move |value: &mut Option<f64>, number: usize, _: &mut Noise| {
            if number < runs {
                lower(value, by);
            }
        }
    };
    let row =
        |name: &str, what: &dyn Fn(&mut Option<f64>, usize, &mut Noise)| called_good(name, options, situation, what);
    vec![
        row("1 bad run of 10, 15 sigma", &bad(1, 15.0)),
        row("2 bad runs of 10, 15 sigma", &bad(2, 15.0)),
        row("2 bad runs of 10, half the rate", &bad(2, 69.3)),
        row("4 of 10 runs in a state 20 sigma off", &bad(4, 20.0)),
        row("each run after in a state 15 sigma off, or not", &|value, _, chance| {
            if chance.uniform() < 0.5 {
                lower(value, 15.0);
            }
        }),
        row("1 of 10 runs after without a value", &|value, number, _| {
            if number == 7 {
                *value = None;
            }
        }),
    ]
}

/// Unchanged links that are called equivalent within five standard deviations, and those of whose runs one is said to lie far
/// off.
pub fn unchanged(situation: &Situation, options: &Options) -> [Row; 2] {
    let (mut found, mut far, mut of) = (0, 0, 0);
    let (situation, seeds) = trials(situation, options);
    for seed in seeds {
        let (order, cells) = situation.draw(seed);
        for one in judge(&order, &cells, Some(5.0 * SIGMA)) {
            found += usize::from(equivalent(&one));
            far += usize::from(one.obstacle == Some(Obstacle::Strays));
            of += 1;
        }
    }
    let name = situation.name();
    [
        Row::share(format!("compare: unchanged and called equivalent: {name}"), found, of, Bar::AtLeast(0.99)),
        Row::share(format!("compare: unchanged and a run is far off: {name}"), far, of, Bar::AtMost(0.003)),
    ]
}

/// Comparisons of which some link has another word when the sides are exchanged; a third of the links are moved by two standard
/// deviations either way. The margin is that of the noise floor.
pub fn not_mirrored(situation: &Situation, options: &Options) -> Row {
    let mut wrong = 0;
    // Few links are enough: what depends on the side does so in each.
    let situation = Situation { cells: situation.cells.min(30), ..*situation };
    let (situation, seeds) = trials(&situation, options);
    let of = seeds.len();
    for seed in seeds {
        let (order, mut cells) = situation.draw(seed);
        for (number, cell) in cells.iter_mut().enumerate().filter(|(number, _)| number % 3 == 0) {
            super::draw::move_after(&order, cell, if number % 2 == 0 { 2.0 * SIGMA } else { -2.0 * SIGMA });
        }
        let back: Vec<Variant> =
            order.iter().map(|side| if *side == Variant::A { Variant::B } else { Variant::A }).collect();
        let mirrored = |word: Verdict| match word {
            Verdict::Improved => Verdict::Regressed,
            Verdict::Regressed => Verdict::Improved,
            same => same,
        };
        let pairs: Vec<_> = judge(&order, &cells, None).into_iter().zip(judge(&back, &cells, None)).collect();
        wrong += usize::from(pairs.iter().any(|(there, back)| mirrored(there.verdict) != back.verdict));
    }
    Row::share(format!("compare: not mirrored: {}", situation.name()), wrong, of, Bar::AtMost(0.0))
}

/// Headlines whose interval holds the truth: of runs, from each run's mean over the links.
pub fn headline_of_runs(situation: &Situation, options: &Options) -> Row {
    let (situation, seeds) = many(situation, options);
    let of = seeds.len();
    let mut held = 0;
    for seed in seeds {
        let (order, cells) = situation.draw(seed);
        let means: Vec<Option<f64>> = (0..order.len())
            .map(|run| Some(cells.iter().filter_map(|cell| cell[run]).sum::<f64>() / cells.len() as f64))
            .collect();
        let mut runs = RunSet::new(order);
        held += usize::from(runs.headline(&means).ok().and_then(|found| found.interval).is_some_and(|i| i.holds(0.0)));
    }
    headline_row(&situation.name(), held, of)
}

/// The same of blocks: one link, so that nothing makes its noise more normal.
pub fn headline_of_blocks(kind: Kind, blocks: usize, options: &Options) -> Row {
    let situation = Situation { cells: 1, runs: [2 * blocks; 2], turn: Turn::Alternating, kind, ..super::BASE };
    let (_, seeds) = many(&situation, options);
    let of = seeds.len();
    let mut held = 0;
    for seed in seeds {
        let mut noise = Noise::new(kind, seed);
        let differences: Vec<f64> = block_orders(blocks, seed)
            .into_iter()
            .filter_map(|order| {
                let values: Vec<f64> = order.iter().map(|_| SIGMA * noise.next()).collect();
                let side = |which| -> Vec<f64> {
                    values.iter().zip(order).filter(|(_, side)| *side == which).map(|(value, _)| *value).collect()
                };
                block_difference(&side(Variant::A), &side(Variant::B)).ok()
            })
            .collect();
        held += usize::from(
            paired_headline(&differences).ok().and_then(|found| found.interval).is_some_and(|i| i.holds(0.0)),
        );
    }
    headline_row(&format!("{kind:?}, {blocks} blocks"), held, of)
}

/// A headline says one thing a comparison, so it takes many, with `--quick` too; they are quick.
fn many(situation: &Situation, options: &Options) -> (Situation, Vec<u64>) {
    let situation = Situation { cells: situation.cells.min(5), ..*situation };
    let (situation, seeds) = trials(&situation, options);
    let first = seeds.first().copied().unwrap_or_default();
    (situation, (0..2_000).map(|i| first.wrapping_add(i * 1_000_033)).collect())
}

fn headline_row(name: &str, held: usize, of: usize) -> Row {
    Row::share(format!("compare: headline's interval holds the truth: {name}"), held, of, Bar::AtLeast(0.93))
}
