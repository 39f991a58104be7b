//! The cells of a test's matrix of environments, size by size against the first of them.
//!
//! Every repeat starts the ranks of every environment anew, so the unit is a repeat, never an operation within one: the
//! operations of a repeat share its luck. A difference counts if Welch's test of the repeats' logarithms finds it at 5 %,
//! adjusted for everything it stands beside, and if it is at least [`LEAST`].

use std::collections::HashSet;

use railgauge_model::schedule::{Cell, Flow};
use railgauge_stats::{
    multiple::benjamini_hochberg,
    student::{Difference, welch},
};
use railgauge_wire::terms::{Better, Metric};

use super::{
    results::{CaseResult, State},
    value,
};

/// Fewest repeats on either side of which a difference is judged.
pub const FEWEST: usize = 3;
/// Smallest difference that gets a name, in parts: 1 %, as elsewhere where nobody says otherwise.
pub const LEAST: f64 = 0.01;
/// Level of the tests; that of the intervals is 1 less this.
const LEVEL: f64 = 0.05;

/// One environment at one size.
#[derive(Debug, Clone)]
pub struct Compared<'a> {
    /// Its number in the plan's list of environments.
    pub environment: usize,
    /// What is measured, but for the environment.
    pub cell: Cell,
    /// Its cases, one for each group.
    pub cases: Vec<&'a CaseResult<'a>>,
    /// Groups whose values count: those measured in every environment that was measured at all.
    pub groups: usize,
    /// Geometric mean over groups and repeats in the metric's unit; `None` where nothing was measured that may be trusted.
    pub value: Option<f64>,
    /// How it stands to the first environment; `None` for that one, and without a value on either side.
    pub against: Option<Against>,
    /// How it stands among all environments.
    pub standing: Standing,
}

/// A value against that of the first environment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Against {
    /// The one over the other.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` below two repeats on a side.
    pub interval: Option<(f64, f64)>,
    /// p of no difference, adjusted for all rows (Benjamini & Hochberg); 1 where nothing can be computed.
    pub p: f64,
    /// What it shows.
    pub shows: Shows,
}

/// What a ratio shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// Better than the first, beyond the scatter of the repeats.
    Better,
    /// Worse, likewise.
    Worse,
    /// Neither.
    Nothing,
    /// Not judged: fewer than [`FEWEST`] repeats on a side.
    TooFew,
}

/// Where an environment stands at its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Every other one that was measured is worse, beyond the scatter of the repeats.
    Best,
    /// Not told apart from the best one.
    AmongBest,
    /// Worse than the best one.
    Behind,
    /// Not judged: without a value, or with fewer than [`FEWEST`] repeats here or at the best one.
    Unknown,
}

/// One environment's repeats.
struct Series<'a> {
    environment: usize,
    cases: Vec<&'a CaseResult<'a>>,
    groups: usize,
    /// Logarithms, one for each repeat: the mean over the groups. More is better.
    logs: Vec<f64>,
}

/// Compares the environments of a test: for each size, datatype, reduction and algorithm every environment, in the order
/// of the plan.
pub fn compare<'a>(results: &[&'a CaseResult<'a>], metric: Metric) -> Vec<Compared<'a>> {
    let mut places: Vec<(Cell, Vec<&'a CaseResult<'a>>)> = Vec::new();
    for result in results {
        let cell = without_environment(&result.case.cell);
        match places.iter_mut().find(|(known, _)| *known == cell) {
            Some((_, all)) => all.push(result),
            None => places.push((cell, vec![result])),
        }
    }
    let mut compared = Vec::new();
    let mut against_best = Vec::new();
    for (cell, all) in places {
        let all = series(&all, metric);
        let best = best(&all);
        against_best.extend(all.iter().map(|one| best.and_then(|best| p(one, best))));
        compared.extend(all.iter().map(|one| row(&cell, one, all.first(), best, metric)));
    }
    judge(&mut compared, &against_best);
    compared
}

