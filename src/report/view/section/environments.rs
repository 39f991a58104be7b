//! The cells of a matrix of environments, size by size against the first.

use std::collections::BTreeSet;

use railgauge_model::plan::model::Collective;

use super::{
    Block, Data, headline,
    table::{Table, number_column, text_column},
};
use crate::{
    analysis::{
        environments::{Compared, FEWEST, LEAST, Shows, Standing, compare},
        results::CaseResult,
        words::{between, change, count, number, share, size},
    },
    report::chart::ChartError,
};

/// Size by size, the first environment on top. `None` for tests with one environment.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let several = data.test.collective.as_ref().filter(|collective| collective.env.len() > 1);
    let Some(collective) = several else { return Ok(None) };
    let metric = headline(data.test);
    let rows = compare(&data.results, metric);
    let labels = labels(collective);
    let several = rows.iter().map(|row| words(data, row)).collect::<BTreeSet<_>>().len() > 1;
    let mut columns = vec![number_column("size", "")];
    if several {
        columns.push(text_column("with"));
    }
    columns.extend([
        text_column("environment"),
        number_column("groups", ""),
        number_column(&metric.word().replace('_', " "), metric.unit()),
        number_column("against the first", ""),
        number_column("95 % interval", ""),
        text_column("shows"),
        text_column("of all"),
        text_column("carried by"),
        text_column("channels"),
    ]);
    let lines = rows.iter().map(|row| {
        let mut line = vec![size(row.cell.size)];
        if several {
            line.push(words(data, row));
        }
        line.push(labels[row.environment].clone());
        line.extend(cells(row));
        line
    });
    let method = format!(
        "The unit is a repeat, for which the ranks of every environment are started anew. Better and worse: at least \
         {}, and beyond the scatter of the repeats by Welch's test at 5 %, adjusted for all rows (Benjamini & \
         Hochberg). Environments follow one another in the same order in every repeat. Channels are those of NCCL's log.",
        share(LEAST)
    );
    Ok(Some(Block {
        heading: "Environments",
        sentence: sentence(&rows, &labels, if several { "cell" } else { "size" }),
        table: Some(Table { rows: lines.collect(), columns }),
        method,
        ..Block::default()
    }))
}

/// An environment in words: the variables in which the environments differ.
fn labels(collective: &Collective) -> Vec<String> {
    let differs = |name: &String| collective.env.iter().any(|env| env.get(name) != collective.env[0].get(name));
    let words = |(name, value): (&String, &String)| format!("{name}={value}");
    let label = |env: &std::collections::BTreeMap<String, String>| {
        env.iter().filter(|(name, _)| differs(name)).map(words).collect::<Vec<_>>().join(" ")
    };
    collective.env.iter().map(label).collect()
}

/// What distinguishes a row's cases but for size and environment.
fn words(data: &Data<'_>, row: &Compared<'_>) -> String {
    let Some(manner) = &row.cell.manner else { return String::new() };
    let Some(collective) = &data.test.collective else { return String::new() };
    let datatype = (collective.datatypes.len() > 1).then(|| manner.datatype.to_string());
    let reduction = manner.reduction.filter(|_| collective.reductions.len() > 1).map(|word| word.to_string());
    [datatype, reduction].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Everything of a row behind its environment.
fn cells(row: &Compared<'_>) -> Vec<String> {
    let dash = || "–".to_owned();
    let groups = if row.groups == row.cases.len() {
        row.groups.to_string()
    } else {
        format!("{} of {}", row.groups, row.cases.len())
    };
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let shows = match (&row.against, row.value) {
        (_, None) => {
            row.cases.iter().find_map(|result| result.error()).unwrap_or_else(|| "nothing to trust".to_owned())
        }
        (None, Some(_)) if row.environment == 0 => "the first".to_owned(),
        (None, Some(_)) => "the first was not measured".to_owned(),
        (Some(against), Some(_)) => match against.shows {
            Shows::Better => "better".to_owned(),
            Shows::Worse => "worse".to_owned(),
            Shows::Nothing => "not told apart".to_owned(),
            Shows::TooFew => format!("not judged: under {FEWEST} repeats"),
        },
    };
    let standing = match row.standing {
        Standing::Best => "best",
        Standing::AmongBest => "among the best",
        Standing::Behind | Standing::Unknown => "",
    };
    let interval = row.against.and_then(|against| against.interval);
    vec![
        groups,
        row.value.map_or_else(dash, number),
        row.against.map_or_else(dash, |against| change(percent(against.ratio))),
        interval.map_or_else(dash, |(low, high)| between((percent(low), percent(high)))),
        shows,
        standing.to_owned(),
        carried(&row.cases),
        channels(&row.cases),
    ]
}

/// What carried the bytes, by the library's own log.
fn carried(cases: &[&CaseResult<'_>]) -> String {
    let links = cases.iter().filter_map(|result| result.link.filter(|_| !result.samples.is_empty()));
    let words = links.map(|link| format!("{} ({})", link.transport.word(), link.link_layer.word()));
    words.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

/// Over how many channels the communicators of the cases spread a collective; `–` where the log does not say.
fn channels(cases: &[&CaseResult<'_>]) -> String {
    let links = cases.iter().filter_map(|result| result.link);
    let counts: BTreeSet<&str> =
        links.filter_map(|link| link.settings.get("channels: coll").map(String::as_str)).collect();
    if counts.is_empty() { "–".to_owned() } else { counts.into_iter().collect::<Vec<_>>().join(", ") }
}

/// Which environments are best, and at how many of the places that are called so.
fn sentence(rows: &[Compared<'_>], labels: &[String], place: &str) -> String {
    let places = rows.iter().filter(|row| row.environment == 0).count();
    let mut found: Vec<String> = Vec::new();
    for (environment, label) in labels.iter().enumerate() {
        let best = rows.iter().filter(|row| row.environment == environment && row.standing == Standing::Best).count();
        if best > 0 {
            found.push(format!("{label} is best at {best} of {}", count(places, place)));
        }
    }
    let few = rows.iter().any(|row| row.value.is_some() && row.standing == Standing::Unknown);
    let found = match found.as_slice() {
        [] if few => format!("Nothing is judged below {FEWEST} repeats of each"),
        [] => "None stands out".to_owned(),
        found => found.join("; "),
    };
    format!("{} compared with the first, {}. {found}.", count(labels.len() - 1, "environment"), labels[0])
}
