use std::{fmt::Write, path::Path};

use railgauge_model::border::text::path_text;

use super::CompareView;
use crate::{
    text::{aligned, mark},
    view::Table,
};

/// Rows shown of a table: the page has them all.
const ROWS: usize = 20;

/// `colour` puts ANSI colours on the verdict.
pub fn summary(view: &CompareView, page: &Path, colour: bool) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, view, page, colour);
    out
}

fn write(out: &mut String, view: &CompareView, page: &Path, colour: bool) -> std::fmt::Result {
    for side in &view.sides {
        writeln!(out, "{:<7}{}", side.title.to_lowercase(), side.summary)?;
    }
    for remark in &view.remarks {
        writeln!(out, "note   {remark}")?;
    }
    writeln!(out)?;
    // All but the noise floor; the last column is there only if something is too noisy.
    let columns: Vec<usize> = (0..view.groups.columns.len()).filter(|column| *column != 3).collect();
    aligned(out, "", &view.groups, &columns, ROWS)?;
    for cause in &view.causes {
        writeln!(out, "{} {}: {}", cause.word, cause.name, cause.text)?;
    }
    if !view.causes.is_empty() {
        writeln!(out)?;
    }
    lines(out, "changed", &view.changed, &[0, 1, 2, 8])?;
    lines(out, "undecided", &view.unsettled, &[0, 1, 2, 8])?;
    lines(out, "not compared", &view.one_sided, &[0, 1, 2, 3])?;
    lines(out, "left out", &view.left_out, &[0, 1, 2, 3])?;
    lines(out, "configuration", &view.configuration, &[0, 1, 2, 3])?;
    lines(out, "configuration within a side", &view.within, &[0, 1, 2, 3, 4])?;
    writeln!(out, "{} {}", mark(view.status, colour), view.sentence)?;
    writeln!(out, "report: {}", path_text(page))
}

fn lines(out: &mut String, title: &str, table: &Table, columns: &[usize]) -> std::fmt::Result {
    if table.rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:")?;
    for row in table.rows.iter().take(ROWS) {
        let cells: Vec<&str> = columns.iter().map(|&column| row[column].as_str()).collect();
        writeln!(out, "  {}", cells.join(" | "))?;
    }
    if table.rows.len() > ROWS {
        writeln!(out, "  and {} more: see the page", table.rows.len() - ROWS)?;
    }
    writeln!(out)
}
