//! The settings of a test as keys and values, comparable with those of another run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use railgauge_model::plan::model::Test;
use serde::Serialize;
use serde_json::Value;

const AMOUNT: [&str; 8] = ["name", "hosts", "sizes", "qps", "repeats", "deadline", "verify", "pattern"];

const VALUES: [&str; 2] = ["configure", "values"];

/// By key in the resolved plan (`knobs.depth`); without the expectations.
pub(super) fn all(test: &Test) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    let bare = Test { expect: Vec::new(), ..test.clone() };
    // A test read from a journal can be serialised again.
    if let Ok(value) = serde_json::to_value(&bare) {
        flatten(String::new(), &value, &mut flat);
    }
    flat
}

/// Keys of a test known from another tool's output, or from the person who imports it. The rest of an imported test is invented.
const TOLD: [&str; 10] =
    ["op", "metric", "transport", "service", "memory", "bidirectional", "sizes", "qps", "hosts", "knobs.write_latency"];

pub(super) fn told(test: &Test) -> BTreeMap<String, String> {
    let mut settings = all(test);
    settings.retain(|key, _| TOLD.contains(&key.as_str()));
    settings
}

/// Settings that affect each single value: not other hosts, sizes, repeats or rounds of pairs. The pattern does if its
/// flows run at once and share NICs.
pub(super) fn bearing(test: &Test) -> BTreeMap<String, String> {
    let mut settings = all(test);
    settings.retain(|key, _| !AMOUNT.contains(&key.split('.').next().unwrap_or_default()));
    // A case has its own single value.
    settings.retain(|key, _| !key.split('.').take(2).eq(VALUES));
    if test.at_once() {
        let pattern = serde_json::to_string(&test.pattern).unwrap_or_default();
        settings.insert("pattern".to_owned(), pattern);
    }
    settings
}

/// By the keys and in the units of a plan file, from the resolved plan.
fn as_written(settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let number = |key: &str| settings.get(key).and_then(|value| value.parse::<u64>().ok());
    let word = |(key, value): (&String, &String)| {
        let length = || value.parse().map_or_else(|_| value.clone(), time);
        let (name, value) = match key.as_str() {
            "window.Duration" => ("measure", length()),
            "window.Iterations" => ("measure", format!("{value} iterations")),
            "window.Adaptive.relative" => {
                let share =
                    value.parse::<f64>().map_or_else(|_| value.clone(), |share| super::words::percent(100.0 * share));
                ("measure.confidence", format!("{share} %"))
            }
            "window.Adaptive.at_least" => ("measure.at_least", length()),
            "window.Adaptive.at_most" => ("measure.at_most", length()),
            other => match other.rsplit_once('.') {
                // A time is serialised as seconds and additional nanoseconds.
                Some((name, "secs")) => {
                    let nanos = number(&format!("{name}.nanos")).unwrap_or_default();
                    let whole =
                        value.parse::<u64>().ok().and_then(|secs| secs.checked_mul(1_000_000_000)?.checked_add(nanos));
                    (name, whole.map_or_else(|| format!("{value} s"), time))
                }
                Some((name, "nanos")) if settings.contains_key(&format!("{name}.secs")) => return None,
                _ => (other, value.clone()),
            },
        };
        Some((name.to_owned(), value))
    };
    settings.iter().filter_map(word).collect()
}

/// In the largest unit with a whole number.
fn time(nanoseconds: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match units.into_iter().find(|(unit, _)| nanoseconds.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", nanoseconds / unit),
        None => format!("{nanoseconds} ns"),
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// A setting's key in a plan file, or the fact.
    pub name: String,
    /// `None` if unset or unknown.
    pub before: Option<String>,
    pub now: Option<String>,
}

impl Difference {
    /// `kernel 6.1 → 6.12`, with a word for a missing side.
    pub fn words(&self, absent: &str) -> String {
        let [before, now] = [&self.before, &self.now].map(|side| side.as_deref().unwrap_or(absent));
        format!("{} {before} → {now}", self.name)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words("unset"))
    }
}

/// `None` if all are equal.
pub(super) fn difference(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Option<Difference> {
    differences(&as_written(before), &as_written(now)).into_iter().next()
}

/// In the order of keys.
pub(super) fn differences(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<Difference> {
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let of =
        |key: &String| Difference { name: key.clone(), before: before.get(key).cloned(), now: now.get(key).cloned() };
    keys.into_iter().map(of).filter(|one| one.before != one.now).collect()
}

fn flatten(key: String, value: &Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                flatten(key, value, into);
            }
        }
        Value::Null => {}
        Value::String(text) => _ = into.insert(key, text.clone()),
        other => _ = into.insert(key, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &str) -> BTreeMap<String, String> {
        let mut flat = BTreeMap::new();
        flatten(String::new(), &serde_json::from_str(text).unwrap(), &mut flat);
        flat
    }

    #[test]
    fn tables_become_dotted_keys_and_what_is_unset_is_left_out() {
        let settings = flat(r#"{"op": "write", "knobs": {"depth": 128}, "gpus": null, "sizes": [8, 16]}"#);
        let pairs: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("knobs.depth", "128"), ("op", "write"), ("sizes", "[8,16]")]);
    }

    #[test]
    fn times_are_told_as_the_plan_writes_them() {
        let told = |one: &str, other: &str| difference(&flat(one), &flat(other)).unwrap().to_string();
        let (short, long) = (r#"{"window": {"Duration": 20000000}}"#, r#"{"window": {"Duration": 2000000000}}"#);
        assert_eq!(told(short, long), "measure 20 ms → 2 s");
        assert_eq!(told(short, r#"{"window": {"Iterations": 1000}}"#), "measure 20 ms → 1000 iterations");
        let (warm, up) =
            (r#"{"warm_up": {"secs": 0, "nanos": 500000000}}"#, r#"{"warm_up": {"secs": 1, "nanos": 500000000}}"#);
        assert_eq!(told(warm, up), "warm_up 500 ms → 1500 ms");
        assert_eq!(told(r#"{"expected": {"nanos": 1}}"#, r#"{"expected": {"nanos": 2}}"#), "expected.nanos 1 → 2");
    }

    #[test]
    fn the_first_difference_is_told() {
        let (one, other) = (flat(r#"{"a": "1", "b": 2}"#), flat(r#"{"a": "1", "c": 3}"#));
        assert_eq!(difference(&one, &other).unwrap().to_string(), "b 2 → unset");
        assert_eq!(difference(&one, &one), None);
    }
}
