//! Units of what is measured, as types: an amount of bytes is never taken for a time.
//!
//! Each is written to JSON as its bare number. `Display` prints the bare number too: the text around it names the unit.
//! Factors between units stand here and nowhere else. Operations that no one needs are left out: this is no algebra of
//! dimensions.

#[macro_use]
mod amount;
mod time;

pub use time::{Nanoseconds, NanosecondsF64, NanosecondsI64};
