//! The table of a run: its columns, Parquet there and back, and which runs are read from it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot continue fails")]

use std::path::{Path, PathBuf};

#[path = "../../../../tests/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other tests use the rest")]
mod support;

mod frames;
mod scale;
mod sums;

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
