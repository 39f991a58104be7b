//! `railgauge runs prune DIR`: deletes old runs, if it is told so.

use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use railgauge_analysis::words::amount;
use railgauge_model::{
    border::text::{path_quoted, path_text},
    plan::count::count,
};
use railgauge_wire::Bytes;
use serde::Serialize;

use crate::{
    cli::{Common, Exit, INDEXES, Misuse, no_run, tell},
    night::{Choice, Chosen, Keep, PruneError, choose, delete},
};

/// Arguments of `runs prune`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("kept").args(["keep_last", "keep_days"]).required(true).multiple(true))]
pub(super) struct Args {
    /// The directory of run directories
    runs: PathBuf,
    /// Keep the newest N finished runs of each plan
    #[arg(long, value_name = "N")]
    keep_last: Option<usize>,
    /// Keep runs that began within this many days
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<u32>,
    /// Keep every run with a failed verdict
    #[arg(long)]
    keep_failed: bool,
    /// Keep runs whose identity is in this file: a baseline, a sign-off, a list; repeat for more
    #[arg(long, value_name = "FILE")]
    named_in: Vec<PathBuf>,
    /// Delete what is listed; without this nothing is deleted
    #[arg(long)]
    yes: bool,
    /// Print every run and why it is kept as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Every run of the directory.
#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    runs: &'a [Choice],
    /// Files of --named-in that name none of them.
    names_none: &'a [String],
}

/// Lists what may go, and deletes it with `--yes`.
///
/// # Errors
/// There is no run, or a file that may name runs cannot be read.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    if !args.runs.is_dir() {
        return Err(
            Misuse(format!("{} is no directory: name the one that holds the runs", path_text(&args.runs))).into()
        );
    }
    let keep = Keep {
        last: args.keep_last,
        within: args.keep_days.map(|days| SignedDuration::from_hours(24 * i64::from(days))),
        failed: args.keep_failed,
        named_in: args.named_in,
    };
    let Chosen { runs: mut choices, idle } =
        choose(&args.runs, &keep, jiff::Timestamp::now()).map_err(|error| match error {
            PruneError::Night(error) => no_run(error),
            error @ PruneError::Named { .. } => error.into(),
        })?;
    let mut whole = true;
    for choice in choices.iter_mut().filter(|choice| args.yes && choice.kept.is_none()) {
        if let Err(error) = delete(choice) {
            tell(format_args!("error: {}: not deleted: {error}", choice.directory));
            whole = false;
        }
    }
    for file in &idle {
        tell(format_args!("warning: --named-in {file}: it names none of these runs"));
    }
    if choices.iter().any(|choice| choice.deleted)
        && let Some(page) = index_of(&args.runs)
    {
        common.say(format_args!(
            "note: {} may still list what was deleted; `railgauge runs list {} --html {}` writes it again",
            path_text(&page),
            path_quoted(&args.runs),
            path_quoted(&page)
        ));
    }
    let document = Document { version: 1, runs: &choices, names_none: &idle };
    // Without --yes the list is what was asked for.
    common.answer(args.json, &document, |_| text(&choices, args.yes))?;
    Ok(if whole { Exit::Passed } else { Exit::Unable })
}

/// A page of `railgauge runs list` in the directory of runs, where there is one.
fn index_of(runs: &Path) -> Option<PathBuf> {
    let page = runs.join("index.html");
    (page.exists() && INDEXES.only(&page).is_ok()).then_some(page)
}

fn text(choices: &[Choice], yes: bool) -> String {
    let mut text = String::new();
    for choice in choices {
        let what = match (&choice.kept, choice.deleted) {
            (Some(_), _) => "keep",
            (None, true) => "deleted",
            (None, false) => "delete",
        };
        let why = choice.kept.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        text += &format!("{what:<8} {}  {}  {}{why}\n", choice.began, choice.outcome.word(), choice.directory);
    }
    let (gone, kept): (Vec<&Choice>, Vec<&Choice>) = choices.iter().partition(|choice| choice.kept.is_none());
    let (deleted, left): (Vec<&Choice>, Vec<&Choice>) = gone.into_iter().partition(|choice| choice.deleted);
    let told = |those: &[&Choice], what: &str| {
        let bytes = Bytes(those.iter().map(|choice| choice.bytes).sum());
        format!("{} of {} {what}", count(those.len(), "run"), amount(bytes))
    };
    let told = match (yes, left.is_empty()) {
        (false, _) => told(&left, "would be deleted with --yes"),
        (true, true) => told(&deleted, "deleted"),
        (true, false) => format!("{}, {}", told(&deleted, "deleted"), told(&left, "not deleted")),
    };
    format!("{told}, {} kept\n{text}", kept.len())
}
