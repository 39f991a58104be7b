//! Protocol and shared types of railgauge's controller and agent.
//!
//! One conversation runs over the agent's stdin and stdout:
//!
//! ```text
//! agent       the magic line, then frames
//! controller  Request { id, ask }      hello · facts · raw · clock · open · connect · step · stop · close · bye
//! agent       FromAgent::Reply { id, outcome }   exactly one per request, in any order
//! ```

pub mod case;
pub mod drivers;
pub mod errand;
pub mod facts;
pub mod failure;
pub mod frame;
pub mod gather;
pub mod gpu_state;
pub mod group;
pub mod link;
pub mod measure;
pub mod message;
pub mod natural;
pub mod neighbours;
pub mod node;
pub mod raw;
pub mod remedy;
pub mod shell;
pub mod step;
pub mod terms;
pub mod tool;
pub mod unit;
pub mod watch;
mod words;

// A constant that several modules have is named by its module.
#[allow(ambiguous_glob_reexports)]
pub use self::{
    case::*, drivers::*, errand::*, facts::*, failure::*, gather::*, gpu_state::*, group::*, link::*, measure::*,
    message::*, node::*, raw::*, step::*, terms::*, tool::*, unit::*, watch::*,
};

/// Controller and agent must agree exactly: the controller ships the agent it was built with, so a difference means that a stale or
/// foreign agent answered.
pub const PROTOCOL: u32 = 14;
