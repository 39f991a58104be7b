//! The pair matrix: every size small, the telling one large, and the links and hosts that stand out with their numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_wire::terms::Better;
use serde::Serialize;

use super::{
    Data, Figure,
    deviation::{Link, STANDS_OUT},
    headline,
    marks::Marks,
    table::{Table, number_column, text_column},
};
use crate::{
    analysis::words::{number, size},
    report::chart::matrix::{Cell, Grade, Look, Matrix, condense, large, thumbnail},
    schedule::{Flow, Port},
};

/// The pair matrix of a test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Map {
    /// One small matrix per size and rail, with its label.
    pub thumbnails: Vec<(String, String)>,
    /// The size at which the worst link stands out most, one large matrix per rail.
    pub large: Vec<Figure>,
    /// Class and meaning of every colour of the large ones.
    pub legend: Vec<(String, String)>,
    /// What can be said in a sentence.
    pub sentence: String,
    /// Links that stand out.
    pub links: Option<Table>,
    /// Hosts, the worst first.
    pub hosts: Option<Table>,
    /// Rails.
    pub rails: Option<Table>,
}

/// Links under which a matrix says nothing that a table does not.
const AT_LEAST: usize = 3;
/// Links listed.
const LISTED: usize = 10;
/// Hosts and rails listed.
const HOSTS: usize = 6;
/// Rows and columns of a small matrix, and of a large one; more are drawn as blocks that show their worst link.
const BLOCKS: (usize, usize) = (40, 160);

/// The matrix of a test; `None` where it has too few links.
pub(super) fn map(data: &Data<'_>, links: &[Link<'_>]) -> Option<Map> {
    let flows: BTreeSet<_> = links.iter().map(|link| &link.result.case.flow).collect();
    // Groups of two hosts are pairs as well; larger ones have no place in a matrix.
    if flows.len() < AT_LEAST || flows.iter().any(|flow| flow.hosts().len() != 2) {
        return None;
    }
    let groups = flows.iter().any(|flow| !flow.members.is_empty());
    let crossed = !groups && flows.iter().any(|flow| flow.from.rail != flow.to.rail);
    let mut cells: BTreeMap<(u32, u64), BTreeMap<u32, Vec<&Link<'_>>>> = BTreeMap::new();
    for link in links {
        let panel = if crossed || groups { 0 } else { link.result.case.flow.from.rail };
        cells.entry(link.cell).or_default().entry(panel).or_default().push(link);
    }
    let rails = cells.values().flat_map(|panels| panels.keys()).collect::<BTreeSet<_>>().len();
    let axes = axes(data, links, crossed);
    let mut outstanding: Vec<&Link<'_>> =
        links.iter().filter(|link| link.steps().is_some_and(|s| s < -STANDS_OUT)).collect();
    outstanding.sort_by(|a, b| a.steps().unwrap_or(0.0).total_cmp(&b.steps().unwrap_or(0.0)));
    let marks = Marks::new(data);
    // The cell in which the named part was found; else that of the worst link.
    let named = links.iter().find(|link| marks.cases.contains(&link.result.case.id));
    let focus = named.or(outstanding.first().copied()).map_or_else(|| usual_focus(data), |link| link.cell);
    let mut listed: Vec<&Flow> = Vec::new();
    for link in &outstanding {
        if listed.len() < LISTED && !listed.contains(&&link.result.case.flow) {
            listed.push(&link.result.case.flow);
        }
    }
    let here = |link: &&&Link<'_>| listed.contains(&&link.result.case.flow);
    let mut outlined: BTreeSet<u64> = outstanding.iter().filter(here).map(|link| link.result.case.id).collect();
    outlined.extend(&marks.cases);
    let label = |cell: (u32, u64), rail: u32| {
        let words = data.cell_words(cell);
        if rails > 1 { format!("{words}, rail {rail}") } else { words }
    };
    let drawn = |links: &[&Link<'_>]| matrix(data, links, &axes, crossed, (&outlined, &marks));
    let mut thumbnails = Vec::new();
    if cells.len() > 1 {
        for (cell, panels) in &cells {
            for (rail, links) in panels {
                let label = label(*cell, *rail);
                thumbnails.push((label.clone(), thumbnail(&condense(drawn(links), BLOCKS.0), &label)));
            }
        }
    }
    let panels = cells.get(&focus)?;
    let large = panels
        .iter()
        .map(|(rail, links)| {
            let title = label(focus, *rail);
            Figure { svg: large(&condense(drawn(links), BLOCKS.1), &title), title, legend: Vec::new() }
        })
        .collect();
    let here: Vec<&Link<'_>> = panels.values().flatten().copied().collect();
    Some(Map {
        thumbnails,
        large,
        legend: legend(data, &here),
        sentence: sentence(data, &outstanding, &here, focus) + &marks.words(),
        links: standing_out(data, &outstanding),
        hosts: hosts(data, &here),
        rails: by_rail(data, panels, focus),
    })
}

/// The size that is looked at where nothing stands out.
fn usual_focus(data: &Data<'_>) -> (u32, u64) {
    let sizes = data.results.iter().map(|result| result.case.cell.size);
    let size = if headline(data.test).better() == Better::Higher { sizes.max() } else { sizes.min() };
    (data.own_variants().last().copied().unwrap_or(0), size.unwrap_or(0))
}

/// Rows and columns: ports of initiators and of responders, in the plan's order of hosts.
fn axes(data: &Data<'_>, links: &[Link<'_>], crossed: bool) -> [HashMap<Port, usize>; 2] {
    let order: HashMap<&str, usize> =
        data.test.hosts.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let ports = |pick: fn(&Flow) -> &Port| -> BTreeSet<(usize, Port)> {
        let ports = links.iter().map(|link| place(pick(&link.result.case.flow).clone(), crossed));
        ports.map(|port| (order.get(&*port.host).copied().unwrap_or(usize::MAX), port)).collect()
    };
    let mut sides = [ports(|flow| &flow.from), ports(|flow| &flow.to)];
    // Two groups have a side each; one group has the same hosts on both, also those that only ever respond.
    if !sides[0].is_disjoint(&sides[1]) {
        let all: BTreeSet<(usize, Port)> = sides[0].union(&sides[1]).cloned().collect();
        sides = [all.clone(), all];
    }
    sides.map(|side| side.into_iter().enumerate().map(|(at, (_, port))| (port, at)).collect())
}

