//! What is counted.

use railgauge_stats::{
    Refusal,
    compare::{Judged, LEVEL, Margin, RunSet, Variant, Verdict, margin, verdicts},
    multiple::benjamini_hochberg,
    rank::mann_whitney,
    shift::{Shift, shift},
};

use super::draw::{SIGMA, Shared, Situation, judge, move_after};
use crate::row::{Bar, Options, Row};

/// Comparisons a row.
const COMPARISONS: usize = 200;
/// As many comparisons where there is one link, or all have the same luck, so that only comparisons count.
const OF_ONE_LUCK: usize = 3_000;
const LINKS: usize = 3;

pub fn trials(situation: &Situation, options: &Options) -> (Situation, Vec<u64>) {
    let (situation, comparisons) = if situation.shared == Shared::All {
        (Situation { cells: LINKS, ..*situation }, options.runs(OF_ONE_LUCK))
    } else if situation.cells == 1 {
        (*situation, options.runs(OF_ONE_LUCK))
    } else if situation.cells < 100 {
        (*situation, options.runs(COMPARISONS * 2))
    } else {
        (*situation, options.runs(COMPARISONS))
    };
    let first = options.seed.wrapping_mul(7_919_000_003);
    (situation, (0..comparisons as u64).map(|i| first.wrapping_add(i * 1_000_033)).collect())
}

/// Comparisons in which nothing changed and a change is named.
pub fn false_names(situation: &Situation, options: &Options) -> Row {
    let mut wrong = 0;
    let (situation, seeds) = trials(situation, options);
    let of = seeds.len();
    for seed in seeds {
        let (order, cells) = situation.draw(seed);
        let named = |v: &Judged| matches!(v.verdict, Verdict::Improved | Verdict::Regressed);
        wrong += usize::from(judge(&order, &cells, None).iter().any(named));
    }
    Row::share(format!("compare: false change named: {}", situation.name()), wrong, of, Bar::AtMost(0.05))
}

/// Links whose true change is the margin and which are called equivalent.
pub fn equivalent_at_the_edge(situation: &Situation, options: &Options) -> Row {
    let margin = 3.0 * SIGMA;
    let (mut wrong, mut of) = (0, 0);
    // Where a comparison says one thing only, it takes many; they are quick without a noise floor.
    let full = situation.shared == Shared::All;
    let (situation, seeds) = trials(situation, &Options { quick: options.quick && !full, ..*options });
    for seed in seeds {
        let (order, mut cells) = situation.draw(seed);
        cells.iter_mut().enumerate().for_each(|(at, cell)| {
            // A fifth at the edge among equals, which make the correction for many cells easy.
            if at % 5 == 0 {
                move_after(&order, cell, if at % 2 == 0 { margin } else { -margin });
            }
        });
        let judged = judge(&order, &cells, Some(margin));
        for one in judged.iter().step_by(5) {
            wrong += usize::from(matches!(one.verdict, Verdict::Equivalent | Verdict::Negligible));
            of += 1;
        }
    }
    Row::share(format!("compare: equivalent at the margin: {}", situation.name()), wrong, of, Bar::AtMost(0.05))
}

/// Intervals that hold the truth, of every tenth link (or third, of few).
pub fn coverage(situation: &Situation, options: &Options) -> Row {
    let (mut held, mut of) = (0, 0);
    // Links that share luck say little more than one; many comparisons are quick.
    let half = situation.shared == Shared::Half;
    let (situation, seeds) = trials(situation, &Options { quick: options.quick && !half, ..*options });
    for seed in seeds {
        let (order, cells) = situation.draw(seed);
        let (h, n) = held_by_intervals(order, &cells);
        held += h;
        of += n;
    }
    Row::share(format!("compare: intervals hold the truth: {}", situation.name()), held, of, Bar::AtLeast(0.93))
}

/// How many of how many intervals of unchanged links hold 0.
pub fn held_by_intervals(order: Vec<Variant>, cells: &[Vec<Option<f64>>]) -> (usize, usize) {
    let margin = Margin { value: SIGMA, raised: false, too_wide: false };
    let mut runs = RunSet::new(order);
    let some = cells.iter().step_by(if cells.len() > 20 { 10 } else { 3 });
    let intervals = some.filter_map(|cell| runs.compare(cell, margin).ok()?.interval95);
    intervals.fold((0, 0), |(held, of), interval| (held + usize::from(interval.holds(0.0)), of + 1))
}

/// Drops of so many standard deviations of 40 of the links that are found.
pub fn power(situation: &Situation, sigmas: f64, bar: Bar, options: &Options) -> Row {
    let (found, _, of) = drops(situation, sigmas, options);
    Row::share(format!("compare: drops of {sigmas} sigma found: {}", situation.name()), found, of, bar)
}

/// Drops of so many standard deviations that are found, for each that ranks alone would find, with the order of the runs left
/// out of account.
pub fn for_each_of_ranks(situation: &Situation, sigmas: &[f64], options: &Options) -> Row {
    let (mut found, mut by_ranks) = (0, 0);
    for &sigma in sigmas {
        let (here, there, _) = drops(situation, sigma, options);
        found += here;
        by_ranks += there;
    }
    let name = situation.name();
    let what = format!("compare: drops of {sigmas:?} sigma found for each that ranks alone find: {name}");
    Row::share(what, found, by_ranks, Bar::AtLeast(1.0))
}

fn drops(situation: &Situation, sigmas: f64, options: &Options) -> (usize, usize, usize) {
    let (mut found, mut by_ranks, mut of) = (0, 0, 0);
    let (situation, seeds) = trials(situation, options);
    for seed in seeds {
        let (order, mut cells) = situation.draw(seed);
        cells.iter_mut().take(40).for_each(|cell| move_after(&order, cell, -sigmas * SIGMA));
        let mut runs = RunSet::new(order);
        // The margin of 1 % that the rows of before were measured with.
        let margin = margin(None, 0.0);
        let compared: Vec<_> = cells.iter().filter_map(|cell| Some((runs.compare(cell, margin).ok()?, true))).collect();
        let regressed = |judged: &[Judged]| judged.iter().take(40).filter(|v| v.verdict == Verdict::Regressed).count();
        found += regressed(&verdicts(&compared).unwrap_or_default());
        of += 40;
        let sides: Vec<[Vec<f64>; 2]> = cells.iter().map(|cell| runs.split(cell)).collect();
        by_ranks += by_ranks_alone(&sides, margin.value).unwrap_or_default();
    }
    (found, by_ranks, of)
}

/// Drops among the first 40 links that ranks alone find: Mann & Whitney, the shift of Hodges & Lehmann with its interval, and
/// Benjamini & Hochberg over all links.
fn by_ranks_alone(cells: &[[Vec<f64>; 2]], margin: f64) -> Result<usize, Refusal> {
    let p = cells.iter().map(|[before, after]| Ok(mann_whitney(after, before)?.two_sided));
    let adjusted = benjamini_hochberg(&p.collect::<Result<Vec<f64>, Refusal>>()?)?;
    let mut found = 0;
    for ([before, after], p) in cells.iter().zip(adjusted).take(40) {
        let Shift { estimate, interval } = shift(before, after, 0.95)?;
        found += usize::from(p <= LEVEL && interval.is_some_and(|i| !i.holds(0.0)) && estimate <= -margin);
    }
    Ok(found)
}
