//! Agents brought up on hosts: the library alone, over real ssh, with agents that misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/cluster.rs"]
mod cluster;
#[path = "../support/skip.rs"]
mod skip;
#[path = "../support/sshd.rs"]
mod sshd;

mod command;
mod killed;
mod local;
mod slow;
mod ssh;
