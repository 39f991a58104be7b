//! The agent's tests as one program. A file of tests is a module of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot continue has failed")]

mod case;
mod collective;
mod controller;
mod conversation;
mod cuda_double;
mod double;
#[path = "../../tests/support/example.rs"]
mod example;
mod gpu;
mod node;
mod silence;
#[path = "../../tests/support/skip.rs"]
mod skip;
mod tcp;
mod verbs_devices;
mod verbs_double;
mod verbs_hostile;
mod verbs_lab;
mod verbs_types;
mod watch;
