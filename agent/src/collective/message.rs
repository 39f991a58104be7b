//! What a rank's process and its agent say to each other: frames as between agent and controller.

use railgauge_wire::{
    failure::Failure,
    group::{CollectiveMeasurement, CollectiveSpec, MemberOpened, MemberSpec, Ticket},
};
use serde::{Deserialize, Serialize};

/// What the agent wants of a rank. Answered one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RankRequest {
    pub ask: RankAsk,
    /// Milliseconds after which the rank gives up by itself.
    pub limit_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum RankAsk {
    Open(Box<MemberSpec>),
    Join(Vec<Ticket>),
    Measure(Box<CollectiveSpec>),
}

pub(crate) type Reply = Result<RankAnswer, Failure>;

/// The answers, by ask.
#[derive(Debug, Serialize, Deserialize)]
pub enum RankAnswer {
    /// To `Open`.
    Opened(Box<MemberOpened>),
    /// To `Join`.
    Joined,
    /// To `Measure`.
    Measured(Box<CollectiveMeasurement>),
}
