//! Asks the agents, and keeps what can be read.

use std::{collections::BTreeMap, path::PathBuf};

use railgauge_model::{
    plan::{Plan, count::count},
    topology::{Unread, ibnetdiscover, lldp, told::Told},
};
use railgauge_wire::{
    facts::HostFacts,
    failure::{Failure, Kind, Stage},
    remedy,
    tool::Tool,
};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::{
    cluster::Agent,
    run::{hosts::Hosts, tools},
};

/// Most hosts that are asked for the InfiniBand subnet: all of it is known to each of them.
const ASKED_FOR_SUBNET: usize = 16;

/// What the hosts told.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// What was read, in the order in which it is told.
    pub read: Vec<Source>,
    /// What was not read, and why.
    pub not_read: Vec<NotRead>,
    /// What the sources have that is of no use.
    pub remarks: Vec<String>,
}

/// A file that was read.
#[derive(Debug, Serialize)]
pub(super) struct Source {
    /// Key of `[topology]`.
    pub key: &'static str,
    /// The host that told it.
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
    /// Whether the topology lacks something without it. LLDP tells nothing of a host with InfiniBand only, and InfiniBand nothing of
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
    for (key, tool, file) in [("ibnetdiscover", Tool::Fabric, "fabric.txt"), ("lfts", Tool::Tables, "lfts.txt")] {
        let mut failed = Vec::new();
        for host in hosts.iter().take(ASKED_FOR_SUBNET) {
            let Some(agent) = met.agents.get(*host) else { continue };
            match subnet_of(agent, key, tool, file).await {
                Ok(read) => {
                    failed.clear();
                    gathered.take(key, host, true, Ok(read));
                    break;
                }
                Err(why) => failed.push((host, why)),
            }
        }
        for (host, why) in failed {
            gathered.take(key, host, true, Err(why));
        }
    }
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

/// Whether LLDP may tell something of a host: its RDMA ports are Ethernet, or it has none.
fn has_ethernet(facts: &HostFacts) -> bool {
    facts.rdma.is_empty() || has_layer(facts, "Ethernet")
}

fn has_layer(facts: &HostFacts, layer: &str) -> bool {
    facts.rdma.iter().flat_map(|device| &device.ports).any(|port| port.link_layer.as_deref() == Some(layer))
}
