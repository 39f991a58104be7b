//! Collectives over host memory: algorithms, and the wires between ranks. A rank is a thread of the agent.
//!
//! ```text
//! controller ─ conversation/member ─ rank ─ bench ─ engine ─ wire (tcp, verbs)
//!                                              job ─ ring, halving_doubling, … ─ script ┘
//! ```
//!
//! | file | holds |
//! | --- | --- |
//! | [`rank`] | a rank: opened, joined, measured |
//! | [`bench`] | one measurement |
//! | [`ready`] | a collective, ready to be repeated |
//! | [`job`] | one operation as its algorithms see it, and which algorithm suits it |
//! | [`ring`], [`recursive_doubling`], [`halving_doubling`], [`broadcast`], [`exchange`] | the algorithms |
//! | [`folding`] | algorithms for a power of two of ranks, for any number of ranks |
//! | [`script`] | what an algorithm makes: sends, receives, and what waits for what |
//! | [`engine`] | plays a script over a wire, piece by piece |
//! | [`wire`] | what carries messages between ranks |
//! | [`tcp`], [`verbs`] | one connection between any two ranks |
//! | [`reduce`] | reduction kernels |
//! | [`memory`] | a rank's buffers |
//! | [`table`] | their data: filled and compared |
//!
//! Shared with the collectives of [`crate::nccl`]: [`cut`] (batches), [`layout`] (where operations stand in the buffers
//! and what each must leave behind), [`training`] (the buckets of a training step), [`message`] (what the process of a rank is
//! asked).

pub mod bench;
pub mod broadcast;
pub mod cut;
pub mod engine;
pub mod exchange;
pub mod folding;
pub mod halving_doubling;
pub mod job;
pub mod layout;
pub mod memory;
pub mod message;
pub mod rank;
pub mod ready;
pub mod recursive_doubling;
pub mod reduce;
pub mod ring;
pub mod script;
pub mod table;
pub mod tcp;
pub mod training;
pub mod verbs;
pub mod wire;

/// The rank that broadcasts, and that a reduction ends at.
pub const ROOT: u32 = 0;
