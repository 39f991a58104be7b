//! nixlbench's text (`benchmark/nixlbench/src/utils/utils.cpp` of NIXL 1.4): a block of settings, then a table whose last
//! row has the largest block size. Columns are found by the header.

use railgauge_model::plan::per_end::PerEnd;
use railgauge_wire::{Bytes, Memory, Metric, Op, Service, TestMetric, Transport};

use super::{ImportError, Kind, Line, Lines, Output, Said, number};

const KNOWN: &str = "transfers between one device of each of two hosts, with one batch size, can be";
/// Other backends are storage.
const NETWORKS: [&str; 4] = ["UCX", "LIBFABRIC", "Mooncake", "UCCL"];
const SIZE: &str = "Block Size (B)";
const BATCH: &str = "Batch Size";
const BANDWIDTH: &str = "B/W (GB/Sec)";
const OTHERS: [&str; 9] = [
    "Avg Lat. (us)",
    "Avg Prep (us)",
    "P99 Prep (us)",
    "Avg Post (us)",
    "P99 Post (us)",
    "Avg Tx (us)",
    "P99 Tx (us)",
    "B/W (MiB/Sec)",
    "B/W (GiB/Sec)",
];
/// Gigabits per second of one GB/s of 10^9 bytes.
const GIGABYTES: (f64, f64) = (8.0, 1.0);

pub(super) fn is_start(text: &str) -> bool {
    text == "NIXLBench Configuration" || is_header(text)
}

fn is_header(text: &str) -> bool {
    text.starts_with(SIZE)
}

pub(super) fn read(lines: &Lines<'_>) -> Result<Output, ImportError> {
    let all = lines.all();
    let Some(at) = all.iter().position(|line| is_header(line.text)) else {
        return Err(lines.truncated(format!("a table with `{SIZE}`")));
    };
    let (settings, table) = (Settings(&all[..at], all[at]), &all[at + 1..]);
    let kind = settings.kind()?;
    let (batch, most) = (settings.whole("--start_batch_size")?, settings.whole("--max_block_size")?);
    settings.only("--max_batch_size", &[&batch.to_string()])?;
    let columns = columns(all[at])?;
    let mut output = Output::of("nixlbench");
    output.notes.push("the file does not say what carried the bytes; latencies are not taken".to_owned());
    for line in table.iter().filter(|line| !line.text.trim_matches('-').is_empty()) {
        let words = line.words();
        if words.len() != columns.len() {
            return Err(line.malformed(format!("{} columns of results", columns.len())));
        }
        let column =
            |name: &str| columns.iter().zip(&words).find(|(column, _)| **column == name).map_or("", |(_, word)| *word);
        let whole = |name: &str| number::whole(column(name)).ok_or_else(|| line.wrong("a whole number", column(name)));
        let size = whole(SIZE)?;
        if whole(BATCH)? != batch {
            return Err(line.wrong(format!("the batch size {batch}"), column(BATCH)));
        }
        let written = number::real(column(BANDWIDTH)).ok_or_else(|| line.wrong("a number", column(BANDWIDTH)))?;
        output.said.push(Said::new(line.number, kind, Bytes(size), Metric::Bandwidth, written, GIGABYTES));
        // Each size is twice the one before.
        if size.saturating_mul(2) > most {
            return Ok(output);
        }
    }
    Err(lines.truncated(format!("rows up to a block size of {most}")))
}

fn columns<'t>(header: Line<'t>) -> Result<Vec<&'t str>, ImportError> {
    let columns: Vec<&str> = header.text.split("  ").map(str::trim).filter(|name| !name.is_empty()).collect();
    if columns.contains(&"Aggregate B/W (GB/Sec)") {
        return Err(header.unsupported("a run of several pairs", KNOWN));
    }
    let is_known = |name: &&str| [SIZE, BATCH, BANDWIDTH].contains(name) || OTHERS.contains(name);
    match columns.iter().find(|name| !is_known(name)) {
        Some(other) => Err(header.wrong("a column of nixlbench", other)),
        None if !columns.contains(&BATCH) || !columns.contains(&BANDWIDTH) => {
            Err(header.malformed(format!("a header with `{BATCH}` and `{BANDWIDTH}`")))
        }
        None => Ok(columns),
    }
}

/// The lines above the table, and its header.
struct Settings<'l, 't>(&'l [Line<'t>], Line<'t>);

impl<'t> Settings<'_, 't> {
    /// `Op type (--op_type=[READ,WRITE])    : WRITE`.
    fn value(&self, option: &str) -> Result<(Line<'t>, &'t str), ImportError> {
        let named = format!("({option}=");
        let line = self.0.iter().find(|line| line.text.contains(&named));
        let line = line.ok_or_else(|| self.1.malformed(format!("the setting {option} above the table")))?;
        let value = line.text.rsplit_once(": ").ok_or_else(|| line.malformed(format!("a value of {option}")))?.1;
        Ok((*line, value.trim()))
    }

    fn whole(&self, option: &str) -> Result<u64, ImportError> {
        let (line, value) = self.value(option)?;
        number::whole(value).ok_or_else(|| line.wrong("a whole number", value))
    }

    fn only(&self, option: &str, known: &[&str]) -> Result<(), ImportError> {
        let (line, value) = self.value(option)?;
        if known.contains(&value) { Ok(()) } else { Err(line.unsupported(&format!("{option} {value}"), KNOWN)) }
    }

    fn memory(&self, option: &str) -> Result<Memory, ImportError> {
        match self.value(option)? {
            (_, "DRAM") => Ok(Memory::Host),
            (_, "VRAM") => Ok(Memory::Cuda),
            (line, other) => Err(line.wrong("DRAM or VRAM", other)),
        }
    }

    fn kind(&self) -> Result<Kind, ImportError> {
        self.only("--backend", &NETWORKS)?;
        self.only("--scheme", &["pairwise"])?;
        self.only("--num_initiator_dev", &["1"])?;
        self.only("--num_target_dev", &["1"])?;
        let op = match self.value("--op_type")? {
            (_, "READ") => Op::Read,
            (_, "WRITE") => Op::Write,
            (line, other) => return Err(line.wrong("READ or WRITE", other)),
        };
        Ok(Kind {
            op: Some(op),
            metric: TestMetric::Bandwidth,
            transport: Transport::Verbs,
            service: Service::Rc,
            memory: PerEnd { from: self.memory("--initiator_seg_type")?, to: self.memory("--target_seg_type")? },
            qps: 1,
            bidirectional: false,
            elements: None,
        })
    }
}
