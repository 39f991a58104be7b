//! What the plan wants of the hosts' configuration, as verdicts: one for each wanted value.

use super::{
    Kind, Status, Tally, Verdict,
    reason::{OfPreflight, Reason},
};
use crate::{
    analysis::{journal::Journal, words::count},
    preflight::{self, Cluster, Demand, Held},
};

/// Name under which these verdicts stand beside those of tests.
pub const NAME: &str = "preflight";

/// The verdicts of `[preflight]`, from the facts that the journal holds. A host that never answered has none: whether it is
/// as the plan wants is not known.
pub(super) fn judge(journal: &Journal) -> Vec<Verdict> {
    let facts = journal.hosts.iter().map(|(name, up)| (name.clone(), up.facts.clone())).collect();
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
    let mut reason = Reason::default();
    let (unmet, unread) = (demand.with(Held::Unmet), demand.with(Held::Unread));
    if unmet > 0 {
        reason.push(OfPreflight::Unmet { times: unmet, of, departures: demand.departures(Held::Unmet) });
    }
    if unread > 0 {
        reason.push(OfPreflight::Unread { times: unread, of, departures: demand.departures(Held::Unread) });
    }
    if demand.holdings.is_empty() {
        reason.push(OfPreflight::NobodyHasIt);
    } else if reason.is_empty() {
        reason.push(OfPreflight::Met { hosts });
    }
    let tally = Tally {
        in_scope: demand.holdings.len(),
        judged: demand.with(Held::Met) + unmet,
        violating: unmet,
        doubtful: 0,
        missing: unread,
    };
    Verdict {
        key: Some(demand.key.clone()),
        scope: count(hosts, "host"),
        waived: demand.waived,
        holdings: demand.holdings.into_iter().filter(|one| one.state != Held::Met).collect(),
        tally,
        ..Verdict::new(Kind::Preflight, NAME, format!("{} is {}", demand.key, demand.wanted), status, reason)
    }
}
