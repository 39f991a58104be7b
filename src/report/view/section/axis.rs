//! Flows and what ports counted meanwhile, on one axis of time.

use std::{cmp::Reverse, collections::BTreeMap};

use railgauge_model::plan::count::capital;
use railgauge_wire::unit::Nanoseconds;

use super::{
    Block, Data, Figure,
    table::{Table, number_column, text_column, told},
};
use crate::{
    analysis::{
        axis::{Carried, Counted, DRAWN, LISTED, OfKind, OfTest, Pass, of_test},
        soak::{ports::PortName, span::moment},
        verdict::frequency,
        words::{brief, count, number, percent_of, short},
    },
    report::chart::{
        ChartError,
        lanes::{Group, Lane, Step, lanes as draw},
        ticks::from_zero,
    },
};

/// Flows drawn.
const FLOWS: usize = 12;
/// Ports drawn, and lines of one of them.
const PORTS: (usize, usize) = (10, 6);
/// Ports named in a row of the table.
const NAMED: usize = 3;

/// The passes of a test in which something was counted; `None` where ports were not watched.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let Some(found) = data.watch.and_then(|watch| of_test(watch, &data.results)) else { return Ok(None) };
    let shown = &found.passes[..found.passes.len().min(LISTED)];
    Ok(Some(Block {
        heading: "Flows and counters on one time axis",
        sentence: sentence(&found),
        wide: shown.iter().take(DRAWN).map(|pass| figure(data, pass)).collect(),
        table: (!shown.is_empty()).then(|| table(data, shown)),
        method: method(&found),
        ..Block::default()
    }))
}

fn sentence(found: &OfTest) -> String {
    let placed = count(found.placed, "round");
    let mut told = vec![match (found.passes.len(), found.placed) {
        (_, 0) if found.unwatched == 0 => "Ports were watched, but when these flows ran is not known.".to_owned(),
        (_, 0) => "Ports were watched, but no reading of them reaches into the time of any of these flows.".to_owned(),
        (0, _) => format!("In none of {placed} (each size and repeat by itself) a watched port counted anything."),
        (some, _) => {
            let drawn = match some {
                n if n > LISTED => format!("the worst {DRAWN} are drawn and the worst {LISTED} listed"),
                n if n > DRAWN => format!("the worst {DRAWN} are drawn, and all are listed"),
                _ => "all are drawn".to_owned(),
            };
            format!("In {some} of {placed} (each size and repeat by itself) ports counted something; {drawn}.")
        }
    }];
    let of_all = |n: usize, what: &str| format!("{n} of {} {what}", found.placed + found.unwatched);
    if found.blind > 0 {
        told.push(format!("Into {} no reading of some port reaches.", of_all(found.blind, "rounds")));
    }
    if found.unwatched > 0 && found.placed > 0 {
        told.push(format!("{} were not watched at all.", of_all(found.unwatched, "rounds")));
    }
    if found.placed > 0 {
        told.extend(silence(&found.kinds, found.ports));
    }
    if found.without_statistics > 0 {
        told.push(format!(
            "Of {} of {} no drivers' statistics (`ethtool -S`) were read while these flows ran: what only they tell, as pauses and discards \
             of most NICs, is not known there.",
            found.without_statistics,
            count(found.ports, "port"),
        ));
    }
    if let (failed, Some((port, why))) = &found.failures {
        let others =
            if *failed > 1 { format!(", and so with {}", count(failed - 1, "more port")) } else { String::new() };
        told.push(format!("Not all of {port} could be read: {why}{others}."));
    }
    if found.unplaced > 0 {
        told.push(format!(
            "When {} ran is not known on the controller's clock: {} not drawn.",
            count(found.unplaced, "flow"),
            if found.unplaced == 1 { "it is" } else { "they are" }
        ));
    }
    told.join(" ")
}

/// Who counts what, and who counted some of it: silence is told as what it is, and kinds of which the same is to be said together.
fn silence(kinds: &[OfKind], ports: usize) -> Vec<String> {
    let of_all = count(ports, "port");
    let without = |counting: usize| match ports.saturating_sub(counting) {
        0 => String::new(),
        n => format!("; {} told no such counter", count(n, "port")),
    };
    let mut told = Vec::new();
    for of in kinds.iter().filter(|of| of.rose > 0) {
        let (kind, counting) = (capital(of.kind.words()), count(of.counting, "port"));
        told.push(format!("{kind}: counted by {} of {counting} with such counters{}.", of.rose, without(of.counting)));
    }
    let mut still: BTreeMap<Reverse<usize>, Vec<&str>> = BTreeMap::new();
    for of in kinds.iter().filter(|of| of.rose == 0) {
        still.entry(Reverse(of.counting)).or_default().push(of.kind.words());
    }
    for (Reverse(counting), kinds) in still {
        told.push(match counting {
            0 => format!("None of {of_all} told a counter of {}.", listed(&kinds, "or")),
            _ => format!(
                "Nothing was counted of {} by the {counting} of {of_all} with such counters{}.",
                listed(&kinds, "and"),
                without(counting)
            ),
        });
    }
    told
}

