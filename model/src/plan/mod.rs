//! TOML to a [`Plan`] that cannot be wrong, or every mistake with its place in the file.
//!
//! ```text
//! file ─ text ─ toml ─▶ tables ─ read by their tables of keys ─▶ values ─ plan_table, launch, hosts, test ─▶ Plan
//!                          (every step writes its mistakes into the book and goes on)
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | `plan_table`, `launch`, `hosts`, `topology`, `localise`, `alert`, `preflight`, `soak`, [`baseline`], `test` | the tables of the format: their keys, and what they mean |
//! | `checks` | the names of the preflight's checks |
//! | `read` | reading a table by its keys, and the book of mistakes |
//! | `grammar` | the small languages inside texts: quantities, sweeps, hostlists, command lines |
//! | [`mod@format`] | what a key is; JSON Schema and reference tables from the tables of keys |
//! | `mistakes`, `render` | mistakes, and how they are shown |
//! | [`mod@count`] | plurals and capitals |
//! | [`subset`] | some hosts and tests of a plan, chosen on the command line |
//! | [`allocation`] | the hosts that a scheduler has given to this process |
//! | [`limits`] | how much a plan may make |
//! | [`model`], [`per_end`] | the plan itself; settings of a flow's two ends |

mod alert;
pub mod allocation;
pub mod baseline;
mod checks;
pub mod command;
pub mod count;
pub mod format;
pub mod grammar;
mod hosts;
mod interleave;
mod launch;
mod levels;
pub mod limits;
mod localise;
mod metrics;
mod mistakes;
pub mod model;
pub mod per_end;
mod plan_table;
mod preflight;
mod read;
mod render;
mod soak;
mod source;
pub mod subset;
mod telemetry;
mod test_model;
mod test_table;
mod topology;
pub mod traffic;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use allocation::Allocation;
use count::count;
use grammar::nearest;
use subset::Subset;
use toml::de::DeTable;

use crate::border::text::path_text;
pub use checks::NAMES as CHECKS;
pub use grammar::hostlist;
pub use hosts::{Unlike, again};
pub use metrics::{headline, metrics_of};
pub use mistakes::{Mistake, Mistakes};
pub use model::Plan;
use read::file;
pub use read::file::Fault as FileFault;

pub(crate) use allocation::PodList;
pub(crate) use format::{Key, Section, Shape, Unset};
pub(crate) use grammar::Wrong;
pub(crate) use hosts::{Host, Hosts};
pub(crate) use launch::{Launch, Launcher};
pub(crate) use limits::LAST_RAIL;
pub(crate) use mistakes::{Place, SHOWN, Source};
pub(crate) use model::{
    AtOnce, Beside, Collective, Cut, Expectation, Grouping, OnFabric, Pattern, Pods, Rails, Topology, Victim,
};
pub(crate) use per_end::PerEnd;
pub(crate) use plan_table::PLAN;
pub(crate) use read::{At, Book, Table, Words};
pub(crate) use source::Scale;
pub(crate) use subset::Chosen;
pub(crate) use test_model::{Limit, Test};
pub(crate) use test_table::WINDOW;
pub(crate) use traffic::Traffic;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Hostlists and names of groups; all hosts if empty.
    pub hosts: Vec<String>,
    /// Names of tests; all tests if empty.
    pub tests: Vec<String>,
    /// Overrides the repeats of every test; interleaved tests keep their blocks.
    pub repeats: Option<u32>,
}

