//! From values to verdicts.

use std::collections::HashMap;

use railgauge_stats::{
    Refusal,
    compare::{self as stats, Comparison, Headline, Margin, Verdict},
    robust::median,
    shift::Interval,
};
use railgauge_wire::terms::{Better, Metric};

use super::{
    Cell, Change, Counts, Design, Group, Options, Word, reason,
    table::{Collected, Pair},
};

/// How the cells of runs are judged.
const OF_RUNS: &str = "Hodges–Lehmann shift of the logarithms of runs, Mann–Whitney for a change, two one-sided \
                          Mann–Whitney tests for its absence, Benjamini–Hochberg over all cells (docs/compare.md)";

/// How the cells of blocks are judged.
const OF_BLOCKS: &str = "Hodges–Lehmann pseudomedian of the blocks' differences of logarithms, signed rank test for a \
                         change, two one-sided signed rank tests for its absence, Benjamini–Hochberg over all cells \
                         (docs/compare.md)";

/// Cells of a group whose noise floor is looked at; the group's is their median.
const SAMPLED: usize = 9;
/// Deals for each of them.
const DEALS: usize = 200;
/// Seed of everything random: the same runs give the same document.
const SEED: u64 = 0x0c03_9a7e;

/// Everything that was judged.
pub(super) struct Verdicts {
    pub groups: Vec<Group>,
    pub cells: Vec<Judged>,
    pub headline: Option<Change>,
}

/// A cell, the number of what it measures, and by how much it became better (as a difference of logarithms).
pub(super) struct Judged {
    pub cell: Cell,
    pub subject: usize,
    pub better: f64,
}

/// Judges every cell that both sides have.
pub(super) fn judge(collected: &Collected, options: &Options) -> Result<Verdicts, Refusal> {
    let (mut groups, members) = groups(collected, options)?;
    let mut raw = Vec::with_capacity(collected.cells.len());
    let clear = stats::clearance(&collected.order);
    for (group, members) in groups.iter().zip(&members) {
        for &member in members {
            let cell = &collected.cells[member];
            let margin = (group.margin_percent / 100.0).ln_1p();
            let [before, after] = logs(cell);
            let found = match collected.design {
                Design::Runs => stats::unpaired(&before, &after, margin, clear)?,
                Design::Blocks => stats::paired(&differences(cell), margin)?,
            };
            raw.push((found, member));
        }
    }
    let judged: Vec<(Comparison, bool)> =
        raw.iter().map(|(found, member)| (*found, higher(collected.cells[*member].metric))).collect();
    let verdicts = stats::verdicts(&judged)?;
    let place: HashMap<usize, usize> =
        members.iter().enumerate().flat_map(|(group, members)| members.iter().map(move |m| (*m, group))).collect();
    let mut cells = Vec::with_capacity(raw.len());
    for ((found, member), (verdict, p_adjusted)) in raw.iter().zip(verdicts) {
        let pair = &collected.cells[*member];
        let group = place[member];
        let cell = cell(collected, pair, group, found, verdict, p_adjusted)?;
        groups[group].counts.add(cell.verdict);
        let better = if higher(pair.metric) { found.effect } else { -found.effect };
        cells.push(Judged { cell, subject: pair.subject, better });
    }
    let main = |pair: &&Pair| collected.subjects[pair.subject].headline() == pair.metric;
    let main: Vec<&Pair> = collected.cells.iter().filter(main).collect();
    Ok(Verdicts { headline: headline(&main, collected, true)?, groups, cells })
}

/// Groups in the order of the plan, with the positions of their cells.
fn groups(collected: &Collected, options: &Options) -> Result<(Vec<Group>, Vec<Vec<usize>>), Refusal> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    let mut names = Vec::new();
    for (at, cell) in collected.cells.iter().enumerate() {
        let name = collected.subjects[cell.subject].kind(cell.metric);
        let group = *numbers.entry(name.clone()).or_insert(members.len());
        if group == members.len() {
            members.push(Vec::new());
            names.push((name, cell.metric));
        }
        members[group].push(at);
    }
    let asked = options.margin_percent.map(|percent| (percent / 100.0).ln_1p());
    let group = |((name, metric), members): ((String, Metric), &Vec<usize>)| {
        let pairs: Vec<&Pair> = members.iter().map(|&at| &collected.cells[at]).collect();
        let floor = floor(&pairs, collected.design)?;
        let Margin { value, raised } = stats::margin(asked, floor.unwrap_or(0.0));
        Ok(Group {
            name,
            metric,
            better: metric.better(),
            counts: Counts::default(),
            change: headline(&pairs, collected, false)?,
            noise_floor_percent: floor.map(percent),
            margin_percent: percent(value),
            margin_raised: raised,
        })
    };
    let groups = names.into_iter().zip(&members).map(group).collect::<Result<Vec<Group>, Refusal>>()?;
    Ok((groups, members))
}

