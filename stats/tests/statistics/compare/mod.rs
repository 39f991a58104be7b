//! Before and after on data that we generate: how often noise is called a change, how often a change is found, and whether
//! intervals hold what they should.
//!
//! The figures of docs/statistics.md are printed by
//! `cargo test -p railgauge-stats --test compare -- --nocapture`.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "../generators/mod.rs"]
mod generators;

mod intervals;
mod names;
mod order;
mod runs;
mod strays;
mod words;
