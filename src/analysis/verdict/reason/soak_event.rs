//! An outage, breaks or a stall of a soak.

use std::fmt;

use railgauge_wire::unit::Nanoseconds;
use serde::Serialize;

use crate::analysis::{
    soak::span::{lasting, lasting_about, moment},
    words::count,
};

/// An outage, breaks that only a counter saw, or a stall.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SoakEvent {
    /// What it was.
    pub what: What,
    /// Where to look; of a stall the flows.
    pub place: String,
    /// When it began; of breaks when they were before.
    pub begin: Nanoseconds,
    /// How long it was; of breaks what each can have been at most.
    pub length: Nanoseconds,
    /// How far off that may be.
    pub length_error: Nanoseconds,
    /// Whether it may have been longer, because its begin or end was not seen.
    pub open: bool,
    /// Flows that it hit.
    pub flows: usize,
    /// How often these flows stalled.
    pub stalls: usize,
    /// The sum of that.
    pub stalled: Nanoseconds,
    /// The stall of a flow that is judged: the longest that is certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_stall: Option<Nanoseconds>,
}

/// What an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A port was down.
    Down,
    /// So many breaks that only a counter saw.
    Breaks(u64),
    /// Flows stalled, or windows failed, while no watched port of theirs was down.
    Stall,
}

/// `leaf12 port 7, cable to gpu031 mlx5_3 was down for 0.30 ± 0.10 s from 2026-11-22 03:04:05.3 UTC, 2 flows hit`.
impl fmt::Display for SoakEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, place, begin, length, length_error, open, flows, stalls, stalled, longest_stall } = self;
        let sum = format!("{} of {} in all", count(*stalls, "stall"), lasting(*stalled));
        let begin = moment(*begin);
        let length = match open {
            true => format!("at least {}", lasting(*length)),
            false => lasting_about(*length, *length_error),
        };
        match what {
            What::Down => write!(f, "{place} was down for {length} from {begin}")?,
            What::Breaks(breaks) => {
                let breaks = count(usize::try_from(*breaks).unwrap_or(usize::MAX), "break");
                write!(f, "{place}: {breaks} shorter than the time between two looks, by its counter, after {begin}")?;
            }
            What::Stall if self.length.is_zero() => {
                write!(f, "{place}: a window failed at {begin} with no watched port of theirs down")?;
                return if *stalls > 1 { write!(f, ", one of {stalls}") } else { Ok(()) };
            }
            What::Stall => {
                write!(f, "{place} stalled for {length} from {begin} with no watched port of theirs down")?;
                return if *stalls > 1 { write!(f, ", the longest of {sum}") } else { Ok(()) };
            }
        }
        match (flows, longest_stall) {
            (0, _) => f.write_str(", no flow hit"),
            (flows, None) => write!(f, ", {} hit", count(*flows, "flow")),
            (flows, Some(stall)) if *stalls > 1 => {
                write!(f, ", {} hit, {sum}, the longest {}", count(*flows, "flow"), lasting(*stall))
            }
            (flows, Some(stall)) => write!(f, ", {} hit, stalled for {}", count(*flows, "flow"), lasting(*stall)),
        }
    }
}
