//! Which drivers of RDMA devices railgauge has been run on by its authors, and which of a run's are not among them.
//!
//! A driver is in the table once a kit of hosts with it (`docs/dev/bundle.md`) is a fixture of this repository, or tests run on it. Until
//! then, what was read in kernel and library sources may be wrong on the device, and the report says so in its first lines.

use std::{borrow::Cow, collections::BTreeMap};

use foldhash::{HashMap, HashSet};
use railgauge_model::plan::model::Host;
use railgauge_wire::terms::{Carrier, Transport};
use serde::{Deserialize, Serialize};

use super::{
    ceiling::LinkEnd,
    journal::{Journal, planned::is_active},
    results::CaseResult,
};

/// Drivers that were run by us, and by what that is shown.
pub const PROVEN: &[(&str, &str)] = &[
    ("rdma_rxe", "tests/lab/verbs.rs: virtual hosts with Soft-RoCE"),
    ("siw", "tests/lab/iwarp.rs: virtual hosts with iWARP in software"),
];

/// What a report says of a driver that is not among them.
pub const NOT_TESTED: &str =
    "railgauge has not been tested with this driver; `railgauge bundle PLAN` collects what is needed to add it";

/// Name of a driver that the host does not tell.
const UNKNOWN: &str = "unknown";

/// A driver that a run used, or tried to use, and that has never been run by us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeverRun {
    /// The kernel driver; `unknown` where the host does not tell.
    pub driver: String,
    /// Devices of it that carried bytes or were to carry them, by host.
    pub devices: BTreeMap<String, Vec<String>>,
}

impl NeverRun {
    /// In a sentence, without its full stop.
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

/// The drivers of devices that cases used for RDMA, measured or not, and that are not in the table, by name. A case that failed
/// counts as well: that the driver is not known to us may be why.
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
        // Of hosts that the plan does not have nothing was measured.
        let is_planned = planned.contains_key(host);
        let Some(up) = journal.hosts.get(host).filter(|_| is_planned) else { continue };
        // A device in words may be no RDMA device: then the facts have none.
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

/// Hosts and their devices that a case used for RDMA, as far as its records tell: each device at its own host.
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
        // What a plugin of NCCL uses is not known, and other carriers use no RDMA device.
        Some(link) if !is_verbs(link.transport) => Vec::new(),
        Some(link) => {
            let ends = [(from, &*link.from_device), (to, &*link.to_device)].into_iter();
            let all = ends.chain(ranks().map(|rank| (&*rank.host, &*rank.device)));
            all.map(|(host, device)| (host, device.into())).collect()
        }
        // It failed before there was a link: those that it would have used.
        None if matches!(result.case.cell.transport, Transport::Verbs | Transport::Nic) => {
            let rail = |host, rail| Some((host, wanted(journal, planned, host, rail)?.into()));
            [rail(from, flow.from.rail), rail(to, flow.to.rail)].into_iter().flatten().collect()
        }
        None => Vec::new(),
    }
}

/// The device that a rail of a host is: of those that the plan names, else of the host's active ports, as far as there are so
/// many; a host whose ports are all down has its first device.
fn wanted(journal: &Journal, planned: &HashMap<&str, &Host>, host: &str, rail: u32) -> Option<String> {
    let named = planned.get(host).map(|planned| &planned.devices)?;
    let facts = &journal.hosts.get(host)?.facts;
    let ports = facts.rdma.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let mut active = ports.filter(|(_, port)| is_active(port));
    let rail = rail as usize;
    let mut of_host = || active.nth(rail).map(|(device, _)| device).or(facts.rdma.first());
    named.get(rail).cloned().or_else(|| of_host().map(|device| device.name.clone()))
}

/// Whether verbs of an RDMA device carried the bytes.
fn is_verbs(carrier: Carrier) -> bool {
    matches!(carrier, Carrier::VerbsRc | Carrier::VerbsUc | Carrier::VerbsUd | Carrier::VerbsLoopback)
}
