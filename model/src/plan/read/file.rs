use std::{
    fs::File,
    io::Read,
    ops::Range,
    path::{Path, PathBuf},
};

use railgauge_wire::Bytes;

use super::{book::Book, table::At};

/// Largest plan or host file that is read: some ten thousand lines.
pub const LARGEST: Bytes = Bytes::from_mib(1);

/// Why a file cannot be read; the words follow a noun.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("cannot be read: it is {0}, not a file")]
    NoFile(&'static str),
    #[error("is larger than {} MiB", .0.0 >> 20)]
    TooLarge(Bytes),
    /// What is before it.
    #[error("is not UTF-8: byte {} (line {}) does not start a character", .0.len(), .0.matches('\n').count() + 1)]
    NotText(String),
}

impl Fault {
    pub fn help(&self) -> &'static str {
        match self {
            Self::Io(_) => "a relative path is relative to the plan's directory",
            Self::NoFile(_) => "give a file in it",
            Self::TooLarge(_) => "is this the right file?",
            Self::NotText(_) => "save it as UTF-8 text: is this the right file?",
        }
    }
}

pub fn read(path: &Path) -> Result<String, Fault> {
    read_up_to(path, LARGEST)
}

/// The text of a file of at most `largest`.
pub fn read_up_to(path: &Path, largest: Bytes) -> Result<String, Fault> {
    let about = std::fs::metadata(path)?;
    if about.is_dir() {
        return Err(Fault::NoFile("a directory"));
    }
    if Bytes(about.len()) > largest {
        return Err(Fault::TooLarge(largest));
    }
    // A pipe such as <(generate) has no length, so it is read up to the limit.
    let mut bytes = Vec::new();
    File::open(path)?.take(largest.0 + 1).read_to_end(&mut bytes)?;
    if Bytes::of(bytes.len()) > largest {
        return Err(Fault::TooLarge(largest));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Fault::NotText(String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned())
    })
}

/// Each line with its place in the file.
type Lines = Vec<(Range<usize>, String)>;

impl Book<'_> {
    /// The text of a file that the plan names; `None` after reporting why it cannot be read.
    pub fn file(&self, path: &At<PathBuf>, what: &str, largest: Bytes) -> Option<String> {
        match read_up_to(&path.value, largest) {
            Ok(text) => Some(text),
            Err(fault) => self.reject(path.span.clone(), format!("{what} {fault}"), fault.help()),
        }
    }

    /// The number of such a file among the sources, and its lines without comments and blanks.
    pub fn lines(&self, path: &At<PathBuf>, what: &str) -> Option<(usize, Lines)> {
        let text = self.file(path, what, LARGEST)?;
        // Spreadsheets begin files with a byte order mark.
        let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
        let mut start = 0;
        let lines = text.split_inclusive('\n').filter_map(|line| {
            let content = line.split('#').next().unwrap_or_default();
            let words = content.trim_matches(blank);
            let at = start + (content.len() - content.trim_start_matches(blank).len());
            start += line.len();
            (!words.is_empty()).then(|| (at..at + words.len(), words.to_owned()))
        });
        let lines = lines.collect();
        // As the plan spells it: relative to the plan.
        let shown = self.text.get(path.span.start + 1..path.span.end.saturating_sub(1)).unwrap_or_default();
        Some((self.source(shown.to_owned(), text), lines))
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::parse;

    #[test]
    fn a_file_of_hosts_may_begin_with_a_byte_order_mark() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("hosts.txt"), "\u{feff}a[1-2] # both\r\n").unwrap();
        let text = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { file = \"hosts.txt\" }\n[[test]]\n\
                    op = \"memory_read\"\nmetric = \"bandwidth\"\n";
        let (plan, _) = parse("plan.toml", text, folder.path()).unwrap();
        assert_eq!(plan.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["a1", "a2"]);
    }
}
