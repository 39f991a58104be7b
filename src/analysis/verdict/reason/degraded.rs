//! A time in which a port ran at less than its best.

use std::fmt;

use railgauge_wire::unit::Nanoseconds;
use serde::Serialize;

use crate::analysis::soak::{
    ports::Lower,
    span::{lasting, moment},
};

/// A time in which a port ran at less than its best rate or width.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Degraded {
    /// Where to look.
    pub place: String,
    /// When it began, in nanoseconds since 1970.
    pub begin: Nanoseconds,
    /// How long it was, in nanoseconds.
    pub length: Nanoseconds,
    /// Whether it may have been longer, because its begin or end was not seen.
    pub open: bool,
    /// Its rate and lanes at worst.
    pub lower: Lower,
}

/// `gpu031 mlx5_3 ran at 100 Gb/s, 2 lanes in place of 200 Gb/s, 4 lanes for 30.0 s from 2026-11-22 03:04:05.3 UTC`; `for at least`
/// where its begin or end was not seen.
impl fmt::Display for Degraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, begin, length, open, lower } = self;
        let least = if *open { "at least " } else { "" };
        write!(f, "{place} ran at {lower} for {least}{} from {}", lasting(*length), moment(*begin))
    }
}
