//! Some hosts and tests of a plan, selected on the command line: `--hosts`, `--test`, `--repeats`.
//!
//! A plan is read whole, and then again with the unselected hosts excluded. A test that is wrong only then, such as an incast to an
//! excluded host, is omitted and reported. The plan records the selection, so that such a run is not mistaken for one of the whole plan.

use std::{collections::BTreeSet, path::Path};

use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use super::{
    Loaded, Plan,
    count::count,
    grammar::{hostlist, nearest},
    limits, plan_table,
    read::Book,
};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Hostlists and names of groups; all hosts if empty.
    pub hosts: Vec<String>,
    /// Names of tests; all tests if empty.
    pub tests: Vec<String>,
    /// Overrides the repeats of every test; interleaved tests keep their blocks.
    pub repeats: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subset {
    /// In the plan's order; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    pub of_hosts: usize,
    /// In the plan's order, including omitted ones; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<Vec<String>>,
    pub of_tests: usize,
    /// `None` as the plan says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub test: String,
    pub why: String,
    pub whole: bool,
}

#[derive(Debug)]
pub struct Chosen<'a> {
    pub(super) hosts: Vec<String>,
    pub(super) repeats: Option<u32>,
    tests: BTreeSet<&'a str>,
    selection: &'a Selection,
    whole: &'a Plan,
}

impl Selection {
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    #[error("--hosts {text}: {message}; {help}")]
    Hostlist { text: String, message: String, help: String },
    #[error("{option} {name}: the plan has no such {what}{hint}")]
    Unknown {
        option: &'static str,
        name: String,
        /// `host or group`, `test`.
        what: &'static str,
        hint: String,
    },
    #[error("no test can be run with {hosts}: {tests}; name more hosts with --hosts")]
    Nothing { hosts: String, tests: String },
    #[error("--repeats {repeats}: {what}")]
    Beyond { repeats: u32, what: String },
}

impl Chosen<'_> {
    pub(super) fn has(&self, test: &str) -> bool {
        self.tests.is_empty() || self.tests.contains(test)
    }

    pub(super) fn subset(&self, left_out: Vec<LeftOut>) -> Subset {
        let Self { whole, selection, .. } = self;
        let tests = || whole.tests.iter().map(|test| test.name.clone()).filter(|name| self.has(name)).collect();
        Subset {
            hosts: (!selection.hosts.is_empty()).then(|| self.hosts.clone()),
            of_hosts: whole.hosts.len(),
            tests: (!selection.tests.is_empty()).then(tests),
            of_tests: whole.tests.len(),
            repeats: self.repeats,
            left_out,
        }
    }
}

impl Subset {
    /// `4 of 32 hosts (gpu[01-04]), 1 of 3 tests (bw), 2 repeats`.
    pub fn words(&self) -> String {
        let hosts = self.hosts.as_ref().map(|hosts| {
            let names = hostlist::fold(hosts.iter().map(String::as_str));
            format!("{} of {} ({names})", hosts.len(), count(self.of_hosts, "host"))
        });
        let tests = self
            .tests
            .as_ref()
            .map(|tests| format!("{} of {} ({})", tests.len(), count(self.of_tests, "test"), tests.join(", ")));
        let repeats = self.repeats.map(|repeats| count(repeats as usize, "repeat"));
        [hosts, tests, repeats].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The same as a sentence for every verdict: the verdict does not cover the rest of the plan.
    pub fn sentence(&self) -> String {
        format!("Only a part of the plan was run: {}.", self.words())
    }

    pub fn left_out(&self) -> impl Iterator<Item = String> {
        self.left_out.iter().map(|LeftOut { test, why, whole }| match whole {
            true => format!("test {test} is left out: {why}"),
            false => format!("of test {test} is left out: {why}"),
        })
    }
}

impl Loaded {
    /// Keeps only the selected part of the plan.
    ///
    /// # Errors
    /// A name is not in the plan, or nothing is left to measure.
    pub fn narrowed(mut self, selection: &Selection) -> Result<Self, SelectionError> {
        if selection.is_everything() {
            return Ok(self);
        }
        let whole = &self.plan;
        let chosen = Chosen {
            hosts: hosts(whole, &selection.hosts)?,
            tests: tests(whole, &selection.tests)?,
            repeats: selection.repeats,
            selection,
            whole,
        };
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
            return Err(SelectionError::Nothing { hosts, tests: left_out });
        }
        if let (Some(repeats), Some(what)) = (selection.repeats, limits::beyond(&plan)) {
            return Err(SelectionError::Beyond { repeats, what });
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
        let names = hostlist::expand(text).map_err(|wrong| SelectionError::Hostlist {
            text: text.clone(),
            message: wrong.message,
            help: wrong.help,
        })?;
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

fn unknown<'a>(
    option: &'static str,
    what: &'static str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> SelectionError {
    let hint = match nearest(name, known.clone()) {
        Some(near) => format!("; did you mean {near}?"),
        None => {
            let mut listed: Vec<&str> = known.take(LISTED + 1).collect();
            let more = if listed.len() > LISTED { ", ..." } else { "" };
            listed.truncate(LISTED);
            format!("; it has {}{more}", listed.join(", "))
        }
    };
    SelectionError::Unknown { option, name: name.to_owned(), what, hint }
}
