//! The statistics on data that is generated, by published numbers and by properties.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed assumption of a test is a failed test")]

// Simulated fabrics, which `bench/switch-links` runs too.
#[path = "../../examples/switch_links/tree.rs"]
#[allow(dead_code, reason = "the benchmark takes more of it")]
mod tree;
#[path = "../../examples/switch_links/world.rs"]
#[allow(dead_code, reason = "the benchmark takes more of it")]
mod world;

mod bisect;
mod changepoint;
mod collide;
mod compare;
mod explained;
mod fabric;
mod generators;
mod goldens;
mod intermittent;
mod invariances;
mod joint;
mod lanes;
mod localise;
mod states;
mod taper;
