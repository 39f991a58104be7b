//! railgauge under Slurm.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/nights.rs"]
mod nights;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../support/skip.rs"]
mod skip;
#[path = "../support/slurm.rs"]
mod slurm;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other tests use the rest")]
mod support;

mod jobs;
mod nightly;
mod submit;
