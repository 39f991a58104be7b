//! Flows and port counters on one time axis.

use railgauge_analysis::{
    axis::{Counted, LISTED, OfTest, Pass, of_test},
    soak::ports::PortName,
    words::{count, moment, number, short},
};

use super::{
    Block, Data,
    table::{Table, number_column, text_column, told},
};
use crate::chart::ChartError;

const NAMED: usize = 3;

/// Passes with increased counters; `None` where ports were not watched.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let Some(found) = data.watch.and_then(|watch| of_test(watch, &data.results)) else { return Ok(None) };
    let error = found.passes.iter().map(|pass| pass.error).max().unwrap_or_default();
    Ok(Some(Block {
        heading: "Counters meanwhile",
        sentence: sentence(&found),
        table: (!found.passes.is_empty()).then(|| table(data, &found.passes)),
        method: format!(
            "What ports of the flows' hosts counted while a round ran, by family of counters. Corrected errors are left out. Times of two \
             hosts may be off by {} µs against each other.",
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
