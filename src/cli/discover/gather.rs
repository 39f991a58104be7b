//! Asks the agents, and keeps what can be read.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use railgauge_model::{
    plan::{Plan, count::count},
    topology::{
        Unread,
        attach::guid,
        ibnetdiscover, lldp, nvlink,
        told::{Device, Told},
    },
};
use railgauge_wire::{Failure, GpuFabric, HostFacts, Kind, RdmaPort, Stage, remedy, tool::Tool};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::{
    cluster::Agent,
    run::{hosts::Hosts, tools},
};

/// Key of the NVLink domains.
const NVLINK: &str = "nvlink";
/// Most hosts that are asked for the InfiniBand subnet: all of it is known to each of them.
const ASKED_FOR_SUBNET: usize = 16;

/// What the hosts reported.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// What was read, in the order of the report.
    pub read: Vec<Source>,
    /// What was not read, and why.
    pub not_read: Vec<NotRead>,
    /// What the sources have that is of no use.
    pub remarks: Vec<String>,
}

/// A source that was read, and the file it becomes.
#[derive(Debug, Serialize)]
pub(super) struct Source {
    /// Key of `[topology]`.
    pub key: &'static str,
    /// The host that reported it, or the first of several.
    pub host: String,
    /// Where it goes, below the folder.
    pub file: PathBuf,
    /// What it has, in words.
    pub has: String,
    /// Its text.
    #[serde(skip)]
    pub text: String,
}

/// Something that was not read.
#[derive(Debug, Serialize)]
pub(super) struct NotRead {
    /// Key of `[topology]`.
    pub key: &'static str,
    /// Why; it names the host, unless it is about all.
    pub why: Failure,
    /// Whether the topology lacks something without it. LLDP reports nothing about a host with InfiniBand only, and InfiniBand nothing of
    /// a cluster without it.
    pub wanted: bool,
}

/// Asks every host for its neighbours, and one of them for the InfiniBand subnet.
pub(super) async fn gather(plan: &Plan, met: &Hosts) -> Gathered {
    let mut gathered = Gathered::default();
    for failure in plan.hosts.iter().filter_map(|host| met.lost.get(&host.name)) {
        gathered.not_read.push(NotRead { key: "lldp", why: failure.clone(), wanted: true });
    }
    neighbours(plan, met, &mut gathered).await;
    subnet(plan, met, &mut gathered).await;
    gathered.domains(&met.facts);
    gathered
}

async fn neighbours(plan: &Plan, met: &Hosts, gathered: &mut Gathered) {
    let mut asking = JoinSet::new();
    for (host, agent) in &met.agents {
        let (host, agent) = (host.clone(), agent.clone());
        asking.spawn(async move { (host, tools::output(&agent, Tool::Neighbours).await) });
    }
    let mut told: BTreeMap<String, Result<Vec<u8>, Failure>> = BTreeMap::new();
    while let Some(one) = asking.join_next().await {
        if let Ok((host, written)) = one {
            told.insert(host, written);
        }
    }
    for host in plan.hosts.iter().map(|host| &host.name) {
        let Some(written) = told.remove(host) else { continue };
        let wanted = met.facts.get(host).is_none_or(has_ethernet);
        let file = PathBuf::from("lldp").join(format!("{host}.json"));
        let source = written.and_then(|bytes| source("lldp", host, file, bytes, |text| lldp::read(text, host)));
        gathered.take("lldp", host, wanted, source);
    }
}

async fn subnet(plan: &Plan, met: &Hosts, gathered: &mut Gathered) {
    let on_subnet = |host: &&String| met.facts.get(*host).is_some_and(|facts| has_layer(facts, "InfiniBand"));
    let hosts: Vec<&String> = plan.hosts.iter().map(|host| &host.name).filter(on_subnet).collect();
    if hosts.is_empty() {
        let why = Failure::new(Stage::Facts, Kind::Unsupported, "no host has an InfiniBand port");
        gathered.not_read.push(NotRead { key: "ibnetdiscover", why, wanted: false });
        return;
    }
    let fabric = first(&hosts, met, ("ibnetdiscover", Tool::Fabric, "fabric.txt"), gathered).await;
    let Some((reader, told)) = fabric else { return };
    // The numbers of another subnet would be taken for those of this one.
    first(&[reader], met, ("lfts", Tool::Tables, "lfts.txt"), gathered).await;
    gathered.compare(&plan.hosts.iter().map(|host| &*host.name).collect::<Vec<_>>(), &met.facts, reader, &told);
}

