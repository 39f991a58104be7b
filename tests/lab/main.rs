//! Virtual hosts with RDMA devices ([lab/README.md](../../lab/README.md)): four of them with two NICs each, booted once for all of these tests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed assumption of a test is a failed test")]

#[path = "../support/browser.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod browser;
#[path = "../support/example.rs"]
mod example;
#[path = "../support/fixture_of_kit.rs"]
#[allow(dead_code, reason = "an example prints the rest")]
mod fixture_of_kit;
#[path = "../support/lab.rs"]
mod lab;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../support/read_kit.rs"]
mod read_kit;
#[path = "../support/skip.rs"]
mod skip;

mod arm;
mod faults;
mod gpu;
mod groups;
mod iwarp;
mod kit;
mod lab_tool;
mod main_job;
mod netdev;
mod old_kernel;
mod parts;
mod preflight;
mod trace;
mod truth;
mod verbs;
