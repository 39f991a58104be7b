//! A journal becomes the frame, verdicts, comparisons and trends. Pure: no network, no clock.
//!
//! ```text
//! records.jsonl ─ journal ─▶ Journal ─ results ─▶ CaseResult ─ rows ─▶ Row ─ frame ─▶ DataFrame, Parquet
//!                                        plan's expectations, rows, results ─ verdict ─▶ Verdicts
//!                                    results, rows, parts of localise ─ outliers ─▶ input of all reports
//! ```
#![forbid(unsafe_code)]
// What no other crate needs is not `pub`, so that the compiler sees what is unused.
#![warn(unreachable_pub)]

pub mod axis;
mod banner;
pub mod baseline;
mod ceiling;
pub mod collisions;
pub mod compact;
pub mod compare;
pub mod copies;
pub mod costs;
pub mod explain;
pub mod frames;
pub mod gpus;
pub mod history;
pub mod imported;
pub mod journal;
pub mod localise;
#[cfg(test)]
mod made;
pub mod nics;
pub mod outliers;
pub mod overrides;
pub mod parallel;
pub mod percentile;
mod plausible;
pub mod proven;
pub mod results;
pub mod row;
mod row_ceiling;
pub mod rows;
mod settings;
pub mod soak;
pub mod switches;
pub mod together;
pub mod trend;
mod truth;
mod value;
pub mod verdict;
pub mod words;
