use std::{fmt, time::Duration};

use super::{ProcessEnd, Trouble};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Why {
    #[default]
    Closed,
    ClosedEarly,
    BrokeEarly(String),
    /// This many bytes of something else came before its greeting.
    OtherText(usize),
    NotProtocol(String),
    Unasked(u64),
    /// It did not answer for this long, though it was asked.
    Silent(Duration),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("it closed its output"),
            Self::ClosedEarly => f.write_str("it ended before its greeting"),
            Self::BrokeEarly(error) => write!(f, "its output broke off before its greeting: {error}"),
            Self::OtherText(bytes) => write!(f, "more than {bytes} bytes of other text came before its greeting"),
            Self::NotProtocol(error) => write!(f, "what it said is not this protocol: {error}"),
            Self::Unasked(id) => write!(f, "it answered request {id}, which was never sent"),
            Self::Silent(limit) => write!(f, "nothing came from it for {} s, though it was asked", limit.as_secs()),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gone {
    pub why: Why,
    pub end: Option<ProcessEnd>,
    pub last: String,
    pub known: Option<Box<Trouble>>,
}
