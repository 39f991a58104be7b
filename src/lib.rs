//! railgauge's controller. The path of the data, in the order of crates and modules:
//!
//! ```text
//! plan text ─ model::plan ─▶ Plan ─ model::schedule ─▶ rounds of cases ─ run (over cluster) ─▶ events ─▶ model::journal
//!   journal ─ analysis ─▶ frame, verdicts ─ report ─▶ page, text, JUnit
//! ```
//!
//! | crate or module | turns | into |
//! | --- | --- | --- |
//! | [`railgauge_model`] | TOML, hosts, events | plans, schedules, journals and run directories |
//! | [`railgauge_preflight`] | what hosts are | findings: why numbers will be bad |
//! | [`draft`] | host names, what hosts are | the text of a first plan |
//! | [`cluster`] | a launcher and host names | conversations with agents |
//! | [`run`] | rounds and conversations | events, journalled as they happen |
//! | [`import`] | outputs of other tools | the journal of an imported run |
//! | [`railgauge_analysis`] | a journal | rows, verdicts, comparisons, trends |
//! | [`railgauge_frame`] | rows | the polars frame, Parquet |
//! | [`railgauge_report`] | those | HTML, text, JUnit, JSON |
//! | [`live`] | a journal that is being written | pages for a browser |
//! | [`query`] | frames of many runs | rows as a table, CSV, JSON |
//! | [`night`] | the newest run | a state, metrics, lists of hosts to drain |
//! | [`kit`] | hosts and a short run | one file that becomes a test |
//! | [`cli`] | a command line | calls of the above and an exit code |
//!
//! Only `cluster`, `run` and `live` are asynchronous, the last on a thread of its own; only `cli` may import everything, and nothing imports `cli`.
#![forbid(unsafe_code)]
// What the tests do not need is not `pub`, so that the compiler sees what is unused.
#![warn(unreachable_pub)]

mod cli;
pub mod cluster;
pub mod draft;
pub mod import;
pub mod kit;
pub mod live;
pub mod night;
pub mod query;
pub mod run;

pub use cli::main;