impl Selection {
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SelectionError(String);

#[derive(Debug, Clone)]
pub struct Loaded {
    pub plan: Plan,
    pub source: String,
    pub path: PathBuf,
    pub notes: Mistakes,
    allocation: Option<Allocation>,
}

/// Reads a plan outside any allocation.
///
/// # Errors
/// Every mistake that can be found without touching a host, or why the file cannot be read.
pub fn load(path: &Path) -> Result<Loaded, Mistakes> {
    load_in(path, None)
}

/// Reads a plan, with what a scheduler has given to this process.
///
/// # Errors
/// As [`load`].
pub fn load_in(path: &Path, allocation: Option<&Allocation>) -> Result<Loaded, Mistakes> {
    let name = path_text(path);
    let source = file::read(path).map_err(|fault| {
        let help = match &fault {
            file::Fault::Io(_) => "check the path",
            file::Fault::NoFile(_) => "give the path of the plan file in it",
            file::Fault::TooLarge(_) => "plans are small text files: is this the right file?",
            file::Fault::NotText(_) => "save the file as UTF-8 text: is this the right file?",
        };
        let message = format!("the plan {fault}");
        match fault {
            file::Fault::NotText(before) => Mistakes::at_end(&name, before, message, help),
            _ => Mistakes::whole_file(&name, message, help),
        }
    })?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let (plan, notes) = parse_in(&name, &source, directory, allocation)?;
    Ok(Loaded { plan, source, path: path.to_owned(), notes, allocation: allocation.cloned() })
}

/// Reads a plan from a text. `name` stands in messages; relative paths in the plan start from `directory`.
///
/// # Errors
/// Every mistake that can be found without touching a host.
pub fn parse(name: &str, text: &str, directory: &Path) -> Result<(Plan, Mistakes), Mistakes> {
    parse_in(name, text, directory, None)
}

/// The text of a plan, or of a file of hosts as a plan's `file`: of 1 MiB at most.
///
/// # Errors
/// It is not there, not readable, not a file, too large or not UTF-8.
pub fn text_of(path: &Path) -> Result<String, FileFault> {
    file::read(path)
}

/// What a plan says of pods in place of names, and where they are: for who asks for them before the plan is read. Nothing where
/// it does not, or is wrong: reading it tells.
pub fn wanted_pods(path: &Path) -> Option<(model::Kubectl, model::Pods)> {
    let source = file::read(path).ok()?;
    let book = Book::new("", &source, path.parent().unwrap_or(Path::new("")));
    let (document, faults) = DeTable::parse_recoverable(&source);
    faults.is_empty().then(|| plan_table::pods(&book, &document)).flatten()
}

/// [`parse`], with what a scheduler has given to this process.
///
/// # Errors
/// As [`parse`].
pub fn parse_in(
    name: &str,
    text: &str,
    directory: &Path,
    allocation: Option<&Allocation>,
) -> Result<(Plan, Mistakes), Mistakes> {
    let mut book = Book::new(name, text, directory);
    book.allocation = allocation;
    let (document, faults) = DeTable::parse_recoverable(text);
    if faults.is_empty() {
        let plan = plan_table::read(&book, &document, None);
        return book.close().map(|notes| (plan, notes));
    }
    // What was skipped would be reported as missing, and what follows the first fault is read as part of another value.
    if let Some(fault) = faults.iter().min_by_key(|fault| fault.span().map_or(text.len(), |span| span.start)) {
        let span = fault.span().unwrap_or(text.len()..text.len());
        // Of a bare word the parser says only that it is not `true` or `false`.
        let (before, after) = text.split_at_checked(span.start).unwrap_or((text, ""));
        let word = after.split(|c: char| c.is_whitespace() || ",]}#".contains(c)).next();
        let word = word.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
        let is_value = before.trim_end().ends_with('=');
        match word.filter(|_| is_value) {
            Some(word) => {
                book.wrong(span, format!("`{word}` is not a value"), format!("text is in quotes: \"{word}\""))
            }
            None => book.wrong(span, fault.message(), "this is not valid TOML, and nothing after it was read"),
        }
    }
    Err(book.into_mistakes())
}

impl Loaded {
    pub fn summary(&self) -> String {
        let plan = &self.plan;
        let names = hostlist::fold(plan.hosts.iter().map(|host| host.name.as_str()));
        let shown = if names.len() > 60 { String::new() } else { format!(" ({names})") };
        let expectations = plan.tests.iter().map(|test| test.expect.len()).sum();
        format!(
            "{}: plan {} is valid: {}{shown}, {}, {}",
            path_text(&self.path),
            plan.name,
            count(plan.hosts.len(), "host"),
            count(plan.tests.len(), "test"),
            count(expectations, "expectation"),
        )
    }

