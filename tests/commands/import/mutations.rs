//! Outputs that were changed at random: never a panic, and never a number that does not stand in the file.

use std::{fs, panic::AssertUnwindSafe, sync::LazyLock};

use proptest::prelude::*;

use super::{import, outputs};

/// Every output, by name.
static ALL: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let entries = fs::read_dir(outputs()).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap()))
        .collect();
    all.sort();
    all
});

/// Numbers of a line, as doubles.
fn numbers(line: &str) -> Vec<f64> {
    let split = line.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-')));
    split.filter_map(|word| word.parse().ok()).collect()
}

fn holds(name: &str, bytes: &[u8]) {
    let read = std::panic::catch_unwind(AssertUnwindSafe(|| import::read(name, bytes)));
    let Ok(outputs) = read.expect("no panic") else { return };
    let text = std::str::from_utf8(bytes).unwrap();
    for said in outputs.iter().flat_map(|output| &output.said) {
        let value: f64 = said.written.parse().unwrap();
        let is_near = |number: &f64| (number - value).abs() <= value.abs() * 1e-15;
        let line = text.lines().nth(usize::try_from(said.line).unwrap() - 1).unwrap();
        let is_json = text.trim_start().starts_with('{');
        // What is laid out over several lines has its number below the line that names it.
        let there = if is_json { numbers(text) } else { numbers(line) };
        assert!(there.iter().any(is_near), "{name}: {} is not in line {}: {line}", said.written, said.line);
        assert!(value.is_finite() && value >= 0.0);
    }
}

#[test]
fn all_outputs_hold_before_they_are_changed() {
    ALL.iter().for_each(|(name, bytes)| holds(name, bytes));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn changed_outputs_never_give_another_number(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..5, any::<u8>(), any::<prop::sample::Index>()), 1..6),
    ) {
        let (name, mut bytes) = ALL[which.index(ALL.len())].clone();
        for (at, how, byte, other) in changes {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            match how {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.insert(at, b"0123456789.-e:#, \n\t{}\"[]"[usize::from(byte) % 24]),
                2 if at < bytes.len() => _ = bytes.remove(at),
                3 => bytes.truncate(at),
                // A piece is there twice, as in a log of two runs.
                _ => {
                    let from = other.index(bytes.len().max(1)).min(at);
                    let piece = bytes[from..at].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        holds(&name, &bytes);
    }
}
