//! The border: input written by others is made harmless before other code reads it.
//!
//! Others are agents, the processes that start them, and authors of journals. Texts reach terminals, pages and logs, so unprintable
//! characters are replaced ([`text`]). Numbers reach arithmetic, so none is beyond [`FARTHEST`] and the sum of two never overflows
//! ([`look()`]). [`crate::analysis`] judges whether a number can be *true*. [`facts`] limits how much a host may report. [`hostlist`] reads
//! lists of hosts.

pub mod facts;
pub mod hostlist;
mod look;
mod plain;
pub mod text;
pub mod wrong;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use look::{FARTHEST, Look, look};

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Shape(#[from] serde_json::Error),
    /// Place and value of a number beyond [`FARTHEST`].
    #[error("{0}, which no number here can be")]
    Number(String),
}

/// Reads JSON from outside and makes its texts printable.
///
/// # Errors
/// It is not the JSON of a `T`, or a number is beyond [`FARTHEST`].
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    if plain::is_plain(bytes) {
        return Ok(serde_json::from_slice(bytes)?);
    }
    let mut value: Value = serde_json::from_slice(bytes)?;
    let seen = look(&value);
    if let Some(what) = seen.impossible {
        return Err(Refusal::Number(what));
    }
    if !seen.unprintable {
        return Ok(serde_json::from_slice(bytes)?);
    }
    clean(&mut value, text::printable);
    Ok(typed(&value)?)
}

/// Converts a value by way of its text: `serde_json::from_value` would compile every type for a second reader, a sixth of the crate's build
/// time.
pub fn typed<T: DeserializeOwned>(value: &Value) -> serde_json::Result<T> {
    serde_json::from_slice(&serde_json::to_vec(value)?)
}

pub fn clean(value: &mut Value, better: fn(&str) -> String) {
    clean_one(value, better, false);
}

fn clean_one(value: &mut Value, better: fn(&str) -> String, in_lines: bool) {
    match value {
        Value::String(text) if in_lines => *text = text::lines(text, better),
        Value::String(text) => *text = better(text),
        Value::Array(items) => items.iter_mut().for_each(|item| clean_one(item, better, in_lines)),
        Value::Object(fields) => {
            for (name, mut value) in std::mem::take(fields) {
                clean_one(&mut value, better, look::has_lines(&name));
                fields.insert(better(&name), value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn texts_come_in_printable_and_names_too() {
        let read: BTreeMap<String, String> = read(r#"{"a\u001b[31m":"b\u202e\nc"}"#.as_bytes()).unwrap();
        assert_eq!(read.into_iter().collect::<Vec<_>>(), [("a\u{fffd}[31m".into(), "b\u{fffd} c".into())]);
    }

    #[test]
    fn only_what_is_written_in_lines_keeps_them() {
        let read: BTreeMap<String, String> = read(br#"{"description":"a\r\nb\u001b\n","name":"a\nb"}"#).unwrap();
        assert_eq!((read["description"].as_str(), read["name"].as_str()), ("a\nb\u{fffd}\n", "a b"));
    }

    #[test]
    fn numbers_out_of_reach_are_refused_by_name() {
        let refused = |text: &str| read::<Value>(text.as_bytes()).unwrap_err().to_string();
        let text = refused(r#"{"event":{"HostUp":{"clock":[1,2],"wall":-9223372036854775808}}}"#);
        assert!(text.starts_with("`event.HostUp.wall` is -9223372036854775808"), "{text}");
        assert!(
            refused(r#"{"times":[1,[2,18446744073709551615]]}"#).starts_with("`times.1.1` is 18446744073709551615")
        );
        assert!(refused(r#"{"mean":1e300,"next":1}"#).starts_with("`mean` is 1e300"));
        assert!(read::<Value>(br#"{"mean":1e999}"#).is_err());
    }

    #[test]
    fn numbers_that_are_no_amounts_may_be_anything() {
        for text in [r#"{"from_counters":{"a":18446744073709551615}}"#, r#"{"seed":18446744073709551615}"#] {
            assert!(read::<Value>(text.as_bytes()).is_ok(), "{text}");
        }
    }
}
