//! A lab of two hosts with one NIC each.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/example.rs"]
mod example;
#[path = "../support/lab.rs"]
mod lab;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../support/skip.rs"]
mod skip;

mod gpu;
mod kit;
mod trace;
mod verbs;
