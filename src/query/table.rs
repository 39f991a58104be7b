//! Rows as a table for a terminal: columns one beside the other, numbers on the right.

use crate::analysis::{
    frame::{Cells, FrameError},
    words::number,
};

use super::{Answer, answer::is_number};

/// What stands where there is no value.
const NOTHING: &str = "–";

/// The rows under the names of their columns. Reals have four significant digits; the other formats have all of them.
///
/// # Errors
/// The frame is not one of ours.
pub fn table(answer: &Answer) -> Result<String, FrameError> {
    let columns = answer.cells()?;
    let made: Vec<(bool, Vec<String>)> = columns
        .iter()
        .map(|(name, cells)| {
            let head = [(*name).to_owned()].into_iter();
            (is_number(name), head.chain((0..answer.frame.height()).map(|row| cell(cells, row))).collect())
        })
        .collect();
    let width = |cells: &[String]| cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = made.iter().map(|(_, cells)| width(cells)).collect();
    let mut out = String::new();
    for row in 0..=answer.frame.height() {
        let cells = made.iter().zip(&widths).map(|((is_number, cells), width)| {
            let (cell, width) = (&cells[row], *width);
            if *is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    Ok(out)
}

fn cell(cells: &Cells<'_>, row: usize) -> String {
    let found = match cells {
        // A line is one row.
        Cells::Text(all) => all[row].map(|text| text.replace(['\n', '\r', '\t'], " ")),
        Cells::Whole(all) => all[row].map(|number| number.to_string()),
        Cells::Real(all) => all[row].map(number),
        Cells::Time(all) => all[row].map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    };
    found.filter(|text| !text.is_empty()).unwrap_or_else(|| NOTHING.to_owned())
}
