use std::collections::HashMap;

use railgauge_stats::{
    Refusal,
    compare::{self as stats, Comparison, Headline, Margin, RunSet, Verdict, strays},
    robust::median,
    shift::Interval,
};
use railgauge_wire::{Better, Metric};

use super::{
    Case, Change, Comparison as Made, Counts, Design, Group, Obstacle, Options, Stray, When, Word,
    order::told,
    reason::{self, need, percent},
    table::{Collected, Lack, Pair},
};

const OF_RUNS: &str = "difference of Huber's estimates of the logarithms of runs with Welch's interval and test, each side \
                       with a noise of its own, for the correlation of neighbouring runs up to 0.6 that does most harm in \
                       their order; for the absence of a change two one-sided tests of this and of means, and no run that \
                       lies far off; Benjamini–Hochberg over all cases (docs/compare.md)";

const OF_BLOCKS: &str = "Hodges–Lehmann pseudomedian of the blocks' differences of logarithms, signed rank test for a \
                         change, for its absence two one-sided tests of signed ranks and of Student's t and no block that \
                         lies far off; Benjamini–Hochberg over all cases (docs/compare.md)";

type Strayed = (Stray, Option<(When, usize)>);

/// A case, the number of what it measures, its metric, and its improvement as a difference of logarithms.
pub(super) struct Judged {
    pub case: Case,
    pub subject: usize,
    pub metric: Metric,
    pub better: f64,
}

/// The origin of the values: runs in an order, or blocks.
struct Source<'c> {
    collected: &'c Collected,
    runs: RunSet,
    /// Values of each case in the order of the runs; empty for blocks.
    cases: Vec<Vec<Option<f64>>>,
}

impl<'c> Source<'c> {
    fn new(collected: &'c Collected) -> Self {
        let cases: Vec<Vec<Option<f64>>> = match collected.comparison.design {
            Design::Runs => collected.pairs.iter().map(|pair| collected.in_order(pair)).collect(),
            Design::Blocks => Vec::new(),
        };
        Self { runs: RunSet::new(collected.order.clone()), collected, cases }
    }

    fn compare(&mut self, member: usize, margin: Margin) -> Result<Comparison, Refusal> {
        let pair = &self.collected.pairs[member];
        let found = match self.collected.comparison.design {
            Design::Runs => self.runs.compare(&self.cases[member], margin)?,
            Design::Blocks => stats::paired(&differences(pair), margin)?,
        };
        Ok(Comparison { missing: pair.lack.each_ref().map(Lack::values), ..found })
    }

    fn strays(&self, member: usize, margin: f64) -> Result<Vec<Strayed>, Refusal> {
        if self.collected.comparison.design == Design::Runs {
            let of_run = |(place, distance): (usize, f64)| {
                let (side, number) = self.collected.run_at(place);
                let runs = if side == When::Before {
                    &self.collected.comparison.before
                } else {
                    &self.collected.comparison.after
                };
                let run = runs.runs[number].run_id.clone();
                (Stray { side: Some(side), run, percent: percent(distance) }, Some((side, number)))
            };
            return Ok(self.runs.strays(&self.cases[member], margin).into_iter().map(of_run).collect());
        }
        let pair = &self.collected.pairs[member];
        let differences = differences(pair);
        let [found] = strays([&differences], margin);
        let others = differences.iter().enumerate().filter(|(at, _)| !found.contains(at)).map(|(_, value)| *value);
        let centre = median(&others.collect::<Vec<f64>>())?;
        let of_block = |at: usize| {
            let run = (pair.sides[0][at].0 + 1).to_string();
            (Stray { side: None, run, percent: percent(differences[at] - centre) }, None)
        };
        Ok(found.into_iter().map(of_block).collect())
    }

    /// `None` below two runs a side, or blocks.
    fn floor(&self, members: &[usize]) -> Option<f64> {
        if self.collected.comparison.design == Design::Runs {
            return self.runs.floor(&members.iter().map(|&at| &self.cases[at][..]).collect::<Vec<_>>());
        }
        let of = |&at: &usize| stats::noise_floor(&[&differences(&self.collected.pairs[at])]).ok();
        median(&members.iter().filter_map(of).collect::<Vec<f64>>()).ok()
    }
}

