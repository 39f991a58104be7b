//! A comparison as plain data, ready to print, in reading order.

use std::{cmp::Ordering, collections::BTreeMap};

use railgauge_analysis::{
    compare::{Case, Cause, Change, Comparison, Counts, Design, Group, LeftOut, OneSided, Side, When, Word, digits},
    status::Status,
    words::{count, some, with_unit},
};
use railgauge_preflight as preflight;
use railgauge_wire::{Better, Metric};
use serde::Serialize;

use crate::{
    chart::{
        ChartError,
        forest::{Look, Row, forest},
    },
    view::{Figure, Table},
};

const LISTED: usize = 200;
const NAMED: usize = 8;
/// Causes named as what is bad.
const BAD: usize = 3;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompareView {
    pub status: Status,
    pub word: &'static str,
    pub sentence: String,
    pub sides: [SideView; 2],
    pub remarks: Vec<String>,
    /// Charts of the groups' changes, one for each metric: a latency may change by a hundred times what a bandwidth does.
    pub overview: Vec<Figure>,
    pub groups: Table,
    pub bad: String,
    pub causes: Vec<Cause>,
    /// Worst first.
    pub changed: Table,
    pub changed_all: usize,
    pub unsettled: Table,
    pub unsettled_all: usize,
    pub one_sided: Table,
    pub left_out: Table,
    pub configuration: Table,
    pub within: Table,
    pub method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideView {
    pub title: &'static str,
    pub summary: String,
    pub runs: Table,
}

/// # Errors
/// A chart cannot be rendered.
pub fn view(comparison: &Comparison) -> Result<CompareView, ChartError> {
    let of = |words: &[Word]| comparison.cases.iter().filter(|case| words.contains(&case.verdict)).collect::<Vec<_>>();
    let (changed, unsettled) = (of(&[Word::Regressed, Word::Improved]), of(&[Word::Undecided, Word::TooNoisy]));
    let groups = &comparison.groups;
    Ok(CompareView {
        status: comparison.status,
        word: match comparison.status {
            Status::Fail => "regressed",
            Status::Pass if comparison.counts.improved > 0 => "improved",
            Status::Pass => "equivalent",
            _ if comparison.counts.too_noisy > 0 && comparison.counts.undecided == 0 => Word::TooNoisy.words(),
            _ => Word::Undecided.words(),
        },
        sentence: comparison.sentence.clone(),
        sides: [side("Before", &comparison.before), side("After", &comparison.after)],
        remarks: remarks(comparison),
        overview: overview(groups)?,
        groups: group_table(groups),
        bad: bad(comparison),
        causes: comparison.causes.clone(),
        changed: case_table(&both_ways(&changed, LISTED), groups),
        changed_all: changed.len(),
        unsettled: case_table(&unsettled, groups),
        unsettled_all: unsettled.len(),
        one_sided: one_sided(&comparison.one_sided),
        left_out: left_out(&comparison.left_out),
        configuration: configuration(comparison),
        within: within(comparison),
        method: comparison.cases.first().map_or("", |case| case.method),
    })
}

fn bad(comparison: &Comparison) -> String {
    let worse = comparison.causes.iter().filter(|cause| cause.verdict == Word::Regressed);
    let names: Vec<&str> = worse.map(|cause| cause.name.as_str()).collect();
    let (told, more) = names.split_at(names.len().min(BAD));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    told.join("; ") + &more
}

fn overview(groups: &[Group]) -> Result<Vec<Figure>, ChartError> {
    let mut of_metric: BTreeMap<Metric, Vec<Row>> = BTreeMap::new();
    for group in groups {
        of_metric.entry(group.metric).or_default().extend(row_of_group(group));
    }
    of_metric.retain(|_, rows| !rows.is_empty());
    let legend = [
        ("k-dot-worst", "regressed"),
        ("k-dot-good", "improved"),
        ("k-dot-main", "equivalent"),
        ("k-dot-limit", "undecided"),
        ("k-outer", "counts as no change"),
    ];
    let legend = legend.map(|(class, text)| (class.to_owned(), text.to_owned())).to_vec();
    let last = of_metric.keys().next_back().copied();
    let figure = |(metric, rows): (Metric, Vec<Row>)| {
        let better = if metric.better() == Better::Higher { "more is better" } else { "less is better" };
        let legend = if Some(metric) == last { legend.clone() } else { Vec::new() };
        Ok(Figure { title: format!("{}: {better}", metric.title()), svg: forest(&rows)?, legend })
    };
    of_metric.into_iter().map(figure).collect()
}

/// At most `most` changed cases, the worst and the best, half of each if there are enough. Input and result have those
/// for the worse first, in either direction the largest change first.
fn both_ways<'c>(changed: &[&'c Case], most: usize) -> Vec<&'c Case> {
    let worse = changed.iter().filter(|case| case.verdict == Word::Regressed).count();
    let (worse, better) = changed.split_at(worse);
    let of_worse = worse.len().min(most - better.len().min(most / 2));
    let of_better = better.len().min(most - of_worse);
    [&worse[..of_worse], &better[..of_better]].concat()
}

