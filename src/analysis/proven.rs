//! Which drivers of RDMA devices railgauge has been run on by its authors, and which of a run's are not among them.
//!
//! A driver is in the table once a kit of hosts with it (`docs/kit.md`) is a fixture of this repository, or tests run on it. Until
//! then, what was read in kernel and library sources may be wrong on the device, and the report says so in its first lines.

use std::collections::BTreeMap;

use railgauge_wire::terms::Carrier;
use serde::{Deserialize, Serialize};

use super::{ceiling::LinkEnd, journal::Journal, results::CaseResult};

/// Drivers that were run by us, and by what that is shown.
pub const PROVEN: &[(&str, &str)] = &[("rdma_rxe", "tests/lab_verbs.rs: virtual hosts with Soft-RoCE")];

/// What a report says of a driver that is not among them.
pub const NOT_TESTED: &str =
    "railgauge has not been tested with this driver; `railgauge kit PLAN` collects what is needed to add it";

/// Name of a driver that the host does not tell.
const UNKNOWN: &str = "unknown";

/// A driver that carried bytes of a run and has never been run by us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeverRun {
    /// The kernel driver; `unknown` where the host does not tell.
    pub driver: String,
    /// Devices of it that carried bytes, by host.
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

/// The drivers of devices that carried bytes by RDMA and are not in the table, by name.
pub fn never_run(journal: &Journal, results: &[CaseResult<'_>]) -> Vec<NeverRun> {
    let mut found: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for result in results.iter().filter(|result| !result.samples.is_empty()) {
        let Some(link) = result.link.filter(|link| is_rdma(link.transport)) else { continue };
        let flow = &result.case.flow;
        let ends = [(&*flow.from.host, &*link.from_device), (&*flow.to.host, &*link.to_device)];
        let ranks = result.samples.iter().flat_map(|(_, sample)| &sample.ranks);
        let ranks = ranks.map(|rank| (&*rank.host, &*rank.device));
        for (host, device) in ends.into_iter().chain(ranks) {
            // A rank's device in words may be no RDMA device, as that of NCCL is a GPU: then its host's facts have none.
            let facts = journal.hosts.get(host).map(|host| &host.facts);
            let devices: Vec<&str> = match link.transport {
                Carrier::NcclIb => {
                    nics(link.settings.get("nics")).chain(nics(link.settings.get("nics_remote"))).collect()
                }
                _ => vec![device],
            };
            for device in devices {
                let Some(known) = LinkEnd::find(facts, device).device else { continue };
                let driver = known.driver.as_deref().unwrap_or(UNKNOWN);
                if PROVEN.iter().any(|(proven, _)| *proven == driver) {
                    continue;
                }
                let of_host = found.entry(driver.to_owned()).or_default().entry(host.to_owned()).or_default();
                if !of_host.contains(&known.name) {
                    of_host.push(known.name.clone());
                }
            }
        }
    }
    found.into_iter().map(|(driver, devices)| NeverRun { driver, devices }).collect()
}

/// Devices in a list such as `mlx5_0, mlx5_1:1`.
fn nics(list: Option<&String>) -> impl Iterator<Item = &str> {
    list.into_iter().flat_map(|list| list.split(", "))
}

/// Whether verbs of an RDMA device carried the bytes.
fn is_rdma(carrier: Carrier) -> bool {
    matches!(carrier, Carrier::VerbsRc | Carrier::VerbsUc | Carrier::VerbsUd | Carrier::NcclIb)
}
