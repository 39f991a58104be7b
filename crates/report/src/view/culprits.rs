//! The first step for what failed verdicts name other than components of tests: hosts that differ from the plan, links
//! between switches, ports of the soak.

use std::collections::BTreeMap;

use railgauge_analysis::{
    localise::Standing,
    reason::{Id, Reason},
    status::Status,
    verdict::{ESCALATED, Kind, Verdict},
};
use railgauge_model::plan::hostlist;
use railgauge_preflight::{Finding, Held, Severity};
use railgauge_wire::remedy::{self, Remedy};
use serde::Serialize;
use serde_json::json;

use super::{FindingView, Hosts, help};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pointer {
    /// Its subject, unless the text has it.
    pub about: String,
    pub text: String,
    /// Section of the page; may be empty.
    pub anchor: &'static str,
}

pub(super) struct Culprit {
    pub lost: Vec<String>,
    /// For the first of what the verdict names.
    pub step: Option<Pointer>,
    /// Whether that first one is a lost host.
    pub is_loss: bool,
    pub anchor: &'static str,
}

/// `None` for a verdict that did not fail, is waived, or is of a kind whose components are reported separately.
pub(super) fn culprit(verdict: &Verdict, hosts: &Hosts) -> Option<Culprit> {
    let findings = &hosts.findings;
    if verdict.status != Status::Fail || verdict.waived {
        return None;
    }
    let (found, anchor) = match verdict.kind {
        Kind::Preflight => {
            (Vec::from_iter(of_preflight(verdict, hosts)), if findings.is_empty() { "where" } else { "configuration" })
        }
        Kind::Links => (of_reasons(verdict), "switches"),
        Kind::EveryCase => (of_reasons(verdict), "troubles"),
        Kind::Soak => (of_reasons(verdict), "soak"),
        _ => return None,
    };
    if found.is_empty() {
        return None;
    }
    let first = found.iter().find_map(|one| Some((one, one.remedy.as_ref()?)));
    Some(Culprit {
        lost: found.iter().filter(|one| one.is_lost).map(|one| one.name.clone()).collect(),
        step: first.map(|(one, remedy)| Pointer { about: one.name.clone(), text: help(remedy), anchor }),
        is_loss: first.is_some_and(|(one, _)| one.is_lost),
        anchor,
    })
}

struct Named {
    /// With its problem: `gpu002 (kernel is 5.0.1, the plan wants 6.1.0)`.
    name: String,
    is_lost: bool,
    remedy: Option<Remedy>,
}

/// Most of the hosts and devices that differ from the plan in one value, and the remedy of the finding about the same fact.
fn of_preflight(verdict: &Verdict, hosts: &Hosts) -> Option<Named> {
    let mut alike: BTreeMap<_, (String, Vec<&str>)> = BTreeMap::new();
    for held in verdict.holdings.iter().filter(|held| held.state == Held::Unmet) {
        let of = alike.entry((held.seen.as_str(), held.device.as_deref()));
        of.or_insert_with(|| (verdict.departure(held), Vec::new())).1.push(&held.host);
    }
    let (words, most) = alike.into_values().rev().max_by_key(|(_, hosts)| hosts.len())?;
    let remedy =
        behind(verdict, &hosts.findings).map_or_else(|| remedy::WANTED_VALUE.into(), |finding| finding.remedy.clone());
    let name = format!("{} ({words})", hostlist::listed(most.iter().copied()));
    Some(Named { name, is_lost: false, remedy: Some(remedy) })
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
    let named = |what: &str| format!("{} ({what})", reason.subject());
    let lost = matches!(reason.id, Id::SoakStalled | Id::SoakWindowFailed | Id::SoakFailed)
        && reason.values.contains_key("lost_at");
    let name = match reason.id {
        _ if lost => reason.text("host"),
        Id::LinkStandsOut if reason.json("standing") == json!(Standing::Confirmed) => {
            let name = reason.subject.split_first().map(|(link, others)| super::switches::one_of(link, others))?;
            format!("{name} ({})", reason.text("standing"))
        }
        Id::WrongMemory => format!("{} (memory does not keep what is written to it)", reason.subject.first()?),
        Id::SoakDown => named("down"),
        Id::SoakBreaks => named("link breaks"),
        Id::SoakLower => named("lower rate"),
        Id::SoakOverLimit => named(&format!("{} over its limit", reason.text("counter"))),
        Id::SoakGpuError => named(&reason.text("error")),
        // All known ports were up: the fault may be anywhere on the flow's way.
        Id::SoakStalled | Id::SoakWindowFailed => named("stalled"),
        Id::SoakGpuFailed => named("ill GPU"),
        Id::SoakWrongBytes => named("wrong bytes"),
        Id::SoakFailed => named("windows failed"),
        _ => return None,
    };
    Some(Named { name, is_lost: lost, remedy: reason.remedy.clone() })
}
