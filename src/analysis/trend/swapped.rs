//! Parts that took the place of others, in words: when, where they were before, and how they did there.

use serde::Serialize;

use super::travelled::Travelled;
use crate::analysis::history::{By, PartKind, Stay};

/// A part that took the place of another.
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
    /// The host.
    pub host: String,
    /// What kind of part it is.
    pub kind: PartKind,
    /// The slot in words: `NIC mlx5_0`.
    pub part: String,
    /// By what parts are told from each other here.
    pub by: By,
    /// The old part.
    pub old: String,
    /// The new one.
    pub new: String,
    /// Whether only names of devices stand for another part, which is where it was.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub renamed: bool,
    /// Where the new one was before, if it was in another slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Before>,
    /// Where the old one came to, if it came to another slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Since>,
    /// The new part in its slot.
    #[serde(skip)]
    pub(super) stay: Stay,
}

/// Where a part was before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Before {
    /// The host.
    pub host: String,
    /// The slot in words.
    pub part: String,
    /// The last night on which it was read there.
    pub until: String,
    /// The same, counted in days from 1970.
    #[serde(skip)]
    pub until_day: i64,
    /// The machine that it is in, if that was moved: what is said of the machine holds of all that is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// What stood against it there on that night.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
    /// The part there.
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
    /// With what the slow values went when the part was moved.
    pub travelled: Travelled,
    /// Other parts of the same links that were moved between the same hosts at the same time, in words: what is said of one of them
    /// may be true of another instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
}

/// Where a part came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Since {
    /// The host.
    pub host: String,
    /// The slot in words.
    pub part: String,
    /// The first night on which it was read there.
    pub since: String,
    /// The same, counted in days from 1970.
    #[serde(skip)]
    pub since_day: i64,
    /// The last night on which it was read there, if it is not there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// With what slow values of the slot that it left went, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub travelled: Option<Travelled>,
}

impl Replaced {
    /// It in words.
    pub fn words(&self) -> String {
        let Self { date, until, host, part, by, old, new, .. } = self;
        let ids = format!("({} {old} → {new})", by.word());
        let mut text = match (self.renamed, self.is_dated()) {
            (true, true) => format!("{part} of {host} is the name of another card since {date} {ids}"),
            (true, false) => format!("{part} of {host} became the name of another card after {until}, by {date} {ids}"),
            (false, true) => format!("{part} of {host} was replaced on {date} {ids}"),
            (false, false) => format!("{part} of {host} was replaced after {until}, by {date} {ids}"),
        };
        if let Some(before) = &self.from {
            text += &self.before(before);
        }
        if let Some(Since { host, part, since, since_day, until, travelled }) = &self.to {
            text += &match until {
                Some(until) => format!("; {old} was {part} of {host} from {since} to {until}"),
                None if since_day - self.until_day > 1 => {
                    format!("; {old} is {part} of {host}, read there first on {since}")
                }
                None => format!("; {old} is {part} of {host} since {since}"),
            };
            text += &match travelled {
                Some(Travelled::WithPart) => "; the slow values moved there with it".to_owned(),
                Some(Travelled::WithSlot) => {
                    format!("; the slow values stayed at {} and did not move there with it", self.here())
                }
                Some(Travelled::Unknown) | None => String::new(),
            };
        }
        text
    }

    /// Where the new part was, and how it did there.
    fn before(&self, Before { host, part, until, until_day, within, slow, .. }: &Before) -> String {
        let new = &self.new;
        let mut text = if self.day - until_day > 1 {
            format!(", and {new} was {part} of {host}, read there last on {until}")
        } else {
            format!(", and {new} was {part} of {host} until {until}")
        };
        if let Some(machine) = within {
            text += &format!(", in the {machine}, which was moved with all that is in it");
        }
        let Some(Slow { since, series: (slow, all), travelled, with }) = slow else { return text };
        text += &match all {
            1 => format!(", where its only series was worse since {since}"),
            all => format!(", where {slow} of {all} series were worse since {since}"),
        };
        let was = place(self.kind, host, part);
        let noun = self.kind.noun();
        let what = std::iter::once(format!("the {noun} {new}")).chain(with.iter().map(|part| format!("the {part}")));
        let what = what.collect::<Vec<_>>().join(" or ");
        let together = if with.is_empty() { "" } else { ", which were moved together: it cannot be told with which" };
        text + &match travelled {
            Travelled::WithPart => {
                format!("; the slow values moved with {what} from {was} to {}{together}", self.here())
            }
            Travelled::WithSlot => format!("; the slow values stayed at {was} and did not move with the {noun} {new}"),
            Travelled::Unknown => {
                format!("; whether the slow values moved with the {noun} {new} or stayed at {was} cannot be told")
            }
        }
    }

    /// The slot in a word or two.
    fn here(&self) -> String {
        place(self.kind, &self.host, &self.part)
    }

    /// Whether the night of the exchange is known: nothing was read between the old part and the new one otherwise.
    pub(super) const fn is_dated(&self) -> bool {
        self.day - self.until_day <= 1
    }
}

/// `gpu003 mlx5_0`, or the host alone for what is there once.
fn place(kind: PartKind, host: &str, slot: &str) -> String {
    match slot.rsplit_once(' ') {
        Some((_, name)) if !matches!(kind, PartKind::Machine | PartKind::Board) => format!("{host} {name}"),
        _ => host.to_owned(),
    }
}
