//! Drivers of RDMA devices on which railgauge's authors ran it, and drivers of a run that are not among them.
//!
//! A driver is added once a kit of hosts with it (`docs/dev/bundle.md`) is a fixture of this repository, or tests run on it. Until then,
//! knowledge from kernel and library sources may be wrong on the device, and the report says so in its first lines.

use std::{borrow::Cow, collections::BTreeMap};

use foldhash::{HashMap, HashSet};
use railgauge_model::plan::model::Host;
use railgauge_wire::{Carrier, Transport};
use serde::{Deserialize, Serialize};

use super::{ceiling::LinkEnd, journal::Journal};
use crate::{case::CaseResult, words::some};

pub const PROVEN: &[(&str, &str)] = &[
    ("rdma_rxe", "tests/lab/verbs.rs: virtual hosts with Soft-RoCE"),
    ("siw", "tests/lab/iwarp.rs: virtual hosts with iWARP in software"),
];

pub const NOT_TESTED: &str =
    "railgauge has not been tested with this driver; `railgauge bundle PLAN` collects what is needed to add it";

const UNKNOWN: &str = "unknown";

/// A driver that a run used or tried to use, and that railgauge's authors never ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeverRun {
    /// The kernel driver; `unknown` if the host does not report it.
    pub driver: String,
    /// By host: devices that carried bytes or should have.
    pub devices: BTreeMap<String, Vec<String>>,
}

impl NeverRun {
    pub fn words(&self) -> String {
        let mut names: Vec<&String> = self.devices.values().flatten().collect();
        names.sort_unstable();
        names.dedup();
        let shown = some(&names, 8);
        let driver = match self.driver.as_str() {
            UNKNOWN => "a driver that the hosts do not name".to_owned(),
            driver => format!("driver {driver}"),
        };
        format!("{driver} ({shown}): {NOT_TESTED}")
    }
}

/// By name: drivers of RDMA devices in use by cases, measured or not, that are not in the table. A failed case counts
/// too: the unknown driver may be the cause.
pub fn never_run(journal: &Journal, results: &[CaseResult<'_>]) -> Vec<NeverRun> {
    let mut found: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    let planned: HashMap<&str, &Host> = journal.plan.hosts.iter().map(|host| (host.name.as_str(), host)).collect();
    let mut seen: HashSet<(&str, Cow<'_, str>)> = HashSet::default();
    let measured = results.iter().filter(|result| !result.tries.is_empty());
    for (host, device) in measured.flat_map(|one| used(journal, &planned, one)) {
        // Thousands of cases use the same devices.
        if !seen.insert((host, device.clone())) {
            continue;
        }
        // Nothing was measured on hosts outside the plan.
        let is_planned = planned.contains_key(host);
        let Some(up) = journal.hosts.get(host).filter(|_| is_planned) else { continue };
        // A device given in words may not be an RDMA device: then the facts have none.
        let Some(known) = LinkEnd::find(Some(&up.facts), &device).device else { continue };
        let driver = known.driver.as_deref().unwrap_or(UNKNOWN);
        if PROVEN.iter().any(|(proven, _)| *proven == driver) {
            continue;
        }
        let of_host = found.entry(driver.to_owned()).or_default().entry(host.to_owned()).or_default();
        if !of_host.contains(&known.name) {
            of_host.push(known.name.clone());
        }
    }
    found.into_iter().map(|(driver, devices)| NeverRun { driver, devices }).collect()
}

/// RDMA devices of a case, each at its own host, from its records; before it had a link, the devices of the plan or all of its host.
fn used<'r>(
    journal: &'r Journal,
    planned: &HashMap<&str, &'r Host>,
    result: &'r CaseResult<'_>,
) -> Vec<(&'r str, Cow<'r, str>)> {
    let flow = &result.case.flow;
    let ends = [&*flow.from.host, &*flow.to.host];
    match result.link {
        // The devices of NCCL are its own choice, and other carriers use no RDMA device.
        Some(link) if !is_verbs(link.transport) => Vec::new(),
        Some(link) => {
            let ranks = result.samples.iter().flat_map(|(_, sample)| &sample.ranks);
            let of_ends = ends.into_iter().zip([&*link.from_device, &*link.to_device]);
            let all = of_ends.chain(ranks.map(|rank| (&*rank.host, &*rank.device)));
            all.map(|(host, device)| (host, device.into())).collect()
        }
        None if matches!(result.case.cell.transport, Transport::Verbs | Transport::Nic) => {
            let devices = |host: &'r str| match planned.get(host) {
                Some(known) if !known.devices.is_empty() => {
                    known.devices.iter().map(String::as_str).collect::<Vec<_>>()
                }
                _ => journal.hosts.get(host).into_iter().flat_map(|up| &up.facts.rdma).map(|one| &*one.name).collect(),
            };
            ends.into_iter().flat_map(|host| devices(host).into_iter().map(move |name| (host, name.into()))).collect()
        }
        None => Vec::new(),
    }
}

fn is_verbs(carrier: Carrier) -> bool {
    matches!(carrier, Carrier::VerbsRc | Carrier::VerbsUc | Carrier::VerbsUd | Carrier::VerbsLoopback)
}
