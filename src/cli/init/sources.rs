//! Where `railgauge init` has its hosts from: the command line, a file, a Slurm allocation, or a person.

use std::{
    collections::BTreeSet,
    env,
    io::{self, IsTerminal, Write},
    path::Path,
};

use railgauge_model::{
    border::text::path_text,
    plan::{self, FileFault, hostlist},
};

use super::Args;
use crate::cli::{Misuse, common::hostname};

/// Variables in which Slurm tells a job its nodes (sbatch(1), salloc(1)); the second is the older name.
const NODES: [&str; 2] = ["SLURM_JOB_NODELIST", "SLURM_NODELIST"];

/// The names of the hosts, each once, in their order.
///
/// # Errors
/// There are none, or they cannot be read.
pub(super) fn hosts(args: &Args) -> Result<Vec<String>, Misuse> {
    let mut names = match (&args.names, &args.hosts_file) {
        (names, _) if !names.is_empty() => expand(&joined(names.iter().map(String::as_str)), "")?,
        (_, Some(path)) => of_file(path)?,
        _ if args.slurm => of_allocation()?,
        _ if args.via.as_deref() == Some("local") => vec![hostname().unwrap_or_else(|| "localhost".to_owned())],
        _ => typed()?,
    };
    let without: BTreeSet<String> = match &args.exclude {
        Some(list) => expand(list, "--exclude: ")?.into_iter().collect(),
        None => BTreeSet::new(),
    };
    let mut known = BTreeSet::new();
    names.retain(|name| !without.contains(name) && known.insert(name.clone()));
    if names.is_empty() {
        return Err(Misuse("no host is left to plan for".to_owned()));
    }
    Ok(names)
}

/// Words as one hostlist, whether commas, blanks or both separate them.
fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words = words.map(|word| word.trim_matches([',', ' '])).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(",")
}

fn expand(list: &str, place: &str) -> Result<Vec<String>, Misuse> {
    hostlist::expand(list).map_err(|wrong| Misuse(format!("{place}`{list}`: {wrong}")))
}

/// One hostlist on each line, `#` begins a comment: as a plan's `file`.
fn of_file(path: &Path) -> Result<Vec<String>, Misuse> {
    let shown = path_text(path);
    let text = plan::text_of(path).map_err(|fault| {
        let help = match fault {
            FileFault::Io(_) => "check the path",
            _ => "name a text file with one hostlist on each line",
        };
        Misuse(format!("the host file {shown} {fault}; {help}"))
    })?;
    let mut names = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let list = line.split('#').next().unwrap_or_default().trim();
        if !list.is_empty() {
            names.extend(expand(list, &format!("{shown}, line {number}: "))?);
        }
    }
    if names.is_empty() {
        return Err(Misuse(format!("{shown} lists no hosts; write one hostlist on each line, such as gpu[001-016]")));
    }
    Ok(names)
}

fn of_allocation() -> Result<Vec<String>, Misuse> {
    let found = NODES.iter().find_map(|name| env::var(name).ok()).filter(|list| !list.trim().is_empty());
    match found {
        Some(list) => expand(&list, "the nodes of the Slurm allocation: "),
        None => Err(Misuse(format!(
            "--slurm: {} is not set, so this is not inside an allocation; begin one with salloc, or name the hosts",
            NODES[0]
        ))),
    }
}

/// Asks the person at the terminal.
fn typed() -> Result<Vec<String>, Misuse> {
    let nobody = || {
        Misuse(
            "no hosts are given; name them (railgauge init 'gpu[001-016]'), or use --hosts-file or --slurm".to_owned(),
        )
    };
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(nobody());
    }
    let mut err = io::stderr();
    let _ = write!(err, "Hosts, separated by commas, ranges in brackets, such as gpu[001-016],login: ");
    let _ = err.flush();
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    match read {
        Ok(1..) if !line.trim().is_empty() => expand(&joined(line.split_whitespace()), ""),
        _ => Err(nobody()),
    }
}
