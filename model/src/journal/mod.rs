//! The record of a run.
//!
//! | file | holds |
//! | --- | --- |
//! | [`event`] | the event enum: what is journalled, and what everything shown derives from |
//! | `cases` | encoding of cases in a line |
//! | [`started`] | the start of an outcome |
//! | `links` | links in earlier lines |
//! | [`imported`] | results from the outputs of other tools |
//! | [`soak`] | records of a soak's traffic |
//! | [`line`] | one line of the journal, numbered and summed |
//! | [`writer`] | the append-only file; keeps measurements when the disk is full |

mod cases;
pub mod event;
pub mod imported;
pub mod line;
mod links;
pub mod soak;
pub mod stages;
pub mod started;
pub mod writer;
