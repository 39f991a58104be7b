//! A journal becomes the frame, verdicts, comparisons and trends. Pure: no network, no clock.

pub mod ceiling;
pub mod row;
