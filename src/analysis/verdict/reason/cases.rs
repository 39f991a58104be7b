//! Grounds of the verdict that every case was measured.

use std::fmt;

use railgauge_wire::unit::Bytes;
use serde::Serialize;

use super::Blamed;
use crate::analysis::{
    results::State,
    words::{amount, count, size},
};

/// GPUs that are named one by one.
const NAMED: usize = 8;

/// What became of a test's cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OfCases {
    /// No case was planned.
    NonePlanned,
    /// Wrong bytes arrived in cases that were measured beside the test to settle a suspect.
    FurtherWrongBytes {
        /// How many of them.
        cases: usize,
        /// The first of them.
        first: Blamed,
    },
    /// GPUs whose memory does not keep what is written to it.
    WrongMemory {
        /// The GPUs, each with its host.
        parts: Vec<MemoryPart>,
    },
    /// Cases that are not measured as often as planned, undisturbed and verified.
    Short {
        /// How many of them.
        cases: usize,
        /// All cases of the test.
        of: usize,
        /// What became of them, the gravest first.
        states: Vec<Among>,
        /// The gravest of them.
        gravest: Blamed,
    },
    /// No case was run.
    NoneRun {
        /// All cases of the test.
        of: usize,
        /// The first of them.
        gravest: Blamed,
    },
    /// Everything was measured, and the plan switches verification off.
    VerificationOff {
        /// All cases of the test.
        of: usize,
    },
    /// Everything was measured.
    Measured {
        /// All cases of the test.
        of: usize,
        /// Bytes that were verified; `None` where the plan switches verification off.
        verified_bytes: Option<u64>,
    },
    /// Packets were lost or sent again, and the values count or it is known where.
    LostPackets {
        /// In how many cases.
        cases: usize,
        /// Names of the parts that explain in which; empty where none does.
        parts: Vec<String>,
        /// The gravest of them.
        gravest: Blamed,
    },
}

/// A GPU whose memory is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MemoryPart {
    /// Its host.
    pub host: String,
    /// Its number there, as NVML counts.
    pub gpu: u32,
}

impl fmt::Display for MemoryPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU {} of {}", self.gpu, self.host)
    }
}

/// How many cases came to one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Among {
    /// What became of them.
    pub state: State,
    /// How many.
    pub cases: usize,
}

/// A case without what sets it apart beside link and size.
fn short(blamed: &Blamed) -> String {
    format!("{}, {}: {}", blamed.place.link, size(blamed.place.size_bytes), blamed.error)
}

impl fmt::Display for OfCases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NonePlanned => f.write_str("no case of this test was planned, so nothing was measured"),
            Self::FurtherWrongBytes { cases, first } => {
                write!(f, "wrong bytes in {}: {}", count(*cases, "further case"), short(first))
            }
            Self::WrongMemory { parts } => {
                let names: Vec<String> = parts.iter().take(NAMED).map(ToString::to_string).collect();
                let more = parts.len().saturating_sub(NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                write!(f, "the memory of {}{more} does not keep what is written to it", names.join(", "))
            }
            Self::Short { cases, of, states, gravest } => {
                let states: Vec<String> =
                    states.iter().map(|one| format!("{} {}", one.cases, one.state.of_cases())).collect();
                let (total, states, gravest) = (count(*of, "case"), states.join(", "), short(gravest));
                write!(f, "{cases} of {total} short of that: {states}; the gravest: {gravest}")
            }
            Self::NoneRun { of, gravest } => {
                write!(f, "none of its {} was run: {}", count(*of, "case"), short(gravest))
            }
            Self::VerificationOff { of } => {
                write!(f, "{} measured, but the plan switches verification off (verify = false)", count(*of, "case"))
            }
            Self::Measured { of, verified_bytes } => {
                write!(f, "{} measured", count(*of, "case"))?;
                match verified_bytes {
                    Some(bytes) => write!(f, "; {} verified, 0 bytes wrong", amount(Bytes(*bytes))),
                    None => Ok(()),
                }
            }
            Self::LostPackets { cases, parts, gravest } => {
                let at = if parts.is_empty() { String::new() } else { format!(" at {}", parts.join(", ")) };
                write!(f, "packets were lost{at} in {}, the most of {}", count(*cases, "case"), short(gravest))
            }
        }
    }
}
