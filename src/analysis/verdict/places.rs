//! Says of verdicts where the hosts stand that they name, where the plan gives their places.

use std::collections::BTreeMap;

use super::{
    Ground, Kind, Lack, OFFENDERS, OfCases, OfExpectation, OfParts, OfPlaces, OfRun, Placed, Status, Verdict,
    reason::Place,
};
use crate::{analysis::localise::Localisation, preflight::Held};

/// Adds the places of the hosts that a verdict names, in its reason and as a field. A pass sends nobody anywhere.
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
        verdict.reason.push(OfPlaces { hosts });
    }
}

/// Hosts that a verdict names, in that order, some of them more than once.
fn named<'v>(verdict: &'v Verdict, localisation: &'v [Localisation]) -> Vec<&'v str> {
    let mut hosts: Vec<&str> = Vec::new();
    let parts = verdict.parts.iter().filter(|_| verdict.kind == Kind::Parts);
    for part in parts {
        hosts.extend(hosts_of(&part.name, &verdict.test, localisation).iter().map(String::as_str));
    }
    for ground in verdict.reason.grounds() {
        match ground {
            Ground::Run(ground) => hosts.extend(of_run(ground)),
            Ground::Cases(ground) => hosts.extend(of_cases(ground)),
            Ground::Expectation(ground) => hosts.extend(of_expectation(ground)),
            Ground::Parts(OfParts::NotTested { untested }) => {
                let of_hosts = untested.iter().filter(|one| one.kind == Lack::Hosts);
                hosts.extend(of_hosts.flat_map(|one| &one.names).map(String::as_str));
            }
            Ground::Parts(OfParts::LinksStandOut { worst, shared_host, .. }) => {
                hosts.extend(shared_host.iter().chain(&worst.hosts).map(String::as_str));
            }
            // What these name are switches, ports and flows in words; hosts of the preflight are below.
            Ground::Parts(_) | Ground::Links(_) | Ground::Soak(_) | Ground::Preflight(_) | Ground::Where(_) => {}
        }
    }
    hosts.extend(verdict.holdings.iter().filter(|one| one.state != Held::Met).map(|one| one.host.as_str()));
    hosts
}

/// Hosts in the name of a part of a test.
fn hosts_of<'l>(part: &str, test: &str, localisation: &'l [Localisation]) -> &'l [String] {
    let of_test = localisation.iter().filter(|found| found.test == test);
    let mut named = of_test.flat_map(|found| &found.suspects).filter(|named| named.name == part);
    named.next().map_or(&[], |named| &named.hosts)
}

fn of_place(place: &Place) -> Vec<&str> {
    vec![&place.src_host, &place.dst_host]
}

fn of_run(ground: &OfRun) -> Vec<&str> {
    match ground {
        OfRun::Lost { hosts, .. }
        | OfRun::CameBack { hosts, .. }
        | OfRun::MissedSoak { hosts, .. }
        | OfRun::Silent { hosts }
        | OfRun::Unused { hosts } => hosts.iter().map(String::as_str).collect(),
        OfRun::UndoFailed { failure, .. } => failure.host.as_deref().into_iter().collect(),
        OfRun::Interrupted
        | OfRun::Prevented { .. }
        | OfRun::BrokeOff
        | OfRun::StillRunning
        | OfRun::Unreadable { .. }
        | OfRun::Contradictory { .. }
        | OfRun::UndoNotReached { .. } => Vec::new(),
    }
}

fn of_cases(ground: &OfCases) -> Vec<&str> {
    match ground {
        OfCases::FurtherWrongBytes { first, .. } => of_place(&first.place),
        OfCases::WrongMemory { parts } => parts.iter().map(|part| part.host.as_str()).collect(),
        OfCases::Short { gravest, .. } | OfCases::NoneRun { gravest, .. } | OfCases::LostPackets { gravest, .. } => {
            of_place(&gravest.place)
        }
        OfCases::NonePlanned | OfCases::VerificationOff { .. } | OfCases::Measured { .. } => Vec::new(),
    }
}

fn of_expectation(ground: &OfExpectation) -> Vec<&str> {
    match ground {
        OfExpectation::WrongBytes { first, .. } | OfExpectation::NotTrusted { first, .. } => of_place(&first.place),
        OfExpectation::Broken { worst, .. } => of_place(&worst.place),
        OfExpectation::OtherParts(parts) => parts.replaced.iter().map(|one| one.host.as_str()).collect(),
        OfExpectation::FewerMembers(bond) => vec![&bond.host],
        _ => Vec::new(),
    }
}
