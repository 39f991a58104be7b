//! Rows of many runs: those that a filter keeps, in an order, as a table, CSV, JSON, JSON lines or Parquet.
//!
//! | file | does |
//! | --- | --- |
//! | `filter` | the words of `--where`: what they mean, and which rows they keep |
//! | `answer` | the rows of runs |
//! | `csv`, `json`, `table` | rows as text |
//!
//! `docs/query.md` has the grammar.

mod answer;
mod csv;
mod filter;
mod json;
mod table;

pub use answer::{Answer, Asked, By, LeftOut, QueryError, Read, answer, columns, order};
pub use csv::csv;
pub use filter::{Filter, FilterError, filter};
pub use json::{document, lines};
pub use table::table;

pub use crate::analysis::frame::write_parquet;
