//! The border: what others wrote is made harmless here, before anybody reads it.
//!
//! Others are agents, the processes that start them, and whoever wrote a journal: a program that may be broken or worse, a
//! file that came by mail. Two rules hold for all of them. Texts reach terminals, pages and logs: what cannot be printed is
//! replaced ([`text`]). Numbers reach arithmetic: none is farther from zero than [`FARTHEST`], so that the sum or the
//! difference of two never overflows ([`look()`]). Whether a number can be *true* is judged with the sample ([`crate::analysis`]). How
//! many of everything a host may tell of says [`facts`]. Lists of hosts, in plans and in the files of others, are read by [`hostlist`].

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
    /// It is not what should be there.
    #[error(transparent)]
    Shape(#[from] serde_json::Error),
    /// A number that nothing of ours reaches, and where it stands.
    #[error("{0}, which no number here can be")]
    Number(String),
}

/// JSON that somebody else wrote, with its texts made printable.
///
/// # Errors
/// It is not the JSON of a `T`, or holds a number that cannot be.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    if plain::is_plain(bytes) {
        return Ok(serde_json::from_slice(bytes)?);
    }
    let seen = look(bytes)?;
    if let Some(what) = seen.impossible {
        return Err(Refusal::Number(what));
    }
    if !seen.unprintable {
        return Ok(serde_json::from_slice(bytes)?);
    }
    let mut value: Value = serde_json::from_slice(bytes)?;
    clean(&mut value, text::printable);
    Ok(typed(&value)?)
}

/// A value as its type, by way of its text: `serde_json::from_value` would have every type compiled for a second reader, a sixth of
/// the time of the crate's build.
///
/// # Errors
/// It is not the JSON of a `T`.
pub fn typed<T: DeserializeOwned>(value: &Value) -> serde_json::Result<T> {
    serde_json::from_slice(&serde_json::to_vec(value)?)
}

/// Passes all texts of a value through `better`, the names of its fields too.
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
