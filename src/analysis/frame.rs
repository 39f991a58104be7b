//! Rows as a polars frame, and the frame as Parquet. The one place that knows polars.
//!
//! Columns, order and types are the run directory's contract; [`COLUMNS`] is their one list.

use std::{collections::HashSet, io, path::Path, sync::Arc};

use jiff::Timestamp;
use polars::prelude::{
    Column, DataFrame, DataType, Int64Chunked, IntoSeries, NewChunkedArray, ParquetReader, PolarsError, SerReader,
    TimeUnit, TimeZone,
};
use railgauge_model::{border::text::path_text, files};
use railgauge_wire::{
    terms::{Better, Metric},
    unit::Bytes,
};

use super::{
    compact::Moment,
    row::{CaseColumns, CellColumns, Phase, Row, Texts},
};

mod kept;
mod readings;
mod spreads;
mod stored;
mod written;

pub use kept::{Filter, select, values};
pub use readings::readings;
pub use spreads::{Mark, Spread, Valued, spreads};
pub use stored::{Stored, stored};
pub use written::{write_made, write_parquet, write_rows};

/// Version of the columns: 1 had `case` for `case_id`, `started_at` as text, and neither `value_min` nor `value_max`. It stands in the
/// metadata of the Parquet file under [`VERSION_KEY`], which version 1 lacks.
pub const VERSION: u32 = 2;
/// Where the version stands in the metadata of the file.
pub const VERSION_KEY: &str = "railgauge.frame";

/// Points in time: microseconds since 1970, UTC.
const TIME: DataType = DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC));

/// Name and type of every column, in order.
pub const COLUMNS: [(&str, DataType); 35] = [
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
    ("memory", DataType::String),
    ("gpu_path", DataType::String),
    ("src_host", DataType::String),
    ("src_device", DataType::String),
    ("src_gpu", DataType::UInt32),
    ("dst_host", DataType::String),
    ("dst_device", DataType::String),
    ("dst_gpu", DataType::UInt32),
    ("rail", DataType::UInt32),
    ("ceiling", DataType::Float64),
    ("verified_bytes", DataType::UInt64),
    ("wrong", DataType::UInt64),
    ("env", DataType::String),
    ("error", DataType::String),
    ("phase", DataType::String),
    ("tool", DataType::String),
];

/// The frame: polars' own, so that everything polars offers is there.
pub type Frame = DataFrame;

/// Why a frame cannot be built, written or read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// polars refused.
    #[error("{file}: {cause}")]
    Polars {
        /// The file, or what was being done.
        file: String,
        /// polars' words.
        cause: PolarsError,
    },
    /// The file system refused.
    #[error("{file}: {cause}")]
    File {
        /// The file.
        file: String,
        /// The system's words.
        cause: io::Error,
    },
    /// The file is Parquet but not a frame of ours.
    #[error("{file}: not a frame of railgauge: {cause}")]
    Foreign {
        /// The file.
        file: String,
        /// What is wrong with it.
        cause: String,
    },
}

fn polars(file: impl Into<String>) -> impl FnOnce(PolarsError) -> FrameError {
    let file = file.into();
    |cause| FrameError::Polars { file, cause }
}

/// The frame of these rows.
///
/// # Errors
/// polars refuses, which it does only for want of memory.
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
        column!("memory", |row| &*row.memory),
        column!("gpu_path", |row| &*row.gpu_path),
        column!("src_host", |row| &*row.src_host),
        column!("src_device", |row| &*row.src_device),
        column!("src_gpu", |row| row.src_gpu),
        column!("dst_host", |row| &*row.dst_host),
        column!("dst_device", |row| &*row.dst_device),
        column!("dst_gpu", |row| row.dst_gpu),
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

/// A column of points in time.
fn times(name: &str, all: impl Iterator<Item = Moment>) -> Column {
    let whole = Int64Chunked::from_iter_options(name.into(), all.map(Moment::microseconds));
    whole.into_datetime(TimeUnit::Microseconds, Some(TimeZone::UTC)).into_series().into()
}

/// Reads a frame of this version back and checks that it has every column of [`COLUMNS`] with its type.
///
/// # Errors
/// The file cannot be read, or is not a frame of ours.
pub fn read_parquet(path: &Path) -> Result<DataFrame, FrameError> {
    let name = path_text(path);
    let file = files::open(path).map_err(|cause| FrameError::File { file: name.clone(), cause })?;
    let frame = ParquetReader::new(file).finish().map_err(polars(name.clone()))?;
    for (column, wanted) in &COLUMNS {
        let found = frame.column(column).map(Column::dtype);
        let cause = match found {
            Ok(found) if found == wanted => continue,
            Ok(found) => format!("column `{column}` holds {found}, not {wanted}"),
            Err(_) => format!("column `{column}` is missing"),
        };
        return Err(FrameError::Foreign { file: name, cause });
    }
    Ok(frame)
}

