//! `railgauge run` with local agents: schedules, endings, follow-ups, what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/example.rs"]
mod example;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../support/skip.rs"]
mod skip;

mod at_once;
mod beside;
mod configure;
mod confirm;
mod counts;
mod endings;
mod fabric;
mod gpu_local;
mod groups;
mod in_turn;
mod interrupted;
mod node;
mod soak;
mod time;
mod topology;
mod wanted;
