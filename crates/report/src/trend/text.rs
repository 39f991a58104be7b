use std::{
    fmt::{Result, Write},
    path::Path,
};

use railgauge_model::border::text::path_text;

use super::{ChangeView, TrendView};
use crate::text::Screen;

/// Rows and changes of each kind without `-v`.
const SHOWN: usize = 4;

pub fn summary(view: &TrendView, page: &Path, screen: &Screen) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, view, page, screen);
    out
}

fn write(out: &mut String, view: &TrendView, page: &Path, screen: &Screen) -> Result {
    let most = if screen.verbose { usize::MAX } else { SHOWN };
    match view.bad.as_str() {
        "" => out.push_str(&screen.answer(view.status, &view.sentence)),
        bad => {
            out.push_str(&screen.answer(view.status, bad));
            screen.clip(out, "  ", "    ", &view.sentence, 2)?;
        }
    }
    for remark in view.remarks.iter().take(most) {
        screen.clip(out, "  ", "    ", remark, 2)?;
    }
    for (kind, total) in view.totals.iter().take(most) {
        screen.clip(out, "  ", "    ", &format!("all {kind}: {total}"), 2)?;
    }
    // The first change for the worse is the answer.
    let first = view.open.iter().position(|change| change.way == "worse").filter(|_| !screen.verbose);
    let others: Vec<&ChangeView> =
        view.open.iter().enumerate().filter(|(at, _)| Some(*at) != first).map(|(_, change)| change).collect();
    changes(out, "open", &others, most, screen)?;
    changes(out, "recovery not confirmed", &Vec::from_iter(&view.left), most, screen)?;
    if screen.verbose {
        changes(out, "over", &Vec::from_iter(&view.over), most, screen)?;
    }
    for (title, table, columns) in [
        ("values missing", &view.missing, &[0, 1, 2, 3][..]),
        ("in doubt", &view.doubts, &[0, 1, 2]),
        ("components replaced", &view.parts, &[0, 1]),
        ("changed on purpose", &view.epochs, &[0, 1, 2]),
    ] {
        screen.table(out, title, table, columns, most)?;
    }
    if screen.verbose {
        screen.table(out, "series", &view.kinds, &[0, 1, 2, 3, 4, 5, 6, 7], most)?;
    }
    writeln!(out, "{}", view.span)?;
    writeln!(out, "report: {}", path_text(page))
}

fn changes(out: &mut String, title: &str, list: &[&ChangeView], most: usize, screen: &Screen) -> Result {
    for change in list.iter().take(most) {
        screen.clip(out, "  ", "    ", &format!("{title}: {}: {}", change.name, change.sentence), 2)?;
        for epoch in &change.epochs {
            screen.clip(out, "    ", "      ", &format!("at about the same time, {epoch}"), 2)?;
        }
    }
    let more = list.len().saturating_sub(most);
    if more > 0 { writeln!(out, "  and {more} more {title}: -v, or the report") } else { Ok(()) }
}