/// `a, b and c`.
fn listed(words: &[&str], last: &str) -> String {
    match words {
        [rest @ .., end] if !rest.is_empty() => format!("{} {last} {end}", rest.join(", ")),
        words => words.join(""),
    }
}

fn method(found: &OfTest) -> String {
    let error = found.passes.iter().take(DRAWN).map(|pass| pass.error).max();
    let error = error.map_or_else(String::new, |error| {
        format!(
            " Times of one host are of one clock; those of two hosts may be off by {} against each other (half the round trip of the \
             comparison).",
            time(error)
        )
    });
    let [files, statistics] = found.paces.map(|pace| pace.map(time));
    let pace = match (files, statistics) {
        (None, None) => String::new(),
        (Some(files), None) => format!(" Counters were read every {files} on the average."),
        (None, Some(statistics)) => format!(" Drivers' statistics were read every {statistics} on the average."),
        (Some(files), Some(statistics)) => {
            format!(" Counters were read every {files}, drivers' statistics every {statistics}, on the average.")
        }
    };
    let cost = found.cost.as_ref().map_or_else(String::new, |(share, host)| {
        format!(" Watching took {} % of a processor at most ({host}).", percent_of(*share, 1.0))
    });
    format!(
        "Each flow is drawn by its initiator's bytes in each 100 ms, or as a bar where no rates over time are told; each counter as its rise \
         over the time between two readings, which is no more precise than that time. Where several counters of a port are of one family, \
         the one that rose most is drawn. Errors that were corrected are left out.{error}{pace}{cost}"
    )
}

/// A length of time: `60 µs`, `100 ms`, `1.00 s`.
fn time(time: Nanoseconds) -> String {
    match time.milliseconds() {
        ms if ms < 1.0 => format!("{} µs", brief(ms * 1000.0)),
        ms if ms < 1000.0 => format!("{} ms", short(ms)),
        ms => format!("{} s", short(ms / 1000.0)),
    }
}

/// `round 3, 1 MiB, repeat 2`.
fn name(data: &Data<'_>, pass: &Pass) -> String {
    let size = crate::analysis::words::size(pass.size);
    let cell = if pass.variant.is_empty() { size } else { format!("{size}, {}", pass.variant) };
    let repeat = if data.test.repeats > 1 { format!(", repeat {}", pass.repeat + 1) } else { String::new() };
    format!("round {}, {cell}{repeat}", pass.round)
}

fn figure(data: &Data<'_>, pass: &Pass) -> Figure {
    let axis = Axis { from: pass.span.from, length: pass.span.length() };
    let shown = &pass.flows[..pass.flows.len().min(FLOWS)];
    let top = shown.iter().flat_map(|flow| flow.pieces.iter().map(|piece| piece.most).chain(flow.mean));
    let top = top.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let more = match pass.flows.len() - shown.len() {
        0 => String::new(),
        n => format!("; {n} faster ones are not drawn"),
    };
    let scale = if top > 0.0 { format!(", full height {} Gb/s", number(top)) } else { String::new() };
    let flows = Group {
        heading: format!("Flows{scale}{more}"),
        lanes: shown.iter().map(|flow| flow_lane(flow, top, &axis)).collect(),
    };
    let ports = pass.ports.iter().take(PORTS.0).map(|(port, lines)| port_group(port, lines, &axis));
    let mut groups: Vec<Group> = std::iter::once(flows).chain(ports).collect();
    if let Some(last) = groups.last_mut().filter(|_| pass.ports.len() > PORTS.0) {
        last.heading +=
            &format!(" ({} more that counted something are not drawn)", count(pass.ports.len() - PORTS.0, "port"));
    }
    let quiet = match pass.quiet {
        0 => String::new(),
        n => format!("; {} of these hosts counted nothing", count(n, "port")),
    };
    let unread = match pass.unread {
        0 => String::new(),
        n => format!("; {} of these hosts not read then", count(n, "port")),
    };
    let title = format!("{}, from {}{quiet}{unread}", capital(&name(data, pass)), moment(pass.span.from));
    Figure {
        svg: draw(&format!("flows and counters over time, {}", name(data, pass)), &groups, &axis.marks()),
        title,
        legend: [
            ("k-rate", "rate of a flow"),
            ("k-low", "rises of a counter; light: the most of a part of that time"),
            ("k-t-hole", "not measured, or not read"),
        ]
        .map(|(class, words)| (class.to_owned(), words.to_owned()))
        .into(),
    }
}

