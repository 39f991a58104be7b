//! OSU micro-benchmarks of MPI: a title with the version, a header, rows until the next comment or the end. There is no footer.

use railgauge_wire::{
    terms::{Datatype, Memory, Metric, Op, Reduction, Service, TestMetric},
    unit::Bytes,
};

use super::{
    ImportError, Kind, Output, Said,
    found::{Elements, MB_TO_GIGABITS, SAME},
    lines::{Line, Lines},
    number,
};

/// Titles without the version, their operation, and whether they measure bandwidth.
const TESTS: [(&str, Op, bool); 10] = [
    ("Bandwidth Test", Op::Send, true),
    ("Bi-Directional Bandwidth Test", Op::Send, true),
    ("Latency Test", Op::Send, false),
    ("Allreduce Latency Test", Op::AllReduce, false),
    ("Broadcast Latency Test", Op::Broadcast, false),
    ("Reduce Latency Test", Op::Reduce, false),
    ("Allgather Latency Test", Op::AllGather, false),
    ("Reduce_scatter Latency Test", Op::ReduceScatter, false),
    ("All-to-All Personalized Exchange Latency Test", Op::AllToAll, false),
    ("Alltoall Latency Test", Op::AllToAll, false),
];

pub(super) fn is_title(text: &str) -> bool {
    text.starts_with("# OSU MPI")
}

pub(super) fn read(lines: &Lines<'_>) -> Result<Vec<Output>, ImportError> {
    let mut outputs: Vec<Output> = Vec::new();
    let mut open: Option<(Kind, Option<Vec<String>>)> = None;
    for &line in lines.all() {
        if is_title(line.text) {
            if let Some((_, header)) = &open {
                ended(lines, line.number, header.is_some(), outputs.last())?;
            }
            let (output, kind) = title(line)?;
            outputs.push(output);
            open = Some((kind, None));
            continue;
        }
        let (Some((kind, header)), Some(output)) = (&mut open, outputs.last_mut()) else { continue };
        if let Some(comment) = line.text.strip_prefix('#') {
            comment_of(line, comment.trim(), kind, header)?;
            let has_extremes =
                header.as_ref().is_some_and(|names| names.iter().any(|name| name.starts_with("Min Lat")));
            let note = "minima and maxima of -f are over ranks and are not taken";
            if has_extremes && !output.notes.iter().any(|known| known == note) {
                output.notes.push(note.to_owned());
            }
        } else if let Some(columns) = header.as_ref() {
            if line.text.is_empty() {
                continue;
            }
            // What follows the rows is a shell's or a scheduler's.
            if !line.text.starts_with(|c: char| c.is_ascii_digit()) && !output.said.is_empty() {
                open = None;
                continue;
            }
            output.said.push(row(line, *kind, columns)?);
        }
    }
    if let Some((_, header)) = &open {
        ended(lines, lines.last(), header.is_some(), outputs.last())?;
    }
    Ok(outputs)
}

fn ended(lines: &Lines<'_>, line: u64, has_header: bool, output: Option<&Output>) -> Result<(), ImportError> {
    match output {
        Some(output) if has_header && !output.said.is_empty() => Ok(()),
        _ if has_header => Err(ImportError::truncated(lines.file, line, "rows of results")),
        _ => Err(ImportError::truncated(lines.file, line, "the header `# Size …` and rows of results")),
    }
}

fn title(line: Line<'_>) -> Result<(Output, Kind), ImportError> {
    let text = line.text.trim_start_matches("# OSU MPI");
    let (memory, text) = match text.split_once(' ') {
        Some(("", text)) => (Memory::Host, text),
        Some(("-CUDA", text)) => (Memory::Cuda, text),
        _ => {
            let known = "memory is of the host or of CUDA";
            return Err(line.unsupported(&format!("`{}`", line.text), known));
        }
    };
    let (name, version) = text.rsplit_once(" v").ok_or_else(|| line.malformed("a version at the end of the title"))?;
    let &(name, op, is_bandwidth) = TESTS.iter().find(|(known, ..)| *known == name).ok_or_else(|| {
        let names: Vec<&str> = TESTS.iter().map(|(name, ..)| *name).collect();
        line.unsupported(&format!("`{name}`"), format!("tests are {}", names.join(", ")))
    })?;
    // The default types of the benchmarks that do not print one (before 7.1): reductions use floats, the rest bytes.
    let datatype = if op.reduces() { Datatype::F32 } else { Datatype::I8 };
    let elements = Elements { datatype, reduction: op.reduces().then_some(Reduction::Sum), in_place: false };
    let mut output = Output::of("OSU micro-benchmarks");
    output.version = Some(version.to_owned());
    let kind = Kind {
        op: Some(op),
        metric: if is_bandwidth { TestMetric::Bandwidth } else { TestMetric::Latency },
        transport: None,
        service: Service::Rc,
        memory,
        qps: 1,
        bidirectional: name.starts_with("Bi-"),
        elements: op.is_collective().then_some(elements),
    };
    Ok((output, kind))
}

