//! Rules for the code, for what is linked into it, and for releases.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed assumption of a test is a failed test")]

#[path = "../support/skip.rs"]
mod skip;

mod architecture;
mod dependencies;
mod dist;
mod english;
mod links;
