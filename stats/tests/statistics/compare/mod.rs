//! Before and after on data that we generate: how often noise is called a change, how often a change is found, and whether
//! intervals hold what they should.
//!
//! The figures of docs/methods.md are printed by
//! `cargo test -p railgauge-stats --test statistics compare -- --nocapture`.

mod intervals;
mod names;
mod order;
mod runs;
mod strays;
mod unequal;
mod words;
