//! The pair matrix at the most informative size, and the links that stand out with their numbers.
//! [`outliers`](mod@railgauge_analysis::outliers) decides what stands out; this module only renders it.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashSet};
use railgauge_analysis::{
    outliers::{Grade, Link, Look, Part, STEPS},
    words::{change, count, part_words, worse},
};
use railgauge_model::{
    plan::model::Test,
    schedule::{Flow, Port},
};
use railgauge_wire::{Better, Bytes, Op};

use super::{
    block::{Block, Data, Figure, Map, MapCell},
    cells, curves,
    listed::{LISTED, by, standing_out, value_words},
};
use crate::{
    chart::{
        ChartError,
        matrix::{Cell, Group, Matrix, class, condense, halved, large},
    },
    view::alike,
};

/// Links below which a matrix adds nothing to a table.
const AT_LEAST: usize = 3;
/// Rows and columns of a matrix of more than [`SINGLE`]: blocks show their worst link.
const BLOCKS: usize = 40;
const SINGLE: usize = 160;

/// Matrices of a test that are all open; of more only the worst is.
const FULL: usize = 2;

/// Links up to which the page has all matrix values; otherwise it only has those of the tables.
const TOLD: usize = 60_000;

type Cells<'l, 'a> = BTreeMap<(u32, Bytes), BTreeMap<u32, Vec<&'l Link<'a>>>>;