/// The row or column of a port: hosts where every rail has its own matrix, ports where rails are crossed.
fn place(port: Port, crossed: bool) -> Port {
    if crossed { port } else { Port { rail: 0, ..port } }
}

fn matrix(
    data: &Data<'_>,
    links: &[&Link<'_>],
    axes: &[HashMap<Port, usize>; 2],
    crossed: bool,
    (outlined, marks): (&BTreeSet<u64>, &Marks),
) -> Matrix {
    let names = |axis: &HashMap<Port, usize>| {
        let mut names = vec![String::new(); axis.len()];
        for (port, at) in axis {
            names[*at] = if crossed { format!("{}:{}", port.host, port.rail) } else { port.host.to_string() };
        }
        names
    };
    let cells = links.iter().filter_map(|link| {
        let flow = &link.result.case.flow;
        let row = axes[0].get(&place(flow.from.clone(), crossed))?;
        let column = axes[1].get(&place(flow.to.clone(), crossed))?;
        let raw = data.values.get(&link.result.case.id).and_then(|row| row.value);
        Some(Cell {
            at: (*row, *column),
            look: link.look(),
            text: raw.map_or_else(|| "–".to_owned(), short),
            tip: tip(data, link, raw),
            outlined: outlined.contains(&link.result.case.id),
        })
    });
    // Without crossed rails every panel is one rail, and a row is a host.
    let panel = links.first().map_or(0, |link| link.result.case.flow.from.rail);
    let named = |axis: &HashMap<Port, usize>| -> BTreeSet<usize> {
        let bad = |port: &Port| marks.end(&port.host, if crossed { port.rail } else { panel });
        axis.iter().filter(|(port, _)| bad(port)).map(|(_, at)| *at).collect()
    };
    let bad = (named(&axes[0]), named(&axes[1]));
    Matrix { cells: cells.collect(), names: (names(&axes[0]), names(&axes[1])), bad }
}

/// Three digits, which fit into a cell.
fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v if v >= 0.001 => format!("{v:.3}"),
        v => format!("{v:.1e}"),
    }
}

