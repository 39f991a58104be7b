//! What a rank's process and its agent say to each other: frames as between agent and controller.

use railgauge_wire::{
    failure::Failure,
    group::{Exercise, Exercised, MemberOpened, MemberSpec, Ticket},
};
use serde::{Deserialize, Serialize};

/// What the agent wants of a rank. Answered one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// What is wanted.
    pub wish: Wish,
    /// Milliseconds after which the rank gives up by itself.
    pub limit_ms: u64,
}

/// The wishes.
#[derive(Debug, Serialize, Deserialize)]
pub enum Wish {
    /// Opens GPU and library.
    Open(Box<MemberSpec>),
    /// Joins the group.
    Join(Vec<Ticket>),
    /// One measurement.
    Exercise(Box<Exercise>),
}

/// What a rank answers.
pub type Reply = Result<Said, Failure>;

/// The answers, by wish.
#[derive(Debug, Serialize, Deserialize)]
pub enum Said {
    /// To `Open`.
    Opened(Box<MemberOpened>),
    /// To `Join`.
    Joined,
    /// To `Exercise`.
    Exercised(Box<Exercised>),
}
