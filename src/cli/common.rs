//! What every command understands, and the two streams: data on stdout, everything else on stderr.

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use railgauge_wire::terms::Metric;
use serde::Serialize;

use super::Misuse;
use crate::{
    analysis::history::RunError,
    border::text::{for_terminal, path_text},
    plan::{self, Loaded},
    run::directory::FILES,
};

/// Why runs that were named cannot be used. A run that was given twice is a mistake of the command line.
pub fn unusable(error: RunError) -> anyhow::Error {
    match error {
        copy @ RunError::Copy { .. } => Misuse(copy.to_string()).into(),
        error => error.into(),
    }
}

/// Flags of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Say only what is wrong
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say what agents and launchers say too, as it comes; log.txt of a run has it all
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

impl Common {
    /// Whether text on stderr may be coloured: a terminal is there to show it, and `NO_COLOR` is not set.
    pub fn colour(&self) -> bool {
        coloured()
    }

    /// A line for people, on stderr; nothing with `-q`.
    pub fn say(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            tell(text);
        }
    }

    /// Shows an answer on stdout: all of `document` as JSON, or else its summary, made with or without colours. With `-q`
    /// there is a summary only where something is wrong, so where not everything is `well`.
    ///
    /// # Errors
    /// stdout cannot be written, for example because a disk is full.
    pub fn answer(
        &self,
        json: bool,
        document: &impl Serialize,
        well: bool,
        summary: impl FnOnce(bool) -> String,
    ) -> anyhow::Result<()> {
        match (json, self.quiet && well) {
            (true, _) => print(&(serde_json::to_string_pretty(document).context("cannot write the answer")? + "\n")),
            (false, true) => Ok(()),
            (false, false) => {
                let colour = self.colour() && io::stdout().is_terminal();
                print(&for_terminal(&summary(colour), colour))
            }
        }
    }

    /// The plan in a file, after what is worth knowing of it; `None` after every mistake in it.
    pub fn plan(&self, path: &Path) -> Option<Loaded> {
        match plan::load(path) {
            Ok(loaded) => {
                let notes = loaded.notes.render(self.colour());
                if !notes.trim().is_empty() {
                    self.say(notes.trim_end());
                }
                Some(loaded)
            }
            Err(mistakes) => {
                tell(mistakes.render(self.colour()).trim_end());
                None
            }
        }
    }
}

/// Whether text on stderr may be coloured: a terminal is there to show it, and `NO_COLOR` is not set.
fn coloured() -> bool {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !forbidden && !dumb && io::stderr().is_terminal()
}

/// A line on stderr. Where nobody reads it any more (a terminal that was closed, `2>&1 | head`), the work goes on.
pub fn tell(text: impl std::fmt::Display) {
    let text = text.to_string();
    let _ = writeln!(io::stderr(), "{}", for_terminal(&text, coloured()));
}

/// Writes data to stdout. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// stdout cannot be written, for example because a disk is full.
pub fn print(data: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(data.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// A metric by its name, for the command line.
///
/// # Errors
/// There is no such metric; in words, with those there are.
pub fn metric(word: &str) -> Result<Metric, String> {
    let known = || Metric::ALL.iter().map(|metric| metric.word()).collect::<Vec<_>>().join(", ");
    Metric::from_word(word).ok_or_else(|| format!("there is no such metric; there are {}", known()))
}

/// Refuses to write what a command makes of runs into the place of a run's own file, of which it may be the only copy.
///
/// # Errors
/// The path is that of a file of a run directory.
pub fn no_file_of_a_run(path: &Path) -> anyhow::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let own = path.file_name().is_some_and(|name| FILES.iter().any(|own| name == *own));
    if own && directory.join("records.jsonl").exists() {
        let (path, run) = (path_text(path), path_text(directory));
        return Err(Misuse(format!("-o {path}: that is a file of the run in {run}; give another name")).into());
    }
    Ok(())
}

/// Where a page goes: where it was asked for, or under `reports` by what it is and the time.
///
/// # Errors
/// The directory cannot be made, or the page would lie in the place of a run's own file.
pub fn page_path(asked: Option<PathBuf>, what: &str) -> anyhow::Result<PathBuf> {
    asked.as_deref().map_or(Ok(()), no_file_of_a_run)?;
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let path = asked.unwrap_or_else(|| PathBuf::from("reports").join(format!("{what}-{now}.html")));
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", path_text(parent)))?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_run_is_never_overwritten() {
        let run = tempfile::tempdir().unwrap();
        let refused = |name: &str| no_file_of_a_run(&run.path().join(name)).is_err();
        assert!(!FILES.iter().any(|name| refused(name)), "this is no run directory yet");
        fs::write(run.path().join("records.jsonl"), "").unwrap();
        assert!(FILES.iter().all(|name| refused(name)));
        assert!(!refused("compare.html"));
        assert!(page_path(Some(run.path().join("plan.toml")), "trend").is_err());
    }
}
