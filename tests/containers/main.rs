//! railgauge in containers and in what deploys them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/kubernetes.rs"]
mod kubernetes;
#[path = "../support/podman.rs"]
mod podman;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../support/skip.rs"]
mod skip;

mod deploy;
mod pods;
