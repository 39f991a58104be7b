use crate::{
    localise::{
        Part,
        cover::{Cover, Table},
        split::split,
    },
    robust::{Level, SMALLEST},
};

/// Standard error of the median of n normal values, times √n / σ: √(π / 2).
pub(in crate::localise) const MEDIAN_ERROR: f64 = 1.253_314_137_315_500_3;
/// A suspect is below the level by at least this many standard errors.
pub(super) const CUT: f64 = 4.0;
/// A result is low by itself if it is this many standard deviations below the expected value.
pub(super) const LOW: f64 = 5.0;
/// Share of all results that a level must have if its cluster is not separate from the others.
pub(super) const MANY_GOOD: f64 = 0.25;
/// Ratio of a spread to that of the shortest quarter from which the narrower one is tried.
pub(super) const WIDE: f64 = 1.3;
/// Fewest values whose spread is a scale of its own.
pub(super) const FEW: usize = 12;
/// How much better than most results fewer than [`FEW`] must be to show what is good, as a difference of logarithms: a rate limiter that
/// saved credit while idle, or a warm cache, adds a few percent to single results.
pub(in crate::localise) const FEW_BETTER: f64 = 0.04;

/// Those of most values, and of each cluster above; for both kinds of pairs alike, or for each kind.
pub(super) fn bases(table: &Table, cover: &Cover) -> Vec<[Level; 2]> {
    let of = |stratum: Option<usize>| {
        let cells = table.cells.iter().filter(|cell| stratum.is_none_or(|stratum| cell.stratum == stratum));
        let mut values: Vec<f64> = cells.map(|cell| cell.value).collect();
        values.sort_unstable_by(f64::total_cmp);
        modes(&values, table)
    };
    let mut all: Vec<[Level; 2]> = of(None).into_iter().map(|level| [level; 2]).collect();
    let kinds = [of(Some(0)), of(Some(1))];
    if table.two_levels && kinds.iter().all(|levels| !levels.is_empty()) {
        for within in &kinds[0] {
            // More switches on the way make nothing better.
            let split = kinds[1].iter().filter(|between| between.centre < within.centre);
            all.extend(split.map(|between| alike([*within, *between])));
        }
    }
    all.extend(best_rail(table, cover, all[0][0]));
    all
}

/// With the spread of the other kind, where a kind has too few values for its own.
fn alike(mut levels: [Level; 2]) -> [Level; 2] {
    for (few, many) in [(0, 1), (1, 0)] {
        if levels[few].n < FEW && levels[many].n >= FEW {
            (levels[few].scale, levels[few].n) = (levels[many].scale, levels[many].n);
        }
    }
    levels
}

/// The level of a rail that is better than most pairs, if any: rails are separate networks, and all others may be slow.
fn best_rail(table: &Table, cover: &Cover, most: Level) -> Option<[Level; 2]> {
    let rails = cover.parts.iter().zip(&cover.cells).filter(|(part, _)| matches!(part, Part::Rail(_)));
    let level = |(_, cells): (&Part, &Vec<u32>)| {
        let mut values: Vec<f64> = cells.iter().map(|&at| table.cells[at as usize].value).collect();
        values.sort_unstable_by(f64::total_cmp);
        Level::of_sorted(&values, floor(values.len(), table))
    };
    let best = rails.map(level).max_by(|a, b| a.centre.total_cmp(&b.centre))?;
    let error = MEDIAN_ERROR * most.scale / (best.n as f64).sqrt();
    (best.centre - most.centre > (CUT * error).max(table.least)).then_some([best; 2])
}

/// Least spread of so many values: few are close together by chance.
fn floor(n: usize, table: &Table) -> f64 {
    if n < FEW { table.noise.max(table.least) } else { table.noise }
}

