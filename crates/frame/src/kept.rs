//! Access to frames without polars: filters for rows and columns, and their values.

use jiff::Timestamp;
use polars::prelude::{AnyValue, BooleanChunked, DataFrame, NewChunkedArray, PolarsError, StringChunked};
use railgauge_analysis::frames::FrameError;
use railgauge_wire::Metric;
use serde_json::Value;

/// Keeps rows that match every member. An empty member matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub tests: Vec<String>,
    pub metrics: Vec<Metric>,
    pub hosts: Vec<String>,
    /// The earliest start. A case that never started counts as started with the last case of its run, so that no failure is lost.
    pub since: Option<Timestamp>,
    pub failed: bool,
}

impl Filter {
    pub const COLUMNS: [&str; 7] = ["test", "metric", "src_host", "dst_host", "started_at", "value", "error"];

    /// Calls `seen` with the test and the hosts of every row.
    ///
    /// # Errors
    /// A column of [`Filter::COLUMNS`] is missing.
    pub fn keep(&self, frame: &DataFrame, mut seen: impl FnMut(&str)) -> Result<DataFrame, FrameError> {
        macro_rules! column {
            ($name:literal, $kind:ident) => {
                frame
                    .column($name)
                    .and_then(|column| column.as_materialized_series().$kind())
                    .map_err(polars("the frame"))?
            };
        }
        let (test, metric, from, to) =
            (column!("test", str), column!("metric", str), column!("src_host", str), column!("dst_host", str));
        let (value, error, began) =
            (column!("value", f64), column!("error", str), column!("started_at", datetime).physical());
        let last = began.iter().flatten().max();
        let since = self.since.map(Timestamp::as_microsecond);
        let metrics: Vec<String> = self.metrics.iter().map(|metric| metric.word().to_owned()).collect();
        let mark = |row: usize| {
            let is = |names: &[String], column: &StringChunked| {
                names.is_empty() || column.get(row).is_some_and(|text| names.iter().any(|name| name == text))
            };
            [test, from, to].iter().filter_map(|column| column.get(row)).for_each(&mut seen);
            is(&self.tests, test)
                && is(&metrics, metric)
                && (is(&self.hosts, from) || is(&self.hosts, to))
                && since.is_none_or(|since| began.get(row).or(last).is_none_or(|began| began >= since))
                && (!self.failed || value.get(row).is_none() || error.get(row).is_some())
        };
        let marks = BooleanChunked::from_iter_values("keep".into(), (0..frame.height()).map(mark));
        frame.filter(&marks).map_err(polars("the frame"))
    }
}

/// # Errors
/// A column is missing.
pub fn select(frame: &DataFrame, columns: &[&str]) -> Result<DataFrame, FrameError> {
    frame.select(columns.iter().copied()).map_err(polars("the frame"))
}

/// By row, in the order of the columns. A time is text (RFC 3339).
pub fn values(frame: &DataFrame) -> impl Iterator<Item = Vec<Value>> + '_ {
    let value = |cell: AnyValue<'_>| match cell {
        AnyValue::Null => Value::Null,
        AnyValue::String(text) => text.into(),
        AnyValue::UInt32(number) => number.into(),
        AnyValue::UInt64(number) => number.into(),
        AnyValue::Float64(number) => number.into(),
        AnyValue::Datetime(micros, ..) => {
            Timestamp::from_microsecond(micros).map_or(Value::Null, |time| time.to_string().into())
        }
        other => other.to_string().into(),
    };
    let row = move |row| frame.columns().iter().map(|column| column.get(row).map_or(Value::Null, value)).collect();
    (0..frame.height()).map(row)
}

pub(super) fn polars(file: impl Into<String>) -> impl FnOnce(PolarsError) -> FrameError {
    let file = file.into();
    |cause| FrameError::Table { file, cause: Box::new(cause) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

    use railgauge_analysis::row::{CaseColumns, Row};

    use super::*;
    use crate::{frame, made_test::made};

    fn row(case: u64, host: &str, value: Option<f64>, started: Option<&str>) -> Row {
        let row = made(case);
        let started_at = started.map(|time| time.parse().unwrap()).into();
        let of = CaseColumns { src_host: host.into(), started_at, ..(*row.of).clone() };
        Row { of: of.into(), value, error: value.is_none().then(|| "gpu03: measure: gone".into()), ..row }
    }

    #[test]
    fn rows_fit_every_member_and_a_failure_has_the_time_of_its_run() {
        let rows = [
            row(0, "gpu01", Some(390.0), Some("2026-11-25T03:00:00Z")),
            row(1, "gpu02", Some(350.0), Some("2026-11-26T03:00:00.5Z")),
            row(2, "gpu03", None, None),
            Row { error: Some("gpu01: verify: wrong bytes".into()), ..row(3, "gpu01", Some(1.0), None) },
        ];
        let table = frame(&rows).unwrap();
        let since = |time: &str| Some(time.parse().unwrap());
        let peer = rows[0].dst_host.to_string();
        let all = Filter::default;
        for (filter, wanted) in [
            (all(), &[0, 1, 2, 3][..]),
            (Filter { failed: true, ..all() }, &[2, 3]),
            (Filter { hosts: vec!["gpu01".into(), "gpu03".into()], ..all() }, &[0, 2, 3]),
            (Filter { hosts: vec![peer], ..all() }, &[0, 1, 2, 3]),
            (Filter { since: since("2026-11-26T03:00:00Z"), ..all() }, &[1, 2, 3]),
            (Filter { since: since("2026-11-26T03:00:01Z"), ..all() }, &[]),
            (Filter { hosts: vec!["gpu01".into()], failed: true, ..all() }, &[3]),
            (Filter { tests: vec!["other".into()], ..all() }, &[]),
            (Filter { metrics: vec![Metric::Busbw], ..all() }, &[]),
            (Filter { metrics: vec![Metric::Busbw, rows[0].metric], ..all() }, &[0, 1, 2, 3]),
        ] {
            let kept = filter.keep(&table, |_| ()).unwrap();
            let cases: Vec<u64> =
                values(&select(&kept, &["case_id"]).unwrap()).map(|row| row[0].as_u64().unwrap()).collect();
            assert_eq!(cases, wanted, "{filter:?}");
        }
        // Without a time in the run nothing shows that a row is older.
        let table = frame(&rows[2..]).unwrap();
        assert_eq!(Filter { since: since("2026-11-28T00:00:00Z"), ..all() }.keep(&table, |_| ()).unwrap().height(), 2);
    }
}
