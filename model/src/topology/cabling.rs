//! Finds miscabling from where the ports of hosts and switches are plugged in, before any traffic.
//!
//! The right cabling is unknown: a host is compared with its peers. Where they do not agree, nothing is found, and [`Cabling::unjudged`]
//! says so.

mod boards;
mod finding;
mod links;
mod plugged;
mod rails;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use finding::{Agree, Cabling, Finding, Unjudged};
pub use plugged::{At, Attached, Run, Trunk, plugged};

/// Judges the cables. `ports` must include those unknown to all sources.
pub fn judge(ports: &[Attached], trunks: &[Trunk]) -> Cabling {
    let mut cabling = Cabling::default();
    let hosts = rails::hosts(ports);
    rails::judge(&hosts, &mut cabling);
    boards::judge(ports, &mut cabling);
    rails::uncabled(&hosts, &mut cabling);
    claimed(ports, &mut cabling);
    links::judge(ports, trunks, &mut cabling);
    cabling
}

/// Finds switch ports with two hosts: a host was exchanged, or a source is out of date.
fn claimed(ports: &[Attached], cabling: &mut Cabling) {
    let mut claims: BTreeMap<(&str, &str), Vec<&Attached>> = BTreeMap::new();
    for one in ports {
        if let Some(At { key, port: Some(port), .. }) = &one.at {
            claims.entry((key, port)).or_default().push(one);
        }
    }
    for by in claims.into_values() {
        let hosts: BTreeSet<&str> = by.iter().map(|one| one.host.as_str()).collect();
        if let (true, Some(at)) = (hosts.len() > 1, by[0].at.clone()) {
            let by = by.iter().map(|one| (one.host.clone(), one.device.clone())).collect();
            cabling.findings.push(Finding::Claimed { at, by });
        }
    }
}