/// The one with the best mean, if there is another to compare it with.
fn best<'s, 'a>(all: &'s [Series<'a>]) -> Option<&'s Series<'a>> {
    let measured = || all.iter().filter(|one| !one.logs.is_empty());
    let best = measured().max_by(|a, b| mean(a).total_cmp(&mean(b)));
    best.filter(|_| measured().count() > 1)
}

/// One row, told apart by the size of its differences alone.
fn row<'a>(
    cell: &Cell,
    one: &Series<'a>,
    first: Option<&Series<'_>>,
    best: Option<&Series<'_>>,
    metric: Metric,
) -> Compared<'a> {
    let measured = !one.logs.is_empty();
    let first = first.filter(|first| measured && !first.logs.is_empty() && one.environment != first.environment);
    let standing =
        best.filter(|_| measured).map_or(Standing::Unknown, |best| match shows(one, best, mean(one) - mean(best)) {
            Shows::TooFew => Standing::Unknown,
            Shows::Worse => Standing::Behind,
            _ if one.environment == best.environment => Standing::Best,
            _ => Standing::AmongBest,
        });
    Compared {
        environment: one.environment,
        cell: cell.clone(),
        cases: one.cases.clone(),
        groups: one.groups,
        value: measured.then(|| (sign(metric) * mean(one)).exp()),
        against: first.map(|first| against(one, first, sign(metric))),
        standing,
    }
}

/// Takes back what the scatter of the repeats does not allow, of all rows together.
fn judge(rows: &mut [Compared<'_>], against_best: &[Option<f64>]) {
    let mut judged: Vec<&mut Against> = rows.iter_mut().filter_map(|row| row.against.as_mut()).collect();
    let found = adjusted(&judged.iter().map(|against| against.p).collect::<Vec<f64>>());
    for (against, p) in judged.iter_mut().zip(found) {
        against.p = p;
        if against.shows != Shows::TooFew && p > LEVEL {
            against.shows = Shows::Nothing;
        }
    }
    let found = adjusted(&against_best.iter().map(|p| p.unwrap_or(1.0)).collect::<Vec<f64>>());
    for (row, p) in rows.iter_mut().zip(found).filter(|(row, _)| row.standing == Standing::Behind) {
        if p > LEVEL {
            row.standing = Standing::AmongBest;
        }
    }
    // Who is not alone at the top, or beside whom somebody cannot be judged, is one of several.
    for at in 0..rows.len() {
        let open = |row: &Compared<'_>| {
            row.standing == Standing::AmongBest || row.standing == Standing::Unknown && row.value.is_some()
        };
        let others = rows.iter().any(|row| row.cell == rows[at].cell && open(row));
        if rows[at].standing == Standing::Best && others {
            rows[at].standing = Standing::AmongBest;
        }
    }
}

/// Adjusted for all of them (Benjamini & Hochberg); what cannot be adjusted shows nothing.
fn adjusted(p: &[f64]) -> Vec<f64> {
    benjamini_hochberg(p).unwrap_or_else(|_| vec![1.0; p.len()])
}

fn without_environment(cell: &Cell) -> Cell {
    let mut cell = cell.clone();
    if let Some(manner) = &mut cell.manner {
        manner.env.clear();
    }
    cell
}

/// 1 where more is better, else −1.
fn sign(metric: Metric) -> f64 {
    if metric.better() == Better::Higher { 1.0 } else { -1.0 }
}

