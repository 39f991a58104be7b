//! Replaced parts in words: when, where they were before, and where the old one is.

use serde::Serialize;

use crate::history::{By, PartKind, Stay};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replaced {
    pub date: String,
    #[serde(skip)]
    pub day: i64,
    pub until: String,
    #[serde(skip)]
    pub until_day: i64,
    pub host: String,
    pub kind: PartKind,
    /// In words: `NIC mlx5_0`.
    pub part: String,
    pub by: By,
    pub old: String,
    pub new: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Elsewhere>,
    /// Present slot of the old part, and the first night there.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
    #[serde(skip)]
    pub(super) stay: Stay,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slow {
    /// First night of the first of them.
    pub since: String,
    pub series: (usize, usize),
}

impl Replaced {
    pub fn words(&self) -> String {
        let Self { date, until, host, part, by, old, new, .. } = self;
        // Otherwise nothing was read between the old part and the new one.
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
