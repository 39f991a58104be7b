//! Parts that took the place of others, in words: when, where they were before, and where the old one is.

use serde::Serialize;

use crate::analysis::history::{By, PartKind, Stay};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replaced {
    /// First night on which the new part was read.
    pub date: String,
    /// The same, counted in days from 1970.
    #[serde(skip)]
    pub day: i64,
    /// Last night on which the old part was read.
    pub until: String,
    /// The same, counted in days from 1970.
    #[serde(skip)]
    pub until_day: i64,
    pub host: String,
    pub kind: PartKind,
    /// The slot in words: `NIC mlx5_0`.
    pub part: String,
    /// By what parts are told from each other here.
    pub by: By,
    pub old: String,
    pub new: String,
    /// Where the new one was before, if it was in another slot, and the last night on which it was read there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Elsewhere>,
    /// Where the old one is, if it is in another slot, and the first night on which it was read there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Elsewhere>,
    #[serde(skip)]
    pub(super) stay: Stay,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Elsewhere {
    pub host: String,
    pub part: String,
    pub date: String,
    /// Changes for the worse of what passed the part there, on its last night.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
    #[serde(skip)]
    pub(super) stay: Stay,
}

/// Changes for the worse of what passed a part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slow {
    /// First night of the first of them.
    pub since: String,
    /// Series that were worse, and all that passed the part.
    pub series: (usize, usize),
}

impl Replaced {
    pub fn words(&self) -> String {
        let Self { date, until, host, part, by, old, new, .. } = self;
        // Nothing was read between the old part and the new one otherwise.
        let when = match self.day - self.until_day {
            ..=1 => format!("on {date}"),
            _ => format!("after {until}, by {date}"),
        };
        let mut text = format!("{part} of {host} was replaced {when} ({} {old} → {new})", by.word());
        if let Some(Elsewhere { host, part, date, slow, .. }) = &self.from {
            text += &format!(", and {new} was {part} of {host}, read there last on {date}");
            if let Some(Slow { since, series: (slow, all) }) = slow {
                text += &format!(", where {slow} of {all} series were worse since {since}");
            }
        }
        if let Some(Elsewhere { host, part, date, .. }) = &self.to {
            text += &format!("; {old} was read as {part} of {host} first on {date}");
        }
        text
    }
}
