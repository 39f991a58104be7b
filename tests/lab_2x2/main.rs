//! A lab of two hosts with two NICs each.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/lab.rs"]
mod lab;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../support/skip.rs"]
mod skip;

mod lab_tool;
mod netdev;