/// The environments at one place, in the order of the cases, which is the plan's.
fn series<'a>(results: &[&'a CaseResult<'a>], metric: Metric) -> Vec<Series<'a>> {
    let environment = |result: &CaseResult<'_>| result.case.cell.manner.as_ref().map(|manner| manner.env.clone());
    let mut all: Vec<Vec<&'a CaseResult<'a>>> = Vec::new();
    for result in results {
        match all.iter_mut().find(|cases| environment(cases[0]) == environment(result)) {
            Some(cases) => cases.push(result),
            None => all.push(vec![result]),
        }
    }
    let trusted = |cases: &[&'a CaseResult<'a>]| -> HashSet<&'a Flow> {
        let good = cases.iter().filter(|result| matches!(result.state, State::Measured | State::Short));
        good.map(|result| &result.case.flow).collect()
    };
    // Means over different groups would not be comparable. An environment that nowhere works leaves the others alone.
    let groups: HashSet<&Flow> = all
        .iter()
        .map(|cases| trusted(cases))
        .filter(|flows| !flows.is_empty())
        .reduce(|a, b| a.intersection(&b).copied().collect())
        .unwrap_or_default();
    let one = |(environment, cases): (usize, Vec<&'a CaseResult<'a>>)| {
        let own = trusted(&cases);
        let counted =
            || cases.iter().filter(|result| own.contains(&result.case.flow) && groups.contains(&result.case.flow));
        let repeats = cases.iter().map(|result| result.repeats).max().unwrap_or(0);
        let logs = (0..repeats).filter_map(|repeat| log(counted(), repeat, metric)).collect();
        Series { environment, groups: counted().count(), logs, cases }
    };
    all.into_iter().enumerate().map(one).collect()
}

/// Mean logarithm over the groups in one repeat; `None` if a group has no value in it.
fn log<'r>(mut results: impl Iterator<Item = &'r &'r CaseResult<'r>>, repeat: u32, metric: Metric) -> Option<f64> {
    let of = |result: &CaseResult<'_>| {
        let (_, sample) = result.samples.iter().find(|(number, _)| *number == repeat)?;
        let value = value::of_group(metric, sample, &result.case.cell, result.case.flow.ranks()).ok()??;
        (value > 0.0).then(|| value.ln())
    };
    let logs: Vec<f64> = results.by_ref().map(|result| of(result)).collect::<Option<_>>()?;
    (!logs.is_empty()).then(|| sign(metric) * logs.iter().sum::<f64>() / logs.len() as f64)
}

fn mean(series: &Series<'_>) -> f64 {
    series.logs.iter().sum::<f64>() / series.logs.len() as f64
}

/// How much better one is; `None` below two repeats on a side, and where neither side scatters.
fn difference(one: &Series<'_>, other: &Series<'_>) -> Option<Difference> {
    welch(&one.logs, &other.logs).ok()
}

/// p of no difference; `None` as for [`difference`], and of a series against itself.
fn p(one: &Series<'_>, other: &Series<'_>) -> Option<f64> {
    let itself = one.environment == other.environment;
    difference(one, other).filter(|_| !itself).map(|found| found.p_two_sided())
}

/// Whether so large a difference has a name, and whether there are enough repeats to give it one.
fn shows(one: &Series<'_>, other: &Series<'_>, better: f64) -> Shows {
    if one.logs.len().min(other.logs.len()) < FEWEST {
        Shows::TooFew
    } else if better >= LEAST.ln_1p() {
        Shows::Better
    } else if better <= -LEAST.ln_1p() {
        Shows::Worse
    } else {
        Shows::Nothing
    }
}

/// The ratio and its size; whether it is beyond the scatter is judged later, for all rows together.
fn against(one: &Series<'_>, first: &Series<'_>, sign: f64) -> Against {
    let better = mean(one) - mean(first);
    let interval = difference(one, first).and_then(|found| found.interval(1.0 - LEVEL).ok());
    let ratio = |log: f64| (sign * log).exp();
    let interval = interval.map(|found| {
        let (a, b) = (ratio(found.low), ratio(found.high));
        (a.min(b), a.max(b))
    });
    let p = p(one, first).unwrap_or(1.0);
    Against { ratio: ratio(better), interval, p, shows: shows(one, first, better) }
}
