//! Where wrong bytes arrived.

use std::collections::BTreeMap;

use railgauge_wire::Op;

use super::{CaseResult, WrongBytes, WrongRank};

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
