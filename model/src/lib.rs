//! The data model of a run: the plan, its schedule, the events and the files that keep them. Nothing here waits for a host or renders
//! anything: no tokio, no polars.
//!
//! | module | holds |
//! | --- | --- |
//! | [`plan`] | TOML to a [`plan::Plan`], or every error with its place |
//! | [`schedule`] | a plan and the hosts' facts to rounds without shared resources |
//! | [`journal`] | events, their lines, and the file of those lines |
//! | [`directory`] | the run directory and the names in it |
//! | [`files`] | atomic files |
//! | [`topology`] | how hosts, switches and cables are connected |
//! | [`border`] | input of agents and journals: printable texts, numbers in range |
//!
//! `plan` imports `border` and `topology`; `schedule` imports `plan`; `journal` imports these and `files`; nothing imports `directory`.
#![forbid(unsafe_code)]

pub mod border;
pub mod directory;
pub mod files;
pub mod journal;
pub mod plan;
pub mod schedule;
pub mod topology;
