//! railgauge's controller. The path of the data, in the order of the modules:
//!
//! ```text
//! plan text ─ plan ─▶ Plan ─ schedule ─▶ rounds of cases ─ run (over cluster) ─▶ events ─▶ journal
//!   journal ─ analysis ─▶ frame, verdicts ─ report ─▶ page, text, JUnit
//! ```
//!
//! | module | turns | into |
//! | --- | --- | --- |
//! | [`plan`] | TOML | a [`plan::Plan`], or every mistake with its place |
//! | [`schedule`] | a plan and what the hosts are | rounds in which nothing is shared |
//! | [`preflight`] | what hosts are | findings: why numbers will be bad |
//! | [`cluster`] | a launcher and host names | conversations with agents |
//! | [`run`] | rounds and conversations | events, journalled as they happen |
//! | [`analysis`] | a journal | the frame, verdicts, comparisons, trends |
//! | [`report`] | those | HTML, text, JUnit, JSON |
//! | [`border`] | what agents and journals say | texts that can be printed, numbers that can be reckoned with |
//! | [`files`] | content | files that are there as a whole or not at all |
//! | [`cli`] | a command line | calls of the above and an exit code |
//!
//! Only `cluster` and `run` are asynchronous; only `cli` may import everything, and nothing imports `cli`.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod border;
pub mod cli;
pub mod cluster;
pub mod files;
pub mod plan;
pub mod preflight;
pub mod report;
pub mod run;
pub mod schedule;
