//! Why a file is refused.

use railgauge_model::border::text::printable;

/// Longest piece of a file in a message, in characters.
const SHOWN: usize = 60;

/// Why outputs cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No known tool wrote this.
    #[error(
        "{file}:1: not the output of a known tool: expected perftest, nccl-tests, OSU micro-benchmarks or iperf3's client, with \
         their headers, as text or JSON"
    )]
    Unknown {
        /// The file.
        file: String,
    },
    /// A line is not what stands there in this format.
    #[error("{file}:{line}: expected {expected}, found {found}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What belongs there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The file ends too early.
    #[error("{file}:{line}: the file is not whole: expected {expected}")]
    Truncated {
        /// The file.
        file: String,
        /// Its last line, from 1.
        line: u64,
        /// What is missing.
        expected: String,
    },
    /// Something the frame has no place for.
    #[error("{file}:{line}: {what} cannot be imported; {known}")]
    Unsupported {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What it is.
        what: String,
        /// What can be.
        known: String,
    },
    /// The file does not say something that is needed.
    #[error("{file}:{line}: the file does not say {what}: give {option}")]
    Needs {
        /// The file.
        file: String,
        /// The line of the first result, from 1.
        line: u64,
        /// What is not known.
        what: String,
        /// The option that says it.
        option: String,
    },
    /// What was given contradicts a file.
    #[error("{file}:{line}: {what}")]
    Contradicts {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// How.
        what: String,
    },
}

impl ImportError {
    pub(super) fn malformed(file: &str, line: u64, expected: impl Into<String>, found: &str) -> Self {
        let shown: String = printable(found).chars().take(SHOWN).collect();
        let cut = if found.chars().count() > SHOWN { "…" } else { "" };
        Self::Malformed { file: file.to_owned(), line, expected: expected.into(), found: format!("`{shown}{cut}`") }
    }

    pub(super) fn truncated(file: &str, line: u64, expected: impl Into<String>) -> Self {
        Self::Truncated { file: file.to_owned(), line, expected: expected.into() }
    }

    pub(super) fn unsupported(file: &str, line: u64, what: impl Into<String>, known: impl Into<String>) -> Self {
        Self::Unsupported { file: file.to_owned(), line, what: what.into(), known: known.into() }
    }

    pub(super) fn needs(file: &str, line: u64, what: impl Into<String>, option: impl Into<String>) -> Self {
        Self::Needs { file: file.to_owned(), line, what: what.into(), option: option.into() }
    }
}
