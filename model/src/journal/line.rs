//! One line of the journal: how it is written and checked.
//!
//! `{"v":6,"n":7,"at":"2026-11-22T03:00:00.000Z","event":{…},"sum":"1b2d3f40"}` and a newline. `n` counts the lines of a run from 1, so
//! that a missing line is found. The first line has a random `run` after its `n`. `sum` is a CRC-32, so that every change of the file is
//! found: in the first line, of all its bytes before `,"sum"`; in every other line, of the run's name and these bytes, so that a line of
//! another run is not accepted.

use railgauge_wire::Bytes;
use serde::{Deserialize, Serialize};

use super::event::{Event, Line, VERSION};
use crate::border;

/// Length of `,"sum":"1b2d3f40"}`.
const ENDING: usize = 18;
const MOST: u64 = 1 << 48;

#[derive(Debug, Clone, PartialEq)]
pub struct Numbered {
    pub run: String,
    pub n: u64,
    pub line: Line,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// The random name of the run in its lines, which distinguishes runs of one name.
    pub run: String,
    /// Bytes up to the end of the last complete line; a crash cut off the rest.
    pub length: Bytes,
    pub unended: bool,
    pub next: u64,
}

impl Tail {
    pub const fn before(run: String) -> Self {
        Self { run, length: Bytes::ZERO, unended: false, next: 1 }
    }

    pub fn of_new_run() -> Result<Self, getrandom::Error> {
        Ok(Self::before(format!("{:016x}", getrandom::u64()?)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("{0}")]
    Damaged(&'static str),
    #[error("journal version {0}")]
    Version(u32),
    #[error("{0}")]
    Unknown(String),
}

#[derive(Serialize)]
struct Written<'a> {
    v: u32,
    n: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    at: &'a str,
    event: &'a Event,
}

#[derive(Deserialize)]
struct Read {
    v: u32,
    run: Option<String>,
    n: u64,
    at: String,
    event: Event,
}

/// The bytes of line `n` of a run, with its newline.
pub fn encode(run: &str, n: u64, at: &str, event: &Event) -> serde_json::Result<Vec<u8>> {
    let is_first = n == 1;
    let mut bytes = serde_json::to_vec(&Written { v: VERSION, n, run: is_first.then_some(run), at, event })?;
    bytes.pop();
    let sum = if is_first { crc32fast::hash(&bytes) } else { sum_within(run, &bytes) };
    bytes.extend_from_slice(format!(",\"sum\":\"{sum:08x}\"}}\n").as_bytes());
    Ok(bytes)
}

fn sum_within(run: &str, bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(run.as_bytes());
    sum.update(bytes);
    sum.finalize()
}

/// Reads one line of a run, or a first line, which names its run; the newline is optional. Its content passes the [`border`].
///
/// # Errors
/// It is damaged, of another run or version, or has unknown content. Without a run, every line that does not name its own is damaged.
pub fn decode(bytes: &[u8], run: Option<&str>) -> Result<Numbered, LineError> {
    let (bytes, names_run) = sealed(bytes, run)?;
    let read: Read = border::read(bytes).map_err(|error| match version(bytes) {
        Some(VERSION) => LineError::Unknown(error.to_string()),
        Some(found) => LineError::Version(found),
        None => LineError::Unknown("it has no version".into()),
    })?;
    if read.v != VERSION {
        return Err(LineError::Version(read.v));
    }
    let of = match (read.run, run) {
        (Some(own), Some(run)) if own != run => return Err(LineError::Damaged("it is of another run")),
        (Some(own), _) => own,
        (None, Some(run)) if !names_run => run.to_owned(),
        (None, _) => return Err(LineError::Unknown("it does not name its run".into())),
    };
    // No run has so many lines, and none has number 0; later lines are counted from it.
    if read.n == 0 || read.n > MOST {
        return Err(LineError::Damaged("its number cannot be"));
    }
    Ok(Numbered { run: of, n: read.n, line: Line { at: read.at, event: read.event } })
}

/// The run's name in a first line; `None` if the line is damaged or not ours. The rest is not read.
pub fn run_of(first: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct OfRun {
        run: String,
    }
    let (bytes, names_run) = sealed(first, None).ok()?;
    let of: OfRun = serde_json::from_slice(bytes).ok().filter(|_| names_run)?;
    Some(of.run)
}

fn sealed<'l>(bytes: &'l [u8], run: Option<&str>) -> Result<(&'l [u8], bool), LineError> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let Some((at, sum)) = bytes.len().checked_sub(ENDING).and_then(|at| sum(&bytes[at..]).map(|sum| (at, sum))) else {
        return Err(match version(bytes) {
            Some(found) if found != VERSION => LineError::Version(found),
            _ => LineError::Damaged("it has no sum at its end"),
        });
    };
    if run.is_some_and(|run| sum_within(run, &bytes[..at]) == sum) {
        return Ok((bytes, false));
    }
    if crc32fast::hash(&bytes[..at]) == sum {
        return Ok((bytes, true));
    }
    Err(LineError::Damaged("its sum does not agree with it, or it is of another run"))
}

/// Whether these bytes, of a file without a newline, are an incomplete first line of ours.
pub fn is_torn_start(bytes: &[u8]) -> bool {
    let begin = format!("{{\"v\":{VERSION},\"n\":1,");
    let both = begin.len().min(bytes.len());
    let begins = bytes[..both] == begin.as_bytes()[..both];
    begins && !bytes.ends_with(b"\n") && decode(bytes, None).is_err()
}

