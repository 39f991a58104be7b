//! Reading plans: every kind of mistake with its rendered text, the example plans, the documentation, the command.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod command;
mod documentation;
mod examples;
mod invalid;
mod limits;
mod meaning;
mod selection;