fn tip(data: &Data<'_>, link: &Link<'_>, value: Option<f64>) -> String {
    let unit = headline(data.test).unit();
    let name = link.result.link_name();
    match (value, link.result.error()) {
        (None, error) => format!("{name}: {}", error.unwrap_or_default()),
        (Some(value), Some(error)) => format!("{name}: {} {unit}; {error}", number(value)),
        (Some(value), None) => match link.centre {
            Some(centre) => format!("{name}: {} {unit}, {}", number(value), against(value, centre)),
            None => format!("{name}: {} {unit}", number(value)),
        },
    }
}

/// `38.2 % under the centre`.
fn against(value: f64, centre: f64) -> String {
    let percent = 100.0 * (value / centre - 1.0);
    format!("{:.1} % {} the centre", percent.abs(), if percent < 0.0 { "under" } else { "over" })
}

fn legend(data: &Data<'_>, here: &[&Link<'_>]) -> Vec<(String, String)> {
    let step = here.first().map_or(0.02, |link| link.step);
    let higher = headline(data.test).better() == Better::Higher;
    let percent = |steps: f64| {
        let share = if higher { 1.0 - (-steps * step).exp() } else { (steps * step).exp() - 1.0 };
        format!("{:.0}", 100.0 * share)
    };
    let worse = if higher { "lower" } else { "higher" };
    let [p1, p2, p4, p8] = [1.0, 2.0, 4.0, 8.0].map(percent);
    let present: BTreeSet<Look> = here.iter().map(|link| link.look()).collect();
    let meanings = [
        (Look::Better, format!("more than {p1} % better than the centre")),
        (Look::Usual, format!("within {p1} % of the centre")),
        (Look::Worse(Grade::Little), format!("{p1} to {p2} % {worse}")),
        (Look::Worse(Grade::Clear), format!("{p2} to {p4} % {worse}")),
        (Look::Worse(Grade::Much), format!("{p4} to {p8} % {worse}")),
        (Look::Worse(Grade::Far), format!("more than {p8} % {worse}")),
        (Look::Missing, "not measured".to_owned()),
        (Look::Doubtful, "wrong, disturbed or not verified".to_owned()),
    ];
    let always = |look: &Look| !matches!(look, Look::Missing | Look::Doubtful);
    meanings
        .into_iter()
        .filter(|(look, _)| always(look) || present.contains(look))
        .map(|(look, meaning)| (look.class().to_owned(), meaning))
        .collect()
}

fn sentence(data: &Data<'_>, outstanding: &[&Link<'_>], here: &[&Link<'_>], focus: (u32, u64)) -> String {
    if here.iter().all(|link| link.centre.is_none()) {
        return "Too few links were measured to say which is the odd one.".to_owned();
    }
    let flows: BTreeSet<_> = outstanding.iter().map(|link| &link.result.case.flow).collect();
    let at = data.cell_words(focus);
    match outstanding.first() {
        None => format!("No link stands out at any size; shown is {at}."),
        Some(worst) => format!(
            "{} out; the worst is {} at {at}.",
            if flows.len() == 1 { "1 link stands".to_owned() } else { format!("{} links stand", flows.len()) },
            worst.result.link_name()
        ),
    }
}

