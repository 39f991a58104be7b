//! Converts outputs of other tools to values of the frame, marked as not ours. The content of a file determines its tool, never its name.
//!
//! | file | does |
//! | --- | --- |
//! | `lines` | lines with their numbers, and prefixes of `mpirun` and `srun` |
//! | `number` | numbers of the text |
//! | `refusal` | why a file is refused, with its line |
//! | `found` | the content of a file |
//! | `perftest` | `ib_write_bw` and the like |
//! | `nccl` | nccl-tests |
//! | `nixlbench` | nixlbench of NIXL |
//! | `iperf3` | JSON of iperf3's client |
//! | `run` | the journal of an imported run |
//!
//! `docs/formats.md` has the formats and units for users.

mod found;
mod iperf3;
mod lines;
mod nccl;
mod nixlbench;
mod number;
mod perftest;
mod refusal;
mod run;

pub use found::{Elements, Kind, Output, Said};
pub use refusal::ImportError;
pub use run::{Given, Source, imported};

use railgauge_wire::Metric;

pub(crate) use found::SAME;
pub(crate) use lines::{Line, Lines};

/// Reads everything in a file. `name` is used in errors.
///
/// # Errors
/// It is not a known format, is incomplete, or has content that the frame cannot represent.
pub fn read(name: &str, bytes: &[u8]) -> Result<Vec<Output>, ImportError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        ImportError::malformed(name, line as u64, "text in UTF-8", "other bytes")
    })?;
    let mut outputs = parsed(name, text)?;
    // The bus bandwidth of a small collective is printed with two digits.
    let zero = |said: &&mut Said| said.metric == Metric::Bandwidth && said.written.parse() == Ok(0.0);
    for said in outputs.iter_mut().flat_map(|output| &mut output.said).filter(zero) {
        said.error.get_or_insert_with(|| "a bandwidth of 0: nothing arrived".to_owned());
    }
    Ok(outputs)
}

fn parsed(name: &str, text: &str) -> Result<Vec<Output>, ImportError> {
    if text.trim_start().starts_with('{') {
        return iperf3::read(name, text).map(|output| vec![output]);
    }
    if !text.ends_with('\n') {
        let last = text.lines().count().max(1) as u64;
        return Err(ImportError::truncated(name, last, "a line break at the end of the last line"));
    }
    let mut outputs = Vec::new();
    for lines in lines::streams(name, text)? {
        outputs.extend(of_stream(&lines)?);
    }
    if outputs.is_empty() {
        return Err(ImportError::unknown(name));
    }
    Ok(outputs)
}

/// Whether a line shows the tool, and its reader.
type Tool = (fn(&str) -> bool, fn(&Lines<'_>) -> Result<Vec<Output>, ImportError>);

const TEXTS: [Tool; 3] = [
    (|text| perftest::is_title(text) || perftest::is_header(text), perftest::read),
    (|text| nccl::is_header(text) || nccl::is_start(text), |lines| nccl::read(lines).map(|output| vec![output])),
    (nixlbench::is_start, |lines| nixlbench::read(lines).map(|output| vec![output])),
];

fn of_stream(lines: &Lines<'_>) -> Result<Vec<Output>, ImportError> {
    let first = |is: fn(&str) -> bool| lines.all().iter().find(|line| is(line.text));
    let found: Vec<_> = TEXTS.iter().filter_map(|(is, read)| Some((first(*is)?, read))).collect();
    match found.as_slice() {
        [] => Ok(Vec::new()),
        [(_, read)] => read(lines),
        // A reader skips other tools' output: their values would be lost silently.
        [(first, _), rest @ ..] => {
            let last = rest.iter().map(|(line, _)| *line).fold(*first, |a, b| if b.number > a.number { b } else { a });
            Err(last.malformed("one tool in a file: give each its own"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_of_zero_is_an_error_and_no_value() {
        let text = include_str!("../../tests/imports/perftest-4.5-write-bw-a.txt").replace("11012.55", "0.00");
        let said = &read("x.txt", text.as_bytes()).unwrap()[0].said;
        let failed: Vec<_> = said.iter().filter(|said| said.error.is_some()).collect();
        assert_eq!(failed.len(), 1);
        assert_eq!((failed[0].metric, failed[0].size), (Metric::Bandwidth, railgauge_wire::unit::Bytes(4096)));
    }
}
