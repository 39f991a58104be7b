//! Flows at once: the rate of each round, how evenly it was shared, and how steady it was.

use std::collections::BTreeSet;

use railgauge_analysis::{
    case::{CaseResult, FlowShare, Pass},
    percentile,
    together::passes,
    words::{count, number, percent_of, short},
};
use railgauge_stats::robust::quantile;

use super::block::{Block, Data, Table};
use crate::chart::ChartError;

const LISTED: usize = 16;

struct Round<'a> {
    first: &'a CaseResult<'a>,
    repeat: u32,
    pass: &'a Pass,
    seconds: f64,
    total: f64,
    fairness: f64,
}

/// The round with the least bandwidth of its size comes first. `None` for tests whose flows share no NIC, and where no round has a number.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    if !data.test.at_once() {
        return Ok(None);
    }
    let mut rounds: Vec<Round<'_>> = passes(&data.results)
        .into_iter()
        .filter_map(|(first, repeat, pass)| {
            let (from, until) = pass.overlap?;
            let total = pass.flows.iter().map(|flow| flow.gbps).sum::<Option<f64>>()?;
            let seconds = (until - from).seconds();
            Some(Round { first, repeat, pass, seconds, total, fairness: pass.fairness()? })
        })
        .collect();
    let cell = |round: &Round<'_>| (data.variant(round.first), round.first.case.cell.size);
    rounds.sort_by(|a, b| cell(a).cmp(&cell(b)).then(a.total.total_cmp(&b.total)));
    let Some(uneven) = rounds.iter().min_by(|a, b| a.fairness.total_cmp(&b.fairness)) else { return Ok(None) };
    let shortest = rounds.iter().map(|round| round.seconds).fold(f64::INFINITY, f64::min);
    let cut = match rounds.len() {
        n if n > LISTED => format!(" Of {} the {LISTED} first are listed.", count(n, "round")),
        _ => String::new(),
    };
    let sentence = format!(
        "Only the time in which all flows of a round ran counts, {} s at least. The flows shared least evenly \
         {} ({}; 1 is an equal share for each).{cut}",
        short(shortest),
        place(uneven),
        short(uneven.fairness)
    );
    Ok(Some(Block {
        heading: "Flows at once",
        sentence,
        table: Some(table(data, &rounds[..rounds.len().min(LISTED)])),
        ..Block::default()
    }))
}

/// `into gpu01`, `out of gpu01`, or just the round.
fn place(round: &Round<'_>) -> String {
    let hosts = |ends: fn(&FlowShare) -> &str| -> BTreeSet<&str> { round.pass.flows.iter().map(ends).collect() };
    let only = |hosts: BTreeSet<&str>| hosts.first().filter(|_| hosts.len() == 1).map(|host| (*host).to_owned());
    match (only(hosts(|flow| &flow.sink.host)), only(hosts(|flow| &flow.source.host))) {
        (Some(host), _) => format!("into {host}"),
        (None, Some(host)) => format!("out of {host}"),
        (None, None) => format!("in round {}", round.first.case.round),
    }
}

fn table(data: &Data<'_>, rounds: &[Round<'_>]) -> Table {
    let rows = rounds.iter().map(|round| {
        let rates = || round.pass.flows.iter().filter_map(|flow| flow.gbps);
        let slices = round.pass.slices();
        let lowest = slices.iter().copied().fold(f64::INFINITY, f64::min);
        let ceiling = data.totals.get(&round.first.case.id).and_then(|row| row.ceiling);
        vec![
            place(round),
            data.cell_words((data.variant(round.first), round.first.case.cell.size)),
            (round.repeat + 1).to_string(),
            round.pass.flows.len().to_string(),
            number(round.total),
            ceiling.map_or_else(|| "–".to_owned(), |ceiling| percent_of(round.total, ceiling)),
            number(rates().fold(f64::INFINITY, f64::min)),
            number(rates().fold(0.0, f64::max)),
            short(round.fairness),
            if lowest.is_finite() { number(lowest) } else { "–".to_owned() },
            quantile(&slices, 0.05)
                .ok()
                .filter(|_| percentile::carries_quantile(0.05, slices.len()))
                .map_or_else(|| "–".to_owned(), number),
            spread(&slices).map_or_else(|| "–".to_owned(), |spread| percent_of(spread, 1.0)),
        ]
    });
    let heads = "flows | #size | #repeat | #number | #together [Gb/s] | #of ceiling [%] | #slowest [Gb/s] | \
                 #fastest [Gb/s] | #evenness | #lowest 100 ms [Gb/s] | #p5 [Gb/s] | #spread [%]";
    Table::new(heads, rows)
}

fn spread(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1 && mean > 0.0).then(|| (squares / (n - 1.0)).sqrt() / mean)
}
