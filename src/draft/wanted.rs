//! `[preflight]` of a plan: the values that all hosts have, as the preflight itself reads them.

use std::collections::BTreeMap;

use railgauge_model::plan::{
    Plan,
    model::{Preflight, Wanted},
};
use railgauge_preflight::{Cluster, Demand, Held, Severity, demands, judge};
use railgauge_wire::{GigabitsPerSecond, HostFacts, Interface, RdmaDevice, RdmaPort, facts::port_name};

use serde::Serialize;

use super::{
    page::{comment, list, quoted},
    seen::{Carrier, Seen, carrying},
};

/// Checks whose finding is a defect of a part that was paid for, whatever it does to the results.
const DEFECTS: [&str; 5] = ["gpu-fabric", "gpu-memory", "gpu-nvlink", "gpu-pcie", "pcie-link"];

/// What the table of a plan can say, as lines of TOML.
#[derive(Serialize)]
pub(super) struct Agreed {
    pub values: Vec<String>,
    /// What most hosts have, and others do not, in words.
    differ: Vec<String>,
    /// Checks that can be answered on all hosts; empty without any.
    defects: String,
}

/// What the hosts of a plan agree on; `None` if there is nothing to say. `plan` has their devices; its own `[preflight]` does not matter.
pub(super) fn agreed(plan: &Plan, cluster: &Cluster, seen: &Seen) -> Option<Agreed> {
    let mut plan = plan.clone();
    plan.preflight = Preflight::default();
    let found = judge(&plan, cluster);
    // What is only worth knowing must not fail a run.
    let is_defect = |name: &&str| {
        let mut of_check = found.iter().filter(|finding| finding.check == **name);
        of_check.all(|finding| finding.severity > Severity::Notice)
    };
    let escalate = DEFECTS.iter().copied().filter(is_defect).map(str::to_owned).collect();
    plan.preflight = Preflight { wanted: usual(cluster, seen), waive: Vec::new(), escalate, ufm_telemetry: Vec::new() };
    let findings = judge(&plan, cluster);
    let (mut values, mut differ, mut defects) = (Vec::new(), Vec::new(), Vec::new());
    let mut inline: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for demand in demands(&plan, cluster, &findings) {
        let Demand { key, wanted, .. } = &demand;
        match (demand.escalated, demand.held(), key.split_once('.')) {
            (true, Held::Met | Held::Unmet, _) => defects.push(demand.check.clone()),
            (false, Held::Met, Some((table, of))) => {
                inline.entry(table.to_owned()).or_default().push(format!("{} = {}", name(of), quoted(wanted)));
            }
            (false, Held::Met, None) => values.push(format!("{key} = {}", value(key, wanted))),
            (false, Held::Unmet, _) => {
                differ.push(comment(&format!("{key}: {wanted} on most; {}", demand.departures(Held::Unmet))));
            }
            // What cannot be read everywhere would leave every run inconclusive.
            (_, Held::Unread, _) => {}
        }
    }
    let tables = inline.into_iter().map(|(table, entries)| format!("{table} = {{ {} }}", entries.join(", ")));
    values.extend(tables);
    let is_silent = values.is_empty() && differ.is_empty() && defects.is_empty();
    let defects = if defects.is_empty() { String::new() } else { list(&defects) };
    (!is_silent).then_some(Agreed { values, differ, defects })
}

fn value(key: &str, wanted: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    match key {
        "pfc_priority" => format!("[{wanted}]"),
        "max_read_request" => wanted.trim_end_matches(|c: char| !c.is_ascii_digit()).to_owned(),
        _ if is_number(wanted) && key != "kernel" && key != "gpu_driver" => wanted.to_owned(),
        _ => quoted(wanted),
    }
}

fn name(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if is_bare { key.to_owned() } else { quoted(key) }
}

fn usual(cluster: &Cluster, seen: &Seen) -> Wanted {
    let facts: Vec<&HostFacts> = seen.hosts.iter().filter_map(|host| cluster.facts.get(host)).collect();
    let mut wanted = Wanted {
        kernel: most(facts.iter().map(|facts| facts.kernel.clone()).filter(|kernel| !kernel.is_empty())),
        // A governor that costs speed is not a value to hold on to.
        governor: most(facts.iter().filter_map(|facts| facts.cpu.governor.clone())).filter(|one| one == "performance"),
        gpus: most(facts.iter().map(|facts| facts.gpus.len())).filter(|gpus| *gpus > 0),
        gpu_driver: most(facts.iter().flat_map(|facts| &facts.gpus).filter_map(|gpu| gpu.driver.clone())),
        ..Wanted::default()
    };
    if wanted.gpus.is_some() && facts.iter().any(|facts| facts.modules.contains_key("nvidia_peermem")) {
        wanted.modules.insert("nvidia_peermem".to_owned(), "*".to_owned());
    }
    match seen.carrier {
        Carrier::Tcp => {
            let mtus = facts.iter().flat_map(|facts| carrying(facts)).filter_map(|one| one.mtu);
            wanted.mtu = most(mtus).filter(|_| !seen.one_machine && facts.iter().all(|facts| facts.rdma.is_empty()));
        }
        Carrier::Verbs => rdma(&facts, seen, &mut wanted),
    }
    wanted
}

