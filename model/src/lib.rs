//! What is said about a run: the plan, the schedule made from it, the events of the run and the files that keep them. Nothing here
//! waits for a host or draws anything: no tokio, no polars.
//!
//! | module | holds |
//! | --- | --- |
//! | [`plan`] | TOML becomes a [`plan::Plan`], or every mistake with its place |
//! | [`schedule`] | a plan and what the hosts are become rounds in which nothing is shared |
//! | [`journal`] | events, the lines that keep them, the file of those lines |
//! | [`directory`] | the run directory and the names in it |
//! | [`files`] | files that are there as a whole or not at all |
//! | [`topology`] | how hosts, switches and cables hang together |
//! | [`border`] | what agents and journals say: texts that can be printed, numbers that can be reckoned with |
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
