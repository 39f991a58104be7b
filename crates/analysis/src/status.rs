//! Result of a judgement.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Pass,
    NotRun,
    #[default]
    Inconclusive,
    Fail,
}

impl Status {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::NotRun => "not-run",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }

    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Inconclusive | Self::NotRun => 3,
        }
    }
}