/// With verdicts of groups and cases, without causes.
pub(super) fn judge(collected: &Collected, options: &Options) -> Result<(Made, Vec<Judged>), Refusal> {
    let mut source = Source::new(collected);
    let (mut groups, members) = groups(&mut source, options)?;
    let mut raw = Vec::with_capacity(collected.pairs.len());
    for ((_, margin), members) in groups.iter().zip(&members) {
        for &member in members {
            raw.push((source.compare(member, *margin)?, member));
        }
    }
    let compared: Vec<(Comparison, bool)> =
        raw.iter().map(|(found, member)| (*found, higher(collected.pairs[*member].metric))).collect();
    let verdicts = stats::verdicts(&compared)?;
    let place: HashMap<usize, usize> =
        members.iter().enumerate().flat_map(|(group, members)| members.iter().map(move |m| (*m, group))).collect();
    let in_turn = source.runs.order().is_none_or(|order| order.turns() == stats::Turns::InTurn);
    let mut cases = Vec::with_capacity(raw.len());
    let mut stray_runs = Vec::new();
    for ((found, member), judged) in raw.iter().zip(verdicts) {
        let pair = &collected.pairs[*member];
        let group = place[member];
        let (strays, runs): (Vec<Stray>, Vec<Option<(When, usize)>>) = match found.strays {
            [0, 0] => (Vec::new(), Vec::new()),
            _ => source.strays(*member, found.margin)?.into_iter().unzip(),
        };
        stray_runs.extend(runs.into_iter().flatten());
        let case = case(collected, pair, group, found, judged, in_turn, strays)?;
        groups[group].0.counts.add(case.verdict);
        let better = if higher(pair.metric) { found.effect } else { -found.effect };
        cases.push(Judged { case, subject: pair.subject, metric: pair.metric, better });
    }
    let main = |pair: &&Pair| collected.subjects[pair.subject].headline() == pair.metric;
    let of_main = (0..collected.pairs.len()).filter(|&at| main(&&collected.pairs[at]));
    let margins: Vec<f64> = of_main.map(|at| groups[place[&at]].1.value).collect();
    let main: Vec<&Pair> = collected.pairs.iter().filter(main).collect();
    let headline = headline(&main, &mut source, true)?;
    // If each case keeps its margin, the mean over cases keeps the mean margin.
    let headline_margin = (!margins.is_empty()).then(|| {
        let mean = margins.iter().sum::<f64>() / margins.len() as f64;
        (percent(-mean), percent(mean))
    });
    groups.iter_mut().for_each(|(group, _)| group.verdict = comes_to(group));
    let held_back = cases.iter().filter(|case| case.case.obstacle == Some(Obstacle::Order)).count();
    let order = match collected.comparison.design {
        Design::Runs => source.runs.order().map(|order| told(order, collected, held_back)),
        Design::Blocks => None,
    };
    let groups = groups.into_iter().map(|(group, _)| group).collect();
    let mut made = Made { headline, headline_margin, groups, order, ..collected.comparison.clone() };
    for (side, number) in stray_runs {
        let side = if side == When::Before { &mut made.before } else { &mut made.after };
        side.runs[number].strays += 1;
    }
    Ok((made, cases))
}

/// The verdict of a group. If all cases are equivalent, their common interval also lies inside the margin, except for
/// cases measured by different runs; so it is checked.
fn comes_to(group: &Group) -> Word {
    let counts = group.counts;
    let improved = counts.improved > 0;
    let margin = (group.margin_low_percent, group.margin_percent);
    match counts {
        Counts { regressed: 1.., .. } => Word::Regressed,
        Counts { undecided: 1.., .. } => Word::Undecided,
        Counts { too_noisy: 1.., .. } => Word::TooNoisy,
        _ if !group.change.is_some_and(|change| change.lies_within(margin, improved.then_some(group.better))) => {
            Word::Undecided
        }
        _ if improved => Word::Improved,
        _ => Word::Equivalent,
    }
}

type Judging = (Group, Margin);

