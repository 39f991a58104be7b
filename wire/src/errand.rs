//! A command of the plan that an agent runs on its host while a flow is measured: storage traffic, a load of the processor.

use serde::{Deserialize, Serialize};

use crate::unit::Nanoseconds;

/// What came of such a command when it was to end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Errand {
    /// How it ended by itself; `None` where it ran until it was asked to end.
    pub early: Option<EarlyEnd>,
    /// Its processes that are still there although they were killed: they hang in the kernel.
    pub left: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyEnd {
    pub ran: Nanoseconds,
    pub status: String,
    /// Last line that it wrote to its standard error; empty where it wrote none.
    pub said: String,
}
