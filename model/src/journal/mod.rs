//! The record of a run.
//!
//! | file | holds |
//! | --- | --- |
//! | [`event`] | the one event enum: what is journalled, and what everything that is shown derives from |
//! | [`line`] | one line of the journal, numbered and summed |
//! | [`writer`] | the append-only file; keeps what was measured when the disk is full |

pub mod event;
pub mod line;
pub mod stages;
pub mod writer;
