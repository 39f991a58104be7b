//! What is counted.

use railgauge_stats::compare::{Judged, Margin, RunSet, Stretch, Verdict, margin, unpaired, verdicts};

use super::draw::{SIGMA, Shared, Situation, judge, move_after};
use crate::row::{Bar, Options, Row};

/// Comparisons a row.
const COMPARISONS: usize = 200;
/// As many comparisons where there is one link, or all have the same luck, so that only comparisons count.
const OF_ONE_LUCK: usize = 3_000;
/// Links of those.
const LINKS: usize = 3;

/// The situation as it is drawn, and seeds.
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

/// Comparisons below which a share of intervals is no rate: those of one comparison hold the truth or miss it together.
const FEWEST_COMPARISONS: usize = 10;

/// How far the share of 95 % intervals that hold the truth is from their own level; intervals of "at least" a level may
/// hold it more often.
pub fn coverage(situation: &Situation, options: &Options) -> Vec<Row> {
    let margin = Margin { value: SIGMA, raised: false, too_wide: false };
    // Held, stated, number: of intervals that state a level, and of those that state the least of it.
    let mut seen = [(0.0, 0.0, 0.0); 2];
    // Intervals of one comparison share its luck.
    let mut comparisons = [0, 0];
    // Links that share luck say little more than one; without a noise floor many comparisons are quick.
    let half = situation.shared == Shared::Half;
    let (situation, seeds) = trials(situation, &Options { quick: options.quick && !half, ..*options });
    for seed in seeds {
        let (order, cells) = situation.draw(seed);
        let mut runs = RunSet::new(order, cells.iter().map(Vec::as_slice));
        let before = seen;
        for cell in cells.iter().step_by(if cells.len() > 20 { 10 } else { 3 }) {
            let Some((found, interval)) = runs.compare(cell, margin).ok().and_then(|c| Some((c, c.interval95?))) else {
                continue;
            };
            let of = &mut seen[usize::from(found.at_least)];
            of.0 += f64::from(u8::from(interval.holds(0.0)));
            of.1 += interval.level;
            of.2 += 1.0;
        }
        (0..2).for_each(|kind| comparisons[kind] += usize::from(seen[kind].2 > before[kind].2));
    }
    let row = |words: &str, (held, stated, n): (f64, f64, f64), at_least: bool| {
        let off = if at_least { (stated - held).max(0.0) } else { (stated - held).abs() };
        let what = format!("compare: coverage off its {words}, {:.3} held, {n} seen: {}", held / n, situation.name());
        Row::rate(what, off, n, Bar::AtMost(0.03))
    };
    let mut rows = Vec::new();
    let [exact, least] = seen;
    if comparisons[0] >= FEWEST_COMPARISONS {
        rows.push(row("level", exact, false));
    }
    if comparisons[1] >= FEWEST_COMPARISONS {
        rows.push(row("least level", least, true));
    }
    rows
}

/// Drops of so many standard deviations of 40 of the links that are found.
pub fn power(situation: &Situation, sigmas: f64, bar: Bar, options: &Options) -> Row {
    let (found, _, of) = drops(situation, sigmas, options);
    Row::share(format!("compare: drops of {sigmas} sigma found: {}", situation.name()), found, of, bar)
}

/// Those that are found, for each that ranks alone would find, with the order of the runs left out of account: the rule of
/// commit 8a12db0 without what it asked of the order, which in turn was nothing.
pub fn beside_ranks_alone(situation: &Situation, sigmas: f64, options: &Options) -> Row {
    let (found, by_ranks, _) = drops(situation, sigmas, options);
    let what = format!("compare: drops of {sigmas} sigma found for each that ranks alone find: {}", situation.name());
    Row::share(what, found, by_ranks, Bar::AtLeast(1.0))
}

fn drops(situation: &Situation, sigmas: f64, options: &Options) -> (usize, usize, usize) {
    let (mut found, mut by_ranks, mut of) = (0, 0, 0);
    let (situation, seeds) = trials(situation, options);
    for seed in seeds {
        let (order, mut cells) = situation.draw(seed);
        cells.iter_mut().take(40).for_each(|cell| move_after(&order, cell, -sigmas * SIGMA));
        let mut runs = RunSet::new(order, cells.iter().map(Vec::as_slice));
        // The margin of 1 % that the rows of before were measured with.
        let margin = margin(None, 0.0);
        let compared: Vec<_> = cells.iter().filter_map(|cell| Some((runs.compare(cell, margin).ok()?, true))).collect();
        let regressed = |judged: &[Judged]| judged.iter().take(40).filter(|v| v.verdict == Verdict::Regressed).count();
        found += regressed(&verdicts(&compared).unwrap_or_default());
        of += 40;
        let plain = cells.iter().filter_map(|cell| {
            let [before, after] = runs.split(cell);
            let stretch = Stretch { factor: 1.0, at_least: false };
            let mut found = unpaired(&before, &after, None, stretch, margin).ok()?;
            found.p_change = found.p_plain;
            Some((found, true))
        });
        by_ranks += regressed(&verdicts(&plain.collect::<Vec<_>>()).unwrap_or_default());
    }
    (found, by_ranks, of)
}
