//! All reports of a run, rendered from its records alone: `report.html`, `verdicts.json`, `junit.xml`, the frame as
//! Parquet, and the summary on the terminal.
//!
//! ```text
//! records.jsonl ─ analysis ─▶ rows, verdicts ─ view ─▶ View ─ html, text ─▶ page, terminal
//!                                       └─ junit, ocp, JSON, Parquet
//! ```
//!
//! [`write`] makes all of them, for old and new runs. The same records give the same bytes.
#![forbid(unsafe_code)]
// What no other crate needs is not `pub`, so that the compiler sees what is unused.
#![warn(unreachable_pub)]

mod chart;
pub mod compare;
mod error;
mod html;
pub mod imported;
pub mod index;
mod junit;
pub mod live;
pub mod ocp;
pub mod preflight;
pub mod signoff;
mod steps;
pub mod text;
pub mod trend;
pub mod view;
mod write;

pub use error::{DrawError, ReportError};
pub use write::{Drawn, Written, draw, frame_rows, junit_document, write};
