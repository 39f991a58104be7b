//! A journal becomes rows, verdicts, comparisons and trends. Pure: no network, no clock.
//!
//! ```text
//! records.jsonl ─ journal ─▶ Journal ─ results ─▶ CaseResult ─ rows ─▶ Row ─ frames ─▶ Parquet
//!                                        plan's expectations, rows, results ─ verdict ─▶ Verdicts
//!                                    results, rows, parts of localise ─ outliers ─▶ input of all reports
//! ```
//!
//! Every module imports only modules of the lines above it, or earlier ones of its own line. `tests/house/architecture/floors.rs` enforces
//! it.
//!
//! | tier | modules |
//! | --- | --- |
//! | helpers | `words`, `compact`, `parallel`, `nics`, `flows`, `value`, `settings`, `sums`, `status`, `ceiling` |
//! | observe: what the journal says, and whether it can be | `journal`, `case`, `gpus`, `percentile`, `truth`, `together` |
//! | values | `row`, `row_ceiling`, `rows`, `plausible`, `results`, `overrides`, `imported`, `frames`, `proven` |
//! | values that are compared with others | `reason`, `history` (runs), `baseline`, `limits` |
//! | diagnose: which part is at fault | `localise`, `outliers`, `explain`, `switches`, `soak`, `collisions`, `costs` |
//! | judge | `compare`, `verdict` |
//! | over many runs | `trend` |
#![forbid(unsafe_code)]
// What no other crate needs is not `pub`, so that the compiler sees what is unused.
#![warn(unreachable_pub)]

pub mod baseline;
pub mod case;
mod ceiling;
pub mod collisions;
pub mod compact;
pub mod compare;
pub mod costs;
pub mod explain;
pub mod flows;
pub mod frames;
pub mod gpus;
pub mod history;
pub mod imported;
pub mod journal;
mod limits;
pub mod localise;
#[cfg(test)]
mod made_test;
pub mod nics;
pub mod outliers;
pub mod overrides;
pub mod parallel;
pub mod percentile;
mod plausible;
pub mod proven;
pub mod reason;
pub mod results;
pub mod row;
mod row_ceiling;
pub mod rows;
mod settings;
pub mod soak;
pub mod status;
pub mod sums;
pub mod switches;
pub mod together;
pub mod trend;
mod truth;
mod value;
pub mod verdict;
pub mod words;
