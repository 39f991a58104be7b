//! Rows of many runs as a table, CSV or JSON.
//!
//! | file | does |
//! | --- | --- |
//! | `answer` | the rows of runs that a filter keeps |
//! | `format` | rows as text |

mod answer;
mod format;

pub use answer::{Answer, LeftOut, QueryError, Read, answer};
pub use format::{csv, document, table};
pub use railgauge_frame::Filter;
