use std::fmt::Write;

use railgauge_analysis::words::some;
use railgauge_model::plan::count::count;

use super::{Index, Outcome, lasted, minute};
use crate::{text::Screen, view::Table};

/// The newest runs, at most `shown`; the page and the JSON have all of them.
pub fn summary(index: &Index, shown: usize, screen: &Screen) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, index, shown, screen);
    out
}

fn write(out: &mut String, index: &Index, shown: usize, screen: &Screen) -> std::fmt::Result {
    let counts: Vec<String> = index.counts.iter().map(|(word, n)| format!("{n} {word}")).collect();
    writeln!(out, "{}: {}", count(index.runs.len(), "run"), counts.join(", "))?;
    let rows = index.runs.iter().map(|row| {
        let about = if row.began_is_known { "" } else { " (files)" };
        let answer = if row.outcome == Outcome::Pass { String::new() } else { row.sentence.clone() };
        vec![
            minute(&row.began) + about,
            format!("{}{}", row.outcome.word(), if row.is_part { " (part of the plan)" } else { "" }),
            row.plan.clone(),
            row.cases.map_or_else(|| "–".to_owned(), |(measured, planned)| format!("{measured} of {planned}")),
            some(&row.faulty, 1),
            row.seconds.map_or_else(String::new, lasted),
            row.directory.clone(),
            answer,
        ]
    });
    let table = Table::new("began (UTC) | verdict | plan | #measured | faulty | took | directory | answer", rows);
    screen.table(out, "", &table, &[0, 1, 4, 2, 6, 7, 3, 5], shown)
}
