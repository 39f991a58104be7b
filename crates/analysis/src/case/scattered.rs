//! Why flows at once did not run together, or why that is unknown.

use railgauge_wire::{Nanoseconds, NanosecondsI64};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "round", rename_all = "kebab-case")]
pub enum Scattered {
    #[error("only {measured} of {planned} flows of the round were measured together")]
    FlowsMissing { measured: usize, planned: usize },
    #[error("a flow does not say when it ran")]
    NoTime,
    #[error("the sample does not say when it ran relative to the other flows of its round")]
    NoTimeOfSample,
    #[error("{host}: its clock is known to ± {:.0} ms only, flows at once need ± 100 ms", .error.milliseconds())]
    Clock { host: String, error: Nanoseconds },
    /// By one end's account a flow ran at another time, and no other end says when it did.
    #[error("{host}: it says that its flow ran at another time, and no other host says when it did")]
    Stray { host: String },
    #[error(
        "all flows of the round ran together for {:.2} of {:.2} s only: {latest} began last, {:.2} s after the planned start, \
         and {first} ended first, at {:.2} s",
        .common.seconds(), .window.seconds(), .from.seconds(), .until.seconds()
    )]
    TooShort {
        common: NanosecondsI64,
        window: Nanoseconds,
        latest: String,
        from: NanosecondsI64,
        first: String,
        until: NanosecondsI64,
    },
    #[error("{host}: it does not say when it ran relative to the other flows of its round")]
    EndWithoutTime { host: String },
    /// Reported stretches of 100 ms, and all of its window.
    #[error("{host}: it reports only {seen} of {whole} slices of 100 ms")]
    SlicesMissing { host: String, seen: u64, whole: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error(
    "{host}: measure: its window began {:.1} s {} the start that all flows of the round had",
    .off.seconds(), if *.after { "after" } else { "before" }
)]
pub struct Stray {
    pub host: String,
    pub off: Nanoseconds,
    pub after: bool,
}
