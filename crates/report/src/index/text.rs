use std::fmt::Write;

use railgauge_model::plan::count::count;

use super::{Index, Outcome, lasted, minute};
use crate::{
    text::aligned,
    view::{Table, number_column, text_column},
};

/// The newest runs, at most `shown`; the page and the JSON have all of them.
pub fn summary(index: &Index, shown: usize) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, index, shown);
    out
}

fn write(out: &mut String, index: &Index, shown: usize) -> std::fmt::Result {
    let columns = vec![
        text_column("began (UTC)"),
        text_column("verdict"),
        text_column("plan"),
        number_column("measured", ""),
        number_column("failed", ""),
        text_column("took"),
        text_column("bad part, or why"),
        text_column("directory"),
    ];
    let rows = index.runs.iter().map(|row| {
        let about = if row.began_is_known { "" } else { " (files)" };
        let bad = match (row.first_bad.as_str(), row.outcome) {
            ("", Outcome::Pass) => String::new(),
            ("", _) => row.sentence.clone(),
            (bad, _) => bad.to_owned(),
        };
        vec![
            minute(&row.began) + about,
            format!("{}{}", row.outcome.word(), if row.is_part { " (part of the plan)" } else { "" }),
            row.plan.clone(),
            row.cases.map_or_else(|| "–".to_owned(), |(measured, planned)| format!("{measured} of {planned}")),
            row.failures.to_string(),
            row.seconds.map_or_else(String::new, lasted),
            bad,
            row.directory.clone(),
        ]
    });
    let table = Table { columns, rows: rows.collect() };
    aligned(out, "runs, the newest first", &table, &[0, 1, 2, 3, 4, 5, 6, 7], shown)?;
    let counts: Vec<String> = index.counts.iter().map(|(word, n)| format!("{n} {word}")).collect();
    writeln!(out, "{}: {}", count(index.runs.len(), "run"), counts.join(", "))
}
