//! The report of an imported run. It has no verdicts, because nothing judges it.

use std::{fmt::Write, iter, path::Path};

use railgauge_analysis::{
    frames::FrameFile,
    imported::{self, ImportedRun},
    row::Row,
    words::{size, with_unit},
};
use railgauge_model::{
    directory::{FRAME, JOURNAL, PAGE},
    files,
};
use serde::Serialize;

use super::{
    error::{ReportError, text_file},
    html,
    view::{Table, columns as heads},
};

const VERSION: u32 = 1;
/// Rows on the terminal: the page has them all.
const ROWS: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportedView {
    pub version: u32,
    pub run_id: String,
    pub railgauge: String,
    pub sentence: String,
    pub values: Table,
    pub files: Table,
}

/// Writes `records.parquet` and `report.html` from the journal; `None` for a run of railgauge.
///
/// # Errors
/// The journal cannot be read, or a file cannot be written.
pub fn write(run: &Path, frames: &dyn FrameFile) -> Result<Option<ImportedView>, ReportError> {
    let Some(found) = imported::read(&run.join(JOURNAL))? else { return Ok(None) };
    let rows = found.rows();
    let parquet = run.join(FRAME);
    files::replace(
        &parquet,
        |file| frames.write(&mut iter::once(rows.clone()), file, &parquet).map_err(ReportError::from),
        |cause| ReportError::File { path: parquet.clone(), cause },
    )?;
    let view = view(&found, &rows);
    text_file(&run.join(PAGE), &html::page("imported.html", &view).map_err(ReportError::drawing(PAGE))?)?;
    Ok(Some(view))
}

fn view(run: &ImportedRun, rows: &[Row]) -> ImportedView {
    let value = |row: &Row| {
        vec![
            row.test.to_string(),
            row.metric.word().to_owned(),
            size(row.size_bytes),
            if row.ranks > 2 {
                format!("{} ranks, {} … {}", row.ranks, row.src_host, row.dst_host)
            } else {
                format!("{} → {}", row.src_host, row.dst_host)
            },
            row.value.map_or_else(|| "–".to_owned(), |value| with_unit(row.metric, value)),
            row.n.to_string(),
            row.env.to_string(),
            row.tool.to_string(),
            row.error.as_deref().unwrap_or_default().to_owned(),
        ]
    };
    let columns = heads("Test | Metric | Size | Between | Value | n | Elements | Measured by | Against it");
    let file = |file: &railgauge_model::journal::event::ImportedFile| {
        vec![file.name.clone(), file.tool.clone(), file.notes.join("; "), file.sha256.clone()]
    };
    ImportedView {
        version: VERSION,
        run_id: run.said.run_id.clone(),
        railgauge: run.said.version.clone(),
        sentence: format!("{} measured this, not railgauge. Not verified, not judged.", run.tools()),
        values: Table { columns, rows: rows.iter().map(value).collect() },
        files: Table {
            columns: heads("File | Written by | Notes | SHA-256"),
            rows: run.said.files.iter().map(file).collect(),
        },
    }
}

impl ImportedView {
    pub fn text(&self) -> String {
        let mut text = format!("NOT JUDGED  {}\n", self.sentence);
        for row in self.values.rows.iter().take(ROWS) {
            let [test, metric, size, between, value, _, elements, tool, error] = &row[..] else { continue };
            let words = [test, metric, size, between, value, elements, tool, error];
            let words: Vec<&str> = words.into_iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", words.join(" | "));
        }
        if self.values.rows.len() > ROWS {
            let _ = writeln!(text, "and {} more: see the page", self.values.rows.len() - ROWS);
        }
        for row in &self.files.rows {
            let _ = writeln!(text, "note   {}: {}", row[0], row[2]);
        }
        text
    }
}
