//! The record of a run.
//!
//! | file | holds |
//! | --- | --- |
//! | [`event`] | the one event enum: what is journalled, and what everything that is shown derives from |
//! | [`soak`] | what is recorded of a soak's traffic |
//! | [`line`] | one line of the journal, numbered and summed |
//! | [`unrecorded`] | what agents told and the journal does not have yet |
//! | [`writer`] | the append-only file; keeps what was measured when the disk is full |

pub mod event;
pub mod line;
pub mod soak;
pub mod stages;
pub mod unrecorded;
pub mod writer;