/// In the order of the plan, with the positions of their cases.
fn groups(source: &mut Source<'_>, options: &Options) -> Result<(Vec<Judging>, Vec<Vec<usize>>), Refusal> {
    let collected = source.collected;
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    let mut names = Vec::new();
    for (at, case) in collected.pairs.iter().enumerate() {
        let name = collected.subjects[case.subject].kind(case.metric);
        let group = *numbers.entry(name.clone()).or_insert(members.len());
        if group == members.len() {
            members.push(Vec::new());
            names.push((name, case.metric));
        }
        members[group].push(at);
    }
    let asked = options.margin_percent.map(|percent| (percent / 100.0).ln_1p());
    let group = |((name, metric), members): ((String, Metric), &Vec<usize>)| {
        let pairs: Vec<&Pair> = members.iter().map(|&at| &collected.pairs[at]).collect();
        let floor = source.floor(members);
        let margin = stats::margin(asked, floor.unwrap_or(0.0));
        let group = Group {
            name,
            metric,
            better: metric.better(),
            verdict: Word::Undecided,
            counts: Counts::default(),
            change: headline(&pairs, source, false)?,
            noise_floor_percent: floor.map(percent),
            margin_percent: percent(margin.value),
            margin_low_percent: percent(-margin.value),
            margin_raised: margin.raised,
            too_noisy: margin.too_wide,
        };
        Ok((group, margin))
    };
    let groups = names.into_iter().zip(&members).map(group).collect::<Result<Vec<Judging>, Refusal>>()?;
    Ok((groups, members))
}

/// Geometric mean over cases, from each run's mean distance to the cases' centres, so that a run without some cases is
/// not pulled towards the others.
fn headline(pairs: &[&Pair], source: &mut Source<'_>, oriented: bool) -> Result<Option<Change>, Refusal> {
    let collected = source.collected;
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
    let Headline { effect, interval } = match collected.comparison.design {
        Design::Runs => {
            let mut means = vec![None; collected.order.len()];
            for (side, places) in sums.iter().zip(&collected.places) {
                side.iter().zip(places).for_each(|(sum, &place)| means[place] = mean(sum));
            }
            if sums.iter().any(|side| side.iter().filter_map(mean).next().is_none()) {
                return Ok(None);
            }
            source.runs.headline(&means)?
        }
        Design::Blocks => {
            let [a, b] = &sums;
            let blocks: Vec<f64> = a.iter().zip(b).filter_map(|(a, b)| Some(mean(b)? - mean(a)?)).collect();
            if blocks.is_empty() {
                return Ok(None);
            }
            stats::paired_headline(&blocks)?
        }
    };
    Ok(Some(change(effect, interval)))
}

fn case(
    collected: &Collected,
    pair: &Pair,
    group: usize,
    found: &Comparison,
    judged: stats::Judged,
    in_turn: bool,
    strays: Vec<Stray>,
) -> Result<Case, Refusal> {
    let word = match judged.verdict {
        Verdict::Improved => Word::Improved,
        Verdict::Regressed => Word::Regressed,
        Verdict::Equivalent | Verdict::Negligible => Word::Equivalent,
        Verdict::Inconclusive => Word::Undecided,
        Verdict::TooNoisy => Word::TooNoisy,
    };
    let [before, after] = logs(pair);
    let n = (before.len(), after.len());
    let reason = reason::case(&reason::Told { collected, pair, found, judged, in_turn, strays: &strays });
    Ok(Case {
        group,
        link: collected.subjects[pair.subject].flow.name(),
        verdict: word,
        before: median(&before)?.exp(),
        after: median(&after)?.exp(),
        change: change(found.effect, found.interval95),
        level: found.interval95.map(|interval| interval.level),
        mean_interval: found.mean95.map(|interval| (percent(interval.low), percent(interval.high))),
        n,
        missing: (found.missing[0], found.missing[1]),
        strays,
        p: found.p_change,
        p_if_independent: found.p_plain,
        p_adjusted: judged.p_change,
        obstacle: judged.obstacle,
        need: need(found).filter(|_| word == Word::Undecided),
        method: match collected.comparison.design {
            Design::Runs => OF_RUNS,
            Design::Blocks => OF_BLOCKS,
        },
        reason,
    })
}

fn logs(pair: &Pair) -> [Vec<f64>; 2] {
    pair.sides.each_ref().map(|side| side.iter().map(|(_, value)| *value).collect())
}

/// After minus before, block by block; both sides of a case of blocks have the same blocks.
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
