//! The record of a run.
//!
//! | file | holds |
//! | --- | --- |
//! | [`event`] | the one event enum: what is journalled, and what everything that is shown derives from |
//! | `cases` | how cases stand in a line |
//! | [`changes`] | by how much counters changed |
//! | `read`, [`started`] | an outcome as a line has it, and when it began |
//! | `links` | which links earlier lines tell |
//! | [`imported`] | what was taken from the outputs of other tools |
//! | [`soak`] | what is recorded of a soak's traffic |
//! | `shared` | what many values have one copy of |
//! | [`line`] | one line of the journal, numbered and summed |
//! | [`unrecorded`] | what agents told and the journal does not have yet |
//! | [`writer`] | the append-only file; keeps what was measured when the disk is full |

mod cases;
pub mod changes;
pub mod event;
pub mod imported;
pub mod line;
mod links;
mod read;
mod shared;
pub mod soak;
pub mod stages;
pub mod started;
pub mod unrecorded;
pub mod writer;
