//! Why flows at once did not run together, or why that is unknown.

use std::fmt;

use railgauge_wire::{Nanoseconds, NanosecondsI64};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "round", rename_all = "kebab-case")]
pub enum Scattered {
    FlowsMissing {
        measured: usize,
        planned: usize,
    },
    NoTime,
    NoTimeOfSample,
    Clock {
        host: String,
        error: Nanoseconds,
    },
    /// By one end's account a flow ran at another time, and no other end says when it did.
    Stray {
        host: String,
    },
    TooShort {
        common: NanosecondsI64,
        window: Nanoseconds,
        latest: String,
        from: NanosecondsI64,
        first: String,
        until: NanosecondsI64,
    },
    EndWithoutTime {
        host: String,
    },
    SlicesMissing {
        host: String,
        /// Reported stretches of 100 ms.
        told: u64,
        /// All stretches of 100 ms of its window.
        whole: u64,
    },
}

impl fmt::Display for Scattered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FlowsMissing { measured, planned } => {
                write!(f, "only {measured} of {planned} flows of the round were measured together")
            }
            Self::NoTime => f.write_str("a flow does not say when it ran"),
            Self::NoTimeOfSample => {
                f.write_str("the sample does not say when it ran relative to the other flows of its round")
            }
            Self::Clock { host, error } => {
                let error = error.milliseconds();
                write!(f, "{host}: its clock is known to ± {error:.0} ms only, flows at once need ± 100 ms")
            }
            Self::Stray { host } => {
                write!(f, "{host}: it says that its flow ran at another time, and no other host says when it did")
            }
            Self::TooShort { common, window, latest, from, first, until } => {
                let (common, window) = (common.seconds(), window.seconds());
                let (from, until) = (from.seconds(), until.seconds());
                write!(
                    f,
                    "all flows of the round ran together for {common:.2} of {window:.2} s only: {latest} began last, \
                     {from:.2} s after the planned start, and {first} ended first, at {until:.2} s"
                )
            }
            Self::EndWithoutTime { host } => {
                write!(f, "{host}: it does not say when it ran relative to the other flows of its round")
            }
            Self::SlicesMissing { host, told, whole } => {
                write!(f, "{host}: it reports only {told} of {whole} slices of 100 ms")
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stray {
    pub host: String,
    pub off: Nanoseconds,
    pub after: bool,
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, off, side) = (&self.host, self.off.seconds(), if self.after { "after" } else { "before" });
        write!(f, "{host}: measure: its window began {off:.1} s {side} the start that all flows of the round had")
    }
}
