//! What the plan wants of the hosts' configuration, as verdicts: one for each wanted value.

use std::collections::BTreeSet;

use super::{
    Kind, Status, Tally, Verdict,
    reason::{Id, Reason, Reasons, Value},
};
use crate::{
    analysis::{journal::Journal, words::count},
    preflight::{self, Cluster, Demand, Held, Holding},
};

/// Name under which these verdicts stand beside those of tests.
pub const NAME: &str = "preflight";
/// Keys of checks that a plan escalates begin so.
pub const ESCALATED: &str = "escalate.";

/// The verdicts of `[preflight]`, from the facts that the journal holds. A host that never answered has none: whether it is
/// as the plan wants is not known.
pub(super) fn judge(journal: &Journal) -> Vec<Verdict> {
    let facts = journal.hosts.iter().map(|(name, up)| (name.clone(), &up.facts)).collect();
    let clocks = journal.hosts.iter().filter_map(|(name, up)| Some((name.clone(), up.wall?))).collect();
    let cluster = Cluster { facts, clocks };
    let overruled = &journal.plan.preflight;
    // Checks cost time on a large cluster; only an escalated one asks for their findings.
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
            reason.push(Reason::new(id).with("times", times).with("of", of).with("departures", departures));
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

/// Where more of the hosts than one in so many are not as a key wants, the plan is the likelier fault.
const ONE_IN: usize = 10;

/// Whether so many of all hosts are not as the plan wants that the plan is the likelier fault.
fn are_too_many(hosts: usize, all: usize) -> bool {
    hosts > (all / ONE_IN).max(1)
}

impl Verdict {
    /// Hosts that are not as `[preflight]` wants, each once.
    pub fn unmet_hosts(&self) -> BTreeSet<&str> {
        let unmet = self.holdings.iter().filter(|held| held.state == Held::Unmet);
        unmet.map(|held| held.host.as_str()).collect()
    }

    /// Whether it is about a check that the plan escalates. What such a check finds may be the fault of a cable, of a clock somewhere
    /// else, or of a job that is gone in an hour.
    pub fn is_escalated(&self) -> bool {
        self.key.as_deref().is_some_and(|key| key.starts_with(ESCALATED))
    }

    /// Whether a failed verdict of `[preflight]` blames the hosts that are not as wanted, of so many that the plan has.
    pub fn blames_hosts(&self, all: usize) -> bool {
        !self.is_escalated() && !are_too_many(self.unmet_hosts().len(), all)
    }

    /// How a host or device departs from a value that `[preflight]` wants: `kernel is 5.0.1, the plan wants 6.1.0`, `mtu of mlx5_1 is
    /// 1500, the plan wants 9000`; of a check that the plan escalates what it found.
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