/// The noise floor of a group: the median over some of its cells, evenly chosen. `None` below two runs a side, or blocks.
fn floor(pairs: &[&Pair], design: Design) -> Result<Option<f64>, Refusal> {
    let enough: Vec<&&Pair> = pairs.iter().filter(|pair| pair.sides.iter().all(|side| side.len() >= 2)).collect();
    if enough.is_empty() {
        return Ok(None);
    }
    let step = enough.len().div_ceil(SAMPLED);
    let floors = enough.iter().step_by(step).map(|pair| {
        let [before, after] = logs(pair);
        match design {
            Design::Runs => stats::noise_floor_of_samples(&before, &after, DEALS, SEED),
            Design::Blocks => stats::noise_floor_of_differences(&differences(pair), DEALS, SEED),
        }
    });
    median(&floors.collect::<Result<Vec<f64>, Refusal>>()?).map(Some)
}

/// Geometric mean over cells, from each run's mean distance to the cells' centres: a run that lacks a cell is not
/// pulled towards the cells it has.
fn headline(pairs: &[&Pair], collected: &Collected, oriented: bool) -> Result<Option<Change>, Refusal> {
    let mut sums = collected.runs.map(|runs| vec![(0.0, 0_usize); runs]);
    for pair in pairs {
        let [before, after] = logs(pair);
        let centre = f64::midpoint(median(&before)?, median(&after)?);
        let sign = if oriented && !higher(pair.metric) { -1.0 } else { 1.0 };
        for (side, sums) in pair.sides.iter().zip(&mut sums) {
            for (run, value) in side {
                sums[*run].0 += sign * (value - centre);
                sums[*run].1 += 1;
            }
        }
    }
    let mean = |&(sum, n): &(f64, usize)| (n > 0).then(|| sum / n as f64);
    let Headline { effect, interval } = match collected.design {
        Design::Runs => {
            let [before, after] = sums.map(|sums| sums.iter().filter_map(mean).collect::<Vec<f64>>());
            if before.is_empty() || after.is_empty() {
                return Ok(None);
            }
            stats::unpaired_headline(&before, &after, SEED)?
        }
        Design::Blocks => {
            let [a, b] = &sums;
            let blocks: Vec<f64> = a.iter().zip(b).filter_map(|(a, b)| Some(mean(b)? - mean(a)?)).collect();
            if blocks.is_empty() {
                return Ok(None);
            }
            stats::paired_headline(&blocks, SEED)?
        }
    };
    Ok(Some(change(effect, interval)))
}

fn cell(
    collected: &Collected,
    pair: &Pair,
    group: usize,
    found: &Comparison,
    verdict: Verdict,
    p_adjusted: f64,
) -> Result<Cell, Refusal> {
    let word = match verdict {
        Verdict::Improved => Word::Improved,
        Verdict::Regressed => Word::Regressed,
        Verdict::Equivalent | Verdict::Negligible => Word::Equivalent,
        Verdict::Inconclusive => Word::NotEnoughData,
    };
    let [before, after] = logs(pair);
    let n = (before.len(), after.len());
    Ok(Cell {
        group,
        link: collected.subjects[pair.subject].flow.name(),
        verdict: word,
        before: median(&before)?.exp(),
        after: median(&after)?.exp(),
        change: change(found.effect, found.interval95),
        level: found.interval95.map(|interval| interval.level),
        n,
        p: found.p_change,
        p_adjusted,
        need: found.need.filter(|_| word == Word::NotEnoughData),
        method: match collected.design {
            Design::Runs => OF_RUNS,
            Design::Blocks => OF_BLOCKS,
        },
        reason: reason::cell(collected.design, found, verdict, p_adjusted, n),
    })
}

fn logs(pair: &Pair) -> [Vec<f64>; 2] {
    pair.sides.each_ref().map(|side| side.iter().map(|(_, value)| *value).collect())
}

/// After less before, block by block; both sides of a cell of blocks have the same blocks.
fn differences(pair: &Pair) -> Vec<f64> {
    let [before, after] = &pair.sides;
    before.iter().zip(after).map(|((_, before), (_, after))| after - before).collect()
}

fn higher(metric: Metric) -> bool {
    metric.better() == Better::Higher
}

fn change(effect: f64, interval: Option<Interval>) -> Change {
    Change { percent: percent(effect), interval: interval.map(|i| (percent(i.low), percent(i.high))) }
}

/// A difference of logarithms in percent.
pub(super) fn percent(difference: f64) -> f64 {
    100.0 * difference.exp_m1()
}
