//! Tests that cannot run here.

use std::{fs::OpenOptions, io::Write};

/// Says that the running test is skipped, or what it leaves out, and notes it in the file that `./test` prints at the end.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
    eprint!("skipped: {line}");
    if let Some(path) = std::env::var_os("RAILGAUGE_SKIPPED") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}
