//! A lab of four hosts with two NICs each.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/browser.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod browser;
#[path = "../support/lab.rs"]
mod lab;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../support/skip.rs"]
mod skip;

mod faults;
mod groups;
mod main_job;
mod preflight;
