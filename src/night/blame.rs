//! Which hosts a failed verdict blames by themselves: a host, or one of its NICs, that was measured again and shown to be bad; and a
//! host that is not set up as the plan wants. A path between two hosts blames neither, and what may be another part's fault blames
//! nobody.

use std::collections::BTreeMap;

use super::judged::Judged;
use crate::{
    analysis::{
        localise::{Named, Standing},
        verdict::{Kind, Status, Verdict},
    },
    preflight::Held,
};

/// Kinds of parts that are a host's own.
const OWN: [&str; 2] = ["host", "nic"];

/// A host that is blamed, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Blamed {
    /// Its name in the plan.
    pub host: String,
    /// Rack and slot, where the plan says them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Why, in words, each once.
    pub why: Vec<String>,
}

/// The hosts that failed verdicts of a run blame, in the order of their names. Nobody is blamed by records that are damaged or
/// contradict themselves.
pub fn blamed(run: &Judged) -> Vec<Blamed> {
    let mut why: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    if !run.is_whole() {
        return Vec::new();
    }
    for verdict in failed(run) {
        for (host, reason) in match verdict.kind {
            Kind::Parts => parts(run, &verdict.test),
            Kind::Preflight => set_up(verdict),
            _ => Vec::new(),
        } {
            let known = why.entry(host).or_default();
            if !known.contains(&reason) {
                known.push(reason);
            }
        }
    }
    let blamed = |(host, why): (&str, Vec<String>)| Blamed {
        host: host.to_owned(),
        place: run.verdicts.places.get(host).cloned(),
        why,
    };
    why.into_iter().map(blamed).collect()
}

/// The failed verdicts that count.
pub(super) fn failed(run: &Judged) -> impl Iterator<Item = &Verdict> {
    run.verdicts.verdicts.iter().filter(|verdict| verdict.status == Status::Fail && !verdict.waived)
}

fn parts<'r>(run: &'r Judged, test: &str) -> Vec<(&'r str, String)> {
    let found = run.verdicts.localisation.iter().filter(|found| found.test == test);
    let one = |named: &'r Named| match named.hosts.as_slice() {
        [host] if is_own_and_certain(named) => {
            let change = format!("{:+.1} %", named.change_percent);
            Some((host.as_str(), format!("{}: {} against good pairs in {test}", named.name, change)))
        }
        _ => None,
    };
    found.flat_map(|found| &found.suspects).filter_map(one).collect()
}

fn is_own_and_certain(named: &Named) -> bool {
    let shown = matches!(named.standing, Standing::Confirmed | Standing::Intermittent);
    shown && !named.waived && named.alternatives.is_empty() && OWN.contains(&named.kind)
}

fn set_up(verdict: &Verdict) -> Vec<(&str, String)> {
    let key = verdict.key.as_deref().unwrap_or_default();
    let unmet = verdict.holdings.iter().filter(|held| held.state == Held::Unmet);
    unmet
        .map(|held| {
            let device = held.device.as_deref().map(|device| format!(" of {device}")).unwrap_or_default();
            (held.host.as_str(), format!("{key}{device} is {}, {}", held.seen, verdict.demand))
        })
        .collect()
}
