//! Files that a program of bench/railgauge_bench makes of what is installed here.

#[path = "../../../tests/support/skip.rs"]
mod skip;

use std::{path::Path, process::Command};

use skip::skipped;
use tempfile::TempDir;

/// Exit code of a program that lacks what it needs.
const UNAVAILABLE: i32 = 77;

/// The directory that a program filled: its first argument, before these. `None`, with a note, where it lacks what it needs.
pub fn made_by(program: &str, arguments: &[&str]) -> Option<TempDir> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/railgauge_bench").join(program);
    let place = tempfile::tempdir().unwrap();
    let run = match Command::new("python3").arg(script).arg(place.path()).args(arguments).output() {
        Ok(run) => run,
        Err(error) => {
            skipped(&format!("python3 does not start: {error}"));
            return None;
        }
    };
    let said = String::from_utf8_lossy(&run.stderr);
    if run.status.code() == Some(UNAVAILABLE) {
        skipped(said.trim());
        return None;
    }
    assert!(run.status.success(), "{said}");
    Some(place)
}
