//! What every command understands, and the two streams: data on stdout, everything else on stderr.

use std::{
    fs,
    io::{self, IsTerminal, Read, StdoutLock, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use railgauge_analysis::history::RunError;
use railgauge_model::{
    border::text::{for_terminal, path_text},
    directory::{FILES, JOURNAL},
    files,
    plan::{self, Loaded, Plan, allocation::Allocation, model::Launcher},
};
use railgauge_report::text::Screen;
use railgauge_wire::Metric;
use serde::Serialize;

use super::Misuse;
use crate::{cluster, night::NightError};

/// The name of this machine, as its kernel has it.
pub(super) fn hostname() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// A runtime for a command that talks to hosts.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")
}

/// Why runs that were named cannot be used. A run that was given twice is a mistake of the command line.
pub(super) fn unusable(error: RunError) -> anyhow::Error {
    match error {
        copy @ RunError::Copy { .. } => Misuse(copy.to_string()).into(),
        error => error.into(),
    }
}

/// Refuses what is no run directory.
///
/// # Errors
/// It has no records.
pub(super) fn run_directory(run: &Path) -> Result<(), Misuse> {
    let Err(error) = run.join(JOURNAL).symlink_metadata() else { return Ok(()) };
    let name = path_text(run);
    Err(Misuse(match fs::metadata(run) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("{name} is not there; name a directory that `railgauge run` made")
        }
        Err(error) => format!("{name} cannot be looked into: {error}"),
        Ok(found) if !found.is_dir() => format!("{name} is a file; name the run directory that it lies in"),
        Ok(_) if error.kind() == io::ErrorKind::PermissionDenied => format!("{name} cannot be looked into: {error}"),
        Ok(_) => {
            format!("{name} is not a run directory: it has no records.jsonl; name one that `railgauge run` made")
        }
    }))
}

/// Why no run counts. A word that stands for no run is a mistake of the command line.
pub(super) fn no_run(error: NightError) -> anyhow::Error {
    match error {
        none @ (NightError::NoRuns(_) | NightError::NoPlan { .. } | NightError::SeveralPlans { .. }) => {
            Misuse(none.to_string()).into()
        }
        error => error.into(),
    }
}

/// Bytes of a file that tell whether it is a page: all before the style sheet and the title.
const HEAD: u64 = 4096;

/// Flags of every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Common {
    /// Print one line: the answer
    #[arg(short, long, global = true, conflicts_with = "verbose", display_order = 100)]
    pub quiet: bool,
    /// Print all details, and output of agents and launchers as it arrives (log.txt of a run has all of it)
    #[arg(short, long, global = true, display_order = 100)]
    pub verbose: bool,
}

impl Common {
    /// Whether text on stderr may be coloured: a terminal is there to show it, and `NO_COLOR` is not set.
    pub(crate) fn colour(&self) -> bool {
        coloured()
    }

