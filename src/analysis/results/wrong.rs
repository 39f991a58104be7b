//! Where wrong bytes arrived, in words.

use std::collections::BTreeMap;

use super::CaseResult;
use crate::analysis::words::{are, count};

/// Ranks that are named one by one.
const NAMED: usize = 4;

impl CaseResult<'_> {
    /// Where wrong bytes arrived, with the host in front: of a collective that of the ranks, where it is one.
    pub(super) fn wrong_bytes(&self, wrong: u64) -> String {
        let flow = &self.case.flow;
        let bytes = are(usize::try_from(wrong).unwrap_or(usize::MAX), "byte");
        let first = self.samples.iter().find_map(|(_, s)| s.checked.first_wrong);
        let place = first.map_or_else(String::new, |offset| format!(", the first at offset {offset}"));
        if !flow.members.is_empty() {
            let (host, ranks) = self.wrong_ranks();
            let front = host.unwrap_or_else(|| self.link_name());
            return format!("{front}: verify: {bytes} not what the ranks gave{ranks}{place}");
        }
        // A read delivers to the initiator, everything else to the responder.
        let sink = if self.case.cell.op.pulls() { &flow.from.host } else { &flow.to.host };
        format!("{sink}: verify: {bytes} not what was sent{place}")
    }

    /// The ranks at which wrong bytes arrived, with their hosts: `, at rank 2 on gpu03`; empty where the journal has the sum only.
    /// Their host, if all are on one.
    fn wrong_ranks(&self) -> (Option<String>, String) {
        let mut ranks: BTreeMap<u32, (&str, u64)> = BTreeMap::new();
        for account in self.samples.iter().flat_map(|(_, sample)| &sample.ranks) {
            let wrong = account.checked.map_or(0, |checked| checked.wrong);
            if wrong > 0 {
                let known = ranks.entry(account.rank).or_insert((&account.host, 0));
                known.1 = known.1.saturating_add(wrong);
            }
        }
        let mut hosts: Vec<&str> = ranks.values().map(|(host, _)| *host).collect();
        hosts.dedup();
        let one = |(rank, (host, wrong)): (&u32, &(&str, u64))| {
            if ranks.len() == 1 { format!("rank {rank} on {host}") } else { format!("rank {rank} on {host} ({wrong})") }
        };
        let named: Vec<String> = ranks.iter().take(NAMED).map(one).collect();
        let words = match ranks.len() {
            0 => String::new(),
            all if all == self.case.flow.members.len() && all > NAMED => format!(", at each of the {all} ranks"),
            all if all > NAMED => format!(", at {} and {} more", named.join(", "), count(all - NAMED, "rank")),
            _ => format!(", at {}", named.join(", ")),
        };
        let host = match hosts[..] {
            [host] => Some(host.to_owned()),
            _ => None,
        };
        (host, words)
    }
}
