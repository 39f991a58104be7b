//! What a check found.

use serde::{Deserialize, Serialize};

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing when numbers are read.
    Notice,
    /// Numbers will probably suffer.
    Warning,
    /// Something the plan needs cannot work.
    Failure,
}

impl Severity {
    /// In one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

/// One finding, about one host or about several that share it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the check, as plans waive it.
    pub check: String,
    /// How serious it is.
    pub severity: Severity,
    /// Hosts it is about, in the order of their names.
    pub hosts: Vec<String>,
    /// What was found: values and where they stand.
    pub what: String,
    /// What it means for the numbers.
    pub meaning: String,
    /// What to do, with the command where there is one.
    pub remedy: String,
    /// Where this is known from.
    pub source: String,
}
