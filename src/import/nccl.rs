//! nccl-tests' text: comments that name the ranks, a header, rows, a footer. Versions differ in columns; the header says which.

use railgauge_model::plan::per_end::PerEnd;
use railgauge_wire::{Bytes, Datatype, Memory, Metric, Op, Reduction, Service, TestMetric, Transport};

use super::{ImportError, Kind, Line, Lines, Output, SAME, Said, found::Elements, number};

/// Columns of results that appear twice: out of place, then in place.
const TIMES: [&str; 2] = ["time", "cputime"];

pub(super) fn is_header(text: &str) -> bool {
    let mut words = text.strip_prefix('#').unwrap_or_default().split_whitespace();
    words.next() == Some("size") && words.next() == Some("count") && text.contains("busbw")
}

pub(super) fn is_start(text: &str) -> bool {
    text.starts_with("# nThread ")
}

fn op_of(program: &str) -> Option<Op> {
    let name = program.rsplit('/').next()?.strip_suffix("_perf")?;
    match name {
        "all_reduce" => Some(Op::AllReduce),
        "broadcast" => Some(Op::Broadcast),
        "reduce" => Some(Op::Reduce),
        "all_gather" => Some(Op::AllGather),
        "reduce_scatter" => Some(Op::ReduceScatter),
        "alltoall" => Some(Op::AllToAll),
        "sendrecv" => Some(Op::SendRecv),
        _ => None,
    }
}

const OPS: &str = "operations are all_reduce, broadcast, reduce, all_gather, reduce_scatter, alltoall and sendrecv";

fn datatype(word: &str) -> Option<Datatype> {
    Some(match word {
        "float" => Datatype::F32,
        "double" => Datatype::F64,
        "half" => Datatype::F16,
        "bfloat16" => Datatype::Bf16,
        "f8e4m3" | "fp8_e4m3" => Datatype::F8e4m3,
        "f8e5m2" | "fp8_e5m2" => Datatype::F8e5m2,
        "int8" => Datatype::I8,
        "uint8" => Datatype::U8,
        "int32" => Datatype::I32,
        "uint32" => Datatype::U32,
        "int64" => Datatype::I64,
        "uint64" => Datatype::U64,
        _ => return None,
    })
}

fn kind(op: Option<Op>, datatype: Datatype, reduction: Option<Reduction>, in_place: bool) -> Kind {
    Kind {
        op,
        metric: TestMetric::Bandwidth,
        transport: Transport::Nccl,
        service: Service::Rc,
        memory: PerEnd::same(Memory::Cuda),
        qps: 1,
        bidirectional: false,
        elements: Some(Elements { datatype, reduction, in_place }),
    }
}

