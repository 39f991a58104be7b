//! `railgauge report RUN`: everything of a run directory drawn again, from its records alone.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
};

use crate::{
    analysis::verdict::{Status, Verdicts},
    cli::{Common, Exit, Misuse, common::print},
    report::{self, text},
};

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run directory, which holds records.jsonl
    run: PathBuf,
    /// Print the verdicts as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Draws the report; the summary, or the verdicts as JSON, go to stdout.
///
/// # Errors
/// The directory is no run directory, its journal cannot be read, or a file cannot be written.
pub fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    if !args.run.join("records.jsonl").is_file() {
        let run = args.run.display();
        return Err(Misuse(format!("{run} is no run directory: it holds no records.jsonl")).into());
    }
    let written = report::write(&args.run)?;
    if args.json {
        print(&written.verdicts.json()?)?;
    } else if !common.quiet {
        let colour = common.colour() && io::stdout().is_terminal();
        print(&text::summary(&written.view, &written.page, colour))?;
    }
    Ok(exit(&written.verdicts))
}

/// What the verdicts of a run make of the process.
pub fn exit(verdicts: &Verdicts) -> Exit {
    exit_of(verdicts.status)
}

/// What a status makes of the process.
pub fn exit_of(status: Status) -> Exit {
    match status {
        Status::Pass => Exit::Passed,
        Status::Fail => Exit::Failed,
        Status::Inconclusive | Status::NotRun => Exit::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_the_one_in_the_document() {
        for status in [Status::Pass, Status::Fail, Status::Inconclusive, Status::NotRun] {
            let verdicts = Verdicts {
                version: 1,
                run_id: String::new(),
                plan: String::new(),
                status,
                exit_code: status.exit_code(),
                sentence: String::new(),
                cases: Default::default(),
                verdicts: Vec::new(),
                troubles: Vec::new(),
                localisation: Vec::new(),
                interleaved: Vec::new(),
            };
            assert_eq!(exit(&verdicts).code(), verdicts.exit_code);
        }
    }
}
