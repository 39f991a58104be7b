//! `[test.beside]`: traffic of the same two hosts beside the flows of a test.

use railgauge_wire::{
    step::Window,
    terms::{Metric, TestMetric},
    unit::GigabitsPerSecond,
};

use super::{at_once::SHORTEST, victim};
use crate::plan::{
    count::count,
    format::{Preset, Section, Shape, key},
    grammar::quantity,
    limits,
    mistakes::Mistake,
    model::{Beside, BesideWay, Limit, Test},
    read::Table,
};

/// Keys of `[test.beside]`.
pub static BESIDE: Section = Section {
    header: "[test.beside]",
    about: "TCP connections between the interfaces of the NICs that a flow uses. Each flow is measured alone and right after that \
            beside each number of connections, in every repeat. They start before its window and end after it.",
    keys: &[
        key(
            "transport",
            Shape::Word(|| vec!["tcp"]),
            Preset::Value("\"tcp\""),
            "What carries it: TCP of the hosts, sent by railgauge's agents.",
        ),
        key(
            "flows",
            Shape::Wholes(1, limits::NEIGHBOURS),
            Preset::Value("4"),
            "Connections in each direction; a list is one case for each, and a curve in the report.",
        ),
        key(
            "direction",
            Shape::Word(|| BesideWay::WORDS.iter().map(|(word, _)| *word).collect()),
            Preset::Value("\"same\""),
            "Which way they send: where the bytes of the flow go, against them, or both.",
        ),
        key(
            "rate",
            Shape::Quantity,
            Preset::Words("as fast as they go"),
            "How fast all connections of one direction send together: `\"10 Gb/s\"`.",
        ),
    ],
};

/// Slowest rate of one connection: a message of 1 KiB in ten milliseconds.
const SLOWEST_EACH: f64 = 1024.0 * 8.0 / 0.01 / 1e9;

/// Reads the table; `None` where it is not there, or after saying all that is wrong.
pub(super) fn read(test: &Table<'_>) -> Option<Beside> {
    test.written("beside")?;
    let table = test.table("beside");
    // All are read before one of them ends it, so that every mistake is said.
    let (transport, flows, direction) = (table.word("transport"), flows(&table), table.word("direction"));
    let most = flows.as_ref().and_then(|flows| flows.last().copied()).unwrap_or(1);
    let rate = match table.written("rate") {
        None => Some(None),
        Some(_) => rate(&table, most).map(Some),
    };
    transport?;
    let direction = direction?.value;
    let direction = BesideWay::WORDS.iter().find(|(word, _)| *word == direction).map(|(_, way)| *way)?;
    Some(Beside { flows: flows?, direction, rate: rate? })
}

/// Numbers of connections, in their order.
fn flows(table: &Table<'_>) -> Option<Vec<u32>> {
    let numbers = table.wholes::<u32>("flows")?;
    let mut flows: Vec<u32> = Vec::new();
    for number in &numbers.value {
        if flows.contains(&number.value) {
            let mistake = Mistake::at(number.span.clone(), format!("{} connections are listed twice", number.value));
            table.book.add(mistake.help("list every number once"));
        } else {
            flows.push(number.value);
        }
    }
    flows.sort_unstable();
    if flows.is_empty() {
        // A number out of bounds has been said.
        if table.raw("flows").is_some_and(|raw| raw.value.as_array().is_some_and(|all| all.is_empty())) {
            table.book.add(Mistake::at(numbers.span, "`flows` is empty").help("for example flows = [1, 4, 16]"));
        }
        return None;
    }
    if flows.len() > limits::BESIDE {
        let message = format!("{} numbers of connections", flows.len());
        table.book.add(Mistake::at(numbers.span, message).help(format!("list at most {}", limits::BESIDE)));
        return None;
    }
    Some(flows)
}

/// The rate, if so many connections can share it.
fn rate(table: &Table<'_>, most: u32) -> Option<GigabitsPerSecond> {
    let rate = table.parsed("rate", |text| quantity::limit(text, Metric::Bandwidth).map(|(rate, _)| rate))?;
    if rate.value < SLOWEST_EACH * f64::from(most) {
        let message = format!("{} at this rate would send nothing in most windows", count(most as usize, "connection"));
        table.book.add(Mistake::at(rate.span, message).help("give each connection 1 Mb/s or more"));
        return None;
    }
    Some(GigabitsPerSecond(rate.value))
}

/// Says what a test with traffic beside its flows cannot be. What cannot have it loses it.
pub(super) fn judge(table: &Table<'_>, test: &mut Test) {
    let on_loss = || test.expect.iter().filter(|wanted| wanted.metric == Metric::BesideLoss);
    let Some(span) = table.name_span("beside") else { return };
    let wrong = |key: &str, message: String, help: &str| {
        let at = table.written(key).unwrap_or(span.clone());
        table.book.add(Mistake::at(at, message).also(span.clone(), "the traffic beside").help(help));
    };
    if test.beside.is_none() {
        return;
    }
    if on_loss().any(|wanted| !matches!(wanted.limit, Limit::AtMost(_))) {
        let help = "write for example at_most = \"10%\": a share of a loss near zero says nothing";
        wrong("expect", "beside_loss takes `at_most` only".to_owned(), help);
    }
    if on_loss().next().is_some() && test.repeats < victim::REPEATS {
        let repeats = count(test.repeats as usize, "repeat");
        let help = format!("set repeats = {} or more: their scatter is the noise", victim::REPEATS);
        wrong("repeats", format!("beside_loss cannot be told from noise with {repeats}"), &help);
    }
    if test.collective.is_some() || test.op.is_collective() {
        let help = "it belongs to tests of pairs: leave it out, or measure write or send";
        wrong("op", format!("`beside` does not apply to {}", test.op), help);
    } else if test.at_once() {
        let help = "these flows run beside each other already: leave it out, or use a pattern without shared NICs such as neighbours";
        wrong("pattern", "`beside` does not apply with flows at once".to_owned(), help);
    } else if test.metric != TestMetric::Bandwidth {
        wrong(
            "metric",
            format!("`beside` does not apply to {}", test.metric),
            "measure bandwidth: the loss is one of bandwidth",
        );
    } else {
        match test.window {
            Window::Duration(time) if time >= SHORTEST => {}
            Window::Duration(_) => {
                let message = "flows beside other traffic must be measured for at least half a second".to_owned();
                wrong("measure", message, "write measure = \"2s\"");
            }
            Window::Iterations(_) | Window::Adaptive { .. } => {
                let message = "flows beside other traffic need a fixed time: the traffic must outlast them".to_owned();
                wrong("measure", message, "write measure = \"2s\"");
            }
        }
        if table.name_span("bidirectional").is_some() && test.bidirectional {
            let message = "`bidirectional` does not apply beside other traffic".to_owned();
            wrong("bidirectional", message, "leave it out; direction = \"both\" loads both directions of the NICs");
        }
    }
    // A default that has no meaning here is left out.
    test.bidirectional &= table.name_span("bidirectional").is_some();
}