/// The rows of a frame of ours: what [`frame`] was given.
///
/// # Errors
/// A column is missing or has another type, a text is null, or a metric is not one of ours.
pub fn rows(frame: &DataFrame) -> Result<Vec<Row>, FrameError> {
    let file = "the frame";
    macro_rules! values {
        ($name:literal, $kind:ident) => {{
            let column = frame.column($name).and_then(|column| column.as_materialized_series().$kind());
            column.map_err(polars(file))?.iter()
        }};
    }
    let mut run_id = values!("run_id", str);
    let mut plan = values!("plan", str);
    let mut test = values!("test", str);
    let mut case_id = values!("case_id", u64);
    let mut round = values!("round", u32);
    let started_at = frame.column("started_at").and_then(|column| column.as_materialized_series().datetime());
    let mut started_at = started_at.map_err(polars(file))?.physical().iter();
    let mut op = values!("op", str);
    let mut metric = values!("metric", str);
    let mut unit = values!("unit", str);
    let mut value = values!("value", f64);
    let mut value_min = values!("value_min", f64);
    let mut value_max = values!("value_max", f64);
    let mut better = values!("better", str);
    let mut n = values!("n", u32);
    let mut size_bytes = values!("size_bytes", u64);
    let mut ranks = values!("ranks", u32);
    let mut qps = values!("qps", u32);
    let mut transport = values!("transport", str);
    let mut link_layer = values!("link_layer", str);
    let mut memory = values!("memory", str);
    let mut gpu_path = values!("gpu_path", str);
    let mut src_host = values!("src_host", str);
    let mut src_device = values!("src_device", str);
    let mut src_gpu = values!("src_gpu", u32);
    let mut dst_host = values!("dst_host", str);
    let mut dst_device = values!("dst_device", str);
    let mut dst_gpu = values!("dst_gpu", u32);
    let mut rail = values!("rail", u32);
    let mut ceiling = values!("ceiling", f64);
    let mut verified_bytes = values!("verified_bytes", u64);
    let mut wrong = values!("wrong", u64);
    let mut env = values!("env", str);
    let mut error = values!("error", str);
    let mut phase = values!("phase", str);
    let mut tool = values!("tool", str);
    let null =
        |name: &str| FrameError::Foreign { file: file.to_owned(), cause: format!("column `{name}` holds a null") };
    let mut rows = Vec::with_capacity(frame.height());
    let mut cells: HashSet<Arc<CellColumns>> = HashSet::new();
    let mut texts = Texts::default();
    for _ in 0..frame.height() {
        macro_rules! next {
            ($values:ident) => {
                $values.next().flatten()
            };
            ($values:ident?) => {
                next!($values).ok_or_else(|| null(stringify!($values)))?
            };
        }
        let word = |name: &str, word: &str| FrameError::Foreign {
            file: file.to_owned(),
            cause: format!("column `{name}` holds `{word}`, which is not a word of ours"),
        };
        let (metric, unit, better, phase) = (next!(metric?), next!(unit?), next!(better?), next!(phase?));
        let of_word = Metric::from_word(metric).ok_or_else(|| word("metric", metric))?;
        if unit != of_word.unit() {
            return Err(word("unit", unit));
        }
        let of = CellColumns {
            run_id: texts.shared(next!(run_id?)),
            plan: texts.shared(next!(plan?)),
            test: texts.shared(next!(test?)),
            op: texts.shared(next!(op?)),
            size_bytes: Bytes(next!(size_bytes?)),
            ranks: next!(ranks?),
            qps: next!(qps?),
            transport: texts.shared(next!(transport?)),
            link_layer: texts.shared(next!(link_layer?)),
            memory: texts.shared(next!(memory?)),
            gpu_path: texts.shared(next!(gpu_path?)),
            src_device: texts.shared(next!(src_device?)),
            src_gpu: next!(src_gpu),
            dst_device: texts.shared(next!(dst_device?)),
            dst_gpu: next!(dst_gpu),
            env: texts.shared(next!(env?)),
            phase: Phase::from_word(phase).ok_or_else(|| word("phase", phase))?,
            tool: texts.shared(next!(tool?)),
        };
        let last = rows.last().map(|before: &Row| &before.of);
        let of = CaseColumns {
            of: match (last.filter(|before| *before.of == of), cells.get(&of)) {
                (Some(before), _) => Arc::clone(&before.of),
                (None, Some(known)) => Arc::clone(known),
                (None, None) => {
                    let of = Arc::new(of);
                    cells.insert(Arc::clone(&of));
                    of
                }
            },
            case: next!(case_id?),
            round: next!(round?),
            started_at: next!(started_at).and_then(|time| Timestamp::from_microsecond(time).ok()).into(),
            src_host: texts.shared(next!(src_host?)),
            dst_host: texts.shared(next!(dst_host?)),
            rail: next!(rail?),
            verified_bytes: next!(verified_bytes?),
            wrong: next!(wrong?),
        };
        let same = rows.last().filter(|before: &&Row| *before.of == of).map(|before| Arc::clone(&before.of));
        rows.push(Row {
            of: same.unwrap_or_else(|| Arc::new(of)),
            metric: of_word,
            value: next!(value),
            value_min: next!(value_min).into(),
            value_max: next!(value_max).into(),
            better: Better::from_word(better).ok_or_else(|| word("better", better))?,
            n: next!(n?),
            ceiling: next!(ceiling),
            error: next!(error).map(Into::into),
        });
    }
    Ok(rows)
}
