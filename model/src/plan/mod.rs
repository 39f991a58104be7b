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
mod beside;
mod checks;
pub mod command;
pub mod count;
mod flows;
pub mod format;
pub mod grammar;
mod hosts;
mod interleave;
mod launch;
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
pub mod subset;
mod test_table;
mod topology;

use std::path::{Path, PathBuf};

use allocation::Allocation;
use count::count;
use toml::de::DeTable;

use crate::border::text::path_text;
pub use checks::NAMES as CHECKS;
pub use grammar::hostlist;
pub use hosts::{Unlike, again};
pub use metrics::{headline, metrics_of};
pub use mistakes::{Mistake, Mistakes};
pub use model::Plan;
pub use read::file::Fault as FileFault;
use read::{Book, file};

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
}
