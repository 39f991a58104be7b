//! `railgauge query RUNS`: rows of the frames of many runs, filtered and in an order, for people and for other programs.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use railgauge_model::{
    border::text::{for_terminal, path_text},
    files,
};

use super::{
    Common, Exit, Misuse,
    common::{only_ours, print},
};
use crate::{
    analysis::{frame::COLUMNS, history, words::count},
    query::{self, Answer, Asked, QueryError},
};

/// The exit codes in words, for `query --help`.
const HELP: &str = "\
Filters compare columns: --where \"test = 'write-bw' and src_host like 'gpu0%' and value < 0.9 * ceiling\"
Words: and or not ( ) = != < <= > >= + - * / in (...) like '...' is null; sizes such as 64KiB; times such as '2026-11-26'

Exit codes:
    0  the rows were written, also where no row is left
    2  a filter, a column or another argument is wrong
    3  a run could not be read: its rows are missing
    4  no run could be read, or the file cannot be written";

/// Columns of the table unless others are asked for: the others would not fit a terminal.
const TABLE: &str = "run_id,test,metric,size_bytes,src_host,dst_host,value,unit,phase,tool";

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people
    Table,
    /// Comma-separated values
    Csv,
    /// One JSON document
    Json,
    /// One JSON object in a line for each row
    Jsonl,
    /// Parquet; needs -o
    Parquet,
}

/// Arguments of `query`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Run directories, directories of runs, or quoted patterns
    #[arg(required = true)]
    runs: Vec<String>,
    /// Keep the rows of which this is true
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,
    /// Columns, with commas between them [default: all of them; of a table those that fit]
    #[arg(long, value_name = "COLUMNS")]
    select: Option<String>,
    /// Columns to order by, each with ` desc` behind it for larger values first
    #[arg(long, value_name = "COLUMNS")]
    sort: Option<String>,
    /// Write no more rows than this
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How rows are written [default: table]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The file to write; it must not be there [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file of -o, whatever it is but a file of a run
    #[arg(long, requires = "output")]
    replace: bool,
}

fn misuse(option: &str, error: &QueryError) -> Misuse {
    Misuse(format!("{option}: {error}"))
}

/// Writes the rows.
///
/// # Errors
/// An argument is wrong, no run can be read, or the file cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let format = if args.json { Format::Json } else { args.format.unwrap_or(Format::Table) };
    if format == Format::Parquet && args.output.is_none() {
        return Err(Misuse("--format parquet: give a file with -o".to_owned()).into());
    }
    args.output.as_deref().map_or(Ok(()), |path| free(path, args.replace))?;
    let filter = args.filter.as_deref().map(query::filter).transpose();
    let filter = filter.map_err(|wrong| Misuse(format!("--where: {wrong}")))?;
    let every = || COLUMNS.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(",");
    let select = args.select.unwrap_or_else(|| if format == Format::Table { TABLE.to_owned() } else { every() });
    let columns = query::columns(&select).map_err(|wrong| misuse("--select", &wrong))?;
    let order = args.sort.as_deref().map_or(Ok(Vec::new()), query::order).map_err(|wrong| misuse("--sort", &wrong))?;
    let mut directories = Vec::new();
    for word in &args.runs {
        directories.extend(history::run_directories(word).map_err(|none| Misuse(none.to_string()))?);
    }
    let directories = history::without_repeats(directories);
    let mut answer = query::answer(&directories, &Asked { filter, columns, order, limit: args.limit })?;
    let shown = answer.frame.height();
    write(&mut answer, format, args.output.as_deref())?;
    for note in answer.notes() {
        common.say(format_args!("note: {note}"));
    }
    let of = if shown < answer.found { format!(" (of {})", answer.found) } else { String::new() };
    let place = args.output.as_deref().map_or_else(String::new, |path| format!("{}: ", path_text(path)));
    common.say(format_args!("{place}{}{of} of {}", count(shown, "row"), count(answer.runs.len(), "run")));
    Ok(if answer.left_out.is_empty() { Exit::Passed } else { Exit::Inconclusive })
}

fn write(answer: &mut Answer, format: Format, output: Option<&Path>) -> anyhow::Result<()> {
    let text = match format {
        Format::Parquet => {
            let Some(path) = output else { return Ok(()) };
            let write = |file: &std::fs::File| Ok(query::write_parquet(&mut answer.frame, file, path)?);
            let failed = |cause| anyhow::Error::from(cause).context(format!("cannot write {}", path_text(path)));
            return files::replace(path, write, failed);
        }
        Format::Csv => query::csv(answer)?,
        Format::Jsonl => query::lines(answer)?,
        Format::Json => {
            serde_json::to_string_pretty(&query::document(answer)?).context("cannot write the rows")? + "\n"
        }
        Format::Table => query::table(answer)?,
    };
    match output {
        Some(path) => files::write(path, &text).with_context(|| format!("cannot write {}", path_text(path))),
        None if format == Format::Table => print(&for_terminal(&text, false)),
        None => print(&text),
    }
}

/// Refuses what is there already, unless it is to be replaced: rows have no mark that tells them from those of other programs.
fn free(path: &Path, replace: bool) -> anyhow::Result<()> {
    if !replace && path.is_file() && path.metadata().is_ok_and(|found| found.len() > 0) {
        let path = path_text(path);
        return Err(Misuse(format!(
            "-o {path}: this file is there already; give another name, or replace it with --replace"
        ))
        .into());
    }
    only_ours(path, "file", |_| true)
}