fn comment_of(
    line: Line<'_>,
    comment: &str,
    kind: &mut Kind,
    header: &mut Option<Vec<String>>,
) -> Result<(), ImportError> {
    if comment.starts_with("Size") {
        let columns: Vec<String> = names(comment).collect();
        let wanted = if kind.metric == TestMetric::Bandwidth { is_bandwidth } else { is_latency };
        if !columns.iter().any(|name| wanted(name)) {
            return Err(line.malformed("a header with `Bandwidth (MB/s)` or `Avg Latency(us)`"));
        }
        *header = Some(columns);
    } else if let Some(word) = comment.strip_prefix("Datatype:") {
        let word = word.trim().trim_end_matches('.');
        let datatype = match word {
            "MPI_CHAR" => Datatype::I8,
            "MPI_INT" => Datatype::I32,
            "MPI_FLOAT" => Datatype::F32,
            _ => {
                let known = "types are MPI_CHAR, MPI_INT and MPI_FLOAT";
                return Err(line.unsupported(&format!("`{word}`"), known));
            }
        };
        if let Some(elements) = &mut kind.elements {
            elements.datatype = datatype;
        }
    } else if comment.contains("Buffer on") {
        let [device, host] = ["DEVICE", "HOST"].map(|word| comment.contains(&format!("Buffer on {word}")));
        kind.memory = match (device, host) {
            (true, false) => Memory::Cuda,
            (false, true) => Memory::Host,
            _ => {
                let known = "both buffers are in one kind of memory";
                return Err(line.unsupported(&format!("`{comment}`"), known));
            }
        };
    }
    Ok(())
}

/// Column names are separated by at least two spaces, and may contain one.
fn names(header: &str) -> impl Iterator<Item = String> {
    header.split("  ").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
}

fn is_bandwidth(name: &str) -> bool {
    name == "Bandwidth (MB/s)"
}

fn is_latency(name: &str) -> bool {
    matches!(name, "Latency (us)" | "Avg Latency(us)")
}

fn row(line: Line<'_>, kind: Kind, columns: &[String]) -> Result<Said, ImportError> {
    let words = line.words();
    if words.len() != columns.len() {
        return Err(line.malformed(format!("{} columns: {}", columns.len(), columns.join(", "))));
    }
    let size = words.first().and_then(|word| number::whole(word));
    let size = size.ok_or_else(|| line.malformed("a size in bytes"))?;
    let (mut written, mut error) = (None, None);
    for (name, word) in columns.iter().zip(words).skip(1) {
        let value = number::real(word);
        if name == "Validation" {
            error = match word {
                "Pass" => error,
                "Fail" => Some("the tool found wrong data".to_owned()),
                other => return Err(line.wrong("`Pass` or `Fail`", other)),
            };
        } else if is_bandwidth(name) || is_latency(name) {
            written = Some(value.ok_or_else(|| line.wrong("a number", word))?);
        } else if value.is_none() {
            return Err(line.wrong("a number", word));
        }
    }
    let is_rate = kind.metric == TestMetric::Bandwidth;
    let written = written.ok_or_else(|| line.malformed("a bandwidth or a latency"))?;
    let (metric, scale) = if is_rate { (Metric::Bandwidth, MB_TO_GIGABITS) } else { (Metric::LatencyMean, SAME) };
    Ok(Said {
        size_per_rank: matches!(kind.op, Some(Op::AllGather | Op::AllToAll)),
        wrong: u64::from(error.is_some()),
        error,
        ..Said::new(line.number, kind, Some(Bytes(size)), metric, written, scale)
    })
}
