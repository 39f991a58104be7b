//! The record of a run.
//!
//! | file | holds |
//! | --- | --- |
//! | [`event`] | the event enum: what is journalled, and what everything shown derives from |
//! | `cases` | encoding of cases in a line |
//! | [`changes`] | counter changes |
//! | `read`, [`started`] | an outcome as a line has it, and its start |
//! | `links` | links in earlier lines |
//! | [`imported`] | results from the outputs of other tools |
//! | [`soak`] | records of a soak's traffic |
//! | [`line`] | one line of the journal, numbered and summed |
//! | [`writer`] | the append-only file; keeps measurements when the disk is full |

mod cases;
pub mod changes;
pub mod event;
pub mod imported;
pub mod line;
mod links;
mod read;
pub mod soak;
pub mod stages;
pub mod started;
pub mod writer;