/// Takes the answer of the first host that can: the host, and its answer. If none can, all are listed.
async fn first<'h>(
    hosts: &[&'h String],
    met: &Hosts,
    (key, tool, file): (&'static str, Tool, &str),
    gathered: &mut Gathered,
) -> Option<(&'h String, Told)> {
    let mut failed = Vec::new();
    for &host in hosts.iter().take(ASKED_FOR_SUBNET) {
        let Some(agent) = met.agents.get(host) else { continue };
        match subnet_of(agent, key, tool, file).await {
            Ok((source, told)) => {
                gathered.take(key, host, true, Ok((source, told.clone())));
                return Some((host, told));
            }
            Err(why) => failed.push((host, why)),
        }
    }
    for (host, why) in failed {
        gathered.take(key, host, true, Err(why));
    }
    None
}

async fn subnet_of(agent: &Agent, key: &'static str, tool: Tool, file: &str) -> Result<(Source, Told), Failure> {
    let reader = if tool == Tool::Fabric { ibnetdiscover::read } else { ibnetdiscover::read_routes };
    source(key, agent.host(), file.into(), tools::output(agent, tool).await?, reader)
}

/// What a program wrote, if it can be read as a source: a plan that names anything else would be refused.
fn source(
    key: &'static str,
    host: &str,
    file: PathBuf,
    bytes: Vec<u8>,
    reader: impl Fn(&str) -> Result<Told, Unread>,
) -> Result<(Source, Told), Failure> {
    let unread = |why: String| {
        let cause = format!("its output cannot be read: {why}");
        Failure::new(Stage::Facts, Kind::Internal, cause).at(host).remedy(remedy::RUN_TOOL_BY_HAND)
    };
    let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let told = reader(&text).map_err(|why| unread(why.to_string()))?;
    let has = match key {
        "lfts" => format!("forwarding tables of {}", switches(&told)),
        _ => format!("{}, {}", count(told.cables.len(), "cable"), switches(&told)),
    };
    Ok((Source { key, host: host.to_owned(), file, has, text }, told))
}

fn switches(told: &Told) -> String {
    match told.switches.len() {
        1 => "1 switch".to_owned(),
        more => format!("{more} switches"),
    }
}

impl Gathered {
    /// Takes the NVLink domains that the GPUs of the hosts are in: agents have asked NVML.
    fn domains(&mut self, facts: &BTreeMap<String, HostFacts>) {
        let gpus = || facts.iter().flat_map(|(host, facts)| facts.gpus.iter().map(move |gpu| (host, gpu)));
        let mut document = nvlink::Document::default();
        for (host, gpu) in gpus() {
            if let Some(domain) = gpu.fabric.as_ref().and_then(GpuFabric::domain) {
                document.domains.entry(domain).or_default().insert(host.clone());
            }
        }
        if document.domains.is_empty() {
            let cause = match gpus().next() {
                Some(_) => "no GPU says that its NVLinks reach other hosts",
                None => "no host has an NVIDIA GPU",
            };
            let why = Failure::new(Stage::Facts, Kind::Unsupported, cause);
            self.not_read.push(NotRead { key: NVLINK, why, wanted: false });
            return;
        }
        let hosts: BTreeSet<&String> = document.domains.values().flatten().collect();
        let has = format!("{} of {}", count(document.domains.len(), "NVLink domain"), count(hosts.len(), "host"));
        // Names and lists only: it cannot fail.
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        let host = hosts.first().map(|host| (*host).clone()).unwrap_or_default();
        self.read.push(Source { key: NVLINK, host, file: "nvlink.json".into(), has, text });
    }

    /// Lists the InfiniBand ports that are not in the subnet that `reader` reported: there are others.
    fn compare(&mut self, hosts: &[&str], facts: &BTreeMap<String, HostFacts>, reader: &str, told: &Told) {
        let plugs = told.cables.iter().flat_map(|cable| [&cable.a, &cable.b]);
        let read: BTreeSet<&str> = plugs
            .filter_map(|plug| match &plug.device {
                Device::Nic(nic) => nic.guid.as_deref(),
                Device::Switch(_) => None,
            })
            .collect();
        for &host in hosts {
            let Some(facts) = facts.get(host) else { continue };
            let (other, unknown) = elsewhere(facts, &read);
            if !other.is_empty() {
                let cause = format!("another subnet: {reader} does not report {}", other.join(", "));
                let why = Failure::new(Stage::Facts, Kind::Unsupported, cause).at(host).remedy(remedy::READ_SUBNETS);
                self.not_read.push(NotRead { key: "ibnetdiscover", why, wanted: true });
            }
            if !unknown.is_empty() {
                let names = unknown.join(", ");
                self.remarks
                    .push(format!("{host}: whether the subnet that was read has {names} is not known: no GUID"));
            }
        }
    }

    fn take(&mut self, key: &'static str, host: &str, wanted: bool, told: Result<(Source, Told), Failure>) {
        match told {
            Ok((source, told)) => {
                self.remarks.extend(told.remarks.into_iter().map(|remark| format!("{host}: {remark}")));
                // A file without a switch can be named in a plan, and tells it nothing.
                if wanted && told.switches.is_empty() {
                    let cause = "no switch is heard or found";
                    let why =
                        Failure::new(Stage::Facts, Kind::Configuration, cause).at(host).remedy(remedy::SWITCHES_TELL);
                    self.not_read.push(NotRead { key, why, wanted });
                }
                self.read.push(source);
            }
            Err(why) => self.not_read.push(NotRead { key, why: why.at(host), wanted }),
        }
    }
}

/// Ports of a host that may be in a subnet and are not in the one that was read, and those without a known GUID.
fn elsewhere(facts: &HostFacts, read: &BTreeSet<&str>) -> (Vec<String>, Vec<String>) {
    let (mut other, mut unknown) = (Vec::new(), Vec::new());
    for device in &facts.rdma {
        // A port without a cable is in no subnet.
        let is_on = |port: &&RdmaPort| {
            port.link_layer.as_deref() == Some("InfiniBand") && port.state.as_deref() != Some("DOWN")
        };
        for port in device.ports.iter().filter(is_on) {
            let name = match device.ports.len() {
                0 | 1 => device.name.clone(),
                _ => format!("{}:{}", device.name, port.number),
            };
            // The GUID of a node is that of its first port as a rule. sysfs has colons in it.
            let of_node = || device.guid.as_ref().filter(|_| port.number == 1).map(|guid| guid.replace(':', ""));
            match guid(port).or_else(of_node) {
                None => unknown.push(name),
                Some(guid) if !read.contains(guid.as_str()) => other.push(name),
                Some(_) => {}
            }
        }
    }
    (other, unknown)
}

/// Whether LLDP may report something of a host: its RDMA ports are Ethernet, or it has none.
fn has_ethernet(facts: &HostFacts) -> bool {
    facts.rdma.is_empty() || has_layer(facts, "Ethernet")
}

fn has_layer(facts: &HostFacts, layer: &str) -> bool {
    facts.rdma.iter().flat_map(|device| &device.ports).any(|port| port.link_layer.as_deref() == Some(layer))
}

#[cfg(test)]
mod tests {
    use railgauge_model::topology::told::{Cable, Nic, Plug};
    use railgauge_wire::{Gid, RdmaDevice};

    use super::*;

    #[test]
    fn hosts_whose_gpus_share_a_clique_are_one_domain() {
        use railgauge_wire::{Gpu, GpuFabric, Registration};
        let gpu = |cluster: Option<&str>, clique| Gpu {
            fabric: Some(GpuFabric {
                state: Registration::Completed,
                cluster: cluster.map(str::to_owned),
                clique,
                ..GpuFabric::default()
            }),
            ..Gpu::default()
        };
        let host = |name: &str, gpus| (name.to_owned(), HostFacts { gpus, ..HostFacts::default() });
        let facts = BTreeMap::from([
            host("a", vec![gpu(Some("u"), 1), gpu(Some("u"), 1)]),
            host("b", vec![gpu(Some("u"), 1), gpu(Some("u"), 2)]),
            host("c", vec![gpu(None, 0), Gpu::default()]),
        ]);
        let mut gathered = Gathered::default();
        gathered.domains(&facts);
        let told = nvlink::read(&gathered.read[0].text).unwrap();
        let of = |name: &str| told.domains[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!((told.domains.len(), of("u.1"), of("u.2")), (2, vec!["a", "b"], vec!["b"]));
        // Nothing is written where NVLinks end at the host, and that is no trouble.
        let mut alone = Gathered::default();
        alone.domains(&BTreeMap::from([facts.into_iter().next_back().unwrap()]));
        assert!(alone.read.is_empty() && alone.not_read.len() == 1 && !alone.not_read[0].wanted);
    }

    fn device(name: &str, guid: Option<u64>, state: &str) -> RdmaDevice {
        let gid = |guid: u64| Gid {
            index: 0,
            gid: std::net::Ipv6Addr::from(0xfe80_u128 << 112 | u128::from(guid)).to_string(),
            ..Gid::default()
        };
        let port = RdmaPort {
            number: 1,
            state: Some(state.into()),
            link_layer: Some("InfiniBand".into()),
            gids: guid.map(gid).into_iter().collect(),
            ..RdmaPort::default()
        };
        RdmaDevice { name: name.into(), ports: vec![port], ..RdmaDevice::default() }
    }

    #[test]
    fn ports_of_another_subnet_are_told_by_host_and_device() {
        let plug = |device| Plug { device, port: None };
        let nic = Device::Nic(Nic { guid: Some("0000000000000a01".into()), ..Nic::default() });
        let cable =
            Cable { a: plug(nic), b: plug(Device::Switch("s".into())), rate_gbps: None, width: None, speed: None };
        let told = Told { cables: vec![cable], ..Told::default() };
        let host = |rdma| HostFacts { rdma, ..HostFacts::default() };
        let by_node = RdmaDevice { guid: Some("0000:0000:0000:0a01".into()), ..device("node", None, "ACTIVE") };
        let facts = BTreeMap::from([
            ("in".to_owned(), host(vec![device("mlx5_0", Some(0xa01), "ACTIVE"), by_node])),
            (
                "out".to_owned(),
                host(vec![device("mlx5_0", Some(0xa01), "ACTIVE"), device("mlx5_1", Some(0xb01), "ACTIVE")]),
            ),
            ("down".to_owned(), host(vec![device("mlx5_0", Some(0xc01), "DOWN")])),
            ("unknown".to_owned(), host(vec![device("mlx5_0", None, "ACTIVE")])),
        ]);
        let mut gathered = Gathered::default();
        gathered.compare(&["in", "out", "down", "unknown", "lost"], &facts, "in", &told);
        let told: Vec<(Option<&str>, bool)> =
            gathered.not_read.iter().map(|one| (one.why.host.as_deref(), one.wanted)).collect();
        assert_eq!(told, [(Some("out"), true)]);
        let cause = &gathered.not_read[0].why.cause;
        assert!(cause.contains("another subnet") && cause.contains("mlx5_1") && !cause.contains("mlx5_0"), "{cause}");
        assert!(gathered.remarks.len() == 1 && gathered.remarks[0].starts_with("unknown: "), "{:?}", gathered.remarks);
    }
}
