//! Measurements by other tools, from the journal of an imported run. They can be compared with runs of railgauge, but are never judged.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
    sync::Arc,
};

use jiff::Timestamp;
use railgauge_model::{
    files,
    journal::{
        event::{Event, Imported, ImportedValue},
        line::{self, LineError},
    },
    plan::limits,
};
use railgauge_stats::robust::median;
use railgauge_wire::Metric;

use super::{
    journal::{JournalError, tools},
    row::{CaseColumns, CellColumns, Phase, Row},
};

#[derive(Debug, Clone, PartialEq)]
pub struct ImportedRun {
    pub at: Timestamp,
    pub said: Imported,
}

/// `None` if the journal is railgauge's own, or starts with a damaged line, which the normal reader reports.
///
/// # Errors
/// The file cannot be read, or an imported run is damaged or holds what no import writes.
pub fn read(path: &Path) -> Result<Option<ImportedRun>, JournalError> {
    let unreadable = |cause| JournalError::Unreadable { path: path.to_owned(), cause };
    let mut file = BufReader::new(files::open(path).map_err(unreadable)?);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    file.read_until(b'\n', &mut first).map_err(unreadable)?;
    // The first line of a normal run holds a whole plan: it is not parsed twice.
    if !is_import(&first) {
        return Ok(None);
    }
    let refuse = |line: usize, cause: &str| {
        let (path, cause) = (path.to_owned(), cause.to_owned());
        JournalError::Foreign { path, line, cause }
    };
    let decoded = |bytes: &[u8], number: usize, run: Option<&str>| {
        line::decode(bytes, run).map_err(|error| match error {
            LineError::Version(found) => JournalError::Version { path: path.to_owned(), line: number, found },
            error => refuse(number, &error.to_string()),
        })
    };
    let begun = decoded(&first, 1, None)?;
    let Event::Imported(said) = begun.line.event else { return Ok(None) };
    file.read_until(b'\n', &mut second).map_err(unreadable)?;
    if second.is_empty() {
        return Err(refuse(2, "the import did not finish: import the files again"));
    }
    if decoded(&second, 2, Some(&begun.run))?.line.event != Event::Finished {
        return Err(refuse(2, "only `Finished` follows an import"));
    }
    if let Some(what) = limits::beyond(&said.plan) {
        return Err(refuse(1, &what));
    }
    let at: Timestamp = begun.line.at.parse().map_err(|_| refuse(1, "it was written at no time of day"))?;
    let known = |value: &ImportedValue| {
        usize::try_from(value.case).is_ok_and(|case| case < said.cases.len()) && value.file < said.files.len()
    };
    let numbered = said.cases.iter().enumerate().all(|(place, case)| case.id == place as u64);
    if !numbered || !said.values.iter().all(|value| known(value) && value.value().is_some()) {
        return Err(refuse(1, "a value of no case or no file, or one that is not a number"));
    }
    Ok(Some(ImportedRun { at, said: *said }))
}

/// By its first bytes; its sum decides afterwards.
fn is_import(line: &[u8]) -> bool {
    const HEAD: usize = 160;
    let head = String::from_utf8_lossy(&line[..line.len().min(HEAD)]);
    head.contains("\"event\":{\"Imported\":")
}

pub(crate) struct Measured<'i> {
    pub(crate) first: &'i ImportedValue,
    pub(crate) values: Vec<f64>,
    pub(crate) error: Option<String>,
    pub(crate) wrong: u64,
}

impl ImportedRun {
    pub fn tools(&self) -> String {
        tools(&self.said)
    }

    /// By case and metric, in the order of the cases.
    pub(crate) fn measured(&self) -> BTreeMap<(u64, Metric), Measured<'_>> {
        let mut all: BTreeMap<(u64, Metric), Measured<'_>> = BTreeMap::new();
        for one in &self.said.values {
            let Some(value) = one.value() else { continue };
            let entry = all.entry((one.case, one.metric));
            let entry = entry.or_insert_with(|| Measured { first: one, values: Vec::new(), error: None, wrong: 0 });
            entry.values.push(value);
            entry.error = entry.error.take().or_else(|| one.error.clone());
            entry.wrong = entry.wrong.saturating_add(one.wrong);
        }
        all
    }

    pub fn rows(&self) -> Vec<Row> {
        let row = |((case, metric), found): ((u64, Metric), Measured<'_>)| {
            let case = self.said.cases.get(usize::try_from(case).ok()?)?;
            let (cell, first) = (&case.cell, found.first);
            let manner = cell.manner.as_ref().map(|manner| {
                let reduction = manner.reduction.map(|word| format!(" reduction={word}")).unwrap_or_default();
                format!("datatype={}{reduction} in_place={}", manner.datatype, manner.in_place)
            });
            let of = CellColumns {
                run_id: self.said.run_id.as_str().into(),
                plan: self.said.plan.name.as_str().into(),
                test: Arc::clone(&case.test),
                op: cell.op.word().into(),
                size_bytes: cell.size,
                ranks: case.flow.ranks(),
                qps: cell.qps,
                transport: first.transport.as_str().into(),
                link_layer: first.link_layer.as_str().into(),
                src_memory: cell.memory.from.word().into(),
                dst_memory: cell.memory.to.word().into(),
                gpu_path: "".into(),
                src_device: first.device.as_str().into(),
                src_gpu: None,
                dst_device: "".into(),
                dst_gpu: None,
                env: manner.unwrap_or_default().into(),
                phase: Phase::Imported,
                tool: self.said.files.get(first.file)?.tool.as_str().into(),
            };
            let of = CaseColumns {
                of: of.into(),
                case: case.id,
                round: 0,
                started_at: Some(self.at).into(),
                src_host: Arc::clone(&case.flow.from.host),
                dst_host: Arc::clone(&case.flow.to.host),
                rail: case.flow.from.rail,
                verified_bytes: 0,
                wrong: found.wrong,
            };
            Some(Row {
                of: Arc::new(of),
                metric,
                value: median(&found.values).ok(),
                value_min: found.values.iter().copied().reduce(f64::min).into(),
                value_max: found.values.iter().copied().reduce(f64::max).into(),
                better: metric.better(),
                n: u32::try_from(found.values.len()).unwrap_or(u32::MAX),
                ceiling: None,
                error: found.error.map(Into::into),
            })
        };
        self.measured().into_iter().filter_map(row).collect()
    }
}