    /// A line for people, on stderr; nothing with `-q`.
    pub(crate) fn say(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            tell(text);
        }
    }

    /// Shows an answer on stdout: all of `document` as JSON, or else its summary, of which the first line is the answer and
    /// all that is printed with `-q`.
    ///
    /// # Errors
    /// stdout cannot be written, for example because a disk is full.
    pub(crate) fn answer(
        &self,
        json: bool,
        document: &impl Serialize,
        summary: impl FnOnce(&Screen) -> String,
    ) -> anyhow::Result<()> {
        if json {
            return print(&(serde_json::to_string_pretty(document).context("cannot write the result")? + "\n"));
        }
        let screen = self.screen();
        let text = summary(&screen);
        let text = if self.quiet { text.lines().next().unwrap_or_default().to_owned() + "\n" } else { text };
        print(&for_terminal(&text, screen.colour))
    }

    /// stdout, as wide as the terminal there. A line is never broken with `-q`.
    fn screen(&self) -> Screen {
        let is_terminal = io::stdout().is_terminal();
        let columns = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
        let columns = columns.filter(|columns| is_terminal && *columns > 0);
        let width = if self.quiet { usize::MAX } else { columns.map_or(Screen::PLAIN.width, |width| width.max(40)) };
        Screen { width, colour: self.colour() && is_terminal, verbose: self.verbose }
    }

    /// The plan in a file, for a command that contacts its hosts: pods that stand in place of names are asked for.
    ///
    /// # Errors
    /// The pods cannot be listed.
    pub(crate) fn plan_of_hosts(&self, path: &Path) -> anyhow::Result<Option<Loaded>> {
        Ok(self.plan_in(path, given(path)?.as_ref()))
    }

    /// The plan in a file, after what is worth knowing of it; `None` after every mistake in it.
    pub(crate) fn plan(&self, path: &Path) -> Option<Loaded> {
        self.plan_in(path, cluster::allocation().as_ref())
    }

    /// [`Common::plan`], with the allocation its hosts may come from.
    pub(crate) fn plan_in(&self, path: &Path, allocation: Option<&Allocation>) -> Option<Loaded> {
        match plan::load_in(path, allocation) {
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

/// What a scheduler or an orchestrator has for the plan in a file.
///
/// # Errors
/// The plan takes its hosts from pods, and they cannot be listed.
fn given(path: &Path) -> anyhow::Result<Option<Allocation>> {
    match plan::wanted_pods(path) {
        Some((kubectl, wanted)) => {
            let pods = Some(cluster::pods(&kubectl, &wanted)?);
            Ok(Some(Allocation { pods, ..Allocation::default() }))
        }
        None => Ok(cluster::allocation()),
    }
}

/// The addresses of a plan's hosts as they are now: a pod that was made anew has another name, on the same node. Where the plan
/// has no selector they stay.
///
/// # Errors
/// The pods cannot be listed, or a host of the run may be another machine now.
pub(super) fn found_again(plan: &mut Plan) -> anyhow::Result<()> {
    let (Some(wanted), Launcher::Kubectl(kubectl)) = (&plan.pods, &plan.launch.via) else { return Ok(()) };
    Ok(cluster::pods_again(kubectl, wanted, &mut plan.hosts)?)
}

/// Whether text on stderr may be coloured: a terminal is there to show it, and `NO_COLOR` is not set.
fn coloured() -> bool {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !forbidden && !dumb && io::stderr().is_terminal()
}

/// A line on stderr. Where nobody reads it any more (a terminal that was closed, `2>&1 | head`), the work goes on.
pub(super) fn tell(text: impl std::fmt::Display) {
    let text = text.to_string();
    let _ = writeln!(io::stderr(), "{}", for_terminal(&text, coloured()));
}

/// Writes data to stdout. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// stdout cannot be written, for example because a disk is full.
pub(super) fn print(data: &str) -> anyhow::Result<()> {
    write_out(|out| out.write_all(data.as_bytes()))
}

/// As [`print`], for data that is not held at once.
///
/// # Errors
/// stdout cannot be written.
pub(super) fn write_out(write: impl FnOnce(&mut StdoutLock<'_>) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// A metric by its name, for the command line.
///
/// # Errors
/// There is no such metric; in words, with those there are.
pub(super) fn metric(word: &str) -> Result<Metric, String> {
    let known = || Metric::ALL.iter().map(|metric| metric.word()).collect::<Vec<_>>().join(", ");
    Metric::from_word(word).ok_or_else(|| format!("no such metric; metrics are {}", known()))
}

/// Refuses to write what a command makes of runs into the place of a run's own file, of which it may be the only copy.
///
/// # Errors
/// The path is that of a file of a run directory.
pub(super) fn no_file_of_a_run(path: &Path) -> anyhow::Result<()> {
    let directory = files::directory_of(path);
    let own = path.file_name().is_some_and(|name| FILES.iter().any(|own| name == *own));
    if own && directory.join(JOURNAL).exists() {
        let (path, run) = (path_text(path), path_text(directory));
        return Err(Misuse(format!("-o {path}: this is a file of the run in {run}; give another name")).into());
    }
    Ok(())
}

/// Files of one kind, which a command of that kind may replace: what they are called, and how they begin.
pub(super) struct Ours(&'static str, fn(&str) -> bool);

/// Not sign-offs: one may be the only copy.
pub(super) const PAGES: Ours =
    Ours("page of railgauge that can be made again", |head| is_page(head) && !has_title(head, "sign-off: "));
pub(super) const SIGNOFFS: Ours = Ours("sign-off", |head| is_page(head) && has_title(head, "sign-off: "));
pub(super) const INDEXES: Ours =
    Ours("page of `railgauge runs list`", |head| is_page(head) && has_title(head, "runs of "));
pub(super) const METRICS: Ours =
    Ours("file of `railgauge status --format prometheus`", |head| head.starts_with("# HELP railgauge_"));
pub(super) const BASELINES: Ours = Ours("baseline", is_baseline);

impl Ours {
    /// Refuses to replace anything but an empty file or one of these.
    ///
    /// # Errors
    /// There is something else in this place, or it cannot be looked at.
    pub(super) fn only(&self, path: &Path) -> anyhow::Result<()> {
        no_file_of_a_run(path)?;
        let what = match fs::symlink_metadata(path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(());
            }
            Ok(found) if found.is_dir() => "this is a directory".to_owned(),
            // A stream that is not a file is not replaced by anything.
            Ok(_) if !path.is_file() => "this is not a regular file".to_owned(),
            _ => {
                let mut head = Vec::new();
                let file = fs::File::open(path).with_context(|| format!("-o {}: cannot be opened", path_text(path)))?;
                file.take(HEAD).read_to_end(&mut head).with_context(|| format!("cannot read {}", path_text(path)))?;
                if head.is_empty() || (self.1)(&String::from_utf8_lossy(&head)) {
                    return Ok(());
                }
                format!("this file is not a {}", self.0)
            }
        };
        Err(Misuse(format!("-o {}: {what} and will not be replaced; give another name", path_text(path))).into())
    }
}

/// Whether a file begins as the pages of all commands do.
fn is_page(head: &str) -> bool {
    head.starts_with("<!doctype html>") && head.contains("default-src 'none'; style-src 'unsafe-inline'")
}

/// Whether the title of a page begins so.
fn has_title(head: &str, begin: &str) -> bool {
    head.contains(&format!("<title>{begin}"))
}

/// Whether a file begins as baselines do.
fn is_baseline(head: &str) -> bool {
    let keys = ["\"version\":", "\"railgauge\":", "\"runs\":"].map(|key| head.find(key));
    head.starts_with('{') && keys[0].is_some() && keys.is_sorted()
}

/// Where a page goes: where it was asked for, or under `reports` by what it is and the time.
///
/// # Errors
/// The directory cannot be made, or the page would replace a file that is not a page.
pub(super) fn page_path(asked: Option<PathBuf>, what: &str, replaces: &Ours) -> anyhow::Result<PathBuf> {
    asked.as_deref().map_or(Ok(()), |path| replaces.only(path))?;
    let of = asked.as_deref().map_or(Path::new("reports"), |path| path.parent().unwrap_or(Path::new("")));
    if !of.as_os_str().is_empty() {
        files::make_directories(of).with_context(|| format!("cannot make {}", path_text(of)))?;
    }
    match asked {
        Some(path) => Ok(path),
        None => new_page(of, what).with_context(|| format!("cannot make a page in {}", path_text(of))),
    }
}

/// Writes a page where [`page_path`] says; a new name is free again if that fails.
///
/// # Errors
/// As [`page_path`], and those of `write`.
pub(super) fn write_page<T, E>(
    asked: Option<PathBuf>,
    what: &str,
    replaces: &Ours,
    write: impl FnOnce(&Path) -> Result<T, E>,
) -> anyhow::Result<(T, PathBuf)>
where
    anyhow::Error: From<E>,
{
    let is_new = asked.is_none();
    let path = page_path(asked, what, replaces)?;
    let written = write(&path);
    if is_new && written.is_err() {
        files::remove(&path)?;
    }
    Ok((written?, path))
}

/// An empty file of a new name: another command may make a page in the same second.
fn new_page(directory: &Path, what: &str) -> io::Result<PathBuf> {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let mut path = directory.join(format!("{what}-{now}.html"));
    let mut number = 1;
    loop {
        match fs::File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|_| path),
        }
        path = directory.join(format!("{what}-{now}-{number}.html"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_are_replaced() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for (name, content) in [("plan.toml", "name = \"a\""), ("foreign.html", "<!doctype html>\n<html></html>")] {
            fs::write(at(name), content).unwrap();
            assert!(PAGES.only(&at(name)).is_err(), "{name}");
        }
        std::os::unix::fs::symlink(at("plan.toml"), at("link.html")).unwrap();
        assert!(PAGES.only(&at("link.html")).is_err() && PAGES.only(place.path()).is_err());
        fs::write(at("empty.html"), "").unwrap();
        // The beginning of every page, with a long title.
        let head = include_str!("../../templates/page.html").replace("{% block title %}", &"x".repeat(300));
        fs::write(at("page.html"), head).unwrap();
        assert!(["page.html", "empty.html", "new.html"].iter().all(|name| PAGES.only(&at(name)).is_ok()));
    }

    #[test]
    fn a_signoff_is_replaced_by_a_signoff_only_and_an_index_replaces_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let page = |name: &str, title: &str| {
            let head = include_str!("../../templates/page.html").replace("{% block title %}", title);
            fs::write(place.path().join(name), head).unwrap();
            place.path().join(name)
        };
        let (signed, index, report) =
            (page("s.html", "sign-off: a"), page("i.html", "runs of nights"), page("r.html", "a"));
        let may = |kind: &Ours| [&signed, &index, &report].map(|path| kind.only(path).is_ok());
        assert_eq!(may(&PAGES), [false, true, true]);
        assert_eq!(may(&SIGNOFFS), [true, false, false]);
        assert_eq!(may(&INDEXES), [false, true, false]);
    }

    #[test]
    fn only_baselines_are_replaced_by_baselines() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let baseline = serde_json::to_string_pretty(&railgauge_model::plan::baseline::Baseline::default()).unwrap();
        for (name, content, ours) in [
            ("plan.toml", "name = \"a\"", false),
            ("settings.json", "{\"version\": 1}", false),
            ("baseline.json", baseline.as_str(), true),
            ("empty.json", "", true),
        ] {
            fs::write(at(name), content).unwrap();
            assert_eq!(BASELINES.only(&at(name)).is_ok(), ours, "{name}");
        }
        assert!(BASELINES.only(&at("new.json")).is_ok() && BASELINES.only(place.path()).is_err());
    }

    #[test]
    fn only_metrics_are_replaced_by_metrics() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for (name, content, ours) in [
            ("plan.toml", "name = \"a\"", false),
            ("node.prom", "# HELP node_load1 1m load average.\n", false),
            ("railgauge.prom", "# HELP railgauge_run_info The run.\n", true),
            ("empty.prom", "", true),
        ] {
            fs::write(at(name), content).unwrap();
            assert_eq!(METRICS.only(&at(name)).is_ok(), ours, "{name}");
        }
        assert!(METRICS.only(&at("new.prom")).is_ok() && METRICS.only(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn what_is_no_run_directory_is_told_as_what_it_is() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let said = |path: &Path| run_directory(path).map_err(|misuse| misuse.to_string());
        fs::create_dir(at("run")).unwrap();
        assert!(said(&at("run")).unwrap_err().contains("it has no records.jsonl"));
        fs::write(at("run/records.jsonl"), "").unwrap();
        assert_eq!(said(&at("run")), Ok(()));
        assert!(said(&at("run/records.jsonl")).unwrap_err().contains("is a file"));
        assert!(said(&at("gone")).unwrap_err().contains("is not there"));
    }

    #[test]
    fn pages_of_one_second_have_names_of_their_own() {
        let place = tempfile::tempdir().unwrap();
        let pages: Vec<PathBuf> = (0..20).map(|_| new_page(place.path(), "compare").unwrap()).collect();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), pages.len());
    }

    #[test]
    fn a_file_of_a_run_is_never_overwritten() {
        let run = tempfile::tempdir().unwrap();
        let refused = |name: &str| no_file_of_a_run(&run.path().join(name)).is_err();
        assert!(!FILES.iter().any(|name| refused(name)), "this is not a run directory yet");
        fs::write(run.path().join("records.jsonl"), "").unwrap();
        assert!(FILES.iter().all(|name| refused(name)));
        assert!(!refused("compare.html"));
        assert!(page_path(Some(run.path().join("plan.toml")), "trend", &PAGES).is_err());
    }
}