    /// Keeps only the selected part of the plan.
    ///
    /// # Errors
    /// A name is not in the plan, or nothing is left to measure.
    pub fn narrowed(mut self, selection: &Selection) -> Result<Self, SelectionError> {
        if selection.is_everything() {
            return Ok(self);
        }
        let whole = &self.plan;
        let (hosts, tests) = (hosts(whole, &selection.hosts)?, tests(whole, &selection.tests)?);
        let in_order = whole.tests.iter().map(|test| test.name.clone()).filter(|name| tests.contains(name.as_str()));
        let subset = Subset {
            hosts: (!selection.hosts.is_empty()).then(|| hosts.clone()),
            of_hosts: whole.hosts.len(),
            tests: (!tests.is_empty()).then(|| in_order.collect()),
            of_tests: whole.tests.iter().map(|test| test.name.clone()).collect(),
            repeats: selection.repeats,
            left_out: Vec::new(),
        };
        let chosen = Chosen { hosts, tests, subset };
        let directory = self.path.parent().unwrap_or(Path::new(""));
        let mut book = Book::new(&self.path.to_string_lossy(), &self.source, directory);
        book.allocation = self.allocation.as_ref();
        let (document, _) = DeTable::parse_recoverable(&self.source);
        let plan = plan_table::read(&book, &document, Some(&chosen));
        if let Ok(notes) = book.close() {
            self.notes = notes;
        }
        if plan.tests.is_empty() {
            let left_out = plan.subset.iter().flat_map(Subset::left_out).collect::<Vec<_>>().join("; ");
            let hosts = hostlist::fold(plan.hosts.iter().map(|host| host.name.as_str()));
            let message = format!("no test can be run with {hosts}: {left_out}; name more hosts with --hosts");
            return Err(SelectionError(message));
        }
        if let (Some(repeats), Some(what)) = (selection.repeats, limits::beyond(&plan)) {
            return Err(SelectionError(format!("--repeats {repeats}: {what}")));
        }
        self.plan = plan;
        Ok(self)
    }
}

fn hosts(plan: &Plan, texts: &[String]) -> Result<Vec<String>, SelectionError> {
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for text in texts {
        if let Some(members) = plan.groups.get(text) {
            wanted.extend(members.iter().cloned());
            continue;
        }
        let names = hostlist::expand(text)
            .map_err(|wrong| SelectionError(format!("--hosts {text}: {}; {}", wrong.message, wrong.help)))?;
        for name in names {
            if let Some(members) = plan.groups.get(&name) {
                wanted.extend(members.iter().cloned());
            } else if plan.hosts.iter().any(|host| host.name == name) {
                wanted.insert(name);
            } else {
                let known =
                    plan.hosts.iter().map(|host| host.name.as_str()).chain(plan.groups.keys().map(String::as_str));
                return Err(unknown("--hosts", "host or group", &name, known));
            }
        }
    }
    let names = plan.hosts.iter().map(|host| host.name.clone());
    Ok(names.filter(|name| texts.is_empty() || wanted.contains(name)).collect())
}

fn tests<'a>(plan: &Plan, names: &'a [String]) -> Result<BTreeSet<&'a str>, SelectionError> {
    match names.iter().find(|name| !plan.tests.iter().any(|test| test.name == **name)) {
        Some(name) => Err(unknown("--test", "test", name, plan.tests.iter().map(|test| test.name.as_str()))),
        None => Ok(names.iter().map(String::as_str).collect()),
    }
}

const LISTED: usize = 12;

fn unknown<'a>(option: &str, what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> SelectionError {
    let hint = match nearest(name, known.clone()) {
        Some(near) => format!("; did you mean {near}?"),
        None => {
            let mut listed: Vec<&str> = known.take(LISTED + 1).collect();
            let more = if listed.len() > LISTED { ", ..." } else { "" };
            listed.truncate(LISTED);
            format!("; it has {}{more}", listed.join(", "))
        }
    };
    SelectionError(format!("{option} {name}: the plan has no such {what}{hint}"))
}