/// `None` with too few links.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let heading = if data.test.transport.is_within_host() { "Parts of hosts" } else { "Pairs" };
    Ok(map(data).map(|map| Block { heading, map: Some(map), ..Block::default() }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Hosts,
    Ports,
    Parts(&'static str),
    Ways(&'static str),
}

impl Shape {
    fn of(test: &Test, crossed: bool) -> Self {
        match (part_words(test.transport), crossed) {
            (Some(part), _) if test.op == Op::GpuToGpu => Self::Ways(part),
            (Some(part), _) => Self::Parts(part),
            (None, true) => Self::Ports,
            (None, false) => Self::Hosts,
        }
    }

    /// The row of a flow; with `side` 1 its column. The empty name, for numbers, is not a host's.
    fn place(self, flow: &Flow, side: usize) -> Port {
        let number = |port: &Port| Port::new("", port.rail);
        let host = |port: &Port| Port { rail: 0, ..port.clone() };
        match (self, side) {
            (Self::Hosts | Self::Parts(_), 0) => host(&flow.from),
            (Self::Hosts, _) => host(&flow.to),
            (Self::Ports | Self::Ways(_), 0) => flow.from.clone(),
            (Self::Ports, _) => flow.to.clone(),
            (Self::Parts(_), _) => number(&flow.from),
            (Self::Ways(_), _) => number(&flow.to),
        }
    }

    fn name(self, port: &Port) -> String {
        match self {
            Self::Parts(part) | Self::Ways(part) if port.host.is_empty() => format!("{part} {}", port.rail),
            Self::Ways(part) => format!("{} {part} {}", port.host, port.rail),
            Self::Ports => format!("{}:{}", port.host, port.rail),
            Self::Hosts | Self::Parts(_) => port.host.to_string(),
        }
    }
}

fn map(data: &Data<'_>) -> Option<Map> {
    let links = &data.out.links;
    let flows = || links.iter().map(|link| &link.result.case.flow);
    // Groups of two hosts are pairs too; larger ones have no place in a matrix.
    let within = data.test.transport.is_within_host();
    let least = if within { 2 } else { AT_LEAST };
    let mut first: Vec<&Flow> = Vec::new();
    for flow in flows() {
        if first.len() < least && !first.contains(&flow) {
            first.push(flow);
        }
    }
    if first.len() < least || (!within && !flows().all(Flow::is_of_two_hosts)) {
        return None;
    }
    let groups = flows().any(|flow| !flow.members.is_empty());
    let crossed = within || (!groups && flows().any(|flow| flow.from.rail != flow.to.rail));
    let shape = Shape::of(data.test, crossed);
    let mut cells: Cells<'_, '_> = BTreeMap::new();
    for link in links {
        let panel = if crossed || groups { 0 } else { link.result.case.flow.from.rail };
        let cell = (data.variant(link.result), link.result.case.cell.size);
        cells.entry(cell).or_default().entry(panel).or_default().push(link);
    }
    let rails = cells.values().flat_map(|panels| panels.keys()).collect::<BTreeSet<_>>().len();
    let focus = links.iter().find(|link| Some(&link.cell) == data.out.focus.as_ref())?;
    let focus = (data.variant(focus.result), focus.cell.1);
    let outlined = outlined(data);
    let axes = axes(data, links, shape);
    let label = |cell: (u32, Bytes), rail: u32| {
        let words = data.cell_words(cell);
        if rails > 1 { format!("{words}, rail {rail}") } else { words }
    };
    let drawn = |links: &[&Link<'_>]| matrix(links, &axes, shape, &outlined);
    let panels = cells.get(&focus)?;
    // The page's script describes cells; groups have no ends of their own.
    let planned = panels.values().map(Vec::len).sum::<usize>();
    let told = !groups && !within && planned <= TOLD;
    let (folded, open) = folded(&axes, panels, |rail| label(focus, rail));
    let beside = if folded.is_empty() { panels.len() } else { 1 };
    let mut half = true;
    let large: Vec<Figure> = panels
        .iter()
        .map(|(rail, links)| {
            let title = label(focus, *rail);
            let matrix = drawn(links);
            let single = matrix.names.0.len().max(matrix.names.1.len()) <= SINGLE;
            let matrix = if single { halved(matrix) } else { matrix };
            half &= matrix.half;
            let told = told.then(|| cells::cells(&matrix, if crossed { None } else { Some(*rail) }));
            let blocks = if single { String::new() } else { cells::blocks(&matrix, BLOCKS) };
            let matrix = if single { matrix } else { condense(matrix, BLOCKS) };
            let tip = |at: usize| links.get(at).map_or_else(String::new, |link| tip(data, link));
            let svg = large(&matrix, &title, beside, &(told.unwrap_or_default() + &blocks), tip);
            Figure { svg, title, legend: Vec::new() }
        })
        .collect();
    let names = (told && !panels.is_empty()).then(|| axes.names(shape));
    let here: Vec<&Link<'_>> = panels.values().flatten().copied().collect();
    let cell = |link: &Link<'_>| MapCell {
        case: link.result.case.id,
        look: link.look,
        outlined: outlined.contains(&link.result.case.id),
    };
    Some(Map {
        large,
        folded,
        open,
        names: names.map(cells::names),
        unit: data.out.metric.unit().to_owned(),
        of_cells: of_cells(data, focus.1),
        half,
        legend: legend(
            &data.out.links.iter().map(|link| link.look).collect(),
            Some(data.out.metric.better() == Better::Higher),
        ),
        sentence: sentence(data, &here, focus) + &untold(planned),
        links: standing_out(data),
        links_more: data.out.flows().len().saturating_sub(LISTED),
        cells: links.iter().map(cell).collect(),
    })
}

fn of_cells(data: &Data<'_>, size: Bytes) -> String {
    let limits = curves::demanded(data.test, data.out.metric, &[(size, Some(1.0))]);
    let repeats = data.test.repeats as usize;
    let repeats = (repeats > 1).then(|| format!("median of {}", count(repeats, "repeat")));
    repeats.into_iter().chain(limits.into_iter().map(|limit| limit.words)).collect::<Vec<_>>().join("; ")
}

fn folded(
    axes: &Axes<'_>,
    panels: &BTreeMap<u32, Vec<&Link<'_>>>,
    label: impl Fn(u32) -> String,
) -> (Vec<String>, usize) {
    let is_screen = panels.len() > FULL || axes.places.iter().any(|side| side.len() > SINGLE);
    let out = |links: &[&Link<'_>]| links.iter().filter(|link| link.stands_out).count();
    let counts: Vec<usize> = panels.values().map(|links| out(links)).collect();
    // The first of the worst.
    let open = (0..counts.len()).rev().max_by_key(|&at| counts[at]).unwrap_or_default();
    if !is_screen || counts.len() < 2 {
        return (Vec::new(), open);
    }
    let said = |(rail, out): (&u32, &usize)| match out {
        0 => format!("{}: no outlier", label(*rail)),
        1 => format!("{}: 1 outlier", label(*rail)),
        n => format!("{}: {n} outliers", label(*rail)),
    };
    (panels.keys().zip(&counts).map(said).collect(), open)
}

fn outlined(data: &Data<'_>) -> BTreeSet<u64> {
    let listed: BTreeSet<&Flow> =
        data.out.flows().into_iter().take(LISTED).map(|(link, _)| &link.result.case.flow).collect();
    let speak: HashSet<u64> = bad(data).flat_map(|part| part.cases(data.out.test)).collect();
    let drawn = |link: &&Link<'_>| {
        (link.stands_out && listed.contains(&link.result.case.flow)) || speak.contains(&link.result.case.id)
    };
    data.out.links.iter().filter(drawn).map(|link| link.result.case.id).collect()
}

fn bad<'d>(data: &'d Data<'_>) -> impl Iterator<Item = &'d Part<'d>> {
    data.outliers.parts.iter().filter(|part| part.is_bad())
}

struct Axes<'d> {
    places: [HashMap<Port, usize>; 2],
    groups: [Vec<Group>; 2],
    bad: HashSet<(&'d str, Option<u32>)>,
}

impl Axes<'_> {
    fn names(&self, shape: Shape) -> (Vec<String>, Vec<String>) {
        let [rows, columns] = [0, 1].map(|side: usize| {
            let mut names = vec![String::new(); self.places[side].len()];
            for (port, at) in &self.places[side] {
                names[*at] = shape.name(port);
            }
            names
        });
        (rows, columns)
    }

    /// Whether the part of a place is bad or suspect; for hosts that on one rail.
    fn is_bad(&self, port: &Port, rail: u32) -> bool {
        [None, Some(rail)].iter().any(|rail| self.bad.contains(&(&*port.host, *rail)))
    }
}

/// Ports of initiators and of responders, by host group and then in the plan's order.
fn axes<'d>(data: &'d Data<'_>, links: &[Link<'_>], shape: Shape) -> Axes<'d> {
    let (order, starts) = cells::ordered(data.groups, &data.test.hosts);
    let order: HashMap<&str, usize> = order.into_iter().enumerate().map(|(at, host)| (host, at)).collect();
    let ports = |side: usize| -> BTreeSet<(usize, Port)> {
        let ports = links.iter().map(|link| shape.place(&link.result.case.flow, side));
        // Links are many and ports are few.
        let ports: HashSet<Port> = ports.collect();
        ports.into_iter().map(|port| (order.get(&*port.host).copied().unwrap_or(usize::MAX), port)).collect()
    };
    let mut sides = [ports(0), ports(1)];
    // Two groups have a side each; one group has the same hosts on both, including pure responders.
    if !sides[0].is_disjoint(&sides[1]) {
        let all: BTreeSet<_> = sides[0].union(&sides[1]).cloned().collect();
        sides = [all.clone(), all];
    }
    let grouped = |side: &BTreeSet<(usize, Port)>| -> Vec<Group> {
        let group = |at: usize| starts.iter().rev().find(|group| group.from <= at).map_or("", |group| &group.name);
        let all = side.iter().enumerate().map(|(from, (at, _))| Group { name: group(*at).to_owned(), from });
        let mut all: Vec<Group> = all.collect();
        all.dedup_by(|next, group| next.name == group.name);
        if all.len() < 2 { Vec::new() } else { all }
    };
    let groups = [grouped(&sides[0]), grouped(&sides[1])];
    let own = bad(data).filter(|part| part.is_named_by(data.out.test));
    let bad = own.flat_map(Part::ends).collect();
    Axes {
        groups,
        bad,
        places: sides.map(|side| side.into_iter().enumerate().map(|(at, (_, port))| (port, at)).collect()),
    }
}

