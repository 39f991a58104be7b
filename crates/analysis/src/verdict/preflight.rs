//! Verdicts on the plan's wanted configuration of hosts: one for each value.

use std::collections::BTreeSet;

use railgauge_preflight::{self as preflight, Cluster, Demand, Held, Holding};

use super::{Kind, Tally, Verdict};
use crate::{
    journal::Journal,
    reason::{Id, Reason, Reasons, Value},
    status::Status,
    words::count,
};

pub const NAME: &str = "preflight";
pub const ESCALATED: &str = "escalate.";

/// From the facts in the journal. A host that never answered has none: its configuration is unknown.
pub(super) fn judge(journal: &Journal) -> Vec<Verdict> {
    let facts = journal.hosts.iter().map(|(name, up)| (name.clone(), &up.facts)).collect();
    let clocks = journal.hosts.iter().filter_map(|(name, up)| Some((name.clone(), up.wall?))).collect();
    let cluster = Cluster { facts, clocks };
    let overruled = &journal.plan.preflight;
    // Checks take time on a large cluster; only an escalated one needs their findings.
    let findings = match overruled.escalate.is_empty() {
        true => Vec::new(),
        false => preflight::judge(&journal.plan, &cluster),
    };
    preflight::demands(&journal.plan, &cluster, &findings).into_iter().map(verdict).collect()
}

fn verdict(demand: Demand) -> Verdict {
    let status = match demand.held() {
        Held::Met => Status::Pass,
        Held::Unread => Status::Inconclusive,
        Held::Unmet => Status::Fail,
    };
    let hosts = demand.hosts();
    let of = demand.holdings.len();
    let mut reason = Reasons::default();
    let (unmet, unread) = (demand.with(Held::Unmet), demand.with(Held::Unread));
    for (id, held, times) in [(Id::Unmet, Held::Unmet, unmet), (Id::Unread, Held::Unread, unread)] {
        if times > 0 {
            let departures = Value::data(&demand.departures(held));
            let reason_of = Reason::new(id).with("times", times).with("of", of).with("departures", departures);
            // An escalated check has a finding in place of a value.
            let own = |text: &String| (!demand.escalated).then(|| text.clone());
            reason.push(reason_of.with("key", own(&demand.key)).with("wanted", own(&demand.wanted)));
        }
    }
    if demand.holdings.is_empty() {
        reason.push(Reason::new(Id::NotPresent));
    } else if reason.is_empty() {
        reason.push(Reason::new(Id::Met).with("times", hosts));
    }
    let tally = Tally {
        in_scope: demand.holdings.len(),
        judged: demand.with(Held::Met) + unmet,
        violating: unmet,
        doubtful: 0,
        missing: unread,
        ..Tally::default()
    };
    Verdict {
        key: Some(demand.key.clone()),
        wanted: Some(demand.wanted.clone()),
        scope: count(hosts, "host"),
        waived: demand.waived,
        holdings: demand.holdings.into_iter().filter(|one| one.state != Held::Met).collect(),
        tally,
        ..Verdict::new(Kind::Preflight, NAME, format!("{} is {}", demand.key, demand.wanted), status, reason)
    }
}

/// If more than one in this many hosts differ, the plan is the likelier fault.
const ONE_IN: usize = 10;

fn are_too_many(hosts: usize, all: usize) -> bool {
    hosts > (all / ONE_IN).max(1)
}

impl Verdict {
    pub fn unmet_hosts(&self) -> BTreeSet<&str> {
        let unmet = self.holdings.iter().filter(|held| held.state == Held::Unmet);
        unmet.map(|held| held.host.as_str()).collect()
    }

    /// About an escalated check, whose findings may come from a cable, a clock elsewhere, or a job that is gone in an hour.
    pub fn is_escalated(&self) -> bool {
        self.key.as_deref().is_some_and(|key| key.starts_with(ESCALATED))
    }

    /// Whether a failed verdict blames the hosts that differ; `all` is the number of the plan's hosts.
    pub fn blames_hosts(&self, all: usize) -> bool {
        !self.is_escalated() && !are_too_many(self.unmet_hosts().len(), all)
    }

    /// `kernel is 5.0.1, the plan wants 6.1.0`, `mtu of mlx5_1 is 1500, the plan wants 9000`; for an escalated check its finding.
    pub fn departure(&self, held: &Holding) -> String {
        let key = self.key.as_deref().unwrap_or_default();
        if let Some(check) = key.strip_prefix(ESCALATED) {
            return format!("{check}: {}", held.seen);
        }
        let device = held.device.as_deref().map(|device| format!(" of {device}")).unwrap_or_default();
        let wanted = self.wanted.as_deref().unwrap_or_default();
        format!("{key}{device} is {}, the plan wants {wanted}", held.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::are_too_many;

    #[test]
    fn a_tenth_of_the_hosts_may_be_blamed_and_one_in_any_case() {
        for (hosts, all) in [(1, 1), (1, 2), (1, 19), (2, 20), (102, 1024)] {
            assert!(!are_too_many(hosts, all), "{hosts} of {all}");
        }
        for (hosts, all) in [(2, 2), (2, 19), (3, 20), (103, 1024), (1024, 1024)] {
            assert!(are_too_many(hosts, all), "{hosts} of {all}");
        }
    }
}
