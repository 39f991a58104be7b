//! What a link is told to do. The controller leads both ends through a case, or tells them of a whole one ([`crate::case`]):
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

/// How long a timed step runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Window {
    Duration(Nanoseconds),
    /// A fixed number of operations per queue pair.
    Iterations(u64),
    /// Until the 95 % interval of the mean is narrow enough, or the cap is reached.
    Adaptive {
        /// Wanted half width of the interval over its centre.
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

    /// The time that it can take by itself. Iterations are bounded by a deadline alone.
    pub fn at_most(self) -> Duration {
        match self {
            Self::Duration(time) | Self::Adaptive { at_most: time, .. } => time.into(),
            Self::Iterations(_) => Duration::ZERO,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// Writes the pattern of [`Pattern`] into the first `size` bytes of every queue pair's buffer.
    Fill(Pattern),
    /// Overwrites the same bytes with something that is not the pattern.
    Poison(Pattern),
    /// Initiator: moves the pattern once over every queue pair, untimed.
    Transfer {
        op: Op,
        pattern: Pattern,
    },
    Check(Pattern),
    /// Responder: plays its part of a timed or verifying pass until `Stop`. Answered when armed; the account of
    /// what was served is the answer to `Stop`.
    Serve {
        op: Op,
        /// The loop the initiator runs.
        metric: TestMetric,
        size: Bytes,
        /// The window that the initiator times; `None` in a verify pass, and where the peer leads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<Window>,
    },
    Time(Timing),
}

impl Step {
    /// The stage to which a failure of this step belongs.
    pub const fn stage(&self) -> Stage {
        match self {
            Self::Time(_) | Self::Serve { .. } => Stage::Measure,
            Self::Fill(_) | Self::Poison(_) | Self::Transfer { .. } | Self::Check(_) => Stage::Verify,
        }
    }
}

/// Whether moving bytes once needs the responder's CPU, so that it serves in a verify pass.
#[must_use]
pub const fn responder_takes_part(transport: Transport, op: Op) -> bool {
    matches!(transport, Transport::Tcp) || matches!(op, Op::Send | Op::WriteImm)
}

/// The bytes of a verify pass: a function of position, seed and iteration (see `agent/src/memory/pattern.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    pub size: Bytes,
    pub seed: u64,
    /// Differs between the pass before and the pass after, so that stale bytes are seen.
    pub iteration: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub op: Op,
    pub metric: TestMetric,
    pub size: Bytes,
    pub window: Window,
    pub warm_up: Nanoseconds,
    /// When to start the window, on this agent's monotonic clock; right after the warm-up if `None` or if that ends
    /// later.
    pub start_at: Option<Nanoseconds>,
    /// Both directions at once.
    pub bidirectional: bool,
    /// Number of the only queue pair or stream to use, for bandwidth in one direction; all of them if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<u32>,
    /// Most payload that each queue pair or stream sends, for bandwidth in one direction; as fast as it goes if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<BitsPerSecond>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Stepped {
    Done,
    Checked(Checked),
    /// The result of a timed pass, or of serving one.
    Measured(Box<crate::measure::Measurement>),
}

/// How many bytes were compared, and how many were wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Checked {
    /// Bytes compared.
    pub verified: Bytes,
    /// Bytes that differ; left out where none does.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub wrong: Bytes,
    /// Offset of the first wrong byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_wrong: Option<u64>,
}

/// What an agent claims may be anything: too much is judged with the sample, and overflows nothing.
impl AddAssign for Checked {
    fn add_assign(&mut self, more: Self) {
        self.verified = self.verified.saturating_add(more.verified);
        self.wrong = self.wrong.saturating_add(more.wrong);
        self.first_wrong = self.first_wrong.or(more.first_wrong);
    }
}
