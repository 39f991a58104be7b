//! perftest's text: a title, a block of settings, a table that ends with a line of dashes. Columns are found by the header, since they
//! differ by version and options.

use railgauge_model::plan::per_end::PerEnd;
use railgauge_wire::{Bytes, Memory, Metric, Op, Service, TestMetric, Transport};

use super::{ImportError, Kind, Line, Lines, Output, SAME, Said, found::MIB_TO_GIGABITS, number};

fn output() -> Output {
    let mut output = Output::of("perftest");
    output.notes.push("peak bandwidth and standard deviations are not taken".to_owned());
    output
}

/// The title: `RDMA_Write BW Test`, `Send Bidirectional BW Test`, `RDMA_Read Latency Test`.
pub(super) fn is_title(text: &str) -> bool {
    let verb = text.split_whitespace().next().unwrap_or_default();
    ["Send", "Send_imm", "RDMA_Write", "RDMA_Write_imm", "RDMA_Read", "Atomic"].contains(&verb)
        && text.ends_with(" Test")
        && (text.contains(" BW ") || text.contains(" Latency "))
}

const TESTS: &str = "tests are of write, read, send and atomics between a pair";

pub(super) fn is_header(text: &str) -> bool {
    text.starts_with("#bytes")
}

fn is_rule(text: &str) -> bool {
    text.len() > 20 && text.bytes().all(|byte| byte == b'-')
}

/// perftest's remarks on stderr about the host's clock, between the header and the first row where both go to one file.
fn is_remark(text: &str) -> bool {
    text.starts_with("Conflicting CPU frequency values") || text.starts_with("Warning: measured timestamp frequency")
}

fn kind_of(title: &str) -> Option<Kind> {
    let op = match title {
        t if t.starts_with("RDMA_Write_imm") => Op::WriteImm,
        t if t.starts_with("RDMA_Write") => Op::Write,
        t if t.starts_with("RDMA_Read") => Op::Read,
        t if t.starts_with("Send_imm") => return None,
        t if t.starts_with("Send") => Op::Send,
        t if t.starts_with("Atomic") && t.contains("FETCH_AND_ADD") => Op::AtomicFadd,
        t if t.starts_with("Atomic") && t.contains("CMP_AND_SWAP") => Op::AtomicCas,
        _ => return None,
    };
    if title.contains("Multicast") || title.contains("forwarding") {
        return None;
    }
    Some(Kind {
        op: Some(op),
        metric: if title.contains("Latency") { TestMetric::Latency } else { TestMetric::Bandwidth },
        transport: Transport::Verbs,
        service: Service::Rc,
        memory: PerEnd::same(Memory::Host),
        qps: 1,
        bidirectional: title.contains("Bidirectional"),
        elements: None,
    })
}

pub(super) fn read(lines: &Lines<'_>) -> Result<Vec<Output>, ImportError> {
    let (mut outputs, mut current, mut table): (Vec<Output>, Option<(Output, Kind)>, Option<Table>) =
        (Vec::new(), None, None);
    let mut on_gpu = false;
    for &line in lines.all() {
        let text = line.text;
        if let Some(open) = &table {
            let Some((output, kind)) = &mut current else { continue };
            if is_rule(text) {
                if output.said.is_empty() {
                    return Err(
                        line.malformed("a row of results: the end that waits prints none, import the other's output")
                    );
                }
                outputs.extend(current.take().map(|(output, _)| output));
                (table, on_gpu) = (None, false);
            } else if !text.is_empty() && !is_remark(text) {
                output.said.extend(open.row(line, *kind)?);
            }
        } else if is_title(text) {
            if current.is_some() {
                return Err(line.malformed("the table of the test before"));
            }
            let kind = kind_of(text).ok_or_else(|| line.unsupported(&format!("`{text}`"), TESTS))?;
            let memory = PerEnd::same(if on_gpu { Memory::Cuda } else { Memory::Host });
            current = Some((output(), Kind { memory, ..kind }));
        } else if is_header(text) {
            let Some((_, kind)) = &current else {
                return Err(line.malformed("one table under each title"));
            };
            table = Some(Table::of(line, kind.metric)?);
        } else if text.contains("GPU buffer") && !text.starts_with("deallocating") {
            on_gpu = true;
            if let Some((_, kind)) = &mut current {
                kind.memory = PerEnd::same(Memory::Cuda);
            }
        } else if let Some((output, kind)) = &mut current {
            for (name, value) in text.split("\t\t").filter_map(|part| part.split_once(':')) {
                setting(line, (name.trim(), value.trim()), output, kind)?;
            }
        }
    }
    match (current, outputs.is_empty()) {
        (Some(_), _) => Err(lines.truncated("rows of results and a line of dashes after them")),
        (None, true) => Err(lines.truncated("a title, a table and a line of dashes after it")),
        (None, false) => Ok(outputs),
    }
}