fn matrix(links: &[&Link<'_>], axes: &Axes<'_>, shape: Shape, outlined: &BTreeSet<u64>) -> Matrix {
    let cells = links.iter().enumerate().filter_map(|(at, link)| {
        let place = |side: usize| axes.places[side].get(&shape.place(&link.result.case.flow, side));
        let (row, column) = (place(0)?, place(1)?);
        Some(Cell {
            at: (*row, *column),
            look: link.look,
            value: link.row.and_then(|row| row.value),
            difference: link.change_percent(),
            link: at,
            outlined: outlined.contains(&link.result.case.id),
            reversed: false,
        })
    });
    // Without crossed rails every panel is one rail, and a row is a host.
    let panel = links.first().map_or(0, |link| link.result.case.flow.from.rail);
    let named = |axis: &HashMap<Port, usize>| -> BTreeSet<usize> {
        let is_bad = |port: &Port| axes.is_bad(port, if shape == Shape::Hosts { panel } else { port.rail });
        axis.iter().filter(|(port, _)| is_bad(port)).map(|(_, at)| *at).collect()
    };
    let bad = (named(&axes.places[0]), named(&axes.places[1]));
    Matrix {
        cells: cells.collect(),
        names: axes.names(shape),
        bad,
        groups: (axes.groups[0].clone(), axes.groups[1].clone()),
        half: false,
    }
}

fn tip(data: &Data<'_>, link: &Link<'_>) -> String {
    let value = link.row.and_then(|row| row.value);
    let unit = data.out.metric.unit();
    let name = link.result.link_name();
    let error = link.result.error();
    let Some(value) = value else { return format!("{name}: {}", error.unwrap_or_default()) };
    let mut words = vec![format!("{name}: {} {unit}", value_words(link, value))];
    words.extend(
        link.level
            .filter(|_| link.value.is_some())
            .map(|level| format!("{} against the centre", change(100.0 * (value / level.centre - 1.0)))),
    );
    if link.stands_out {
        words.push("outlier".to_owned());
    }
    words.extend(data.outliers.part_of(link).map(|part| format!("{} ({})", part.name, part.state())));
    words.extend(error);
    words.join("; ")
}

/// From where on links stand out, in words; `None` without a centre or with several.
fn threshold(data: &Data<'_>, links: &[&Link<'_>]) -> Option<String> {
    let mut limits = links.iter().filter_map(|link| link.level).map(|level| level.threshold);
    let first = limits.next()?;
    limits.all(|limit| limit == first).then(|| worse(-first, data.out.metric.better() == Better::Higher))
}