fn sum(ending: &[u8]) -> Option<u32> {
    let digits = ending.strip_prefix(b",\"sum\":\"")?.strip_suffix(b"\"}")?;
    // Only what `encode` writes: from_str_radix would accept capitals and a sign.
    let is_written = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    is_written.then(|| std::str::from_utf8(digits).ok()).flatten().and_then(|text| u32::from_str_radix(text, 16).ok())
}

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
    use railgauge_wire::NanosecondsI64;

    fn bytes() -> Vec<u8> {
        encode("r", 7, "2026-11-22T03:00:00.000Z", &Event::Note { host: "a".into(), text: "said \"\u{e9}\"".into() })
            .unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let read = decode(&bytes(), Some("r")).unwrap();
        assert_eq!((read.run.as_str(), read.n, read.line.at.as_str()), ("r", 7, "2026-11-22T03:00:00.000Z"));
        assert!(matches!(read.line.event, Event::Note { host, .. } if host == "a"));
        // The sum does not cover the newline.
        assert!(decode(bytes().strip_suffix(b"\n").unwrap(), Some("r")).is_ok());
    }

    #[test]
    fn other_versions_and_events_are_told_from_damage() {
        let old = br#"{"v":1,"at":"2026-11-21T03:00:00.000Z","event":"Finished"}"#;
        assert_eq!(decode(old, None), Err(LineError::Version(1)));
        let sealed = |text: &str| {
            let sum = crc32fast::hash(text.as_bytes());
            format!("{text},\"sum\":\"{sum:08x}\"}}")
        };
        assert_eq!(decode(sealed(r#"{"v":7,"n":1,"what":2"#).as_bytes(), None), Err(LineError::Version(7)));
        let before = sealed(r#"{"v":5,"n":2,"run":"r","at":"x","event":"Finished""#);
        assert_eq!(decode(before.as_bytes(), None), Err(LineError::Version(5)));
        let own = before.replacen("\"v\":5", "\"v\":6", 1);
        let own = sealed(own.split(",\"sum\"").next().unwrap());
        assert_eq!(decode(own.as_bytes(), None).unwrap().line.event, Event::Finished);
        assert_eq!(decode(own.as_bytes(), Some("s")), Err(LineError::Damaged("it is of another run")));
        let nobodys = sealed(r#"{"v":6,"n":2,"at":"x","event":"Finished""#);
        for run in [None, Some("r")] {
            assert!(matches!(decode(nobodys.as_bytes(), run), Err(LineError::Unknown(_))));
        }
        let unknown = sealed(r#"{"v":6,"n":1,"run":"r","at":"x","event":{"Something":1}"#);
        assert!(matches!(decode(unknown.as_bytes(), None), Err(LineError::Unknown(why)) if why.contains("Something")));
        assert!(decode(&bytes(), Some("r")).is_ok());
        assert!(matches!(decode(b"hello", None), Err(LineError::Damaged(_))));
        assert!(matches!(decode(b"", None), Err(LineError::Damaged(_))));
    }

    #[test]
    fn a_run_is_named_once_and_no_line_of_another_is_taken() {
        let line = |run: &str, n| encode(run, n, "x", &Event::Finished).unwrap();
        assert_eq!((run_of(&line("r", 1)).as_deref(), run_of(&line("r", 2))), (Some("r"), None));
        assert_eq!(decode(&line("r", 1), None).unwrap().run, "r");
        assert!(!String::from_utf8(line("r", 2)).unwrap().contains("run"));
        for n in [1, 2] {
            assert!(decode(&line("r", n), Some("r")).is_ok());
            assert!(matches!(decode(&line("r", n), Some("s")), Err(LineError::Damaged(_))));
        }
        // Losing the first line loses the others: their run is then unknown.
        assert!(matches!(decode(&line("r", 2), None), Err(LineError::Damaged(_))));
        let mut changed = line("r", 1);
        changed[12] ^= 1;
        assert_eq!(run_of(&changed), None);
    }

    #[test]
    fn numbers_that_cannot_be_are_damage() {
        for n in [0, MOST + 1, border::FARTHEST] {
            assert!(
                matches!(
                    decode(&encode("r", n, "x", &Event::Finished).unwrap(), Some("r")),
                    Err(LineError::Damaged(_))
                ),
                "{n}"
            );
        }
        let wall = Event::HostUp {
            host: "a".into(),
            facts: Box::default(),
            clock: None,
            wall: Some(NanosecondsI64(i64::MIN)),
        };
        let error = decode(&encode("r", 2, "x", &wall).unwrap(), Some("r")).unwrap_err().to_string();
        assert!(error.starts_with("`event.HostUp.wall` is -9223372036854775808"), "{error}");
    }

    #[test]
    fn the_beginning_of_a_first_line_is_known() {
        let first = encode("r", 1, "2026-11-22T03:00:00.000Z", &Event::Finished).unwrap();
        assert!((1..first.len() - 1).all(|length| is_torn_start(&first[..length])));
        assert!(!is_torn_start(&first) && !is_torn_start(&first[..first.len() - 1]));
        assert!(!is_torn_start(b"{\"hello\":1}") && !is_torn_start(&bytes()[..40]));
    }

    proptest! {
        #[test]
        fn no_change_of_a_line_goes_unseen(at in 0usize..200, with in 1u8..=255) {
            let mut bytes = bytes();
            // The reader owns the newline: changing it merges or splits lines.
            let at = at % (bytes.len() - 1);
            bytes[at] ^= with;
            prop_assert!(decode(&bytes, Some("r")).is_err());
        }

        #[test]
        fn no_cut_goes_unseen(length in 0usize..200) {
            let bytes = bytes();
            let length = length % (bytes.len() - 1);
            prop_assert!(decode(&bytes[..length], Some("r")).is_err());
        }
    }
}
