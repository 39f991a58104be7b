//! railgauge and real Linux networking: bridges, queues and routes in network namespaces of this machine.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/namespaces.rs"]
mod namespaces;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../support/skip.rs"]
mod skip;

mod beside;
mod ecmp;
mod fabric;
mod lldp;
mod traffic;
mod values;
