//! What others do with frames without knowing polars: columns as plain values, rows that are kept, frames below one another.

use jiff::Timestamp;
use polars::prelude::{BooleanChunked, Column, DataFrame, DataType, NewChunkedArray, SortMultipleOptions};

use super::{FrameError, polars};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Whole numbers.
    Whole,
    /// Real numbers.
    Real,
    /// Points in time.
    Time,
}

/// The values of a column, one for each row; `None` where it is null.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells<'f> {
    /// Text.
    Text(Vec<Option<&'f str>>),
    /// Whole numbers.
    Whole(Vec<Option<u64>>),
    /// Real numbers.
    Real(Vec<Option<f64>>),
    /// Points in time.
    Time(Vec<Option<Timestamp>>),
}

/// What a column of [`super::COLUMNS`] holds; `None` if there is no such column.
pub fn kind(name: &str) -> Option<Kind> {
    super::COLUMNS.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| match kind {
        DataType::String => Kind::Text,
        DataType::Float64 => Kind::Real,
        DataType::Datetime(..) => Kind::Time,
        _ => Kind::Whole,
    })
}

/// The values of a column.
///
/// # Errors
/// There is no such column, or it holds what no column of ours does.
pub fn cells<'f>(frame: &'f DataFrame, name: &str) -> Result<Cells<'f>, FrameError> {
    let fail = || polars("the frame");
    let series = frame.column(name).map_err(fail())?.as_materialized_series();
    Ok(match series.dtype() {
        DataType::String => Cells::Text(series.str().map_err(fail())?.iter().collect()),
        DataType::UInt64 => Cells::Whole(series.u64().map_err(fail())?.iter().collect()),
        DataType::UInt32 => {
            Cells::Whole(series.u32().map_err(fail())?.iter().map(|value| value.map(u64::from)).collect())
        }
        DataType::Datetime(..) => {
            let micros = series.datetime().map_err(fail())?.physical();
            Cells::Time(micros.iter().map(|time| Timestamp::from_microsecond(time?).ok()).collect())
        }
        _ => Cells::Real(series.f64().map_err(fail())?.iter().collect()),
    })
}

/// The place of a column among those of a frame.
pub fn place(frame: &DataFrame, name: &str) -> Option<usize> {
    frame.get_column_index(name)
}

/// These columns, in this order.
///
/// # Errors
/// A column is missing.
pub fn select(frame: &DataFrame, columns: &[&str]) -> Result<DataFrame, FrameError> {
    frame.select(columns.iter().copied()).map_err(polars("the frame"))
}

/// The rows whose mark is true. There is one mark for each row.
///
/// # Errors
/// There are more or fewer marks.
pub fn keep(frame: &DataFrame, marks: &[bool]) -> Result<DataFrame, FrameError> {
    frame.filter(&BooleanChunked::from_slice("keep".into(), marks)).map_err(polars("the frame"))
}

/// The rows of both, with the same columns: the second's below the first's.
///
/// # Errors
/// The columns are not the same.
pub fn below(first: &mut DataFrame, second: &DataFrame) -> Result<(), FrameError> {
    first.vstack_mut(second).map(drop).map_err(polars("the frame"))
}

/// A frame without rows.
pub fn empty(columns: &[&str]) -> DataFrame {
    let known = |name: &&str| super::COLUMNS.into_iter().find(|(known, _)| known == name);
    let made = columns.iter().filter_map(known).map(|(name, kind)| Column::full_null(name.into(), 0, &kind));
    DataFrame::new(0, made.collect()).unwrap_or_default()
}

/// Rows by these columns, each with whether larger values come first. What is null comes last; equal rows keep their order.
///
/// # Errors
/// A column is missing.
pub fn sorted(frame: &DataFrame, by: &[(&str, bool)]) -> Result<DataFrame, FrameError> {
    let (names, descending): (Vec<&str>, Vec<bool>) = by.iter().copied().unzip();
    let options = SortMultipleOptions::default()
        .with_order_descending_multi(descending)
        .with_nulls_last(true)
        .with_maintain_order(true);
    frame.sort(names, options).map_err(polars("the frame"))
}

/// The first rows.
pub fn head(frame: &DataFrame, rows: usize) -> DataFrame {
    frame.head(Some(rows))
}
