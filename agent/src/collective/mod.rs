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

pub(crate) mod bench;
pub(crate) mod broadcast;
pub(crate) mod cut;
pub(crate) mod engine;
pub(crate) mod exchange;
pub(crate) mod folding;
pub(crate) mod halving_doubling;
pub(crate) mod job;
pub(crate) mod layout;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod rank;
pub(crate) mod ready;
pub(crate) mod recursive_doubling;
pub(crate) mod reduce;
pub(crate) mod ring;
pub(crate) mod script;
pub(crate) mod table;
pub(crate) mod tcp;
pub(crate) mod training;
pub(crate) mod verbs;
pub(crate) mod wire;

/// The rank that broadcasts, and that a reduction ends at.
pub(crate) const ROOT: u32 = 0;
