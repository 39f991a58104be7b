//! Flows and port counters on one time axis.

use railgauge_analysis::{
    axis::{Carried, Counted, LISTED, OfTest, Pass, Piece, of_test},
    reason::frequency,
    soak::ports::PortName,
    words::{count, moment, number, short},
};
use railgauge_model::plan::count::capital;
use railgauge_wire::unit::Nanoseconds;

use super::{
    Block, Data, Figure,
    table::{Table, number_column, text_column, told},
};
use crate::chart::{
    ChartError,
    lanes::{Group, Lane, Step, lanes as draw},
    ticks::from_zero,
};

const DRAWN: usize = 3;
const FLOWS: usize = 12;
const PORTS: (usize, usize) = (10, 6);
const NAMED: usize = 3;

/// Passes with increased counters; `None` where ports were not watched.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let Some(found) = data.watch.and_then(|watch| of_test(watch, &data.results)) else { return Ok(None) };
    let error = found.passes.iter().take(DRAWN).map(|pass| pass.error).max().unwrap_or_default();
    Ok(Some(Block {
        heading: "Flows and counters on one time axis",
        sentence: sentence(&found),
        wide: found.passes.iter().take(DRAWN).map(|pass| figure(data, pass)).collect(),
        table: (!found.passes.is_empty()).then(|| table(data, &found.passes)),
        method: format!(
            "Each flow is drawn by its initiator's bytes in each 100 ms, or as a bar where it has no rates over time; each counter as its rise \
             over the time between two readings. Of several counters of one family the one that rose most is drawn. Corrected errors are left \
             out. Times of two hosts may be off by {} µs against each other.",
            short(error.microseconds())
        ),
        ..Block::default()
    }))
}

fn sentence(found: &OfTest) -> String {
    let OfTest { counting, placed, partly, unwatched, unplaced, ports, with, .. } = found;
    let mut all = vec![format!(
        "In {counting} of {} (each size and repeat by itself) ports counted something.",
        count(*placed, "round")
    )];
    if *counting > LISTED {
        all.push(format!("The worst {LISTED} are listed."));
    }
    for (n, what) in [(*partly, "read on some of their hosts only"), (*unwatched, "not watched at all")] {
        if n > 0 {
            all.push(format!("{n} of {} rounds were {what}.", placed + unwatched));
        }
    }
    if *unplaced > 0 {
        all.push(format!("When {} ran is not known on the controller's clock.", count(*unplaced, "flow")));
    }
    let with: Vec<String> = with.iter().map(|(kind, n)| format!("{} {n}", kind.words())).collect();
    all.push(format!("Of {} so many have counters of: {}.", count(*ports, "port"), with.join(", ")));
    all.join(" ")
}

fn name(data: &Data<'_>, pass: &Pass) -> String {
    let size = railgauge_analysis::words::size(pass.size);
    let cell = if pass.variant.is_empty() { size } else { format!("{size}, {}", pass.variant) };
    let repeat = if data.test.repeats > 1 { format!(", repeat {}", pass.repeat + 1) } else { String::new() };
    format!("round {}, {cell}{repeat}", pass.round)
}

fn more(all: usize, drawn: usize) -> String {
    if all > drawn { format!(" ({} more not drawn)", all - drawn) } else { String::new() }
}

fn figure(data: &Data<'_>, pass: &Pass) -> Figure {
    let axis = Axis { from: pass.span.from, length: pass.span.length() };
    let shown = &pass.flows[..pass.flows.len().min(FLOWS)];
    let top = shown.iter().flat_map(|flow| flow.pieces.iter().map(|piece| piece.most).chain(flow.mean));
    let top = top.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let scale = if top > 0.0 { format!(", full height {} Gb/s", number(top)) } else { String::new() };
    let flows = Group {
        heading: format!("Flows{scale}{}", more(pass.flows.len(), FLOWS)),
        lanes: shown.iter().map(|flow| flow_lane(flow, top, &axis)).collect(),
    };
    let ports = pass.ports.iter().take(PORTS.0).map(|(port, lines)| port_group(port, lines, &axis));
    let groups: Vec<Group> = std::iter::once(flows).chain(ports).collect();
    let quiet = format!("{}{}", count(pass.quiet, "further port"), more(pass.ports.len(), PORTS.0));
    let title = format!("{}, from {}; {quiet} counted nothing", capital(&name(data, pass)), moment(pass.span.from));
    let legend =
        [("k-rate", "rate of a flow"), ("k-low", "rises of a counter"), ("k-t-hole", "not measured, or not read")];
    Figure {
        svg: draw(&format!("flows and counters over time, {}", name(data, pass)), &groups, &axis.marks()),
        title,
        legend: legend.map(|(class, words)| (class.to_owned(), words.to_owned())).into(),
    }
}