fn row_of_group(group: &Group) -> Option<Row> {
    let Change { percent, interval, .. } = group.change?;
    let counts = group.counts;
    let rose_well = (percent > 0.0) == (group.better == Better::Higher);
    let look = match counts.regressed.cmp(&counts.improved) {
        Ordering::Greater => Look::Worse,
        Ordering::Less => Look::Better,
        Ordering::Equal if counts.regressed > 0 => {
            if rose_well {
                Look::Better
            } else {
                Look::Worse
            }
        }
        Ordering::Equal if group.verdict == Word::Equivalent => Look::Same,
        Ordering::Equal => Look::Unknown,
    };
    // A dot has one colour; words say if cases changed both ways.
    let both = counts.regressed > 0 && counts.improved > 0;
    let label = if both {
        format!("{} ({} worse, {} better)", group.name, counts.regressed, counts.improved)
    } else {
        group.name.clone()
    };
    Some(Row { label, percent, interval, margin: (group.margin_low_percent, group.margin_percent), look })
}

fn side(title: &'static str, side: &Side) -> SideView {
    let heads = "run | started | plan | railgauge | #hosts | #values | #left out | #far off";
    let row = |run: &railgauge_analysis::compare::RunSummary| {
        // A journal made by hand may have anything there.
        let hash: String = run.plan_hash.chars().take(12).collect();
        let plan = format!("{}, {hash}", run.plan);
        let numbers = [run.hosts, run.values, run.left_out, run.strays].map(|n| n.to_string());
        [run.run_id.clone(), run.started.clone(), plan, run.version.clone()].into_iter().chain(numbers).collect()
    };
    let span = match (side.runs.first(), side.runs.last()) {
        (Some(first), Some(last)) if first.started != last.started => {
            format!(", {} to {}", first.started, last.started)
        }
        (Some(only), _) => format!(", {}", only.started),
        _ => String::new(),
    };
    let summary = format!("{}{span}", count(side.runs.len(), "run"));
    SideView { title, summary, runs: Table::new(heads, side.runs.iter().map(row)) }
}

/// Runs far from the others of their side; most cases first.
fn far_off(comparison: &Comparison) -> Option<String> {
    let sides = [("before", &comparison.before), ("after", &comparison.after)];
    let of_side = |(words, side): (&'static str, &Side)| {
        side.runs
            .iter()
            .filter(|run| run.strays > 0)
            .map(|run| (run.strays, run.run_id.clone(), words))
            .collect::<Vec<_>>()
    };
    let mut runs: Vec<(usize, String, &str)> = sides.into_iter().flat_map(of_side).collect();
    runs.sort_by(|a, b| (b.0, &a.1).cmp(&(a.0, &b.1)));
    let list: Vec<String> =
        runs.iter().map(|(cases, run, side)| format!("{run} ({side}) in {}", count(*cases, "case"))).collect();
    (!list.is_empty()).then(|| format!("Outlying runs: {}.", some(&list, NAMED)))
}

fn foreign(comparison: &Comparison) -> Option<String> {
    let runs = || comparison.before.runs.iter().chain(&comparison.after.runs).filter(|run| run.imported);
    let tools: std::collections::BTreeSet<&str> = runs().map(|run| run.version.as_str()).collect();
    let tools = tools.into_iter().collect::<Vec<_>>().join(", ");
    (!tools.is_empty()).then(|| {
        format!(
            "{} not measured by railgauge: {tools}. Methods differ (windows, warm-up, verification, what a percentile is of), and so \
             may the values where nothing changed.",
            count(runs().count(), "run")
        )
    })
}

fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks: Vec<String> = foreign(comparison).into_iter().chain(far_off(comparison)).collect();
    let least = comparison.before.runs.len().min(comparison.after.runs.len());
    if least < 4 && comparison.design == Design::Runs {
        remarks.push(format!(
            "{} on the smaller side: 4 a side are the fewest that can show a change.",
            count(least, "run")
        ));
    }
    if let Some(order) = &comparison.order {
        remarks.extend(order.costs.clone());
        remarks.extend(order.hint.clone());
    }
    for (test, before, after) in &comparison.carriers {
        remarks.push(format!("{test} was carried by {before} before and by {after} after: not the same measurement."));
    }
    let raised = comparison.groups.iter().filter(|group| group.margin_raised).count();
    if raised > 0 {
        let (groups, have) = (count(raised, "row"), if raised == 1 { "has its" } else { "have their" });
        remarks.push(format!("The requested margin is below the noise floor in {groups}, which {have} floor instead."));
    }
    remarks
}

