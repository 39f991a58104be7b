//! Collectives over host memory: algorithms, and the wires between ranks. A rank is a thread of the agent. [`cut`], [`layout`] and
//! [`message`] are shared with the collectives of [`crate::nccl`].

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

pub(crate) use script::ROOT;
