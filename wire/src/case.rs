//! A whole case of a pair in one request to each end. Between its parts the two agents wait for each other over their own link,
//! so that a controller far away costs nothing:
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
//! On a new link the initiator gives a turn before anything else. The steps are those of [`crate::step`]. Many cases may be under way to a link: it works on them in
//! order, and answers each when it is over. Once a case has failed, the link refuses those after it.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    gpu_state::GpuSeen,
    measure::Measurement,
    step::{Checked, Timing},
    unit::Nanoseconds,
};

/// How long reading the counters of a NIC may take an end; drivers that ask firmware take tens of milliseconds.
pub const COUNTERS_LIMIT: Duration = Duration::from_secs(5);

/// What both ends of a link are told of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseSpec {
    /// The timed pass. Operation, metric and size are those of the verify passes too.
    pub timing: Timing,
    /// Seed of the bytes of the verify passes; none are made if `None`.
    pub verify: Option<u64>,
    /// Milliseconds after which a step gives up by itself, beside the time that a timed pass takes anyway.
    pub deadline_ms: u64,
}

/// One end's account of a case, whole or not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CaseAccount {
    /// Bytes compared at this end in both verify passes.
    pub checked: Checked,
    /// The timed pass; `None` where this end has nothing to tell of it.
    pub measured: Option<Box<Measurement>>,
    /// What the end's NIC counted around the timed pass, as [`crate::message::Answer::Counters`] has it: before and after. Empty on
    /// loopback, which everything on a host shares, and where it cannot be read.
    pub counters: (BTreeMap<String, u64>, BTreeMap<String, u64>),
    /// The state of the GPUs of this end while the timed pass ran; empty where it uses none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuSeen>,
    pub spent: Spent,
    /// From the beginning of the case at this end to this account, whole or not.
    pub took: Nanoseconds,
    /// When something of the timed pass completed last, on this end's monotonic clock, where the pass failed; `None` where nothing did
    /// or that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Nanoseconds>,
    /// Why it ended early; what is above was learned before.
    pub failure: Option<Failure>,
}

/// Where the time of an end went. Together the parts are the time from the beginning of a case to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Filling, moving once and comparing.
    pub verify: Nanoseconds,
    /// Before the window of the timed pass: agreeing with the peer and the warm-up.
    pub warm_up: Nanoseconds,
    pub window: Nanoseconds,
    pub waiting: Nanoseconds,
}

impl Spent {
    #[must_use]
    pub fn total(&self) -> Nanoseconds {
        [self.verify, self.warm_up, self.window, self.waiting]
            .into_iter()
            .fold(Nanoseconds::ZERO, Nanoseconds::saturating_add)
    }
}