/// One row per link, at its worst size.
fn standing_out(data: &Data<'_>, outstanding: &[&Link<'_>]) -> Option<Table> {
    let unit = headline(data.test).unit();
    let cells = data.results.iter().map(|r| (data.variant(r), r.case.cell.size)).collect::<BTreeSet<_>>().len();
    let mut seen: HashMap<&Flow, usize> = HashMap::new();
    for link in outstanding {
        *seen.entry(&link.result.case.flow).or_default() += 1;
    }
    let mut rows = Vec::new();
    for link in outstanding {
        let Some(times) = seen.remove(&link.result.case.flow) else { continue };
        let (Some(value), Some(centre)) = (link.value, link.centre) else { continue };
        let at = data.cell_words(link.cell);
        let percent = signed(100.0 * (value / centre - 1.0));
        rows.push(vec![
            link.result.link_name(),
            at,
            number(value),
            number(centre),
            percent,
            format!("{times} of {cells}"),
        ]);
        if rows.len() == LISTED {
            break;
        }
    }
    let columns = vec![
        text_column("link"),
        number_column("worst at", ""),
        number_column("value", unit),
        number_column("centre", unit),
        number_column("difference", "%"),
        number_column("sizes", ""),
    ];
    (!rows.is_empty()).then_some(Table { columns, rows })
}

/// With a sign, and one digit after the point.
fn signed(percent: f64) -> String {
    let text = format!("{:.1}", percent.abs());
    match text.as_str() {
        "0.0" => text,
        _ => format!("{}{text}", if percent < 0.0 { '−' } else { '+' }),
    }
}

/// Medians of the links of every host and rail against the centre, worst first.
fn hosts(data: &Data<'_>, here: &[&Link<'_>]) -> Option<Table> {
    let mut ports: BTreeMap<&Port, [Vec<f64>; 2]> = BTreeMap::new();
    for link in here {
        let flow = &link.result.case.flow;
        for (way, port) in [&flow.from, &flow.to].into_iter().enumerate() {
            ports.entry(port).or_default()[way].extend(link.deviation);
        }
    }
    let median = |values: &[f64]| railgauge_stats::robust::median(values).ok();
    let mut found: Vec<(&Port, f64, [Option<f64>; 2], usize)> = ports
        .into_iter()
        .filter_map(|(port, [from, to])| {
            let both: Vec<f64> = from.iter().chain(&to).copied().collect();
            (both.len() >= 2).then_some((port, median(&both)?, [median(&from), median(&to)], both.len()))
        })
        .collect();
    if found.len() < 4 {
        return None;
    }
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    let sign = if headline(data.test).better() == Better::Higher { 1.0 } else { -1.0 };
    let percent = |deviation: f64| signed(100.0 * ((sign * deviation).exp() - 1.0));
    let rows = found.into_iter().take(HOSTS).map(|(port, both, ways, n)| {
        let [from, to] = ways.map(|way| way.map_or_else(|| "–".to_owned(), percent));
        vec![port.host.to_string(), port.rail.to_string(), n.to_string(), percent(both), from, to]
    });
    let columns = vec![
        text_column("host"),
        number_column("rail", ""),
        number_column("links", ""),
        number_column("median", "%"),
        number_column("as initiator", "%"),
        number_column("as responder", "%"),
    ];
    Some(Table { rows: rows.collect(), columns })
}

fn by_rail(data: &Data<'_>, panels: &BTreeMap<u32, Vec<&Link<'_>>>, focus: (u32, u64)) -> Option<Table> {
    if panels.len() < 2 {
        return None;
    }
    let unit = headline(data.test).unit();
    let higher = headline(data.test).better() == Better::Higher;
    let rows = panels.iter().map(|(rail, links)| {
        let values: Vec<f64> = links.iter().filter_map(|link| link.value).collect();
        let end = |low: bool| values.iter().copied().reduce(if low { f64::min } else { f64::max });
        let text = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        let measured = match values.len() {
            all if all == links.len() => all.to_string(),
            some => format!("{some} of {}", links.len()),
        };
        let median = railgauge_stats::robust::median(&values).ok();
        vec![rail.to_string(), measured, text(end(higher)), text(median), text(end(!higher))]
    });
    let name = format!("median at {}", size(focus.1));
    let columns = vec![
        number_column("rail", ""),
        number_column("links", ""),
        number_column("slowest link", unit),
        number_column(&name, unit),
        number_column("fastest link", unit),
    ];
    Some(Table { rows: rows.collect(), columns })
}
