//! What the plan wants of the hosts' configuration, as verdicts: one for each wanted value.

use super::{Kind, Status, Tally, Verdict};
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
    let mut reasons = Vec::new();
    for (state, words) in [(Held::Unmet, "not met"), (Held::Unread, "not read")] {
        let n = demand.with(state);
        if n > 0 {
            reasons.push(format!(
                "{words} {n} of {}: {}",
                count(demand.holdings.len(), "time"),
                demand.departures(state)
            ));
        }
    }
    if demand.holdings.is_empty() {
        reasons.push("no host has anything that it is about".to_owned());
    } else if reasons.is_empty() {
        reasons.push(format!("met on {}", count(hosts, "host")));
    }
    let tally = Tally {
        in_scope: demand.holdings.len(),
        judged: demand.with(Held::Met) + demand.with(Held::Unmet),
        violating: demand.with(Held::Unmet),
        doubtful: 0,
        missing: demand.with(Held::Unread),
    };
    Verdict {
        kind: Kind::Preflight,
        test: NAME.to_owned(),
        key: Some(demand.key.clone()),
        demand: format!("{} is {}", demand.key, demand.wanted),
        scope: count(hosts, "host"),
        line: None,
        metric: None,
        unit: None,
        status,
        waived: demand.waived,
        reason: reasons.join("; "),
        worst: None,
        offenders: Vec::new(),
        holdings: demand.holdings.into_iter().filter(|one| one.state != Held::Met).collect(),
        parts: Vec::new(),
        tally,
    }
}
