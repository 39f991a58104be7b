//! Which hosts a failed verdict blames by themselves: a host, or one of its NICs, that was measured again and shown to be bad; a host
//! that is not set up as the plan wants; and one whose GPU had an error in the soak. A path between two hosts blames neither, and what
//! may be another part's fault, or that of the plan, blames nobody.

use std::collections::BTreeMap;

use super::judged::Judged;
use crate::{
    analysis::{
        localise::{Named, Standing},
        verdict::{Ground, Kind, OfCases, Status, Verdict},
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

/// What failed verdicts say of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    /// Hosts that are blamed, in the order of their names.
    pub hosts: Vec<Blamed>,
    /// What speaks against so many hosts that it blames none.
    pub remarks: Vec<String>,
}

/// The blame of a run. Nobody is blamed by records that are damaged or contradict themselves.
pub fn blame(run: &Judged) -> Blame {
    if !run.is_whole() {
        return Blame::default();
    }
    let mut why: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut remarks = Vec::new();
    for verdict in failed(run) {
        let found = match verdict.kind {
            Kind::Parts => parts(run, &verdict.test),
            Kind::EveryCase => memory(verdict),
            Kind::Preflight => set_up(run, verdict, &mut remarks),
            Kind::Soak if verdict.key.as_deref() == Some("gpus") => soaked(run),
            _ => Vec::new(),
        };
        for (host, reason) in found {
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
    Blame { hosts: why.into_iter().map(blamed).collect(), remarks }
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

/// Hosts with a GPU whose memory does not keep what is written to it.
fn memory(verdict: &Verdict) -> Vec<(&str, String)> {
    let parts = verdict.reason.grounds().iter().flat_map(|ground| match ground {
        Ground::Cases(OfCases::WrongMemory { parts }) => parts.as_slice(),
        _ => &[],
    });
    parts
        .map(|part| {
            (part.host.as_str(), format!("{part}: its memory does not keep what is written to it ({})", verdict.test))
        })
        .collect()
}

/// Hosts with a GPU that had an error while the soak used its memory.
fn soaked(run: &Judged) -> Vec<(&str, String)> {
    let Some(soak) = &run.verdicts.soak else { return Vec::new() };
    let errors = soak.gpus.iter().filter_map(|gpu| {
        let (error, _) = gpu.error()?;
        Some((gpu.host.as_str(), format!("{}: {error} (soak)", gpu.gpu)))
    });
    let failures = soak.gpu_failures.iter().filter_map(|one| {
        let host = one.failure.host.as_deref()?;
        Some((host, format!("{} (soak)", one.failure.clone().unnamed())))
    });
    errors.chain(failures).collect()
}

fn is_own_and_certain(named: &Named) -> bool {
    let shown = matches!(named.standing, Standing::Confirmed | Standing::Intermittent);
    shown && !named.waived && named.alternatives.is_empty() && OWN.contains(&named.kind)
}

fn set_up<'r>(run: &Judged, verdict: &'r Verdict, remarks: &mut Vec<String>) -> Vec<(&'r str, String)> {
    if verdict.is_escalated() {
        return Vec::new();
    }
    let all = run.hosts().count();
    if !verdict.blames_hosts(all) {
        let (many, key) = (verdict.unmet_hosts().len(), verdict.key.as_deref().unwrap_or_default());
        remarks.push(format!("{many} of {all} hosts are not as {key} in the plan wants; that blames none of them"));
        return Vec::new();
    }
    let unmet = verdict.holdings.iter().filter(|held| held.state == Held::Unmet);
    unmet.map(|held| (held.host.as_str(), verdict.departure(held))).collect()
}
