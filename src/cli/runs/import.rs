//! `railgauge runs import FILE…`: outputs of other tools as a run that is marked as not ours.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context;
use jiff::Timestamp;
use railgauge_frame::Parquet;
use railgauge_model::{
    border::text::path_text,
    directory::JOURNAL,
    files,
    journal::{
        event::{Event, Imported},
        line,
    },
    schedule::Port,
};
use railgauge_report::imported;
use railgauge_wire::Op;
use sha2::{Digest, Sha256};

use crate::{
    cli::{Common, Exit, Misuse},
    import::{self, Given, Source},
};

/// Largest file that is read, in bytes: a table of a million rows.
const LARGEST: u64 = 256 << 20;

/// Arguments of `runs import`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Outputs of perftest, nccl-tests or nixlbench (text) or iperf3 (JSON); several are repeats of one run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The directory of the imported run
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The host that sends, as our plan names it, and its rail [default rail: 0]
    #[arg(long, value_name = "HOST[:RAIL]", value_parser = port)]
    from: Option<Port>,
    /// The host that receives
    #[arg(long, value_name = "HOST[:RAIL]", value_parser = port)]
    to: Option<Port>,
    /// Name of the test of ours that it is compared with [default: one made of tool, operation and metric]
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
    /// Operation, where the file does not name it (nccl-tests before 2.16.7)
    #[arg(long, value_name = "OP", value_parser = op)]
    op: Option<Op>,
    /// Version of the tool, where the file does not say it (text of perftest)
    #[arg(long, value_name = "VERSION")]
    tool_version: Option<String>,
    /// When it was measured, such as 2026-11-26T03:00:00Z [default: what the file says, else when the first file was changed]
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// Print what was imported as JSON on stdout
    #[arg(long)]
    json: bool,
}

fn port(text: &str) -> Result<Port, String> {
    let (host, rail) = match text.rsplit_once(':') {
        // A bare IPv6 address has colons too.
        Some((host, rail)) if !host.contains(':') => (
            host,
            rail.parse().map_err(|_| format!("`{rail}` is not a rail: rails are numbers from 0, such as gpu01:0"))?,
        ),
        _ => (text, 0),
    };
    if host.is_empty() { Err("a host before the rail, such as gpu01:0".to_owned()) } else { Ok(Port::new(host, rail)) }
}

fn op(word: &str) -> Result<Op, String> {
    let known = || Op::ALL.iter().map(|op| op.word()).collect::<Vec<_>>().join(", ");
    Op::from_word(word).ok_or_else(|| format!("no such operation; operations are {}", known()))
}

/// Imports files into a new run directory.
///
/// # Errors
/// A file cannot be read or is refused, or the directory is not empty or cannot be written. Nothing is written then.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let directory = &args.output;
    if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Misuse(format!("-o {}: is not empty: name a new directory", path_text(directory))).into());
    }
    let given = Given { from: args.from, to: args.to, test: args.test, op: args.op, tool_version: args.tool_version };
    let sources = args.files.iter().map(|file| source(file)).collect::<anyhow::Result<Vec<Source>>>()?;
    let run_id = directory.file_name().map_or_else(|| "imported".into(), |name| path_text(Path::new(name)));
    let said = import::imported(&run_id, env!("CARGO_PKG_VERSION"), &sources, &given)
        .map_err(|refused| Misuse(refused.to_string()))?;
    let told = sources.iter().flat_map(|source| &source.outputs).filter_map(|output| output.seconds).min();
    let at = match (args.at, told.and_then(|seconds| Timestamp::from_second(seconds).ok())) {
        (Some(at), _) | (None, Some(at)) => at,
        (None, None) => changed(&args.files)?,
    };
    write(directory, &said, at)?;
    let Some(view) = imported::write(directory, &Parquet)? else {
        anyhow::bail!("{} was changed while it was written", path_text(directory));
    };
    common.answer(args.json, &view, |_| view.text())?;
    Ok(Exit::Passed)
}

fn source(file: &Path) -> anyhow::Result<Source> {
    let name = path_text(file);
    let unread = || format!("cannot read {name}");
    if fs::metadata(file).with_context(unread)?.is_dir() {
        return Err(Misuse(format!("cannot read {name}: it is a directory; name the files in it")).into());
    }
    // A link leads to a file, and a pipe has no length: both are read up to the limit.
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).with_context(unread)?;
    opened.take(LARGEST + 1).read_to_end(&mut bytes).with_context(unread)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Misuse(format!("{name}: has more than {LARGEST} bytes: is this the output of the tool?")).into());
    }
    let outputs = import::read(&name, &bytes).map_err(|refused| Misuse(refused.to_string()))?;
    Ok(Source { name, sha256: hex::encode(Sha256::digest(&bytes)), outputs })
}

/// When the first file was changed.
fn changed(all: &[PathBuf]) -> anyhow::Result<Timestamp> {
    let first = all.first().context("no file")?;
    let about = fs::metadata(first).and_then(|about| about.modified()).with_context(|| path_text(first))?;
    Timestamp::try_from(about).with_context(|| path_text(first))
}

/// Writes the journal, as a whole or not at all.
fn write(directory: &Path, said: &Imported, at: Timestamp) -> anyhow::Result<()> {
    let at = at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
    // What the lines have in common: the same files make the same journal.
    let hashes: Vec<&str> = said.files.iter().map(|file| file.sha256.as_str()).collect();
    let run: String = hex::encode(Sha256::digest(hashes.join(" "))).chars().take(16).collect();
    let path = directory.join(JOURNAL);
    let cannot = || format!("{}: cannot be written", path_text(&path));
    let mut bytes = line::encode(&run, 1, &at, &Event::Imported(Box::new(said.clone()))).with_context(cannot)?;
    bytes.extend(line::encode(&run, 2, &at, &Event::Finished).with_context(cannot)?);
    files::make_directories(directory).with_context(cannot)?;
    files::write(&path, bytes).with_context(cannot)
}
