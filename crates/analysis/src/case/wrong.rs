use std::fmt;

use serde::Serialize;

use crate::words::{are, count};

const NAMED: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrongBytes {
    /// The receiving host; for a collective the link, in words, unless all are at one host.
    pub at: String,
    pub wrong: u64,
    /// The tested part of the host, such as `GPU 2`; empty where bytes were moved.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// `None` if unknown.
    pub first_offset: Option<u64>,
    /// The receiving ranks; empty for a pair.
    pub ranks: Vec<WrongRank>,
    /// Of the collective; 0 for a pair.
    pub of_ranks: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrongRank {
    pub rank: u32,
    pub host: String,
    pub wrong: u64,
}

impl WrongBytes {
    /// `, at rank 2 on gpu03`; may be empty.
    fn at_ranks(&self) -> String {
        let one = |WrongRank { rank, host, wrong }: &WrongRank| match self.ranks.len() {
            1 => format!("rank {rank} on {host}"),
            _ => format!("rank {rank} on {host} ({wrong})"),
        };
        let named = self.ranks.iter().take(NAMED).map(one).collect::<Vec<_>>().join(", ");
        match self.ranks.len() {
            0 => String::new(),
            all if all == self.of_ranks && all > NAMED => format!(", at each of the {all} ranks"),
            all if all > NAMED => format!(", at {named} and {} more", count(all - NAMED, "rank")),
            _ => format!(", at {named}"),
        }
    }
}

impl fmt::Display for WrongBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = are(usize::try_from(self.wrong).unwrap_or(usize::MAX), "byte");
        if !self.part.is_empty() {
            let (at, part, wrong) = (&self.at, &self.part, self.wrong);
            write!(
                f,
                "{at}: verify: memory of {part} does not keep what is written to it: {wrong} times a byte was another"
            )?;
            return self.first_offset.map_or(Ok(()), |offset| write!(f, ", the lowest at offset {offset}"));
        }
        let what = if self.of_ranks == 0 { "was sent" } else { "the ranks gave" };
        write!(f, "{}: verify: {bytes} not what {what}{}", self.at, self.at_ranks())?;
        self.first_offset.map_or(Ok(()), |offset| write!(f, ", the first at offset {offset}"))
    }
}
