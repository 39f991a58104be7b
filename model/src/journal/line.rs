//! One line of the journal: how it is written, and what a reader can tell of one that was damaged.
//!
//! `{"v":4,"n":7,"run":"9f3a61c208d47be5","at":"2026-11-22T03:00:00.000Z","event":{…},"sum":"1b2d3f40"}` and a newline. `sum` is
//! the CRC-32 of all bytes of the line before `,"sum"`, so that no change of the file goes unseen; `n` counts the lines of a
//! run from 1, so that a line that is gone is missed; `run` tells the lines of other runs.

use railgauge_wire::unit::Bytes;
use serde::{Deserialize, Serialize};

use super::event::{Event, Line, OLDEST, VERSION};
use crate::border;

/// Length of `,"sum":"1b2d3f40"}`, with which every line ends.
const ENDING: usize = 18;
/// Highest number of a line.
const MOST: u64 = 1 << 48;

/// A line that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbered {
    /// The run that it belongs to, as its lines name it.
    pub run: String,
    /// Its number in the journal, from 1.
    pub n: u64,
    /// The parsed line.
    pub line: Line,
}

/// Where a journal ends, as its reader found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// What its lines call the run: drawn by chance when it began, so that two runs of one name are told apart.
    pub run: String,
    /// Bytes up to the end of the last line that was written whole; what follows was cut off by a crash.
    pub length: Bytes,
    /// Whether that line lacks its newline.
    pub unended: bool,
    /// Number of the next line, from 1.
    pub next: u64,
}

impl Tail {
    /// Before the first line of a run.
    pub const fn before(run: String) -> Self {
        Self { run, length: Bytes::ZERO, unended: false, next: 1 }
    }

    /// Before the first line of a new run.
    ///
    /// # Errors
    /// The kernel has no random bytes.
    pub fn of_new_run() -> Result<Self, getrandom::Error> {
        Ok(Self::before(format!("{:016x}", getrandom::u64()?)))
    }
}

/// Why something is not a line of a journal that this railgauge reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It was cut or changed after it was written, or somebody else wrote it.
    #[error("{0}")]
    Damaged(&'static str),
    /// A whole line of another version of the format.
    #[error("journal version {0}")]
    Version(u32),
    /// A whole line of this version that says something unknown, or that cannot be.
    #[error("{0}")]
    Unknown(String),
}

#[derive(Serialize)]
struct Written<'a, E> {
    v: u32,
    n: u64,
    run: &'a str,
    at: &'a str,
    event: &'a E,
}

#[derive(Deserialize)]
struct Read {
    run: String,
    n: u64,
    at: String,
    event: Event,
}

/// The bytes of line `n` of a run, with its newline. `event` is an [`Event`], or what serialises as one.
///
/// # Errors
/// It cannot be written as JSON.
pub fn encode<E: Serialize>(run: &str, n: u64, at: &str, event: &E) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(&Written { v: VERSION, n, run, at, event })?;
    // The closing brace comes behind the sum.
    bytes.pop();
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(format!(",\"sum\":\"{sum:08x}\"}}\n").as_bytes());
    Ok(bytes)
}

/// Reads one line of a run, or a first line, which says which run it is; its newline may be there or not. What it says comes in
/// over the [`border`]: others may have written it.
///
/// # Errors
/// It is damaged, of another run or version, or says something unknown.
pub fn decode(bytes: &[u8], run: Option<&str>) -> Result<Numbered, LineError> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let Some(sum) = bytes.len().checked_sub(ENDING).and_then(|at| sum(&bytes[at..]).map(|sum| (at, sum))) else {
        return Err(match version(bytes) {
            Some(found) if !is_read(found) => LineError::Version(found),
            _ => LineError::Damaged("it has no sum at its end"),
        });
    };
    if crc32fast::hash(&bytes[..sum.0]) != sum.1 {
        return Err(LineError::Damaged("its sum does not agree with it"));
    }
    // As we write it, it stands at the beginning: the rest is read once and not twice.
    match version_in_front(bytes).or_else(|| version(bytes)) {
        Some(found) if is_read(found) => {}
        Some(found) => return Err(LineError::Version(found)),
        None => return Err(LineError::Unknown("it has no version".into())),
    }
    let read: Read = border::read(bytes).map_err(|error| LineError::Unknown(error.to_string()))?;
    if run.is_some_and(|run| run != read.run) {
        return Err(LineError::Damaged("it is of another run"));
    }
    // No run has so many lines, and none has the number 0: what follows is counted from it.
    if read.n == 0 || read.n > MOST {
        return Err(LineError::Damaged("its number cannot be"));
    }
    Ok(Numbered { run: read.run, n: read.n, line: Line { at: read.at, event: read.event } })
}

/// Whether these bytes, of a file without a newline, are the beginning of a first line of ours that was never whole.
pub fn is_torn_start(bytes: &[u8]) -> bool {
    let begins = |version: u32| {
        let begin = format!("{{\"v\":{version},\"n\":1,");
        let both = begin.len().min(bytes.len());
        bytes[..both] == begin.as_bytes()[..both]
    };
    (OLDEST..=VERSION).any(begins) && !bytes.ends_with(b"\n") && decode(bytes, None).is_err()
}

