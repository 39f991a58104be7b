//! The map of the cluster: a row for each test and rail, a column for each host.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashSet};
use railgauge_analysis::{
    outliers::{Link, Look, OfTest, Outliers},
    words::{change, number, part_words, size},
};
use railgauge_model::{
    plan::model::{Plan, Test},
    schedule::Port,
};
use railgauge_stats::robust::median;
use serde::Serialize;

use super::section::{self, cells};
use crate::chart::matrix::{Cell, Group, Matrix, condense, large};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cluster {
    pub svg: String,
    /// Names of the rows and of the columns, of a row's unit and of its section, a line each.
    pub rows: String,
    pub columns: String,
    pub units: String,
    pub anchors: String,
    pub legend: Vec<(String, String)>,
}

/// Columns: with more hosts a column is a block of neighbours.
const MOST: usize = 128;
/// Hosts and parts below which there is nothing to compare.
const AT_LEAST: usize = 3;

struct Row<'a> {
    name: String,
    unit: &'a str,
    anchor: String,
    cells: HashMap<&'a str, Place>,
}

/// One port of a host in one test.
struct Place {
    value: Option<f64>,
    difference: Option<f64>,
    look: Look,
    named: bool,
}

/// `None` where no test compares hosts or parts of hosts.
pub(super) fn cluster(plan: &Plan, outliers: &Outliers<'_>) -> Option<Cluster> {
    let tests = plan.tests.iter().zip(&outliers.tests).enumerate();
    let rows: Vec<Row<'_>> = tests.flat_map(|(at, (test, of))| of_test(at, test, of, outliers)).collect();
    let names: Vec<String> = plan.hosts.iter().map(|host| host.name.clone()).collect();
    let (order, groups) = cells::ordered(&plan.groups, &names);
    let places = rows.iter().map(|row| row.cells.len()).sum::<usize>();
    if places < AT_LEAST {
        return None;
    }
    let columns: HashMap<&str, usize> = order.iter().enumerate().map(|(at, host)| (*host, at)).collect();
    let mut found = Vec::new();
    let (mut tips, mut looks) = (Vec::new(), BTreeSet::new());
    for (row, of) in rows.iter().enumerate() {
        for (host, place) in &of.cells {
            let Some(&column) = columns.get(host) else { continue };
            looks.insert(place.look);
            found.push(Cell {
                at: (row, column),
                look: place.look,
                value: place.value,
                difference: place.difference,
                link: tips.len(),
                outlined: place.named,
                reversed: false,
            });
            tips.push(tip(host, of, place));
        }
    }
    found.sort_unstable_by_key(|cell| cell.at);
    let starts = rows.chunk_by(|a, b| a.anchor == b.anchor).scan(0, |at, rows| {
        *at += rows.len();
        Some(Group { name: String::new(), from: *at - rows.len() })
    });
    let bad: BTreeSet<usize> = found.iter().filter(|cell| cell.outlined).map(|cell| cell.at.1).collect();
    let lines = |of: &dyn Fn(&Row<'_>) -> String| rows.iter().map(of).collect::<Vec<_>>().join("\n");
    let hosts: Vec<String> = order.iter().map(|host| (*host).to_owned()).collect();
    let matrix = Matrix {
        names: (rows.iter().map(|row| row.name.clone()).collect(), hosts.clone()),
        bad: (BTreeSet::new(), bad),
        groups: (starts.collect(), groups),
        cells: found,
        half: false,
    };
    let mut data = cells::cells(&matrix, None);
    if hosts.len().max(rows.len()) > MOST {
        data += &cells::blocks(&matrix, MOST);
    }
    Some(Cluster {
        svg: large(&condense(matrix, MOST), "hosts by test and rail", 1, &data, |at| {
            tips.get(at).cloned().unwrap_or_default()
        }),
        rows: lines(&|row| row.name.replace('\n', " ")),
        columns: cells::names((hosts, Vec::new())).0,
        units: lines(&|row| row.unit.to_owned()),
        anchors: lines(&|row| row.anchor.clone()),
        legend: section::legend(&looks, None),
    })
}

fn tip(host: &str, row: &Row<'_>, place: &Place) -> String {
    let value =
        place.value.map_or_else(|| "not measured".to_owned(), |value| format!("{} {}", number(value), row.unit));
    let apart =
        place.difference.map_or_else(String::new, |percent| format!(", {} against the centre", change(percent)));
    format!("{host}, {}: {value}{apart}", row.name)
}

/// A row for each rail at the cell that the test shows large; none where all links have the same hosts.
fn of_test<'a>(at: usize, test: &Test, of: &'a OfTest<'a>, outliers: &Outliers<'_>) -> Vec<Row<'a>> {
    let mut rails: BTreeMap<u32, HashMap<&'a str, Vec<&'a Link<'a>>>> = BTreeMap::new();
    let here = of.links.iter().filter(|link| Some(&link.cell) == of.focus.as_ref());
    let mut flows = 0;
    for link in here {
        let flow = &link.result.case.flow;
        flows += 1;
        let ends: HashSet<&Port> = match flow.members.as_slice() {
            [] => [&flow.from, &flow.to].into_iter().collect(),
            members => members.iter().collect(),
        };
        for port in ends {
            rails.entry(port.rail).or_default().entry(&port.host).or_default().push(link);
        }
    }
    // One group of all hosts has one value.
    if flows < 2 && !test.transport.is_within_host() {
        return Vec::new();
    }
    let named: HashSet<(&str, Option<u32>)> = outliers
        .parts
        .iter()
        .filter(|part| part.is_bad() && part.is_named_by(of.test))
        .flat_map(|part| part.ends())
        .collect();
    let several = rails.len() > 1;
    let word = part_words(test.transport).unwrap_or("rail");
    let name = format!("{} {}", test.name, of.focus.as_ref().map_or_else(String::new, |focus| size(focus.1)));
    rails
        .into_iter()
        .map(|(rail, hosts)| Row {
            name: if several { format!("{name}, {word} {rail}") } else { name.clone() },
            unit: of.metric.unit(),
            anchor: format!("test-{}", at + 1),
            cells: hosts
                .into_iter()
                .map(|(host, links)| {
                    let named = [None, Some(rail)].iter().any(|rail| named.contains(&(host, *rail)));
                    (host, place(&links, named))
                })
                .collect(),
        })
        .collect()
}

/// The medians of a port's links: with one bad end all of them are low.
fn place(links: &[&Link<'_>], named: bool) -> Place {
    let middle = |of: &dyn Fn(&Link<'_>) -> Option<f64>| {
        let values: Vec<f64> = links.iter().filter_map(|link| of(link)).collect();
        median(&values).ok()
    };
    let threshold = links.iter().find_map(|link| link.level).map(|level| level.threshold);
    let look = match (middle(&|link| link.value), middle(&|link| link.deviation).zip(threshold)) {
        (Some(_), Some((deviation, threshold))) => Look::of(deviation, threshold, named),
        (Some(_), None) if named => Look::Named,
        (Some(_), None) => Look::Usual,
        (None, _) => links.iter().map(|link| link.look).max().unwrap_or(Look::Missing),
    };
    Place { value: middle(&|link| link.value), difference: middle(&|link| link.change_percent()), look, named }
}
