//! What failed verdicts name other than parts: hosts that differ from the plan, links between switches, ports of the
//! soak. Each with its remedy, if known.

use std::collections::BTreeMap;

use railgauge_analysis::{
    localise::Standing,
    verdict::{ESCALATED, Id, Kind, Reason, Status, Verdict},
};
use railgauge_model::plan::hostlist;
use railgauge_preflight::{Finding, Held, Severity};
use railgauge_wire::remedy::{self, Remedy};
use serde_json::json;

use super::{FindingView, Hosts, Pointer, help};

pub(super) struct Culprit {
    /// With the problem of each: `gpu002 (kernel is 5.0.1, the plan wants 6.1.0)`.
    pub names: Vec<String>,
    /// Failed flows without a known bad part: `a → b (stalled)`.
    pub flows: Vec<String>,
    /// Hosts that differ from the plan without being to blame, each with its value.
    pub unlike: Vec<String>,
    pub lost: Vec<String>,
    /// For the first of them.
    pub step: Option<Pointer>,
    /// Whether that first one is a lost host.
    pub is_loss: bool,
    pub anchor: &'static str,
}

/// `None` for a verdict that did not fail, is waived, or is of a kind whose parts are reported by themselves.
pub(super) fn culprit(verdict: &Verdict, hosts: &Hosts) -> Option<Culprit> {
    let findings = &hosts.findings;
    if verdict.status != Status::Fail || verdict.waived {
        return None;
    }
    let (found, anchor) = match verdict.kind {
        Kind::Preflight => {
            (vec![of_preflight(verdict, hosts)], if findings.is_empty() { "where" } else { "configuration" })
        }
        Kind::Links => (of_reasons(verdict), "switches"),
        Kind::EveryCase => (of_reasons(verdict), "troubles"),
        Kind::Soak => (of_reasons(verdict), "soak"),
        _ => return None,
    };
    if found.is_empty() {
        return None;
    }
    let all = |of: fn(&Named) -> &Vec<String>| found.iter().flat_map(of).cloned().collect::<Vec<_>>();
    let first = found.iter().find_map(|one| Some((one, one.first()?, one.remedy.as_ref()?)));
    Some(Culprit {
        names: all(|one| &one.names),
        flows: all(|one| &one.flows),
        unlike: all(|one| &one.unlike),
        lost: all(|one| &one.lost),
        step: first.map(|(_, name, remedy)| Pointer { about: name.clone(), text: help(remedy), anchor }),
        is_loss: first.is_some_and(|(one, ..)| !one.lost.is_empty()),
        anchor,
    })
}

#[derive(Default)]
struct Named {
    names: Vec<String>,
    flows: Vec<String>,
    unlike: Vec<String>,
    lost: Vec<String>,
    remedy: Option<Remedy>,
}

impl Named {
    const fn parts(names: Vec<String>, remedy: Option<Remedy>) -> Self {
        Self { names, flows: Vec::new(), unlike: Vec::new(), lost: Vec::new(), remedy }
    }

    fn first(&self) -> Option<&String> {
        [&self.names, &self.flows, &self.unlike, &self.lost].into_iter().find_map(|all| all.first())
    }
}

type Alike<'v> = (String, Vec<&'v str>);

/// Hosts and devices that differ from the plan, grouped by value, and the remedy of the finding about the same fact.
/// None of them is a bad part if so many differ that the plan is the likelier fault, or if a check was escalated.
fn of_preflight(verdict: &Verdict, hosts: &Hosts) -> Named {
    let mut alike: BTreeMap<(&str, Option<&str>), Alike<'_>> = BTreeMap::new();
    for held in verdict.holdings.iter().filter(|held| held.state == Held::Unmet) {
        let of = alike.entry((held.seen.as_str(), held.device.as_deref()));
        of.or_insert_with(|| (verdict.departure(held), Vec::new())).1.push(&held.host);
    }
    let mut names: Vec<(usize, String)> = alike
        .into_values()
        .map(|(words, hosts)| (hosts.len(), format!("{} ({words})", hostlist::listed(hosts.iter().copied()))))
        .collect();
    names.sort_by_key(|(hosts, _)| std::cmp::Reverse(*hosts));
    let remedy =
        behind(verdict, &hosts.findings).map_or_else(|| remedy::WANTED_VALUE.into(), |finding| finding.remedy.clone());
    let names = names.into_iter().map(|(_, name)| name).collect();
    match verdict.blames_hosts(hosts.all.len()) {
        true => Named::parts(names, Some(remedy)),
        false => Named { unlike: names, remedy: Some(remedy), ..Named::default() },
    }
}

/// The gravest finding about the verdict's fact, at one of the hosts that break it.
fn behind<'f>(verdict: &Verdict, findings: &'f [FindingView]) -> Option<&'f Finding> {
    let key = verdict.key.as_deref()?;
    let unmet = |host: &String| verdict.holdings.iter().any(|held| held.state == Held::Unmet && held.host == *host);
    let is_about = |finding: &Finding| match key.strip_prefix(ESCALATED) {
        Some(check) => finding.check == check,
        None => {
            // The firmware of each kind of device is a key of its own.
            let fact = |fact: &str| fact == key || key.strip_prefix(fact).is_some_and(|rest| rest.starts_with('.'));
            finding.key.as_deref() == Some(key)
                || finding.observed.as_ref().is_some_and(|observed| fact(&observed.fact))
        }
    };
    // The gravest come first.
    findings.iter().map(|view| &view.finding).find(|finding| {
        finding.severity > Severity::Notice && !finding.unread && is_about(finding) && finding.hosts.iter().any(unmet)
    })
}

fn of_reasons(verdict: &Verdict) -> Vec<Named> {
    verdict.reason.iter().filter_map(of_reason).collect()
}

/// `None` for a reason that names nothing bad.
fn of_reason(reason: &Reason) -> Option<Named> {
    let named = |what: &str| vec![format!("{} ({what})", reason.subject())];
    let parts = |what: &str| Named { names: named(what), ..Named::default() };
    // A flow is not a part: the fault may be anywhere on its way.
    let flows = |what: &str| Named { flows: named(what), ..Named::default() };
    let found = match reason.id {
        Id::SoakStalled | Id::SoakWindowFailed | Id::SoakFailed if reason.values.contains_key("lost_at") => {
            Named { lost: vec![reason.text("host")], ..Named::default() }
        }
        Id::LinkStandsOut if reason.json("standing") == json!(Standing::Confirmed) => {
            let name = reason.subject.split_first().map(|(link, others)| super::switches::one_of(link, others))?;
            Named { names: vec![format!("{name} ({})", reason.text("standing"))], ..Named::default() }
        }
        Id::WrongMemory => {
            let what = |part| format!("{part} (memory does not keep what is written to it)");
            Named { names: reason.subject.iter().map(what).collect(), ..Named::default() }
        }
        Id::SoakDown => parts("down"),
        Id::SoakBreaks => parts("link breaks"),
        Id::SoakLower => parts("lower rate"),
        Id::SoakOverLimit => parts(&format!("{} over its limit", reason.text("counter"))),
        Id::SoakGpuError => parts(&reason.text("error")),
        // All known ports were up: there is nothing specific to check.
        Id::SoakStalled | Id::SoakWindowFailed => flows("stalled"),
        Id::SoakGpuFailed => flows("ill GPU"),
        Id::SoakWrongBytes => flows("wrong bytes"),
        Id::SoakFailed => flows("windows failed"),
        _ => return None,
    };
    Some(Named { remedy: reason.remedy.clone(), ..found })
}
