//! The border: what an agent says is made harmless here, before anybody reads it.
//!
//! An agent is a program on a host that may be broken or worse. Its texts reach terminals, pages and logs: every control
//! character in them is replaced, and every one is cut to a length that a person would read. A reply with more text than
//! any agent of ours says is refused, as the failure of the request that it answers. What its numbers claim is judged where
//! samples are judged ([`crate::analysis`]), and is told in the report.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    frame,
    message::FromAgent,
};
use serde_json::Value;

/// Longest text that is taken whole, in bytes. A kernel's command line has at most 4,096.
const LONGEST: usize = 4096;
/// Most bytes of text in one reply. The facts of a host with 16 NICs and 8 GPUs have about 60 KiB.
const MOST: usize = 1 << 20;

/// One frame of an agent, as it may be passed on.
///
/// # Errors
/// The bytes are no reply.
pub(super) fn admit(bytes: &[u8]) -> std::io::Result<FromAgent> {
    let mut value: Value = frame::decode(bytes)?;
    let mut said = 0;
    clean(&mut value, &mut said);
    if said > MOST {
        let id = value.pointer("/Reply/id").and_then(Value::as_u64);
        let id = id.ok_or_else(|| std::io::Error::other("a reply without the number of its request"))?;
        let cause = format!("its reply has {said} bytes of text; at most {MOST} are taken");
        let failure = Failure::new(Stage::Converse, Kind::Internal, cause)
            .help("no agent of railgauge says so much: see which program answered there; names and texts under /sys of that host may be damaged");
        return Ok(FromAgent::Reply { id, outcome: Err(failure) });
    }
    Ok(serde_json::from_value(value)?)
}

/// Makes all texts of a value harmless and counts their bytes.
fn clean(value: &mut Value, said: &mut usize) {
    match value {
        Value::String(text) => {
            *said += text.len();
            harmless(text);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, said)),
        Value::Object(fields) => {
            let bad: Vec<String> = fields.keys().filter(|name| !is_harmless(name)).cloned().collect();
            for name in bad {
                if let Some(value) = fields.remove(&name) {
                    let mut better = name;
                    harmless(&mut better);
                    fields.insert(better, value);
                }
            }
            for (name, value) in fields.iter_mut() {
                *said += name.len();
                clean(value, said);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Characters that move a cursor, change colours, break lines or turn the direction of what follows (Unicode's Cc, its
/// line ends, and the bidirectional controls of UAX #9).
fn is_control(c: char) -> bool {
    c.is_control() && c != '\t'
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_harmless(text: &str) -> bool {
    text.len() <= LONGEST && !text.contains(is_control)
}

fn harmless(text: &mut String) {
    if is_harmless(text) {
        return;
    }
    let all = text.len();
    if all > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
    }
    // A line end within a text is a space: what follows must not look like a line of ours.
    let replaced = |c| match c {
        '\n' => ' ',
        c if is_control(c) => '\u{fffd}',
        c => c,
    };
    *text = text.trim_end().chars().map(replaced).collect();
    if all > LONGEST {
        *text += &format!("… ({all} bytes in all)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use railgauge_wire::message::Answer;

    fn reply(outcome: Result<Answer, Failure>) -> Vec<u8> {
        frame::encode(&FromAgent::Reply { id: 7, outcome }).unwrap().split_off(4)
    }

    fn failed(cause: &str) -> Failure {
        Failure::new(Stage::Open, Kind::Unsupported, cause)
    }

    fn admitted(cause: &str) -> Failure {
        let FromAgent::Reply { id: 7, outcome: Err(failure) } = admit(&reply(Err(failed(cause)))).unwrap() else {
            panic!("another reply");
        };
        failure
    }

    #[test]
    fn what_is_harmless_passes_as_it_is() {
        let cause = "ibv_reg_mr: Operation not permitted (tab\there, ümlaut, 日本)";
        assert_eq!(admitted(cause), failed(cause));
        let hello = Ok(Answer::Hello { protocol: 1, version: "0.1.0".into(), pid: u32::MAX });
        assert_eq!(admit(&reply(hello.clone())).unwrap(), FromAgent::Reply { id: 7, outcome: hello });
    }

    #[test]
    fn terminals_see_no_control_character() {
        let failure = admitted("no\x1b]0;owned\x07\nPASS  everything\r\x1b[2J \u{202e}evil\n");
        assert_eq!(failure.cause, "no\u{fffd}]0;owned\u{fffd} PASS  everything\u{fffd}\u{fffd}[2J \u{fffd}evil");
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let failure = admitted(&"ü".repeat(1 << 18));
        assert!(failure.cause.len() < LONGEST + 64 && failure.cause.ends_with("(524288 bytes in all)"));
    }

    #[test]
    fn a_reply_of_nothing_but_text_is_a_failure_of_its_request() {
        let failure = admitted(&"x".repeat(2 << 20));
        assert_eq!((failure.stage, failure.kind), (Stage::Converse, Kind::Internal));
        // Many short ones, as names and as values.
        let counters = (0..200_000).map(|i| (format!("counter {i}"), i)).collect();
        let outcome = admit(&reply(Ok(Answer::Counters(counters)))).unwrap();
        assert!(matches!(outcome, FromAgent::Reply { id: 7, outcome: Err(_) }));
    }

    #[test]
    fn names_are_cleaned_too() {
        let counters = [("rx\x1b[31m".to_owned(), 3)].into();
        let FromAgent::Reply { outcome: Ok(Answer::Counters(counters)), .. } =
            admit(&reply(Ok(Answer::Counters(counters)))).unwrap()
        else {
            panic!("no counters");
        };
        assert_eq!(counters.keys().collect::<Vec<_>>(), ["rx\u{fffd}[31m"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_admitted_or_refused(bytes: Vec<u8>) {
            let _ = admit(&bytes);
        }

        #[test]
        fn any_text_comes_out_harmless_and_stays_so(text: String) {
            let once = admitted(&text).cause;
            prop_assert!(!once.contains(is_control) && once.len() <= LONGEST + 64);
            prop_assert_eq!(admitted(&once).cause, once);
        }
    }
}
