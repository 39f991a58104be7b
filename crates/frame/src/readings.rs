//! The few columns of a stored frame that comparisons and trends need, without reading the rest.

use std::path::Path;

use polars::prelude::Column;
use railgauge_analysis::{
    frames::FrameError,
    row::{Reading, Texts},
};
use railgauge_model::border::text::path_text;
use railgauge_wire::Metric;

use super::{polars, read_parquet};

const NEEDED: [&str; 8] = ["case_id", "metric", "value", "error", "wrong", "transport", "src_device", "dst_device"];

/// In the order of the frame.
///
/// # Errors
/// The file cannot be read, or is not a railgauge frame.
pub(super) fn readings(path: &Path, metrics: &[Metric]) -> Result<Vec<Reading>, FrameError> {
    let name = path_text(path);
    let frame = read_parquet(path, &NEEDED)?;
    macro_rules! values {
        ($name:literal, $kind:ident) => {
            frame
                .column($name)
                .map(Column::as_materialized_series)
                .and_then(|series| series.$kind())
                .map_err(polars(name.clone()))?
                .iter()
        };
    }
    let (case, metric) = (values!("case_id", u64), values!("metric", str));
    let (value, error, wrong) = (values!("value", f64), values!("error", str), values!("wrong", u64));
    let (transport, from, to) = (values!("transport", str), values!("src_device", str), values!("dst_device", str));
    let mut words = Texts::default();
    let mut found = Vec::new();
    for (((((((case, metric), value), error), wrong), transport), from), to) in
        case.zip(metric).zip(value).zip(error).zip(wrong).zip(transport).zip(from).zip(to)
    {
        let foreign = |cause: String| FrameError::Foreign { file: name.clone(), cause };
        let (Some(case), Some(word)) = (case, metric) else {
            return Err(foreign("column `case_id` or `metric` holds a null".to_owned()));
        };
        let metric = Metric::from_word(word).ok_or_else(|| foreign(format!("`{word}` is not a known metric")))?;
        if metrics.contains(&metric) {
            found.push(Reading {
                case,
                metric,
                value: Reading::trusted(value, error),
                wrong: wrong.unwrap_or_default(),
                transport: words.shared(transport.unwrap_or_default()),
                devices: [words.shared(from.unwrap_or_default()), words.shared(to.unwrap_or_default())],
            });
        }
    }
    Ok(found)
}