fn change_words(change: &Change) -> [String; 2] {
    let interval = change
        .interval
        .map_or_else(|| "–".to_owned(), |(low, high)| format!("{} to {}", digits::signed(low), digits::signed(high)));
    [digits::signed(change.percent), interval]
}

fn group_table(groups: &[Group]) -> Table {
    let noisy = groups.iter().any(|group| group.counts.too_noisy > 0);
    let heads = format!(
        "test, metric, size | #change [%] | #95 % interval [%] | #noise floor [%] | #margin [%] | #regressed | \
         #improved | #equivalent | #undecided{}",
        if noisy { " | #too noisy" } else { "" }
    );
    let row = |group: &Group| {
        let change = group.change.as_ref().map_or_else(|| ["–".to_owned(), "–".to_owned()], change_words);
        let floor = group.noise_floor_percent.map_or_else(|| "–".to_owned(), digits::percent);
        let counts = group.counts;
        let counts = [counts.regressed, counts.improved, counts.equivalent, counts.undecided];
        let mut row = vec![group.name.clone()];
        row.extend(change);
        row.extend([floor, digits::margin(group.margin_low_percent, group.margin_percent)]);
        row.extend(counts.map(|n| n.to_string()));
        row.extend(noisy.then(|| group.counts.too_noisy.to_string()));
        row
    };
    // With too few runs there is neither an interval nor a verdict: the answer and the remarks say so.
    let is_shown = |group: &&Group| {
        let none = Counts { undecided: group.counts.undecided, ..Counts::default() };
        group.counts != none || group.change.as_ref().is_some_and(|change| change.interval.is_some())
    };
    Table::new(&heads, groups.iter().filter(is_shown).map(row))
}

fn case_table(cases: &[&Case], groups: &[Group]) -> Table {
    let heads = "verdict | test, metric, size | link | #change [%] | #interval [%] | #before | #after | #runs | reason";
    let row = |case: &&Case| {
        let (group, [change, interval]) = (&groups[case.group], change_words(&case.change));
        vec![
            case.verdict.words().to_owned(),
            group.name.clone(),
            case.link.clone(),
            change,
            interval,
            with_unit(group.metric, case.before),
            with_unit(group.metric, case.after),
            format!("{} + {}", case.n.0, case.n.1),
            case.reason.clone(),
        ]
    };
    Table::new(heads, cases.iter().take(LISTED).map(row))
}

fn one_sided(cases: &[OneSided]) -> Table {
    let mut groups: BTreeMap<(Option<When>, &str), (usize, &str)> = BTreeMap::new();
    for case in cases {
        groups.entry((case.only, &case.reason)).or_insert((0, &case.name)).0 += 1;
    }
    let row = |((only, reason), (n, example)): (&(Option<When>, &str), &(usize, &str))| {
        let only = only.map_or("on neither side", |when| match when {
            When::Before => "before only",
            When::After => "after only",
        });
        vec![only.to_owned(), n.to_string(), (*example).to_owned(), (*reason).to_owned()]
    };
    Table::new("values | #cases | for example | why", groups.iter().map(row))
}

fn left_out(list: &[LeftOut]) -> Table {
    let row = |out: &LeftOut| {
        vec![out.side.word().to_owned(), out.values.to_string(), out.example.clone(), out.reason.clone()]
    };
    Table::new("side | #values | for example | why", list.iter().take(LISTED).map(row))
}

fn configuration(comparison: &Comparison) -> Table {
    let of_hosts = comparison.configuration.hosts.iter().map(change_row);
    let of_tests = comparison.configuration.tests.iter().map(|setting| {
        let value = |text: &str| if text.is_empty() { "not set".to_owned() } else { text.to_owned() };
        vec![setting.key.clone(), value(&setting.before), value(&setting.after), format!("test {}", setting.test)]
    });
    Table::new("what | before | after | where", of_tests.chain(of_hosts))
}

fn within(comparison: &Comparison) -> Table {
    let sides = ["before", "after"].into_iter().zip(&comparison.configuration.within);
    let row = |side: &str, change: &preflight::Change| {
        let mut row = change_row(change);
        row.insert(0, side.to_owned());
        row
    };
    Table::new(
        "side | what | first run | last run | where",
        sides.flat_map(|(side, changes)| changes.iter().map(move |c| row(side, c))),
    )
}

fn change_row(change: &preflight::Change) -> Vec<String> {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
    vec![change.fact.clone(), value(&change.before), value(&change.after), some(&change.hosts, NAMED)]
}
