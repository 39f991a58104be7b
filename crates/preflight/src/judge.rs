use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use railgauge_model::plan::{Plan, hostlist, model::Preflight};
use railgauge_wire::{HostFacts, natural, remedy::Remedy};

use super::{
    check::{CHECKS, Check},
    demand::{demands, unsaid},
    finding::{Finding, Found},
    observed::{Observation, Severity},
    scene::{Cluster, Scene},
};

pub fn judge<F: Borrow<HostFacts>>(plan: &Plan, cluster: &Cluster<F>) -> Vec<Finding> {
    let cluster = &cluster.seen();
    let (used, whole) = (Scene::new(plan, cluster), Scene::whole(plan, cluster));
    let is_escalated = |check: &Check| plan.preflight.escalate.iter().any(|name| name == check.name);
    let one = |check: &'static Check| {
        fold(check, check.find(if is_escalated(check) { &whole } else { &used }), &plan.preflight)
    };
    let mut found: Vec<Finding> = CHECKS.iter().flat_map(one).collect();
    let departures = unsaid(&demands(plan, cluster, &found), &found);
    for check in CHECKS {
        let of_check = departures.iter().filter(|(name, _)| name == check.name).map(|(_, found)| found.clone());
        found.extend(fold(check, of_check.collect(), &plan.preflight));
    }
    let place: HashMap<&str, usize> = plan.hosts.iter().map(|host| host.name.as_str()).zip(0..).collect();
    for finding in &mut found {
        finding.hosts.sort_by_key(|host| place.get(host.as_str()).copied().unwrap_or(usize::MAX));
    }
    found.sort_by(|a, b| (b.severity, &a.check, &a.hosts).cmp(&(a.severity, &b.check, &b.hosts)));
    found
}

type FindingKey = (Severity, bool, String, Option<Observation>, String, Remedy, Option<String>);

fn fold(check: &Check, found: Vec<Found>, overruled: &Preflight) -> Vec<Finding> {
    let mut hosts: BTreeMap<(FindingKey, Option<String>), BTreeSet<String>> = BTreeMap::new();
    for Found { severity, unread, host, device, what, observed, key, meaning, remedy } in found {
        let said = (severity, unread, what, observed, meaning.unwrap_or(check.rule.meaning).to_owned(), remedy, key);
        hosts.entry((said, device)).or_default().extend(host);
    }
    let mut devices: BTreeMap<(FindingKey, BTreeSet<String>), Vec<String>> = BTreeMap::new();
    for ((said, device), hosts) in hosts {
        devices.entry((said, hosts)).or_default().extend(device);
    }
    let finding = |(((severity, unread, what, observed, meaning, remedy, key), hosts), mut devices): (
        (FindingKey, BTreeSet<String>),
        Vec<String>,
    )| {
        let named = |list: &[String]| list.iter().any(|name| name == check.name);
        let waived = severity > Severity::Notice && named(&overruled.waive);
        let severity = match severity {
            _ if waived => Severity::Notice,
            // Unknown values are not failures.
            _ if named(&overruled.escalate) && !unread => Severity::Failure,
            severity => severity,
        };
        natural::sort(&mut devices);
        let place = hostlist::listed(devices.iter().map(String::as_str));
        Finding {
            check: check.name.to_owned(),
            severity,
            waived,
            unread,
            hosts: hosts.into_iter().collect(),
            what: if devices.is_empty() { what } else { format!("{place}: {what}") },
            devices,
            observed,
            key,
            meaning,
            remedy,
            source: check.rule.source.to_owned(),
        }
    };
    devices.into_iter().map(finding).collect()
}
