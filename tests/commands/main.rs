//! The commands that people use before and after a run.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/axe.rs"]
mod axe;
#[path = "../support/browser.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod browser;
#[path = "../support/driver.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod driver;
#[path = "../support/example.rs"]
mod example;
#[path = "../support/fixture_of_kit.rs"]
#[allow(dead_code, reason = "an example prints the rest")]
mod fixture_of_kit;
#[path = "../support/nights.rs"]
mod nights;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../support/read_kit.rs"]
mod read_kit;
#[path = "../support/skip.rs"]
mod skip;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other tests use the rest")]
mod support;
#[path = "../../agent/src/facts/tests/tree.rs"]
#[allow(dead_code, reason = "only unpacks here")]
mod tree;

mod guides;
mod help;
mod import;
mod index;
mod init;
mod kit;
mod kit_fixture;
mod live;
mod night;
mod prune;
mod query;
mod recipes;
mod signoff;
mod states;