/// The sum in the ending of a line.
fn sum(ending: &[u8]) -> Option<u32> {
    let digits = ending.strip_prefix(b",\"sum\":\"")?.strip_suffix(b"\"}")?;
    // Only what `encode` writes: from_str_radix would take capitals and a sign too.
    let is_written = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    is_written.then(|| std::str::from_utf8(digits).ok()).flatten().and_then(|text| u32::from_str_radix(text, 16).ok())
}

fn is_read(version: u32) -> bool {
    (OLDEST..=VERSION).contains(&version)
}

/// The version of a line that begins as [`encode`] writes it.
fn version_in_front(bytes: &[u8]) -> Option<u32> {
    let rest = bytes.strip_prefix(b"{\"v\":")?;
    let end = rest.iter().position(|byte| *byte == b',')?;
    std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

/// The version a line claims, where it is JSON at all.
fn version(bytes: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }
    serde_json::from_slice::<Versioned>(bytes).ok().map(|line| line.v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use railgauge_wire::unit::NanosecondsI64;

    fn bytes() -> Vec<u8> {
        encode("r", 7, "2026-11-22T03:00:00.000Z", &Event::Note { host: "a".into(), text: "said \"\u{e9}\"".into() })
            .unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let read = decode(&bytes(), None).unwrap();
        assert_eq!((read.n, read.line.at.as_str()), (7, "2026-11-22T03:00:00.000Z"));
        assert!(matches!(read.line.event, Event::Note { host, .. } if host == "a"));
        // The newline is no part of what is summed.
        assert!(decode(bytes().strip_suffix(b"\n").unwrap(), None).is_ok());
    }

    #[test]
    fn other_versions_and_events_are_told_from_damage() {
        let old = br#"{"v":1,"at":"2026-11-21T03:00:00.000Z","event":"Finished"}"#;
        assert_eq!(decode(old, None), Err(LineError::Version(1)));
        let sealed = |text: &str| {
            let sum = crc32fast::hash(text.as_bytes());
            format!("{text},\"sum\":\"{sum:08x}\"}}")
        };
        assert_eq!(decode(sealed(r#"{"v":5,"n":1,"what":2"#).as_bytes(), None), Err(LineError::Version(5)));
        // Journals of the version before are read.
        let before = sealed(r#"{"v":3,"n":1,"run":"r","at":"x","event":"Finished""#);
        assert_eq!(decode(before.as_bytes(), None).unwrap().line.event, Event::Finished);
        let unknown = sealed(r#"{"v":3,"n":1,"run":"r","at":"x","event":{"Something":1}"#);
        assert!(matches!(decode(unknown.as_bytes(), None), Err(LineError::Unknown(why)) if why.contains("Something")));
        assert!(decode(&bytes(), Some("r")).is_ok());
        assert_eq!(decode(&bytes(), Some("s")), Err(LineError::Damaged("it is of another run")));
        assert!(matches!(decode(b"hello", None), Err(LineError::Damaged(_))));
        assert!(matches!(decode(b"", None), Err(LineError::Damaged(_))));
    }

    #[test]
    fn numbers_that_cannot_be_are_damage() {
        for n in [0, MOST + 1, border::FARTHEST] {
            assert!(
                matches!(decode(&encode("r", n, "x", &Event::Finished).unwrap(), None), Err(LineError::Damaged(_))),
                "{n}"
            );
        }
        let wall = Event::HostUp {
            host: "a".into(),
            facts: Box::default(),
            clock: None,
            wall: Some(NanosecondsI64(i64::MIN)),
        };
        let error = decode(&encode("r", 2, "x", &wall).unwrap(), None).unwrap_err().to_string();
        assert!(error.starts_with("`event.HostUp.wall` is -9223372036854775808"), "{error}");
    }

    #[test]
    fn the_beginning_of_a_first_line_is_known() {
        let first = encode("r", 1, "2026-11-22T03:00:00.000Z", &Event::Finished).unwrap();
        assert!((1..first.len() - 1).all(|length| is_torn_start(&first[..length])));
        // Whole, with or without its newline, and what is not ours.
        assert!(!is_torn_start(&first) && !is_torn_start(&first[..first.len() - 1]));
        assert!(!is_torn_start(b"{\"hello\":1}") && !is_torn_start(&bytes()[..40]));
    }

    proptest! {
        #[test]
        fn no_change_of_a_line_goes_unseen(at in 0usize..200, with in 1u8..=255) {
            let mut bytes = bytes();
            // The newline is the reader's: changed, it makes one line of two.
            let at = at % (bytes.len() - 1);
            bytes[at] ^= with;
            prop_assert!(decode(&bytes, None).is_err());
        }

        #[test]
        fn no_cut_goes_unseen(length in 0usize..200) {
            let bytes = bytes();
            let length = length % (bytes.len() - 1);
            prop_assert!(decode(&bytes[..length], None).is_err());
        }
    }
}
