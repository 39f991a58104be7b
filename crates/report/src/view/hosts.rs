//! Environment: shared facts, differences, and every host.

use std::collections::BTreeMap;

use railgauge_analysis::{
    case::of_host,
    explain::{Fit, explained},
    journal::{HostUp, Journal},
    outliers::Outliers,
    status::Status,
    words::{amount, count, some},
};
use railgauge_model::plan::hostlist;
use railgauge_preflight::{self as preflight, Cluster, Drift, Finding, Severity};
use railgauge_wire::{Gpu, HostFacts, Nanoseconds, RdmaDevice, RdmaPort, remedy::Remedy};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hosts {
    pub same: Vec<(String, String)>,
    pub differs: Vec<Difference>,
    /// Most serious first.
    pub findings: Vec<FindingView>,
    /// That no finding explains what is wrong; empty where one does, or where nothing is wrong.
    pub unexplained: String,
    pub distances: Vec<Distances>,
    /// The devices of most hosts; empty for few hosts or without a majority.
    pub usual: Vec<String>,
    pub all: Vec<HostView>,
}

/// Number of hosts above which the devices of most hosts are listed once.
const ONCE: usize = 16;

/// Devices of more than half of the hosts; empty without a majority or with few hosts.
fn usual(all: &[HostView]) -> Vec<String> {
    let mut known: BTreeMap<&[String], usize> = BTreeMap::new();
    all.iter().for_each(|host| *known.entry(&host.devices).or_default() += 1);
    let most = known.into_iter().max_by_key(|(_, hosts)| *hosts);
    let found = most.filter(|(_, hosts)| all.len() > ONCE && 2 * hosts > all.len());
    found.map_or_else(Vec::new, |(devices, _)| devices.to_vec())
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingView {
    #[serde(flatten)]
    pub finding: Finding,
    pub explains: Vec<Fit>,
}

impl FindingView {
    /// Whether it fails a need or demand of the plan, whatever was measured.
    pub(super) fn is_failure(&self) -> bool {
        self.finding.severity == Severity::Failure && !self.finding.waived
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distances {
    pub hosts: String,
    pub devices: Vec<String>,
    /// A GPU's name, and its distance to each NIC in the words of `nvidia-smi topo`.
    pub rows: Vec<(String, Vec<&'static str>)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HostView {
    pub name: String,
    /// Rack and slot according to the plan; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial: String,
    /// Why it was lost; may be empty.
    pub lost: String,
    pub help: String,
    pub system: String,
    pub machine: String,
    /// RDMA devices, one text per port, and GPUs.
    pub devices: Vec<String>,
    pub clock: String,
    pub unreadable: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub fact: String,
    pub majority: (String, usize),
    pub others: Vec<(String, String)>,
}

const NAMED: usize = 10;

pub(super) fn hosts(journal: &Journal, outliers: &Outliers<'_>, status: Status) -> Hosts {
    let facts: BTreeMap<String, &HostFacts> =
        journal.hosts.iter().map(|(name, up)| (name.clone(), &up.facts)).collect();
    let clocks = journal.hosts.iter().filter_map(|(name, up)| Some((name.clone(), up.wall?))).collect();
    let cluster = Cluster { facts, clocks };
    let findings = findings(journal, &cluster, outliers);
    let all: Vec<HostView> = journal.plan.hosts.iter().map(|host| view(journal, &host.name)).collect();
    let mut lists = cluster.facts.values().map(|facts| facts_of(facts));
    let first = lists.next().unwrap_or_default();
    let same = lists.fold(first, |same, other| same.into_iter().filter(|fact| other.contains(fact)).collect());
    Hosts {
        same,
        differs: preflight::drift(&cluster.facts).into_iter().map(difference).collect(),
        unexplained: unexplained(&findings, status != Status::Pass || outliers.any()),
        findings,
        distances: distances(journal),
        usual: usual(&all),
        all,
    }
}

fn findings(journal: &Journal, cluster: &Cluster<&HostFacts>, outliers: &Outliers<'_>) -> Vec<FindingView> {
    let found = preflight::judge(&journal.plan, cluster);
    let fits = explained(&found, outliers);
    found.into_iter().zip(fits).map(|(finding, explains)| FindingView { finding, explains }).collect()
}

/// Note where something is wrong and no finding fits it. A finding that fails a demand of the plan is wrong itself, and
/// other findings must not hide it.
fn unexplained(findings: &[FindingView], wrong: bool) -> String {
    if !wrong || findings.is_empty() || findings.iter().any(|view| !view.explains.is_empty()) {
        return String::new();
    }
    match findings.iter().filter(|view| view.is_failure()).count() {
        0 => "None of the preflight findings explains the results.".to_owned(),
        n => {
            let verb = if n == 1 { "fails" } else { "fail" };
            format!(
                "{} of the preflight {verb} what the plan needs. No finding explains the other results.",
                count(n, "finding")
            )
        }
    }
}

fn distances(journal: &Journal) -> Vec<Distances> {
    let mut alike: Vec<(Distances, Vec<&str>)> = Vec::new();
    let hosts =
        journal.plan.hosts.iter().filter_map(|host| Some((host.name.as_str(), &journal.hosts.get(&host.name)?.facts)));
    for (host, facts) in hosts.filter(|(_, facts)| !facts.gpu_distances.is_empty()) {
        let matrix = matrix(facts);
        match alike.iter_mut().find(|(known, _)| *known == matrix) {
            Some((_, hosts)) => hosts.push(host),
            None => alike.push((matrix, vec![host])),
        }
    }
    alike.into_iter().map(|(matrix, hosts)| Distances { hosts: hostlist::listed(hosts), ..matrix }).collect()
}

fn matrix(facts: &HostFacts) -> Distances {
    let devices: Vec<String> = facts.rdma.iter().map(|device| device.name.clone()).collect();
    let row = |gpu: &Gpu| {
        let to = |device: &String| {
            let pair = facts.gpu_distances.iter().find(|row| row.gpu == gpu.index && row.device == *device);
            pair.map_or("?", |row| row.distance.word())
        };
        (format!("GPU {}", gpu.index), devices.iter().map(to).collect())
    };
    Distances { hosts: String::new(), rows: facts.gpus.iter().map(row).collect(), devices }
}

fn difference(drift: Drift) -> Difference {
    let others = drift.by_value().into_iter().map(|(value, hosts)| (value.to_owned(), some(&hosts, NAMED))).collect();
    Difference { others, fact: drift.fact, majority: (drift.majority, drift.holders) }
}

fn facts_of(host: &HostFacts) -> Vec<(String, String)> {
    let cpu = &host.cpu;
    let known = |value: &Option<String>| value.clone();
    let mut facts: Vec<(&str, Option<String>)> = vec![
        ("operating system", known(&host.os)),
        ("kernel", Some(host.kernel.clone())),
        ("architecture", Some(host.architecture.clone())),
        ("processor", known(&cpu.model)),
        ("logical processors", (cpu.threads > 0).then(|| cpu.threads.to_string())),
        ("NUMA nodes", (cpu.numa_nodes > 0).then(|| cpu.numa_nodes.to_string())),
        ("frequency governor", known(&cpu.governor)),
        ("memory", host.memory_bytes.map(amount)),
        ("locked-memory limit", host.memlock_bytes.map(amount)),
    ];
    facts.push(("RDMA devices", Some(list(host.rdma.iter().map(|device| device.name.clone()), "none"))));
    let device = |pick: fn(&RdmaDevice) -> Option<String>| common(host.rdma.iter().map(|d| (d.name.as_str(), pick(d))));
    let port = |pick: fn(&RdmaPort) -> Option<String>| {
        common(host.rdma.iter().flat_map(|d| d.ports.iter().map(move |port| (d.name.as_str(), pick(port)))))
    };
    facts.extend([
        ("RDMA driver", device(|d| d.driver.clone().map(|name| if d.software { name + " (software)" } else { name }))),
        ("firmware", device(|d| d.firmware.clone())),
        ("PCIe link", device(|d| d.pcie.map(|(speed, width)| format!("{speed} GT/s x{width}")))),
        ("link layer", port(|p| p.link_layer.clone())),
        ("port state", port(|p| p.state.clone())),
        ("port rate", port(rate)),
        ("RDMA MTU", port(|p| p.mtu.map(|mtu| mtu.to_string()))),
    ]);
    let facts = facts.into_iter().filter_map(|(fact, value)| Some((fact.to_owned(), value?)));
    facts.chain(host.libraries.clone()).filter(|(_, value)| !value.is_empty()).collect()
}

/// One value if all devices agree, otherwise each device's own.
fn common<'d>(values: impl Iterator<Item = (&'d str, Option<String>)>) -> Option<String> {
    let values: Vec<(&str, String)> = values.filter_map(|(name, value)| Some((name, value?))).collect();
    let first = values.first()?;
    if values.iter().all(|(_, value)| *value == first.1) {
        return Some(first.1.clone());
    }
    Some(list(values.iter().map(|(name, value)| format!("{name}: {value}")), ""))
}

/// What to do, with its id in docs/remedies.md.
pub(crate) fn help(remedy: &Remedy) -> String {
    format!("{remedy} [{}]", remedy.id)
}

fn list(words: impl Iterator<Item = String>, none: &str) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() { none.to_owned() } else { words.join(", ") }
}

fn view(journal: &Journal, name: &str) -> HostView {
    let lost = journal.lost.get(name);
    let blank = HostView {
        name: name.to_owned(),
        place: journal.plan.places.get(name).cloned().unwrap_or_default(),
        lost: lost.map(|failure| of_host(name, failure)).unwrap_or_default(),
        help: lost.and_then(|failure| failure.remedy.as_deref()).map_or_else(String::new, help),
        ..HostView::default()
    };
    let Some(HostUp { facts, clock, wall }) = journal.hosts.get(name) else { return blank };
    HostView {
        system: system_of(facts),
        machine: machine_of(facts),
        serial: facts.parts.machine.serial.clone().unwrap_or_default(),
        devices: devices_of(facts),
        clock: wall.map_or_else(String::new, |offset| {
            // Rounded up: an uncertainty is never ± 0.0 ms.
            let tenths = |half: Nanoseconds| half.0.div_ceil(100_000) as f64 / 10.0;
            let half = clock.map_or_else(String::new, |(_, half)| format!(" ± {:.1} ms", tenths(half)));
            // Adding zero avoids negative zero.
            format!("{:+.1} ms{half}", (offset.as_f64() / 1e5).round() / 10.0 + 0.0).replace('-', "−")
        }),
        unreadable: facts.unreadable.iter().map(|(what, why)| format!("{what}: {why}")).collect(),
        ..blank
    }
}

pub(crate) fn system_of(facts: &HostFacts) -> String {
    join([facts.os.clone(), Some(facts.kernel.clone()), Some(facts.architecture.clone())])
}

/// Equal devices share a text: `mlx5_[0-7]: …`.
pub(crate) fn devices_of(facts: &HostFacts) -> Vec<String> {
    let mut kinds: Vec<(String, Vec<String>)> = Vec::new();
    for (name, words) in facts.rdma.iter().flat_map(device).chain(facts.gpus.iter().map(gpu)) {
        match kinds.iter_mut().find(|(known, _)| *known == words) {
            Some((_, names)) => names.push(name),
            None => kinds.push((words, vec![name])),
        }
    }
    let text = |(words, names): (String, Vec<String>)| {
        format!("{}: {words}", hostlist::listed(names.iter().map(String::as_str)))
    };
    kinds.into_iter().map(text).collect()
}

pub(crate) fn machine_of(facts: &HostFacts) -> String {
    let cpu = &facts.cpu;
    join([
        cpu.model.clone(),
        (cpu.threads > 0).then(|| format!("{} logical processors", cpu.threads)),
        facts.memory_bytes.map(amount),
    ])
}

/// Name and text of each port: `mlx5_core, firmware 28.41.1000, PCIe 16 GT/s x16, Ethernet, 200 Gb/s, MTU 4096, ACTIVE`.
fn device(device: &RdmaDevice) -> Vec<(String, String)> {
    let kind = if device.software { " (software)" } else { "" };
    let shared = [
        device.driver.as_ref().map(|driver| format!("{driver}{kind}")),
        device.firmware.as_ref().map(|firmware| format!("firmware {firmware}")),
        device.pcie.map(|(speed, width)| format!("PCIe {speed} GT/s x{width}")),
    ];
    if device.ports.is_empty() {
        return vec![(device.name.clone(), join(shared))];
    }
    let port = |port: &RdmaPort| {
        let several = device.ports.len() > 1;
        let name = if several { format!("{}:{}", device.name, port.number) } else { device.name.clone() };
        let words = shared.clone().into_iter().chain([
            port.link_layer.clone(),
            rate(port),
            port.mtu.map(|mtu| format!("MTU {mtu}")),
            port.state.clone(),
        ]);
        (name, join(words))
    };
    device.ports.iter().map(port).collect()
}

fn rate(port: &RdmaPort) -> Option<String> {
    let other = port.verbs_rate_gbps.filter(|said| port.rate_gbps != Some(*said));
    match (port.rate_gbps, port.rate_source.zip(other)) {
        (Some(rate), Some((source, said))) => Some(format!("{rate} Gb/s ({}; it reports {said})", source.why())),
        (rate, _) => rate.map(|rate| format!("{rate} Gb/s")),
    }
}

/// `NVIDIA H200, driver 580.95.05, CUDA 13.0, PCIe gen 5 x16`.
fn gpu(gpu: &Gpu) -> (String, String) {
    let words = join([
        gpu.name.clone(),
        gpu.driver.as_ref().map(|driver| format!("driver {driver}")),
        gpu.cuda.as_ref().map(|cuda| format!("CUDA {cuda}")),
        gpu.pcie.map(|(generation, width)| format!("PCIe gen {generation} x{width}")),
    ]);
    (format!("GPU {}", gpu.index), words)
}

fn join(words: impl IntoIterator<Item = Option<String>>) -> String {
    words.into_iter().flatten().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn finding(severity: &str) -> FindingView {
        let finding = serde_json::json!({
            "check": "gpu-count", "severity": severity, "waived": false, "hosts": ["a"], "devices": [], "what": "no GPU",
            "meaning": "", "remedy": { "id": "measure-again" }, "source": "",
        });
        FindingView { finding: serde_json::from_value(finding).unwrap(), explains: Vec::new() }
    }

    #[test]
    fn a_demand_that_failed_is_not_told_as_if_nothing_was_found() {
        let warned = || finding("warning");
        let text = unexplained(&[warned(), warned()], true);
        assert!(!text.is_empty() && !text.contains("fail"), "{text}");
        assert_eq!(unexplained(&[warned()], false), "");
        for findings in [vec![finding("failure"), warned()], vec![finding("failure")]] {
            let text = unexplained(&findings, true);
            assert!(
                text.starts_with("1 finding") && text.contains("fails") && text.contains("other results"),
                "{text}"
            );
        }
    }
}
