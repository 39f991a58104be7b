//! Steps of a link. The controller leads both ends through a case, or sends a whole one ([`crate::case`]):
//!
//! ```text
//! verify    sink Poison → source Fill → (responder Serve) → initiator Transfer → (responder Stop) → sink Check
//! time      (responder Serve) → initiator Time → (responder Stop)
//! verify    again, with another iteration number
//! ```
//! The sink is the responder for everything but reads.

use std::{ops::AddAssign, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    failure::Stage,
    terms::{Op, TestMetric, Transport},
    unit::{self, BitsPerSecond, Bytes, Nanoseconds},
};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Window {
    Duration(Nanoseconds),
    Iterations(u64),
    /// Until the 95 % interval of the mean is narrow enough, or the cap is reached.
    Adaptive {
        relative: f64,
        at_least: Nanoseconds,
        at_most: Nanoseconds,
    },
}

impl Window {
    pub fn at_least(self) -> Duration {
        match self {
            Self::Duration(time) | Self::Adaptive { at_least: time, .. } => time.into(),
            Self::Iterations(_) => Duration::ZERO,
        }
    }

    pub fn at_most(self) -> Duration {
        match self {
            Self::Duration(time) | Self::Adaptive { at_most: time, .. } => time.into(),
            Self::Iterations(_) => Duration::ZERO,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    Fill(Pattern),
    /// Overwrites the same bytes with others.
    Poison(Pattern),
    /// Initiator: moves the pattern once over every queue pair, untimed.
    Transfer {
        op: Op,
        pattern: Pattern,
    },
    Check(Pattern),
    /// Responder: serves a timed or verifying pass until `Stop`. Answered when ready; the answer to `Stop` has the account.
    Serve {
        op: Op,
        metric: TestMetric,
        size: Bytes,
        /// The initiator's window; `None` in a verify pass, and where the peer leads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<Window>,
    },
    Time(Timing),
}

impl Step {
    pub const fn stage(&self) -> Stage {
        match self {
            Self::Time(_) | Self::Serve { .. } => Stage::Measure,
            Self::Fill(_) | Self::Poison(_) | Self::Transfer { .. } | Self::Check(_) => Stage::Verify,
        }
    }
}

/// Whether a transfer needs the responder's CPU, so that it serves in a verify pass.
pub const fn responder_takes_part(transport: Transport, op: Op) -> bool {
    matches!(transport, Transport::Tcp) || matches!(op, Op::Send | Op::WriteImm)
}

/// The bytes of a verify pass: a function of position, seed and iteration (see `agent/src/memory/pattern.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    pub size: Bytes,
    pub seed: u64,
    /// Differs between the passes before and after, to detect stale bytes.
    pub iteration: u64,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub op: Op,
    pub metric: TestMetric,
    pub size: Bytes,
    pub window: Window,
    pub warm_up: Nanoseconds,
    /// Start of the window on this agent's monotonic clock; right after the warm-up if `None` or earlier.
    pub start_at: Option<Nanoseconds>,
    pub bidirectional: bool,
    /// The only queue pair or stream to use, for bandwidth in one direction; all if `None`.
    pub only: Option<u32>,
    /// Rate limit of each queue pair or stream, for bandwidth in one direction; unlimited if `None`.
    pub pace: Option<BitsPerSecond>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Stepped {
    Done,
    Checked(Checked),
    Measured(Box<crate::measure::Measurement>),
}

/// Compared and wrong bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Checked {
    pub verified: Bytes,
    /// Omitted if zero.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub wrong: Bytes,
    /// Offset of the first wrong byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_wrong: Option<u64>,
}

/// Agents' values are untrusted: too large ones must not overflow and are judged with the sample.
impl AddAssign for Checked {
    fn add_assign(&mut self, more: Self) {
        self.verified = self.verified.saturating_add(more.verified);
        self.wrong = self.wrong.saturating_add(more.wrong);
        self.first_wrong = self.first_wrong.or(more.first_wrong);
    }
}
