//! Drivers of RDMA devices on which railgauge's authors ran it, and drivers of a run that are not among them.
//!
//! A driver is added once a kit of hosts with it (`docs/dev/bundle.md`) is a fixture of this repository, or tests run on it. Until then,
//! knowledge from kernel and library sources may be wrong on the device, and the report says so in its first lines.

use std::{borrow::Cow, collections::BTreeMap};

use foldhash::{HashMap, HashSet};
use railgauge_model::plan::model::Host;
use railgauge_wire::terms::{Carrier, Transport};
use serde::{Deserialize, Serialize};

use super::{ceiling::LinkEnd, journal::Journal};
use crate::case::CaseResult;

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
        let (shown, more) = names.split_at(names.len().min(8));
        let shown = shown.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let driver = match self.driver.as_str() {
            UNKNOWN => "a driver that the hosts do not name".to_owned(),
            driver => format!("driver {driver}"),
        };
        format!("{driver} ({shown}{more}): {NOT_TESTED}")
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

/// RDMA devices in use by a case, each at its own host, from its records.
fn used<'r>(
    journal: &'r Journal,
    planned: &HashMap<&str, &Host>,
    result: &'r CaseResult<'_>,
) -> Vec<(&'r str, Cow<'r, str>)> {
    let flow = &result.case.flow;
    let (from, to) = (&*flow.from.host, &*flow.to.host);
    let ranks = || result.samples.iter().flat_map(|(_, sample)| &sample.ranks);
    match result.link {
        Some(link) if link.transport == Carrier::NcclIb => {
            let list = |name| link.settings.get(name).into_iter().flat_map(|list| list.split(", "));
            let ends = list("nics").map(|nic| (from, nic)).chain(list("nics_remote").map(|nic| (to, nic)));
            let of_ranks = ranks()
                .filter(|rank| rank.carried.is_none_or(|carried| carried == Carrier::NcclIb))
                .flat_map(|rank| rank.nics.iter().map(|nic| (&*rank.host, nic.as_str())));
            ends.chain(of_ranks).map(|(host, nic)| (host, nic.into())).collect()
        }
        // The devices of an NCCL plugin are unknown, and other carriers use no RDMA device.
        Some(link) if !is_verbs(link.transport) => Vec::new(),
        Some(link) => {
            let ends = [(from, &*link.from_device), (to, &*link.to_device)].into_iter();
            let all = ends.chain(ranks().map(|rank| (&*rank.host, &*rank.device)));
            all.map(|(host, device)| (host, device.into())).collect()
        }
        // It failed before it had a link: the devices that it would have used.
        None if matches!(result.case.cell.transport, Transport::Verbs | Transport::Nic) => {
            let rail = |host, rail| Some((host, wanted(journal, planned, host, rail)?.into()));
            [rail(from, flow.from.rail), rail(to, flow.to.rail)].into_iter().flatten().collect()
        }
        None => Vec::new(),
    }
}

/// The device of a host's rail: from the plan, otherwise the host's active ports in order; a host without an active
/// port has its first device.
fn wanted(journal: &Journal, planned: &HashMap<&str, &Host>, host: &str, rail: u32) -> Option<String> {
    let named = planned.get(host).map(|planned| &planned.devices)?;
    let facts = &journal.hosts.get(host)?.facts;
    let ports = facts.rdma.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let mut active = ports.filter(|(_, port)| port.is_active());
    let rail = rail as usize;
    let mut of_host = || active.nth(rail).map(|(device, _)| device).or(facts.rdma.first());
    named.get(rail).cloned().or_else(|| of_host().map(|device| device.name.clone()))
}

fn is_verbs(carrier: Carrier) -> bool {
    matches!(carrier, Carrier::VerbsRc | Carrier::VerbsUc | Carrier::VerbsUd | Carrier::VerbsLoopback)
}