struct Axis {
    from: Nanoseconds,
    length: Nanoseconds,
}

impl Axis {
    fn step(&self, piece: &Piece) -> Step {
        let share = |at: Nanoseconds| (at.as_f64() - self.from.as_f64()) / self.length.as_f64().max(1.0);
        Step { from: share(piece.span.from), until: share(piece.span.until), mean: piece.mean, most: piece.most }
    }

    fn marks(&self) -> Vec<(f64, String)> {
        let seconds = self.length.seconds().max(f64::MIN_POSITIVE);
        let marks = from_zero(String::new(), seconds / 1.06).marks;
        marks.into_iter().map(|(at, text)| (at / seconds, format!("{text} s"))).collect()
    }
}

fn flow_lane(flow: &Carried, top: f64, axis: &Axis) -> Lane {
    let top = if top > 0.0 { top } else { 1.0 };
    let (mean, most) = (flow.mean.unwrap_or(top), flow.mean.unwrap_or(top));
    let bar = [Piece { span: flow.span, mean, most }];
    let pieces = if flow.pieces.is_empty() { &bar[..] } else { &flow.pieces };
    let value = flow.mean.map_or_else(|| "ran".to_owned(), |mean| format!("{} Gb/s", number(mean)));
    let lowest = pieces.iter().map(|piece| piece.mean).fold(f64::INFINITY, f64::min);
    Lane {
        name: if flow.victim { format!("{} (alongside the incast)", flow.name) } else { flow.name.clone() },
        steps: pieces.iter().map(|piece| axis.step(piece)).collect(),
        top,
        tip: format!("{}: {value}, lowest {}", flow.name, number(lowest)),
        value,
        is_rate: true,
    }
}

fn port_group(port: &PortName, lines: &[Counted], axis: &Axis) -> Group {
    let lanes = lines.iter().take(PORTS.1).map(|line| Lane {
        name: line.family.words().to_owned(),
        steps: line.pieces.iter().map(|piece| axis.step(piece)).collect(),
        top: line.most(),
        value: format!("at most {}", frequency(line.most())),
        tip: format!("{port}: {}", counters(line)),
        is_rate: false,
    });
    Group { heading: format!("{port}{}", more(lines.len(), PORTS.1)), lanes: lanes.collect() }
}

fn counters(line: &Counted) -> String {
    line.counters.iter().map(|(name, rise)| format!("{name} {}", whole(*rise))).collect::<Vec<_>>().join(", ")
}

fn whole(rise: f64) -> String {
    if rise >= 10.0 || rise.fract() == 0.0 { format!("{}", rise.round()) } else { number(rise) }
}

fn table(data: &Data<'_>, passes: &[Pass]) -> Table {
    let row = |pass: &Pass| {
        let slowest = pass.flows.iter().filter_map(|flow| flow.mean).reduce(f64::min);
        let from = moment(pass.span.from);
        vec![name(data, pass), from, pass.flows.len().to_string(), told(slowest), told(pass.loss), in_words(pass)]
    };
    let columns = vec![
        text_column("round"),
        text_column("start"),
        number_column("flows", ""),
        number_column("slowest", "Gb/s"),
        number_column("loss alongside", "%"),
        text_column("counted"),
    ];
    Table { columns, rows: passes.iter().map(row).collect() }
}

/// `gpu002 mlx5_0: discards of arriving packets 12, pauses sent 3400; and 2 more ports`.
fn in_words(pass: &Pass) -> String {
    let family = |line: &Counted| format!("{} {}", line.family.words(), whole(line.sum()));
    let port = |(port, lines): &(PortName, Vec<Counted>)| {
        format!("{port}: {}", lines.iter().map(family).collect::<Vec<_>>().join(", "))
    };
    let mut all: Vec<String> = pass.ports.iter().take(NAMED).map(port).collect();
    if pass.ports.len() > NAMED {
        all.push(format!("and {}", count(pass.ports.len() - NAMED, "more port")));
    }
    all.join("; ")
}
