//! Journals, from their lines to what a terminal shows.

use std::path::Path;

use railgauge_analysis::journal::{self, Journal};
use railgauge_report::{draw, text};

/// A line of a journal from what stands before its sum: a fuzzer would never find a sum, and who writes a journal by hand
/// computes it.
pub fn sealed(body: &str) -> String {
    match body.strip_suffix('}') {
        Some(body) => format!("{body},\"sum\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes())),
        None => format!("{body}\n"),
    }
}

pub(crate) fn run(data: &[u8]) {
    let text: String = String::from_utf8_lossy(data).lines().map(sealed).collect();
    if let Ok(journal) = journal::parse(text.as_bytes(), Path::new("records.jsonl")) {
        shown(&journal);
    }
}

/// Judges a journal and draws what a terminal shows of it.
fn shown(journal: &Journal) {
    let path = Path::new("records.jsonl");
    if let Ok(drawn) = draw(journal, path) {
        let _ = text::summary(&drawn.view, path, &text::Screen::PLAIN);
    }
}
