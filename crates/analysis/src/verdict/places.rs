//! Adds the places of hosts to verdicts, if the plan has them.

use std::collections::BTreeMap;

use railgauge_preflight::Held;

use super::{Kind, OFFENDERS, Verdict};
use crate::{
    localise::Localisation,
    reason::{Id, Placed, Reason},
    status::Status,
};

/// Adds the places of the hosts that a verdict names, in its reason and as a field. A pass does not need any.
pub(super) fn say(verdict: &mut Verdict, places: &BTreeMap<String, String>, localisation: &[Localisation]) {
    if places.is_empty() || verdict.status == Status::Pass {
        return;
    }
    for part in &mut verdict.parts {
        // A path or a group has no single place.
        if let [host] = hosts_of(&part.name, &verdict.test, localisation) {
            part.place = places.get(host).cloned();
        }
    }
    let mut hosts: Vec<Placed> = Vec::new();
    for host in named(verdict, localisation) {
        if hosts.len() == OFFENDERS {
            break;
        }
        if let Some(place) = places.get(host).filter(|_| hosts.iter().all(|known| known.host != host)) {
            hosts.push(Placed { host: host.to_owned(), place: place.clone() });
        }
    }
    if !hosts.is_empty() {
        verdict.place = hosts.iter().map(|one| (one.host.clone(), one.place.clone())).collect();
        verdict.reason.push(Reason::new(Id::Where).with("places", Placed::all(&hosts)));
    }
}

/// In the order of the verdict, possibly repeated.
fn named<'v>(verdict: &'v Verdict, localisation: &'v [Localisation]) -> Vec<&'v str> {
    let mut hosts: Vec<&str> = Vec::new();
    let parts = verdict.parts.iter().filter(|_| verdict.kind == Kind::Parts);
    for part in parts {
        hosts.extend(hosts_of(&part.name, &verdict.test, localisation).iter().map(String::as_str));
    }
    hosts.extend(verdict.reason.iter().flat_map(|reason| &reason.hosts).map(String::as_str));
    hosts.extend(verdict.holdings.iter().filter(|one| one.state != Held::Met).map(|one| one.host.as_str()));
    hosts
}

fn hosts_of<'l>(part: &str, test: &str, localisation: &'l [Localisation]) -> &'l [String] {
    let of_test = localisation.iter().filter(|found| found.test == test);
    let mut named = of_test.flat_map(|found| &found.suspects).filter(|named| named.name == part);
    named.next().map_or(&[], |named| &named.hosts)
}
