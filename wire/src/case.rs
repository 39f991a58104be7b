//! A whole case of a pair in one request to each end. The two agents synchronize over their own link, so that a distant controller costs
//! no time:
//!
//! ```text
//!             initiator                          responder
//! verify      fill (read: poison)                poison (read: fill), serve where its CPU takes part
//!                                      ◀─ turn
//!             transfer, (read: check)
//!                                         turn ─▶
//!                                                (check)
//! time        counters                           counters, serve
//!                                      ◀─ turn
//!             time
//!                                         turn ─▶
//!             counters                           counters
//! verify      again, with another iteration number
//! ```
//! On a new link the initiator gives a turn first. The steps are those of [`crate::step`]. A link may have many queued cases: it works on
//! them in order, and answers each when it is over. Once a case has failed, the link refuses those after it.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    gpu_state::GpuSeen,
    measure::Measurement,
    step::{Checked, Timing},
    unit::Nanoseconds,
};

/// Limit for reading a NIC's counters; drivers that ask firmware take tens of milliseconds.
pub const COUNTERS_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseSpec {
    /// Operation, metric and size are also those of the verify passes.
    pub timing: Timing,
    /// Seed of the bytes of the verify passes; no verify passes if `None`.
    pub verify: Option<u64>,
    /// Milliseconds limit of a step, in addition to the timed pass.
    pub deadline_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CaseAccount {
    pub checked: Checked,
    /// `None` where this end has no account of it.
    pub measured: Option<Box<Measurement>>,
    /// The NIC's counters before and after the timed pass, as [`crate::message::Answer::Counters`]. Empty on loopback, which everything
    /// on a host shares, and where unreadable.
    pub counters: (BTreeMap<String, u64>, BTreeMap<String, u64>),
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuSeen>,
    pub spent: Spent,
    /// From the start of the case at this end to this account.
    pub took: Nanoseconds,
    /// Last completion of a failed timed pass, on this end's monotonic clock; `None` for none or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Nanoseconds>,
    /// Why it ended early; earlier fields hold what was learned before.
    pub failure: Option<Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub verify: Nanoseconds,
    pub warm_up: Nanoseconds,
    pub window: Nanoseconds,
    pub waiting: Nanoseconds,
}

impl Spent {
    pub fn total(&self) -> Nanoseconds {
        [self.verify, self.warm_up, self.window, self.waiting]
            .into_iter()
            .fold(Nanoseconds::ZERO, Nanoseconds::saturating_add)
    }
}
