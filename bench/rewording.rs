//! Rewords the journals of run directories and judges them again; `bench/rewording` runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench that cannot go on has failed")]

#[path = "../tests/support/reworded.rs"]
mod reworded;

use std::{env, fs, path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let mut troubles = 0;
    for run in env::args_os().skip(1).map(PathBuf::from) {
        let text = fs::read(run.join("records.jsonl")).unwrap();
        match reworded::changes(&text) {
            Ok(lines) => println!("{}: {lines} lines reworded, nothing else changed", run.display()),
            Err(what) => {
                troubles += 1;
                println!("{}: {what}", run.display());
            }
        }
    }
    ExitCode::from(u8::from(troubles > 0))
}
