use std::{collections::BTreeMap, fmt};

use railgauge_wire::terms::Op;
use serde::Serialize;

use super::CaseResult;
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

impl CaseResult<'_> {
    pub(super) fn wrong_bytes(&self, wrong: u64) -> WrongBytes {
        let flow = &self.case.flow;
        let first_offset = self.samples.iter().find_map(|(_, s)| s.checked.first_wrong);
        // A read delivers to the initiator, everything else to the responder.
        let sink = if self.case.cell.op.pulls() { &flow.from.host } else { &flow.to.host };
        let is_test = self.case.cell.op == Op::GpuMemoryTest;
        let mut found = WrongBytes {
            at: sink.to_string(),
            wrong,
            part: if is_test { format!("GPU {}", flow.to.rail) } else { String::new() },
            first_offset,
            ranks: Vec::new(),
            of_ranks: flow.members.len(),
        };
        if flow.members.is_empty() {
            return found;
        }
        found.ranks = self.wrong_ranks();
        let mut hosts: Vec<&str> = found.ranks.iter().map(|rank| rank.host.as_str()).collect();
        hosts.dedup();
        found.at = match hosts[..] {
            [host] => host.to_owned(),
            _ => self.link_name(),
        };
        found
    }

    fn wrong_ranks(&self) -> Vec<WrongRank> {
        let mut ranks: BTreeMap<u32, (&str, u64)> = BTreeMap::new();
        for account in self.samples.iter().flat_map(|(_, sample)| &sample.ranks) {
            let wrong = account.checked.wrong.0;
            if wrong > 0 {
                let known = ranks.entry(account.rank).or_insert((&account.host, 0));
                known.1 = known.1.saturating_add(wrong);
            }
        }
        ranks.into_iter().map(|(rank, (host, wrong))| WrongRank { rank, host: host.to_owned(), wrong }).collect()
    }
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
