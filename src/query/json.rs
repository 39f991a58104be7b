//! Rows as one JSON document, or as one JSON object in a line each.

use serde_json::{Map, Value, json};

use crate::analysis::frame::{Cells, FrameError};

use super::Answer;

/// Version of the document.
const VERSION: u32 = 1;

/// All of an answer: `version`, `runs`, `left_out`, `columns`, `found`, `rows`.
///
/// # Errors
/// The frame is not one of ours.
pub fn document(answer: &Answer) -> Result<Value, FrameError> {
    Ok(json!({
        "version": VERSION,
        "runs": answer.runs,
        "left_out": answer.left_out,
        "found": answer.found,
        "columns": answer.cells()?.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "rows": rows(answer)?,
    }))
}

/// One object in a line for each row.
///
/// # Errors
/// The frame is not one of ours.
pub fn lines(answer: &Answer) -> Result<String, FrameError> {
    Ok(rows(answer)?.iter().map(|row| format!("{row}\n")).collect())
}

fn rows(answer: &Answer) -> Result<Vec<Value>, FrameError> {
    let columns = answer.cells()?;
    let row = |row: usize| {
        let members = columns.iter().map(|(name, cells)| {
            let value = match cells {
                Cells::Text(all) => all[row].map_or(Value::Null, Value::from),
                Cells::Whole(all) => all[row].map_or(Value::Null, Value::from),
                Cells::Real(all) => all[row].map_or(Value::Null, Value::from),
                Cells::Time(all) => all[row].map_or(Value::Null, |time| time.to_string().into()),
            };
            ((*name).to_owned(), value)
        });
        Value::Object(members.collect::<Map<String, Value>>())
    };
    Ok((0..answer.frame.height()).map(row).collect())
}
