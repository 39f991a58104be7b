//! Some hosts and tests of a plan, selected on the command line: `--hosts`, `--test`, `--repeats`.
//!
//! A plan is read whole, and then again with the unselected hosts excluded. A test that is wrong only then, such as an incast to an
//! excluded host, is omitted and reported. The plan records the selection, so that such a run is not mistaken for one of the whole plan.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{count::count, grammar::hostlist};

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subset {
    /// In the plan's order; `None` for all.
    pub hosts: Option<Vec<String>>,
    pub of_hosts: usize,
    /// In the plan's order, including omitted ones; `None` for all.
    pub tests: Option<Vec<String>>,
    /// All of the plan, in its order.
    pub of_tests: Vec<String>,
    /// `None` as the plan says.
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

/// A selection of a plan's hosts and tests.
#[derive(Debug)]
pub struct Chosen<'a> {
    pub hosts: Vec<String>,
    /// All if empty.
    pub tests: BTreeSet<&'a str>,
    /// Without what is left out: reading the plan finds that.
    pub subset: Subset,
}

impl Chosen<'_> {
    pub fn has(&self, test: &str) -> bool {
        self.tests.is_empty() || self.tests.contains(test)
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
            .map(|tests| format!("{} of {} ({})", tests.len(), count(self.of_tests.len(), "test"), tests.join(", ")));
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
