//! nccl-tests' JSON (`-J`, from 2.17.3 on).

use railgauge_wire::{
    terms::{Metric, Reduction},
    unit::Bytes,
};
use serde::Deserialize;
use serde_json::Number;

use super::{
    ImportError, Output, Said,
    found::SAME,
    nccl::{OPS, datatype, kind, op_of},
};

#[derive(Deserialize)]
struct Document {
    args: Vec<String>,
    config: Config,
    results: Vec<Row>,
    out_of_bounds: Bounds,
}

#[derive(Deserialize)]
struct Config {
    nthreads: u32,
    ngpus: u32,
    devices: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    hostname: String,
}

#[derive(Deserialize)]
struct Row {
    size: u64,
    #[serde(rename = "type")]
    datatype: String,
    redop: String,
    out_of_place: Option<Half>,
    in_place: Option<Half>,
}

#[derive(Deserialize)]
struct Half {
    alg_bw: Number,
    bus_bw: Number,
    nwrong: Option<f64>,
}

#[derive(Deserialize)]
struct Bounds {
    count: u64,
}

const MOST: u32 = 1024;

pub(super) fn read(file: &str, text: &str) -> Result<Output, ImportError> {
    let document: Document = serde_json::from_str(text).map_err(|error| of_json(file, text, &error))?;
    let unsupported = |what: String, known: &str| ImportError::unsupported(file, 1, what, known);
    let program = document.args.first().map(String::as_str).unwrap_or_default();
    let op = op_of(program).ok_or_else(|| unsupported(format!("`{program}`"), OPS))?;
    let mut output = Output::of("nccl-tests");
    // Each process is listed by its first GPU.
    let each = document.config.nthreads.saturating_mul(document.config.ngpus);
    if each == 0 || each > MOST || document.config.devices.is_empty() {
        return Err(ImportError::malformed(file, 1, "devices, and GPUs of each process", &each.to_string()));
    }
    let hosts = document.config.devices.iter().flat_map(|device| (0..each).map(|_| device.hostname.clone()));
    output.ranks = hosts.collect();
    output.notes.push("the JSON does not name the version of nccl-tests, only that of NCCL".to_owned());
    let unlocated = document.out_of_bounds.count;
    for row in &document.results {
        let line = line_of(text, row.size);
        let malformed = |expected: &str, found: &str| ImportError::malformed(file, line, expected, found);
        let datatype = datatype(&row.datatype).ok_or_else(|| malformed("a type of nccl-tests", &row.datatype))?;
        let reduction = match row.redop.as_str() {
            "none" | "" => None,
            word => Some(Reduction::from_word(word).ok_or_else(|| malformed("a reduction of nccl-tests", word))?),
        };
        for (half, in_place) in [(&row.out_of_place, false), (&row.in_place, true)] {
            let Some(half) = half else { continue };
            let wrong = half.nwrong.map_or(0, |count| count as u64);
            for (metric, number) in [(Metric::Algbw, &half.alg_bw), (Metric::Busbw, &half.bus_bw)] {
                if !number.as_f64().is_some_and(|value| value.is_finite() && value >= 0.0) {
                    return Err(malformed("a bandwidth in GB/s", &number.to_string()));
                }
                let kind = kind(Some(op), datatype, reduction, in_place);
                let error = (wrong > 0).then(|| format!("{wrong} wrong elements"));
                let said = Said::new(line, kind, Some(Bytes(row.size)), metric, number, SAME);
                output.said.push(Said { error, wrong, ..said });
            }
        }
    }
    if output.said.is_empty() {
        return Err(ImportError::truncated(file, text.lines().count().max(1) as u64, "results"));
    }
    if unlocated > 0 && output.said.iter().all(|said| said.wrong == 0) {
        let error = format!("the tool counts {unlocated} values out of bounds and does not say where");
        output.said.iter_mut().for_each(|said| said.error = Some(error.clone()));
    }
    Ok(output)
}

fn line_of(text: &str, size: u64) -> u64 {
    let words = [format!("\"size\":{size}"), format!("\"size\": {size}")];
    let found = (1..).zip(text.lines()).find(|(_, line)| words.iter().any(|word| line.contains(word)));
    found.map_or(1, |(line, _)| line)
}

pub(super) fn of_json(file: &str, text: &str, error: &serde_json::Error) -> ImportError {
    let line = error.line().max(1) as u64;
    if error.is_eof() {
        return ImportError::truncated(file, line, format!("the rest of the JSON ({error})"));
    }
    let found = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    // One line may hold everything: show the text at the place.
    let start: String = found.chars().skip(error.column().saturating_sub(20)).collect();
    ImportError::malformed(file, line, format!("what this JSON has elsewhere ({error})"), start.trim())
}
