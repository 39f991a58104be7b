//! The plan's required configuration, compared with that of every host: met, not met, or not read.
//!
//! Checks find anomalies; a demand is answered for every host and device, whichever transport the plan's tests use.

mod blind;
mod values;

use std::{borrow::Borrow, collections::BTreeSet, fmt};

use railgauge_model::plan::{Plan, hostlist, model::Preflight};
use railgauge_wire::{HostFacts, remedy};
use serde::{Deserialize, Serialize};

use super::{
    finding::{Finding, Found, UNKNOWN},
    observed::Severity,
    scene::{Cluster, Seen},
};
pub use values::{Held, Holding};
use values::{Requirement, whole};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// The key of `[preflight]`: `mtu`, `firmware.mlx5_core`, `escalate.idle`.
    pub key: String,
    pub wanted: String,
    #[serde(default)]
    pub escalated: bool,
    pub check: String,
    /// Whether the plan waives that check: the result is shown and does not count.
    pub waived: bool,
    pub holdings: Vec<Holding>,
}

impl Demand {
    pub fn held(&self) -> Held {
        self.holdings.iter().map(|one| one.state).max().unwrap_or(Held::Unread)
    }

    pub fn hosts(&self) -> usize {
        let hosts: BTreeSet<&str> = self.holdings.iter().map(|one| one.host.as_str()).collect();
        hosts.len()
    }

    pub fn with(&self, state: Held) -> usize {
        self.holdings.iter().filter(|one| one.state == state).count()
    }

    pub fn departures(&self, state: Held) -> Departures {
        let mut seen: Vec<Departure> = Vec::new();
        for Holding { host, device, seen: value, .. } in self.holdings.iter().filter(|one| one.state == state) {
            let known = seen.iter_mut().find(|known| known.seen == *value && known.device == *device);
            match known {
                Some(known) => known.hosts.push(host.clone()),
                None => seen.push(Departure { seen: value.clone(), device: device.clone(), hosts: vec![host.clone()] }),
            }
        }
        Departures(seen)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Departure {
    /// The value, or why there is none, as [`Holding::seen`] has it.
    pub seen: String,
    pub device: Option<String>,
    pub hosts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Departures(Vec<Departure>);

impl Departures {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// `1500 on gpu[003-004] mlx5_1; …`.
impl fmt::Display for Departures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Departure { seen, device, hosts }) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { "; " } else { "" })?;
            write!(f, "{seen} on {}", hostlist::listed(hosts.iter().map(String::as_str)))?;
            if let Some(device) = device {
                write!(f, " {device}")?;
            }
        }
        Ok(())
    }
}

/// Every demand of the plan in the order of its keys, answered for every host of the plan. `findings` are those of the same cluster: an
/// escalated check allows none.
pub fn demands<F: Borrow<HostFacts>>(plan: &Plan, cluster: &Cluster<F>, findings: &[Finding]) -> Vec<Demand> {
    let cluster = &cluster.seen();
    let overruled = &plan.preflight;
    let wishes = values::wishes(plan, cluster);
    let mut all: Vec<Demand> = wishes.into_iter().map(|wish| of_wish(plan, cluster, wish, overruled)).collect();
    all.extend(overruled.escalate.iter().map(|check| of_check(plan, cluster, check, findings)));
    all
}

fn of_wish(plan: &Plan, cluster: &Seen<'_>, wish: Requirement<'_>, overruled: &Preflight) -> Demand {
    let Requirement { key, wanted, check, read } = wish;
    let of = |name: &String| match cluster.facts.get(name) {
        Some(facts) => read(name, facts),
        None => vec![silent(name)],
    };
    let holdings = plan.hosts.iter().flat_map(|host| of(&host.name)).collect();
    let waived = overruled.waive.iter().any(|name| name == check);
    Demand { key, wanted, escalated: false, check: check.to_owned(), waived, holdings }
}

fn of_check(plan: &Plan, cluster: &Seen<'_>, check: &str, findings: &[Finding]) -> Demand {
    let of = |name: &String| {
        if !cluster.facts.contains_key(name) {
            return vec![silent(name)];
        }
        let own = findings.iter().filter(|finding| finding.check == check && finding.hosts.contains(name));
        let state = |finding: &Finding| if finding.unread { Held::Unread } else { Held::Unmet };
        let found: Vec<Holding> = own.map(|finding| whole(name, finding.what.clone(), state(finding))).collect();
        match (found.is_empty(), blind::blind(plan, check, name, cluster)) {
            (false, _) => found,
            // A check that read nothing has not shown that all is well.
            (true, Some(why)) => vec![whole(name, why, Held::Unread)],
            (true, None) => vec![whole(name, "no finding".into(), Held::Met)],
        }
    };
    Demand {
        key: format!("escalate.{check}"),
        wanted: "no finding".into(),
        escalated: true,
        check: check.to_owned(),
        waived: false,
        holdings: plan.hosts.iter().flat_map(|host| of(&host.name)).collect(),
    }
}

fn silent(host: &str) -> Holding {
    Holding { silent: true, ..whole(host, "the host did not answer".to_owned(), Held::Unread) }
}

/// Departures that no check reports, in plans whose tests do not use the part in question.
pub(super) fn unsaid(demands: &[Demand], findings: &[Finding]) -> Vec<(String, Found)> {
    let mut found = Vec::new();
    for demand in demands.iter().filter(|demand| !demand.escalated) {
        for one in demand.holdings.iter().filter(|one| one.state != Held::Met) {
            let said = |finding: &&Finding| finding.check == demand.check && finding.hosts.contains(&one.host);
            if findings.iter().any(|finding| said(&finding) && (finding.severity > Severity::Notice || finding.waived))
            {
                continue;
            }
            let Demand { key, wanted, check, .. } = demand;
            let departure = match one.state {
                Held::Unmet => {
                    let what = format!("{key}: {}, the plan requires {wanted}", one.seen);
                    Found::host(Severity::Failure, &one.host, what, remedy::WANTED_VALUE)
                        .meaning("the host does not meet the plan's requirement")
                }
                _ => {
                    let what = format!("{key}: cannot be read ({}), the plan requires {wanted}", one.seen);
                    Found::host(Severity::Warning, &one.host, what, remedy::READ_AS_ROOT).meaning(UNKNOWN).unread()
                }
            };
            let departure = departure.departs(key);
            let departure = match &one.device {
                Some(device) => departure.device(device),
                None => departure,
            };
            // A host that did not answer is reported as lost.
            if !one.silent {
                found.push((check.clone(), departure));
            }
        }
    }
    found
}