/// The time that is drawn.
struct Axis {
    from: Nanoseconds,
    length: Nanoseconds,
}

impl Axis {
    fn share(&self, at: Nanoseconds) -> f64 {
        (at.as_f64() - self.from.as_f64()) / self.length.as_f64().max(1.0)
    }

    fn step(&self, piece: &crate::analysis::axis::Piece) -> Step {
        let (from, until) = (self.share(piece.span.from), self.share(piece.span.until));
        Step { from, until, mean: piece.mean, most: piece.most }
    }

    /// About five marks a round time apart.
    fn marks(&self) -> Vec<(f64, String)> {
        let seconds = self.length.seconds();
        let marks = from_zero(String::new(), seconds / 1.06).marks;
        marks.into_iter().map(|(at, text)| (at / seconds.max(f64::MIN_POSITIVE), format!("{text} s"))).collect()
    }
}

fn flow_lane(flow: &Carried, top: f64, axis: &Axis) -> Lane {
    let top = if top > 0.0 { top } else { 1.0 };
    let bar = || Step {
        from: axis.share(flow.span.from),
        until: axis.share(flow.span.until),
        mean: flow.mean.unwrap_or(top),
        most: flow.mean.unwrap_or(top),
    };
    let value = flow.mean.map_or_else(|| "ran".to_owned(), |mean| format!("{} Gb/s", number(mean)));
    let steps =
        if flow.pieces.is_empty() { vec![bar()] } else { flow.pieces.iter().map(|piece| axis.step(piece)).collect() };
    let lowest = flow.pieces.iter().map(|piece| piece.mean).fold(f64::INFINITY, f64::min);
    let lowest = if lowest.is_finite() { format!(", lowest 100 ms {}", number(lowest)) } else { String::new() };
    Lane {
        name: if flow.victim { format!("{} (beside the incast)", flow.name) } else { flow.name.clone() },
        steps,
        top,
        tip: format!("{}: {value}{lowest}", flow.name),
        value,
        is_rate: true,
    }
}

fn port_group(port: &PortName, lines: &[Counted], axis: &Axis) -> Group {
    let more = match lines.len().saturating_sub(PORTS.1) {
        0 => String::new(),
        n => format!(", and {} that are not drawn", count(n, "more family")),
    };
    let lanes = lines.iter().take(PORTS.1).map(|line| Lane {
        name: line.family.words().to_owned(),
        steps: line.pieces.iter().map(|piece| axis.step(piece)).collect(),
        top: line.most,
        value: format!("at most {}", frequency(line.most)),
        tip: format!("{port}: {}, at most {} until {}", counters(line), frequency(line.most), moment(line.most_at)),
        is_rate: false,
    });
    Group { heading: format!("{port}{more}"), lanes: lanes.collect() }
}

/// `rx_prio3_pause 120, rx_pause_ctrl_phy 120`.
fn counters(line: &Counted) -> String {
    line.counters.iter().map(|(name, rise)| format!("{name} {}", whole(*rise))).collect::<Vec<_>>().join(", ")
}

/// A part of a reading's rise is no whole number.
fn whole(rise: f64) -> String {
    if rise >= 10.0 || rise.fract() == 0.0 { format!("{}", rise.round()) } else { number(rise) }
}

fn table(data: &Data<'_>, passes: &[Pass]) -> Table {
    let victims = passes.iter().any(|pass| pass.loss.is_some());
    let row = |pass: &Pass| {
        let rates = || pass.flows.iter().filter_map(|flow| flow.mean);
        let slowest = rates().reduce(f64::min);
        let mut row = vec![name(data, pass), moment(pass.span.from), pass.flows.len().to_string(), told(slowest)];
        if victims {
            row.push(told(pass.loss));
        }
        row.push(in_words(pass));
        row
    };
    let mut columns =
        vec![text_column("round"), text_column("begin"), number_column("flows", ""), number_column("slowest", "Gb/s")];
    if victims {
        columns.push(number_column("loss of the flow beside", "%"));
    }
    columns.push(text_column("counted"));
    Table { columns, rows: passes.iter().map(row).collect() }
}

/// `gpu002 mlx5_0: discards of arriving packets 12, pauses sent 3400; and 2 more ports`.
fn in_words(pass: &Pass) -> String {
    let port = |(port, lines): &(PortName, Vec<Counted>)| {
        let told: Vec<String> =
            lines.iter().map(|line| format!("{} {}", line.family.words(), whole(line.sum()))).collect();
        format!("{port}: {}", told.join(", "))
    };
    let mut told: Vec<String> = pass.ports.iter().take(NAMED).map(port).collect();
    if pass.ports.len() > NAMED {
        told.push(format!("and {}", count(pass.ports.len() - NAMED, "more port")));
    }
    told.join("; ")
}
