//! A stored frame of any version, with the columns of today.

use std::path::Path;

use jiff::Timestamp;
use polars::prelude::{Column, DataFrame, ParquetReader, SerReader};
use railgauge_model::{border::text::path_text, files};

use super::{COLUMNS, FrameError, polars, times};
use crate::analysis::compact::Moment;

/// A frame that was read from its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The wanted columns, with the names and types of [`COLUMNS`].
    pub frame: DataFrame,
    /// The version in which it was written.
    pub version: u32,
}

/// Reads columns of a `records.parquet`: what an older version does not have is null.
///
/// # Errors
/// The file cannot be read, or is not a frame of ours.
pub fn stored(path: &Path, columns: &[&str]) -> Result<Stored, FrameError> {
    let name = path_text(path).to_string();
    let file = files::open(path).map_err(|cause| FrameError::File { file: name.clone(), cause })?;
    let mut reader = ParquetReader::new(file);
    let schema = reader.schema().map_err(polars(name.clone()))?;
    let version = if schema.get("case_id").is_some() { super::VERSION } else { 1 };
    let old = |column: &str| if version == 1 && column == "case_id" { "case" } else { column }.to_owned();
    let present: Vec<String> =
        columns.iter().map(|column| old(column)).filter(|column| schema.contains(column)).collect();
    // The number of rows must be known even if every wanted column is younger than the file.
    let read = if present.is_empty() { vec![old("case_id")] } else { present };
    let found = reader.with_columns(Some(read)).finish().map_err(polars(name.clone()))?;
    let height = found.height();
    let made = columns.iter().map(|column| one(&name, &found, version, column, &old(column), height));
    let made = made.collect::<Result<Vec<Column>, FrameError>>()?;
    let frame = DataFrame::new(height, made).map_err(polars(name))?;
    Ok(Stored { frame, version })
}

/// A column with its name and type of today.
fn one(
    file: &str,
    found: &DataFrame,
    version: u32,
    name: &str,
    old: &str,
    height: usize,
) -> Result<Column, FrameError> {
    let foreign = |cause: String| FrameError::Foreign { file: file.to_owned(), cause };
    let wanted = COLUMNS.into_iter().find(|(known, _)| *known == name).map(|(_, wanted)| wanted);
    let wanted = wanted.ok_or_else(|| foreign(format!("column `{name}` is none of a frame")))?;
    let Ok(column) = found.column(old) else {
        // Only what is younger than the file may be missing.
        return match version {
            1 if matches!(name, "value_min" | "value_max" | "tool") => {
                Ok(Column::full_null(name.into(), height, &wanted))
            }
            _ => Err(foreign(format!("column `{old}` is missing"))),
        };
    };
    if version == 1 && name == "started_at" {
        let text = column.as_materialized_series().str().map_err(polars(file))?;
        // What is no time was never one.
        return Ok(times(name, text.iter().map(|text| text?.parse::<Timestamp>().ok()).map(Moment::from)));
    }
    if *column.dtype() != wanted {
        return Err(foreign(format!("column `{old}` holds {}, not {wanted}", column.dtype())));
    }
    let mut column = column.clone();
    column.rename(name.into());
    Ok(column)
}
