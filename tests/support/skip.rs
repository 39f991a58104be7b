//! Tests that cannot run here, in whole or in part.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{fs::OpenOptions, io::Write};

/// Reports that the running test is skipped: `./test` counts it as skipped, not as passed.
pub fn skipped(reason: &str) {
    note("skipped", reason);
}

/// Reports what the running test leaves out, where the rest of it runs.
pub fn left_out(reason: &str) {
    note("left out", reason);
}

/// Adds a line to the file that `./test` reads: the program and the name of the test as cargo-nextest gives them, what
/// happens, and the reason, separated by tabs.
fn note(what: &str, reason: &str) {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("{what}: {reason}");
    let Some(path) = std::env::var_os("RAILGAUGE_SKIPPED") else { return };
    let known = |variable| std::env::var(variable).unwrap_or_default();
    let line = format!("{}\t{}\t{what}\t{reason}\n", known("NEXTEST_BINARY_ID"), known("NEXTEST_TEST_NAME"));
    OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(line.as_bytes()).unwrap();
}
