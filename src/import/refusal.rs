use railgauge_model::border::text::printable;

const SHOWN: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct ImportError {
    file: String,
    line: u64,
    what: String,
}

impl ImportError {
    pub(super) fn new(file: &str, line: u64, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into() }
    }

    pub(super) fn unknown(file: &str) -> Self {
        let known =
            "expected perftest, nccl-tests or nixlbench as text with its header, or the JSON of iperf3's client";
        Self::new(file, 1, format!("not the output of a known tool: {known}"))
    }

    pub(super) fn malformed(file: &str, line: u64, expected: impl AsRef<str>, found: &str) -> Self {
        let shown: String = printable(found).chars().take(SHOWN).collect();
        let cut = if found.chars().count() > SHOWN { "…" } else { "" };
        Self::new(file, line, format!("expected {}, found `{shown}{cut}`", expected.as_ref()))
    }

    pub(super) fn truncated(file: &str, line: u64, expected: impl AsRef<str>) -> Self {
        Self::new(file, line, format!("the file is not whole: expected {}", expected.as_ref()))
    }

    pub(super) fn unsupported(file: &str, line: u64, what: impl AsRef<str>, known: impl AsRef<str>) -> Self {
        Self::new(file, line, format!("{} cannot be imported; {}", what.as_ref(), known.as_ref()))
    }

    pub(super) fn needs(file: &str, line: u64, what: &str, option: &str) -> Self {
        Self::new(file, line, format!("the file does not say {what}: give {option}"))
    }
}
