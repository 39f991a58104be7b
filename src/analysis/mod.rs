//! A journal becomes the frame, verdicts, comparisons and trends. Pure: no network, no clock.
//!
//! ```text
//! records.jsonl ─ journal ─▶ Journal ─ results ─▶ CaseResult ─ rows ─▶ Row ─ frame ─▶ DataFrame, Parquet
//!                                        plan's expectations, rows, results ─ verdict ─▶ Verdicts
//!                                    results, rows, parts of localise ─ outliers ─▶ input of all reports
//! ```

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
pub mod frame;
pub mod gpus;
pub mod history;
pub mod imported;
pub mod journal;
pub mod localise;
#[cfg(test)]
mod made;
pub mod nics;
pub mod outliers;
pub(crate) mod overrides;
pub(crate) mod parallel;
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
