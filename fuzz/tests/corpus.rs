//! Every input of the corpora: what was interesting, and all that ever failed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::{fs, path::Path};

use railgauge_fuzz::TARGETS;

#[test]
fn every_input_of_the_corpora_is_read_or_refused() {
    for target in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        let mut inputs: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{}: no input", target.name);
        for input in inputs {
            eprintln!("{}", input.display());
            (target.run)(&fs::read(&input).unwrap());
        }
    }
}
