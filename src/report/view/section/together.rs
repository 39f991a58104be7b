//! Flows at once: what each round came to, how evenly it was shared, and how steady it was.

use std::collections::BTreeSet;

use railgauge_stats::robust::quantile;
use railgauge_wire::measure::SLICE;

use super::{
    Block, Data, Figure,
    table::{Table, number_column, text_column},
};
use crate::{
    analysis::{
        percentile,
        results::CaseResult,
        together::{FlowShare, Pass, passes},
        words::{count, number, percent_of, short},
    },
    report::chart::{
        ChartError, Tip,
        layers::{Layer, Places, layers},
        theme::{MAIN, WORST},
        ticks::{Axis, from_zero},
    },
};

/// Rounds listed, and flows drawn.
const LISTED: usize = 16;

/// One pass with a number.
struct Round<'a> {
    first: &'a CaseResult<'a>,
    repeat: u32,
    pass: &'a Pass,
    seconds: f64,
    total: f64,
    fairness: f64,
}

/// What the rounds came to, and the least evenly shared one drawn; the round with the least bandwidth of its size comes first.
/// `None` for tests whose flows share no NIC, and where no round has a number.
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
        figures: figure(data, uneven)?.into_iter().collect(),
        table: Some(table(data, &rounds[..rounds.len().min(LISTED)])),
        ..Block::default()
    }))
}

/// What the flows of a round have in common: `into gpu01`, `out of gpu01`, or just the round.
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
    let columns = vec![
        text_column("flows"),
        number_column("size", ""),
        number_column("repeat", ""),
        number_column("number", ""),
        number_column("together", "Gb/s"),
        number_column("of ceiling", "%"),
        number_column("slowest", "Gb/s"),
        number_column("fastest", "Gb/s"),
        number_column("evenness", ""),
        number_column("lowest 100 ms", "Gb/s"),
        number_column("p5", "Gb/s"),
        number_column("spread", "%"),
    ];
    Table { rows: rows.collect(), columns }
}

/// Standard deviation over mean.
fn spread(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1 && mean > 0.0).then(|| (squares / (n - 1.0)).sqrt() / mean)
}

fn figure(data: &Data<'_>, round: &Round<'_>) -> Result<Option<Figure>, ChartError> {
    let sum = round.pass.slices();
    if sum.len() < 2 {
        return Ok(None);
    }
    let each: Vec<&[f64]> = round.pass.flows.iter().take(LISTED).map(|flow| flow.slices.as_slice()).collect();
    let cell = data.cell_words((data.variant(round.first), round.first.case.cell.size));
    let drawn =
        if round.pass.flows.len() > LISTED { format!("the first {LISTED} flows") } else { "each flow".to_owned() };
    Ok(Some(Figure {
        title: format!("Flows {}, {cell}, repeat {}", place(round), round.repeat + 1),
        svg: flows(&each, &sum, SLICE.seconds())?,
        legend: vec![("k-main".to_owned(), drawn), ("k-worst".to_owned(), "all together".to_owned())],
    }))
}

/// Draws flows in slices of `seconds` each, in Gb/s, and their sum, which all of them must be long enough for.
///
/// # Errors
/// plotters refuses what it is given.
fn flows(each: &[&[f64]], sum: &[f64], seconds: f64) -> Result<String, ChartError> {
    let y = from_zero("bandwidth, Gb/s".to_owned(), sum.iter().copied().fold(0.0, f64::max));
    let end = sum.len() as f64 * seconds;
    let x = Axis { range: (0.0, end), ..from_zero("time in which all flows ran, s".to_owned(), end / 1.06) };
    let middle = |place: usize| (place as f64 + 0.5) * seconds;
    let tips: Vec<Tip> = sum
        .iter()
        .enumerate()
        .map(|(place, value)| (middle(place), *value, format!("{:.1} s: {} Gb/s", middle(place), number(*value))))
        .collect();
    let steps = |values: &[f64]| -> Places {
        let ends =
            |(place, value): (usize, &f64)| [(place as f64 * seconds, *value), ((place + 1) as f64 * seconds, *value)];
        values.iter().take(sum.len()).enumerate().flat_map(ends).collect()
    };
    let each = each.iter().map(|flow| Layer::Thin(MAIN, steps(flow)));
    let drawn = each.chain([Layer::Line(WORST, steps(sum))]).collect();
    layers("bandwidth of flows at once over time", [&x, &y], &tips, drawn)
}