fn rdma(facts: &[&HostFacts], seen: &Seen, wanted: &mut Wanted) {
    let named: Vec<&String> = seen.devices.iter().chain(seen.other_devices.keys().flatten()).collect();
    let is_rail = |device: &RdmaDevice, port: &RdmaPort| {
        named.iter().any(|name| {
            let (card, number) = port_name(name);
            card == device.name && number.unwrap_or(1) == port.number
        })
    };
    let mut ports: Vec<(&HostFacts, &RdmaDevice, &RdmaPort)> = Vec::new();
    for facts in facts {
        let of_host = facts.rdma.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
        ports.extend(
            of_host.filter(|(device, port)| is_rail(device, port)).map(|(device, port)| (*facts, device, port)),
        );
    }
    wanted.rdma_ports = Some(seen.devices.len()).filter(|count| *count > 0);
    // The rate of most ports: one that came up slower, wherever it is, must not become what is required of all.
    wanted.link_rate_gbps = most_rate(ports.iter().filter_map(|(_, _, port)| port.rate_gbps));
    let devices = || ports.iter().map(|(_, device, _)| *device);
    // A tool may raise it, and none has a reason to lower it.
    wanted.max_read_request = most(devices().filter_map(|device| device.function.max_read_request));
    wanted.firmware = firmware(devices());
    wanted.iommu = most(devices().filter_map(|device| iommu(facts, device)));
    if seen.layer == Some("RoCE") {
        let wires = || ports.iter().flat_map(|(facts, _, port)| wires(facts, port));
        wanted.mtu = most(wires().filter_map(|wire| wire.mtu));
        wanted.pfc_priority = most(wires().filter_map(|wire| Some(wire.dcb.as_ref()?.pfc.clone())));
        wanted.pfc_priority = wanted.pfc_priority.take().filter(|priorities| !priorities.is_empty());
        wanted.trust = most(wires().filter_map(|wire| wire.trust.clone()));
    }
}

/// The interfaces of the physical ports below a port.
fn wires<'f>(facts: &'f HostFacts, port: &'f RdmaPort) -> Vec<&'f Interface> {
    match port.members.is_empty() {
        true => port.netdev.iter().filter_map(|name| facts.interface(name)).collect(),
        false => port.members.iter().filter_map(|name| facts.interface(name)).collect(),
    }
}

/// As the key of a plan has it. `translated` costs something, and is not a value to hold on to.
fn iommu(facts: &[&HostFacts], device: &RdmaDevice) -> Option<String> {
    match device.function.iommu.as_deref() {
        Some("identity") => Some("passthrough".to_owned()),
        None if !device.software && facts.iter().all(|facts| facts.iommus == 0) => Some("off".to_owned()),
        _ => None,
    }
}

/// Firmware by board where the boards are known, else by driver.
fn firmware<'f>(devices: impl Iterator<Item = &'f RdmaDevice>) -> BTreeMap<String, String> {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for device in devices {
        let name = device.board.clone().or_else(|| device.driver.clone());
        if let (Some(name), Some(version)) = (name, device.firmware.clone()) {
            versions.entry(name).or_default().push(version);
        }
    }
    versions.into_iter().filter_map(|(name, versions)| Some((name, most(versions)?))).collect()
}

/// The rate that is most frequent, the greatest of several.
fn most_rate(rates: impl IntoIterator<Item = GigabitsPerSecond>) -> Option<GigabitsPerSecond> {
    // Whole Mb/s can be compared exactly.
    let megabits = rates.into_iter().map(|rate| (rate.0 * 1e3).round() as u64);
    most(megabits).map(|megabits| GigabitsPerSecond(megabits as f64 / 1e3))
}

/// The value that is most frequent, the greatest of several.
fn most<T: Ord>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_plans_read_them() {
        assert_eq!(value("mtu", "9000"), "9000");
        assert_eq!(value("max_read_request", "4096 B"), "4096");
        assert_eq!(value("pfc_priority", "3, 4"), "[3, 4]");
        assert_eq!(value("link_rate", "400 Gb/s"), "\"400 Gb/s\"");
        assert_eq!(value("kernel", "6"), "\"6\"");
        assert_eq!(name("mlx5_core"), "mlx5_core");
        assert_eq!(name("a b"), "\"a b\"");
    }

    #[test]
    fn the_usual_value_is_the_most_frequent_one() {
        assert_eq!(most([9000, 1500, 9000]), Some(9000));
        assert_eq!(most::<u32>([]), None);
    }
}
