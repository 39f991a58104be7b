//! Collectives over host memory: algorithms, and the wires between ranks. A rank is a thread of the agent.
//!
//! ```text
//! controller ─ conversation/member ─ rank ─ bench ─ engine ─ wire (tcp, verbs)
//!                                                               script ┘
//! ```
//!
//! | file | holds |
//! | --- | --- |
//! | [`rank`] | a rank: opened, joined, measured |
//! | [`bench`] | one measurement |
//! | [`script`] | the algorithms, and what they make: sends, receives, and what waits for what |
//! | [`engine`] | plays a script over a wire, piece by piece |
//! | [`tcp`], [`verbs`] | one connection between any two ranks |
//! | [`memory`] | a rank's buffers |
//! | [`table`] | their data: filled and compared |
//!
//! Shared with the collectives of [`crate::nccl`]: [`cut`] (batches), [`layout`] (where operations stand in the buffers
//! and what each must leave behind, the buckets of a training step), [`message`] (what the process of a rank is
//! asked).

pub(crate) mod bench;
pub(crate) mod cut;
pub(crate) mod engine;
pub(crate) mod layout;
pub(crate) mod memory;
pub(crate) mod rank;
pub(crate) mod script;
pub(crate) mod table;
pub(crate) mod tcp;
pub(crate) mod verbs;

/// The rank that broadcasts, and that a reduction ends at.
pub(crate) const ROOT: u32 = 0;
