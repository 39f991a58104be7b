use std::{
    fmt::{Result, Write},
    path::Path,
};

use railgauge_model::{border::text::path_text, plan::count::count};

use super::CompareView;
use crate::{
    text::{ROWS, Screen, coloured},
    view::Table,
};

/// Lines of each kind without `-v`.
const SHOWN: usize = 2;

pub fn summary(view: &CompareView, page: &Path, screen: &Screen) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, view, page, screen);
    out
}

fn write(out: &mut String, view: &CompareView, page: &Path, screen: &Screen) -> Result {
    let most = if screen.verbose { usize::MAX } else { SHOWN };
    coloured(out, view.word, view.status, &view.sentence, screen)?;
    let causes: Vec<String> =
        view.causes.iter().map(|one| format!("{} {}: {}", one.verdict.words(), one.name, one.text)).collect();
    lines(out, screen, "cause", &causes, most)?;
    lines(out, screen, "difference in configuration", &cells(&view.configuration, " → "), most)?;
    lines(out, screen, "note", &view.remarks, most)?;
    writeln!(out)?;
    // All but the noise floor.
    let columns: Vec<usize> = (0..view.groups.columns.len()).filter(|column| *column != 3).collect();
    let room = if screen.verbose { usize::MAX } else { ROWS.saturating_sub(out.lines().count() + 6).max(SHOWN) };
    screen.table(out, "", &view.groups, &columns, room)?;
    writeln!(out)?;
    for side in &view.sides {
        writeln!(out, "{}: {}", side.title.to_lowercase(), side.summary)?;
    }
    writeln!(out, "report: {}", path_text(page))?;
    if !screen.verbose {
        return Ok(());
    }
    for (title, table, columns) in [
        ("changed", &view.changed, &[0, 1, 2, 8][..]),
        ("undecided or too noisy", &view.unsettled, &[0, 1, 2, 8]),
        ("not compared", &view.one_sided, &[0, 1, 2, 3]),
        ("left out", &view.left_out, &[0, 1, 2, 3]),
        ("configuration within a side", &view.within, &[0, 1, 2, 3, 4]),
    ] {
        if !table.rows.is_empty() {
            writeln!(out, "\n{title}:")?;
        }
        for row in &table.rows {
            let cells: Vec<&str> = columns.iter().map(|&column| row[column].as_str()).collect();
            screen.wrap(out, "  ", "    ", &cells.join(" | "))?;
        }
    }
    Ok(())
}

/// `mlx5_0 firmware: 28.41 → 28.44: gpu001`.
fn cells(table: &Table, between: &str) -> Vec<String> {
    let row = |row: &Vec<String>| match row.as_slice() {
        [what, before, after, hosts, ..] => format!("{what}: {before}{between}{after} ({hosts})"),
        row => row.join(": "),
    };
    table.rows.iter().map(row).collect()
}

fn lines(out: &mut String, screen: &Screen, what: &str, all: &[String], most: usize) -> Result {
    for text in all.iter().take(most) {
        screen.clip(out, "  ", "    ", text, 2)?;
    }
    let more = all.len().saturating_sub(most);
    if more > 0 { writeln!(out, "  and {}: -v, or the report", count(more, &format!("more {what}"))) } else { Ok(()) }
}