/// The level of most of these values, and that of each cluster above. A fault removes bandwidth and adds none, so the better of two
/// clusters may be the good level.
fn modes(sorted: &[f64], table: &Table) -> Vec<Level> {
    if sorted.is_empty() {
        return Vec::new();
    }
    let most = Level::of_sorted(sorted, floor(sorted.len(), table));
    let mut found = vec![most];
    let better = |upper: &[f64]| upper[upper.len() / 2] - most.centre;
    let is_better = |upper: &[f64]| upper.len() >= FEW || !(most.scale..FEW_BETTER).contains(&better(upper));
    // A fault in many pairs widens the spread that should reveal it.
    if let Some(narrow) = quarter(sorted, table.noise).filter(|narrow| WIDE * narrow.scale < found[0].scale) {
        found.push(narrow);
        // If the quarter is among low values, the upper quartile is among good ones, if these are many.
        let upper = Level { centre: sorted[3 * sorted.len() / 4], ..narrow };
        let near = sorted.iter().filter(|value| (*value - upper.centre).abs() < LOW * upper.scale).count();
        found.extend((near as f64 >= MANY_GOOD * sorted.len() as f64).then_some(upper));
    }
    // The best may be good and all others bad, however these scatter.
    let n = sorted.len();
    let apart = |upper: usize| {
        let (from, below) = (sorted[n - upper], sorted[n - upper - 1]);
        let wide = (sorted[n - 1] - from).max(table.noise).max(table.least);
        ((from - below) / wide, Level { centre: sorted[n - upper + upper / 2], scale: wide, n })
    };
    let fewest = if n < 4 { 1 } else { (n / 20).max(2) };
    let best = (fewest..=(n / 2).max(fewest)).filter(|upper| *upper < n).map(apart).max_by(|a, b| a.0.total_cmp(&b.0));
    let is_other = |level: &Level, apart: f64| {
        let by = level.centre - most.centre;
        if n < 4 { by > FEW_BETTER } else { apart > GAP && !(most.scale..FEW_BETTER).contains(&by) }
    };
    found.extend(best.filter(|(apart, level)| is_other(level, *apart)).map(|(_, level)| level));
    let mut rest = sorted;
    // Chance separates few values into two.
    while (rest.len() == sorted.len() || rest.len() >= 4 * FEW)
        && let Some(next) = split(rest, 1)
        && let (lower, upper) = rest.split_at(rest.partition_point(|value| *value < next.from))
        && 10 * upper.len() >= sorted.len()
    {
        // The spread of few is that within both clusters.
        let few = |level: Level| Level { scale: next.scale.max(table.noise).max(SMALLEST), n: sorted.len(), ..level };
        let of = |values: &[f64]| {
            let level = Level::of_sorted(values, table.noise);
            if values.len() < 2 * FEW { few(level) } else { level }
        };
        // Of two halves either may be the level of most.
        found.extend((2 * lower.len() >= sorted.len()).then(|| of(lower)));
        found.extend(is_better(upper).then(|| of(upper)));
        let own = Level { n: sorted.len(), ..Level::of_sorted(upper, floor(upper.len(), table)) };
        found.extend((upper.len() > 1 && is_better(upper) && WIDE * own.scale < of(upper).scale).then_some(own));
        rest = upper;
    }
    found
}

/// Least gap below the best values that makes them a level, in widths of theirs.
const GAP: f64 = 4.0;
const FEWEST_FOR_QUARTER: usize = 15;

/// Shortest quarter of sorted values, with its scale in a normal distribution.
fn quarter(sorted: &[f64], noise: f64) -> Option<Level> {
    let n = sorted.len();
    if n < FEWEST_FOR_QUARTER {
        return None;
    }
    let size = n / 4;
    let length = |start: &usize| sorted[start + size] - sorted[*start];
    let start = (0..n - size).min_by(|a, b| length(a).total_cmp(&length(b)))?;
    // A quarter of a normal distribution is within 0.3186 standard deviations; the shortest of few values is shorter.
    let scale = (length(&start) / 0.637 * (1.0 + 100.0 / (n * n) as f64)).max(noise).max(SMALLEST);
    Some(Level { centre: sorted[start + size / 2], scale, n })
}