/// Classes and meanings of the colours that are `present`, and of those that a reader looks for. `higher`: whether more is
/// better.
pub(in crate::view) fn legend(present: &BTreeSet<Look>, higher: Option<bool>) -> Vec<(String, String)> {
    let by = |log: f64| match higher {
        Some(higher) => format!(", {} or more", worse(-log, higher)),
        None => format!(", {:.0} % worse or more", 100.0 * (1.0 - (-log).exp())),
    };
    let meanings = [
        (Look::Better, "better than usual".to_owned()),
        (Look::Usual, "usual".to_owned()),
        (Look::Worse(Grade::Little), "low, but within the scatter".to_owned()),
        (Look::Worse(Grade::Clear), "outlier".to_owned()),
        (Look::Worse(Grade::Much), format!("outlier{}", by(STEPS[0]))),
        (Look::Worse(Grade::Far), format!("outlier{}", by(STEPS[1]))),
        (Look::Named, "within the scatter, but evidence against a component".to_owned()),
        (Look::Missing, "not measured".to_owned()),
        (Look::Doubtful, "corrupt, disturbed or not verified".to_owned()),
    ];
    let shown = |look: &Look| *look == Look::Usual || present.contains(look);
    let shown = meanings.into_iter().filter(|(look, _)| shown(look));
    shown.map(|(look, meaning)| (class(&look).to_owned(), meaning)).collect()
}

/// Note that the page has no cell values; empty where it has them.
fn untold(planned: usize) -> String {
    if planned <= TOLD {
        return String::new();
    }
    format!(
        " The cells have no values: the page has those of up to {TOLD} links, and here are {planned}. records.parquet has all of them."
    )
}

fn sentence(data: &Data<'_>, here: &[&Link<'_>], focus: (u32, Bytes)) -> String {
    let shown = data.cell_words(focus);
    let flows = data.out.flows();
    let mut words = Vec::new();
    match flows.first() {
        None if data.out.links.iter().all(|link| link.level.is_none()) => {
            words.push("Too few links to identify an outlier.".to_owned());
        }
        None => words.push("No outlier at any size.".to_owned()),
        Some((worst, _)) => {
            let outliers = count(flows.len(), "outlier link");
            let at = data.cell_words((data.variant(worst.result), worst.cell.1));
            words.push(format!("{outliers}; the worst is {} at {at}{}.", worst.result.link_name(), by(worst)));
        }
    }
    let limit = threshold(data, here)
        .map_or_else(String::new, |from| format!("; a single link is an outlier there from {from}"));
    words.push(format!("Shown large: {shown}{limit}."));
    let framed: Vec<&Part<'_>> = bad(data).filter(|part| part.is_named_by(data.out.test)).collect();
    // Like hosts are named together, as in the list of parts.
    let names: Vec<String> = alike::groups(&framed).iter().map(|group| alike::name(group)).collect();
    if !names.is_empty() {
        words.push(format!("Framed: {}.", names.join("; ")));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_without_values_say_so() {
        assert!(untold(TOLD).is_empty());
        assert!(untold(TOLD + 1).contains(&(TOLD + 1).to_string()));
    }
}
