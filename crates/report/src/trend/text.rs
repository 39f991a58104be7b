use std::{fmt::Write, path::Path};

use railgauge_model::border::text::path_text;

use super::{ChangeView, TrendView};
use crate::text::{aligned, mark};

/// Changes shown of each kind: the page has more.
const SHOWN: usize = 20;

/// `colour` puts ANSI colours on the verdict.
pub fn summary(view: &TrendView, page: &Path, colour: bool) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, view, page, colour);
    out
}

fn write(out: &mut String, view: &TrendView, page: &Path, colour: bool) -> std::fmt::Result {
    writeln!(out, "{}", view.span)?;
    for remark in &view.remarks {
        writeln!(out, "note   {remark}")?;
    }
    writeln!(out)?;
    changes(out, "still so", &view.totals, &view.open)?;
    changes(out, "not known to be over", &[], &view.left)?;
    changes(out, "over", &[], &view.over)?;
    aligned(out, "values missing", &view.missing, &[0, 1, 2, 3], SHOWN)?;
    aligned(out, "to be repeated at once", &view.repeats, &[0, 1, 2], SHOWN)?;
    aligned(out, "in doubt", &view.doubts, &[0, 1, 2], SHOWN)?;
    aligned(out, "parts replaced", &view.parts, &[0, 1], SHOWN)?;
    aligned(out, "changed on purpose", &view.epochs, &[0, 1, 2], SHOWN)?;
    aligned(out, "series", &view.kinds, &[0, 1, 2, 3, 4, 5, 6, 7], SHOWN)?;
    writeln!(out, "{} {}", mark(view.status, colour), view.sentence)?;
    writeln!(out, "report: {}", path_text(page))
}

fn changes(out: &mut String, title: &str, totals: &[(String, String)], list: &[ChangeView]) -> std::fmt::Result {
    if list.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:")?;
    for (kind, total) in totals {
        writeln!(out, "  in all {kind}: {total}")?;
    }
    for change in list.iter().take(SHOWN) {
        writeln!(out, "  {:<7}{}: {}", change.way, change.name, change.sentence)?;
        for epoch in &change.epochs {
            writeln!(out, "         at about the same time, {epoch}")?;
        }
    }
    if list.len() > SHOWN {
        writeln!(out, "  and {} more: see the page", list.len() - SHOWN)?;
    }
    writeln!(out)
}