pub(super) fn read(lines: &Lines<'_>) -> Result<Output, ImportError> {
    let mut output = Output::of("nccl-tests");
    output.notes.push("times are not taken: they are size over algorithm bandwidth".to_owned());
    let (mut op, mut header, mut bounds, mut closed) = (None, None::<Vec<&str>>, None, false);
    for &line in lines.all() {
        let words = line.words();
        match words.as_slice() {
            ["#", "nccl-tests", "version", version, ..] => output.version = Some((*version).to_owned()),
            ["#", "Collective", "test", "starting:", program, ..] => {
                let found = op_of(program);
                op = Some(found.ok_or_else(|| line.unsupported(&format!("`{program}`"), OPS))?);
            }
            ["#", "Rank", rank, ..] if header.is_none() => {
                let host = words.iter().position(|word| *word == "on").and_then(|at| words.get(at + 1));
                let expected = format!("rank {} and its host: `# Rank N … on HOST device D`", output.ranks.len());
                let is_next = number::whole(rank) == Some(output.ranks.len() as u64);
                let host = host.filter(|_| is_next).ok_or_else(|| line.malformed(expected))?;
                output.ranks.push((*host).to_owned());
            }
            ["#", "Out", "of", "bounds", "values", ":", count, state, ..] => {
                let count = number::whole(count).ok_or_else(|| line.malformed("a count of wrong values"))?;
                bounds = Some((count, *state));
            }
            ["#", "Avg", "bus", "bandwidth", ":", ..] => closed = true,
            _ if is_header(line.text) => {
                if header.is_some() {
                    return Err(line.malformed("one table in a file for each run"));
                }
                header = Some(words[1..].to_vec());
            }
            [first, ..] if first.starts_with('#') => {}
            [] => {}
            _ => {
                // Before the table and after the footer there may be other output: NCCL_DEBUG, the launcher.
                if let Some(columns) = header.as_ref().filter(|_| bounds.is_none()) {
                    // NCCL's own messages are interleaved: `host:pid:tid [0] NCCL INFO …`.
                    if !line.text.contains(" NCCL ") {
                        output.said.extend(row(line, columns, op)?);
                    }
                }
            }
        }
    }
    if header.is_none() {
        return Err(lines.truncated("the header of the results"));
    }
    let Some((count, state)) = bounds.filter(|_| closed) else {
        return Err(lines.truncated("`# Out of bounds values` and `# Avg bus bandwidth` after the results"));
    };
    if output.said.is_empty() {
        return Err(lines.truncated("a row of results"));
    }
    if (count > 0 || state != "OK") && output.said.iter().all(|said| said.wrong == 0) {
        let values = if count == 1 { "value" } else { "values" };
        let error = format!("the tool counts {count} {values} out of bounds and does not say where");
        output.said.iter_mut().for_each(|said| said.error = Some(error.clone()));
    }
    Ok(output)
}

fn row(line: Line<'_>, columns: &[&str], op: Option<Op>) -> Result<Vec<Said>, ImportError> {
    let words = line.words();
    // `timestamp` is a day and a time.
    let wide = columns.len() + usize::from(columns.last() == Some(&"timestamp"));
    if words.len() != columns.len() && words.len() != wide {
        let expected = format!("{} columns of results, or `# Out of bounds values`", columns.len());
        return Err(line.malformed(expected));
    }
    let at = |name: &str| columns.iter().position(|column| *column == name).and_then(|at| words.get(at)).copied();
    let expected = |what: &str, word: &str| line.wrong(what, word);
    let size = at("size").and_then(number::whole).ok_or_else(|| line.malformed("a size in bytes"))?;
    let kind_word = at("type").unwrap_or_default();
    let datatype = datatype(kind_word).ok_or_else(|| expected("a type of nccl-tests", kind_word))?;
    let reduction = match at("redop") {
        None | Some("none") => None,
        Some(word) => Some(Reduction::from_word(word).ok_or_else(|| expected("a reduction of nccl-tests", word))?),
    };
    let mut said = Vec::new();
    let mut in_place = None;
    for (column, word) in columns.iter().zip(words) {
        let metric = match *column {
            name if TIMES.contains(&name) => {
                in_place = Some(in_place.is_some());
                _ = number::real(word).ok_or_else(|| expected("a time", word))?;
                continue;
            }
            "algbw" => Metric::Algbw,
            "busbw" => Metric::Busbw,
            "#wrong" | "error" if word != "N/A" => {
                let count = number::real(word).ok_or_else(|| expected("a count or N/A", word))?;
                // Older versions have the largest difference here; the footer says whether it is too large.
                if *column == "#wrong" && count.parse::<f64>().is_ok_and(|count| count > 0.0) {
                    let wrong = count.parse::<f64>().map_or(1, |count| count as u64);
                    let now: Vec<&mut Said> = said.iter_mut().rev().take(2).collect();
                    for one in now {
                        let one: &mut Said = one;
                        (one.wrong, one.error) = (wrong, Some(format!("{wrong} wrong elements")));
                    }
                }
                continue;
            }
            _ => continue,
        };
        let in_place = in_place.ok_or_else(|| line.malformed("a time before its bandwidths"))?;
        let written = number::real(word).ok_or_else(|| expected("a bandwidth in GB/s", word))?;
        let kind = kind(op, datatype, reduction, in_place);
        said.push(Said::new(line.number, kind, Bytes(size), metric, written, SAME));
    }
    if said.is_empty() {
        return Err(line.malformed("bandwidths"));
    }
    Ok(said)
}
