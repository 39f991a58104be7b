//! A journal whose words for people are replaced by ids, and what judging the two says differently: nothing may.

use std::path::Path;

use railgauge_analysis::{journal, row::Row};
use railgauge_frame as frame;
use railgauge_model::journal::{
    event::{Event, Outcome},
    line,
};
use railgauge_report::{Drawn, draw, frame_rows};
use railgauge_wire::failure::Failure;
use serde_json::Value;

/// Keys of verdicts.json whose values are words for people.
const WORDS: [&str; 8] = ["cause", "causes", "error", "reason", "reasons", "remedy", "sentence", "why"];

/// Equal words get the same id.
fn id(words: &mut String) {
    if !words.is_empty() {
        *words = format!("t{:08x}", crc32fast::hash(words.as_bytes()));
    }
}

fn failure(failure: &mut Failure) {
    id(&mut failure.cause);
    if let Some(remedy) = &mut failure.remedy {
        remedy.id = format!("t{:08x}", crc32fast::hash(remedy.id.as_bytes())).into();
    }
}

/// The same journal, with an id in place of every text that is made for people. What stands in damaged lines stays.
pub fn reworded(text: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(text.len());
    let of = text.split(|byte| *byte == b'\n').next().and_then(line::run_of);
    for bytes in text.split_inclusive(|byte| *byte == b'\n') {
        let Ok(line::Numbered { run, n, mut line }) = line::decode(bytes, of.as_deref()) else {
            all.extend_from_slice(bytes);
            continue;
        };
        match &mut line.event {
            Event::Started { controller, launcher, .. } => [controller, launcher].into_iter().for_each(id),
            Event::HostLost { failure: words, .. } | Event::Configured { failure: Some(words), .. } => failure(words),
            Event::Outcome(outcome) => {
                if let Outcome { result: Err(words), .. } = &mut **outcome {
                    failure(words);
                }
            }
            Event::Note { text, .. } => id(text),
            Event::Prevented { why, .. } => id(why),
            _ => {}
        }
        all.extend(line::encode(&run, n, &line.at, &line.event).unwrap());
    }
    all
}

fn drawn(text: &[u8]) -> Result<(Drawn, Vec<Row>), String> {
    let path = Path::new("records.jsonl");
    let journal = journal::parse(text, path).map_err(|error| error.to_string())?;
    let rows = frame_rows(&journal, path).map_err(|error| error.to_string())?;
    draw(&journal, path).map(|drawn| (drawn, rows)).map_err(|error| error.to_string())
}

/// Takes words for people out of a document.
fn without_words(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_words),
        Value::Object(fields) => {
            fields.retain(|name, _| !WORDS.contains(&name.as_str()));
            fields.values_mut().for_each(without_words);
        }
        _ => {}
    }
}

/// What the reworded journal changes besides words: frames, verdicts, exit codes, groups of failures. `Ok(0)` words are a
/// comparison that shows nothing.
///
/// # Errors
/// What differs.
pub fn changes(text: &[u8]) -> Result<usize, String> {
    let other = reworded(text);
    let words = text.split(|b| *b == b'\n').zip(other.split(|b| *b == b'\n')).filter(|(a, b)| a != b).count();
    let (a, b) = match (drawn(text), drawn(&other)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(_), Err(_)) => return Ok(words),
        (a, b) => return Err(format!("one can be judged: {:?}, {:?}", a.err(), b.err())),
    };
    let ((a, rows_a), (b, rows_b)) = (a, b);
    let frame = |rows: &[Row]| frame::frame(rows).unwrap().drop("error").unwrap();
    if !frame(&rows_a).equals_missing(&frame(&rows_b)) {
        return Err("another frame".to_owned());
    }
    let document = |drawn: &Drawn| {
        let mut document: Value = serde_json::from_str(&drawn.verdicts.json().unwrap()).unwrap();
        without_words(&mut document);
        document
    };
    let (one, two) = (document(&a), document(&b));
    if one != two {
        return Err(format!("other verdicts: {one:#}\n{two:#}"));
    }
    // What the page puts on one card it decides by fields and by the shape of words, so that ids make more cards; the cases of
    // every state stay.
    let cases = |drawn: &Drawn| {
        let mut cases = std::collections::BTreeMap::new();
        drawn.view.troubles.iter().for_each(|group| *cases.entry(group.state).or_default() += group.cases);
        cases
    };
    let (one, two): (std::collections::BTreeMap<_, usize>, _) = (cases(&a), cases(&b));
    if one != two {
        return Err(format!("other failures: {one:?}, {two:?}"));
    }
    Ok(words)
}
