//! Rows as a polars frame, and the frame as Parquet. Only this crate uses polars.
//!
//! The format of run directories fixes columns, order and types; [`COLUMNS`] is their only list.
#![forbid(unsafe_code)]
// What no other crate needs is not `pub`, so that the compiler sees what is unused.
#![warn(unreachable_pub)]

use std::path::Path;

use polars::prelude::{
    Column, DataFrame, DataType, Int64Chunked, IntoSeries, NewChunkedArray, ParquetReader, SerReader, TimeUnit,
    TimeZone,
};
use railgauge_analysis::{compact::Moment, frames::FrameError, row::Row};
use railgauge_model::{border::text::path_text, files};

mod kept;
#[cfg(test)]
mod made_test;
mod readings;
mod run;
mod written;

use kept::polars;
pub use kept::{Filter, select, values};
pub use run::{RunFrame, frame_of};
pub use written::Parquet;

/// Version of the columns, in the metadata of the Parquet file under [`VERSION_KEY`].
pub const VERSION: u32 = 3;
pub const VERSION_KEY: &str = "railgauge.frame";

/// Microseconds since 1970, UTC.
const TIME: DataType = DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC));

pub const COLUMNS: [(&str, DataType); 36] = [
    ("run_id", DataType::String),
    ("plan", DataType::String),
    ("test", DataType::String),
    ("case_id", DataType::UInt64),
    ("round", DataType::UInt32),
    ("started_at", TIME),
    ("op", DataType::String),
    ("metric", DataType::String),
    ("unit", DataType::String),
    ("value", DataType::Float64),
    ("value_min", DataType::Float64),
    ("value_max", DataType::Float64),
    ("better", DataType::String),
    ("n", DataType::UInt32),
    ("size_bytes", DataType::UInt64),
    ("ranks", DataType::UInt32),
    ("qps", DataType::UInt32),
    ("transport", DataType::String),
    ("link_layer", DataType::String),
    ("gpu_path", DataType::String),
    ("src_host", DataType::String),
    ("src_device", DataType::String),
    ("src_gpu", DataType::UInt32),
    ("src_memory", DataType::String),
    ("dst_host", DataType::String),
    ("dst_device", DataType::String),
    ("dst_gpu", DataType::UInt32),
    ("dst_memory", DataType::String),
    ("rail", DataType::UInt32),
    ("ceiling", DataType::Float64),
    ("verified_bytes", DataType::UInt64),
    ("wrong", DataType::UInt64),
    ("env", DataType::String),
    ("error", DataType::String),
    ("phase", DataType::String),
    ("tool", DataType::String),
];

/// Polars' own type, so that all of its functions are available.
pub type Frame = DataFrame;

/// # Errors
/// polars fails, only for lack of memory.
pub fn frame(rows: &[Row]) -> Result<DataFrame, FrameError> {
    macro_rules! column {
        ($name:literal, |$row:ident| $value:expr) => {
            Column::new($name.into(), rows.iter().map(|$row| $value).collect::<Vec<_>>())
        };
    }
    let columns = vec![
        column!("run_id", |row| &*row.run_id),
        column!("plan", |row| &*row.plan),
        column!("test", |row| &*row.test),
        column!("case_id", |row| row.case),
        column!("round", |row| row.round),
        times("started_at", rows.iter().map(|row| row.started_at)),
        column!("op", |row| &*row.op),
        column!("metric", |row| row.metric.word()),
        column!("unit", |row| row.unit()),
        column!("value", |row| row.value),
        column!("value_min", |row| row.value_min.get()),
        column!("value_max", |row| row.value_max.get()),
        column!("better", |row| row.better.word()),
        column!("n", |row| row.n),
        column!("size_bytes", |row| row.size_bytes.0),
        column!("ranks", |row| row.ranks),
        column!("qps", |row| row.qps),
        column!("transport", |row| &*row.transport),
        column!("link_layer", |row| &*row.link_layer),
        column!("gpu_path", |row| &*row.gpu_path),
        column!("src_host", |row| &*row.src_host),
        column!("src_device", |row| &*row.src_device),
        column!("src_gpu", |row| row.src_gpu),
        column!("src_memory", |row| &*row.src_memory),
        column!("dst_host", |row| &*row.dst_host),
        column!("dst_device", |row| &*row.dst_device),
        column!("dst_gpu", |row| row.dst_gpu),
        column!("dst_memory", |row| &*row.dst_memory),
        column!("rail", |row| row.rail),
        column!("ceiling", |row| row.ceiling),
        column!("verified_bytes", |row| row.verified_bytes),
        column!("wrong", |row| row.wrong),
        column!("env", |row| &*row.env),
        column!("error", |row| row.error.as_deref()),
        column!("phase", |row| row.phase.word()),
        column!("tool", |row| &*row.tool),
    ];
    DataFrame::new(rows.len(), columns).map_err(polars("building the frame"))
}

fn times(name: &str, all: impl Iterator<Item = Moment>) -> Column {
    let whole = Int64Chunked::from_iter_options(name.into(), all.map(Moment::microseconds));
    whole.into_datetime(TimeUnit::Microseconds, Some(TimeZone::UTC)).into_series().into()
}

/// Checks the types of the columns.
///
/// # Errors
/// The file cannot be read, or is not a railgauge frame.
pub fn read_parquet(path: &Path, columns: &[&str]) -> Result<DataFrame, FrameError> {
    let name = path_text(path);
    let file = files::open(path).map_err(|cause| FrameError::File { file: name.clone(), cause })?;
    let mut reader = ParquetReader::new(file);
    let schema = reader.schema().map_err(polars(name.clone()))?;
    let present = columns.iter().filter(|column| schema.contains(column)).map(|column| (*column).to_owned()).collect();
    let frame = reader.with_columns(Some(present)).finish().map_err(polars(name.clone()))?;
    for (column, wanted) in COLUMNS.iter().filter(|(column, _)| columns.contains(column)) {
        let cause = match frame.column(column).map(Column::dtype) {
            Ok(found) if found == wanted => continue,
            Ok(found) => format!("column `{column}` holds {found}, not {wanted}"),
            Err(_) => format!("column `{column}` is missing"),
        };
        return Err(FrameError::Foreign { file: name, cause });
    }
    select(&frame, columns)
}