fn setting(
    line: Line<'_>,
    (name, value): (&str, &str),
    output: &mut Output,
    kind: &mut Kind,
) -> Result<(), ImportError> {
    let unsupported = |what: &str, known: &str| Err(line.unsupported(&format!("`{what}`"), known));
    match name {
        "Number of qps" => {
            let qps = number::whole(value).and_then(|qps| u32::try_from(qps).ok()).filter(|qps| *qps > 0);
            kind.qps = qps.ok_or_else(|| line.wrong("a number of queue pairs", value))?;
        }
        "Connection type" => {
            // perftest writes capitals.
            let service = Service::from_word(&value.to_ascii_lowercase());
            let Some(service) = service.filter(|_| value.bytes().all(|byte| byte.is_ascii_uppercase())) else {
                return unsupported(&format!("{name}: {value}"), "connections are RC, UC or UD");
            };
            kind.service = service;
            output.carrier = format!("verbs-{}", service.word());
        }
        "Device" => output.device = value.to_owned(),
        "Link type" => {
            let layer = match value {
                "IB" => "infiniband",
                "Ethernet" => "ethernet",
                _ => "unknown",
            };
            output.link_layer = layer.to_owned();
        }
        "Use ROCm memory" | "Use MUSA memory" if value == "ON" => {
            return unsupported(&format!("{name}: {value}"), "memory is of the host or of CUDA");
        }
        "musa device" => return unsupported(name, "memory is of the host or of CUDA"),
        "cuda device" => kind.memory = PerEnd::same(Memory::Cuda),
        _ => {}
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Column {
    Size,
    Metric(Metric, (f64, f64)),
    Other,
}

struct Table {
    columns: Vec<Column>,
}

impl Table {
    fn of(line: Line<'_>, metric: TestMetric) -> Result<Self, ImportError> {
        let mut columns = Vec::new();
        // Names of two words begin with one of these.
        let mut words = line.text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let next = words.peek().copied().unwrap_or_default();
            let is_pair =
                matches!(word, "BW" | "99%" | "99.9%" | "tps") || word == "MsgRate" && next.starts_with("Port");
            let name = if is_pair { format!("{word} {}", words.next().unwrap_or_default()) } else { word.to_owned() };
            let is_known = matches!(name.as_str(), "#iterations" | "#sl" | "tps average" | "t_stdev[usec]")
                || ["BW peak[", "BW Port", "MsgRate Port", "CPU_Util["].iter().any(|start| name.starts_with(start));
            columns.push(match name.as_str() {
                "#bytes" => Column::Size,
                "BW average[MB/sec]" | "BW average[MiB/sec]" => Column::Metric(Metric::Bandwidth, MIB_TO_GIGABITS),
                "BW average[Gb/sec]" => Column::Metric(Metric::Bandwidth, SAME),
                "MsgRate[Mpps]" => Column::Metric(Metric::MessageRate, SAME),
                "t_min[usec]" => Column::Metric(Metric::LatencyMin, SAME),
                "t_max[usec]" => Column::Metric(Metric::LatencyMax, SAME),
                "t_typical[usec]" => Column::Metric(Metric::LatencyP50, SAME),
                "t_avg[usec]" => Column::Metric(Metric::LatencyMean, SAME),
                "99% percentile[usec]" => Column::Metric(Metric::LatencyP99, SAME),
                "99.9% percentile[usec]" => Column::Metric(Metric::LatencyP999, SAME),
                _ if is_known => Column::Other,
                other => return Err(line.wrong("a column of perftest", other)),
            });
        }
        let wanted = if metric == TestMetric::Bandwidth { Metric::Bandwidth } else { Metric::LatencyMean };
        let is_there = |column: &Column| matches!(column, Column::Metric(metric, _) if *metric == wanted);
        if !columns.iter().any(is_there) {
            return Err(line.malformed("a header with `BW average` for bandwidth or `t_avg` for latency"));
        }
        Ok(Self { columns })
    }

    fn row(&self, line: Line<'_>, kind: Kind) -> Result<Vec<Said>, ImportError> {
        let words = line.words();
        let columns = self.columns.len();
        if words.len() != columns {
            return Err(line.malformed(format!("{columns} columns of results, or the closing line of dashes")));
        }
        let mut size = None;
        let mut said = Vec::new();
        for (column, word) in self.columns.iter().zip(words) {
            let expected = |what: &str| line.wrong(what, word);
            match column {
                Column::Size => size = Some(Bytes(number::whole(word).ok_or_else(|| expected("a size in bytes"))?)),
                Column::Other => _ = number::real(word).ok_or_else(|| expected("a number"))?,
                Column::Metric(metric, scale) => {
                    let written = number::real(word).ok_or_else(|| expected("a number"))?;
                    let size = size.ok_or_else(|| line.malformed("a size in the first column"))?;
                    said.push(Said::new(line.number, kind, size, *metric, written, *scale));
                }
            }
        }
        Ok(said)
    }
}
