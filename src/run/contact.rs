//! What a kit (`docs/dev/bundle.md`) has of the hosts beside a run: the files that facts are made of, counters around a known number of
//! bytes, versions, and perftest's figures where it is installed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use railgauge_model::{
    plan::{
        Plan,
        model::{Host, Launch},
    },
    schedule::{Flow, Port},
};
use railgauge_wire::{
    facts::{Gid, HostFacts, RdmaPort, port_name},
    failure::Failure,
    raw::RawScope,
    terms::Transport,
};
use serde::Serialize;
use tokio::sync::Semaphore;

use super::{
    hosts::{self, Hosts},
    measure::known::{self, KnownBytes},
    rails,
    raw::{RawTree, raw},
    spine::Spine,
};
use crate::cluster::{AgentBinary, Said, run_once};

/// How long a host may take to read its files.
const RAW_LIMIT: Duration = Duration::from_secs(60);
/// Hosts whose files are read.
const HOSTS: usize = 32;
/// How long the look for versions may take on a host.
const VERSIONS_LIMIT: Duration = Duration::from_secs(30);
/// How many seconds one run of perftest may take on a host; it is ended there then. NICs need five; a busy virtual host took more than twenty.
const PERFTEST_LIMIT: u64 = 60;

/// Versions of what railgauge works on. It reads, and asks package databases; nothing else.
const VERSIONS: &str = concat!(
    "echo \"@railgauge kernel $(uname -srvm)\"; ",
    "t=; command -v timeout > /dev/null 2>&1 && t=\"timeout -k 1 8\"; ",
    "if command -v dpkg-query > /dev/null 2>&1; then ",
    "$t dpkg-query -W rdma-core ibverbs-providers libibverbs1 librdmacm1 perftest libnccl2 mlnx-ofed-kernel-dkms ",
    "doca-ofed nvidia-fabricmanager 2> /dev/null | while read -r a b; do echo \"@railgauge package $a $b\"; done; fi; ",
    "if command -v rpm > /dev/null 2>&1; then ",
    "$t rpm -q rdma-core libibverbs librdmacm perftest libnccl mlnx-ofa_kernel doca-ofed 2> /dev/null | ",
    "while read -r a b; do [ -n \"$b\" ] || echo \"@railgauge package $a\"; done; fi; ",
    "if command -v ofed_info > /dev/null 2>&1; then echo \"@railgauge ofed $($t ofed_info -s)\"; fi; ",
    "for p in ib_write_bw ib_write_lat; do if command -v $p > /dev/null 2>&1; ",
    "then echo \"@railgauge tool $p $($t $p --version 2>&1 | head -n 1)\"; fi; done; :"
);

/// A program that is ended on its host after so many seconds, whatever becomes of the way to it. Arguments: seconds, program
/// and its arguments.
const LIMITED: &str = "l=$1; shift; exec timeout -k 1 \"$l\" \"$@\"";

/// What was learned of the hosts.
#[derive(Default)]
pub(crate) struct Contact {
    /// What each host that answered is.
    pub facts: BTreeMap<String, HostFacts>,
    /// Why a host cannot be used.
    pub lost: BTreeMap<String, Failure>,
    /// Files of each host, or why there are none.
    pub trees: BTreeMap<String, Result<RawTree, Failure>>,
    /// Versions of each host: `kernel …`, `package …`, `tool …`; or why there are none.
    pub versions: BTreeMap<String, Result<Vec<String>, Failure>>,
    /// Counters around a known number of bytes, or why they are missing.
    pub known: Option<Result<KnownBytes, Failure>>,
    /// Perftest's runs beside it.
    pub perftest: Vec<Perftest>,
    /// What was left out, and why.
    pub left_out: Vec<(String, String)>,
}

impl Contact {
    /// Whether all that a kit promises of the hosts was learned.
    pub(crate) fn is_whole(&self) -> bool {
        let has_versions = |versions: &Result<Vec<String>, Failure>| versions.as_ref().is_ok_and(|all| !all.is_empty());
        self.lost.is_empty()
            && self.facts.len() > 1
            && self.trees.len() == self.facts.len().min(HOSTS)
            && self.trees.values().all(Result::is_ok)
            && self.versions.len() == self.trees.len()
            && self.versions.values().all(has_versions)
            && matches!(self.known, Some(Ok(_)))
            && self.perftest.iter().all(|run| run.failed.is_none())
    }

    fn leave_out(&mut self, what: &str, why: &str) {
        self.left_out.push((what.to_owned(), why.to_owned()));
    }
}

/// One run of a program of perftest between two hosts.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Perftest {
    /// Words of the server's command.
    pub server: Vec<String>,
    /// Words of the client's command.
    pub client: Vec<String>,
    /// Output of both, or why there is none.
    pub output: BTreeMap<String, Vec<String>>,
    /// How it failed, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Brings the hosts up, learns all of it, and says goodbye. `moved` is a test of one operation with a fixed number of messages
/// for TCP, and one for verbs; the one that the first two hosts can do is moved.
pub(crate) async fn contact(
    plan: &Plan,
    moved: &[railgauge_model::plan::model::Test],
    run_id: &str,
    binary: AgentBinary,
    spine: &Spine,
) -> Contact {
    let mut hosts = hosts::bring_up(plan, run_id, binary, spine).await;
    let mut contact = Contact { facts: hosts.facts.clone(), lost: hosts.lost.clone(), ..Contact::default() };
    let up: Vec<&Host> = plan.hosts.iter().filter(|host| hosts.agents.contains_key(&host.name)).collect();
    if up.len() > HOSTS {
        contact.left_out.push((
            format!("files and versions of {} hosts", up.len() - HOSTS),
            format!("they are read of the first {HOSTS}"),
        ));
    }
    let mut reading = tokio::task::JoinSet::new();
    // Each look for versions is one more connection.
    let turns = Arc::new(Semaphore::new(plan.launch.in_flight.max(1)));
    for host in up.iter().take(HOSTS) {
        let (agent, launch, host) = (hosts.agents[&host.name].clone(), plan.launch.clone(), (*host).clone());
        let turns = Arc::clone(&turns);
        reading.spawn(async move {
            // The semaphore is never closed.
            let _turn = turns.acquire().await;
            let tree = raw(&agent, RawScope::Facts, RAW_LIMIT).await;
            let said = run_once(&launch, &host, VERSIONS, &[], VERSIONS_LIMIT).await;
            (host.name, tree, said)
        });
    }
    while let Some(Ok((name, tree, said))) = reading.join_next().await {
        let versions = said.map(|said| {
            said.stdout.iter().filter_map(|line| line.strip_prefix("@railgauge ")).map(str::to_owned).collect()
        });
        contact.versions.insert(name.clone(), versions);
        contact.trees.insert(name, tree);
    }
    if let [from, to, ..] = up[..] {
        pair(plan, moved, (from, to), &hosts, &mut contact).await;
    } else {
        contact.leave_out("counters around known bytes, and perftest", "fewer than two hosts answered");
    }
    hosts.close().await;
    contact
}

/// What two hosts do together.
async fn pair(
    plan: &Plan,
    moved: &[railgauge_model::plan::model::Test],
    (from, to): (&Host, &Host),
    hosts: &Hosts,
    contact: &mut Contact,
) {
    let device = |host: &Host| rails::devices(host, hosts.facts.get(&host.name), Transport::Verbs).first().cloned();
    let devices = device(from).zip(device(to));
    let transport = if devices.is_some() { Transport::Verbs } else { Transport::Tcp };
    let Some(test) = moved.iter().find(|test| test.transport == transport) else { return };
    let flow = Flow::pair(Port::new(from.name.as_str(), 0), Port::new(to.name.as_str(), 0));
    let end = |host: &Host| Some((hosts.agents.get(&host.name)?, hosts.facts.get(&host.name)?));
    let Some((near, far)) = end(from).zip(end(to)) else { return };
    contact.known = Some(known::move_known((plan, test), &flow, near, far).await);
    let Some((from_device, to_device)) = devices else {
        contact.leave_out("perftest", "the first two hosts have no active RDMA port");
        return;
    };
    let installed = |host: &Host, program: &str| {
        let of_host = contact.versions.get(&host.name).into_iter().flatten().flatten();
        of_host.filter_map(|line| line.strip_prefix("tool ")).any(|tool| tool.split(' ').next() == Some(program))
    };
    // Agents are not trusted with words of a command.
    let settings = contact.known.as_ref().and_then(|known| Some(&known.as_ref().ok()?.link.settings));
    let gid_index = settings.and_then(|settings| settings.get("gid_index")?.parse::<u32>().ok());
    let far_index = port_of(far.1, &to_device)
        .zip(gid_index)
        .and_then(|(port, index)| far_gid(port_of(near.1, &from_device)?, index, port));
    if ![&from_device, &to_device].into_iter().all(|device| is_argument(device)) {
        contact.leave_out("perftest", "the name of a device is not passed to a command");
        return;
    }
    let programs = [("ib_write_bw", ["-s", "65536", "-D", "5"]), ("ib_write_lat", ["-s", "8", "-n", "1000"])];
    let mut found = Vec::new();
    for (program, arguments) in programs {
        if !installed(from, program) || !installed(to, program) {
            let why = format!("it is not installed on both of {} and {}", from.name, to.name);
            contact.left_out.push((program.to_owned(), why));
            continue;
        }
        let ends = Ends { launch: &plan.launch, server: to, client: from };
        let words = |device: &str, gid_index| words(program, device, gid_index, &arguments);
        let (server, client) = (words(&to_device, far_index), words(&from_device, gid_index));
        let run = beside(ends, server, client, &address(to, far.1, &to_device)).await;
        if let Some(why) = &run.failed {
            contact.left_out.push((program.to_owned(), format!("it failed: {why}")));
        }
        found.push(run);
    }
    contact.perftest = found;
}

/// Whether the name of a device can be an argument: as kernels name devices, and no option.
fn is_argument(device: &str) -> bool {
    let fit = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    !device.is_empty() && !device.starts_with('-') && device.chars().all(fit)
}

/// Words of a command of perftest for one end. `-F` lets it run whatever the frequency governor is.
fn words(program: &str, device: &str, gid_index: Option<u32>, arguments: &[&str]) -> Vec<String> {
    let (name, port) = device.rsplit_once(':').unwrap_or((device, "1"));
    let mut words = vec![program, "-d", name, "-i", port, "-F", "-p", "18531"];
    words.extend(arguments);
    let gid_index = gid_index.map(|index| index.to_string());
    words.extend(gid_index.iter().flat_map(|index| ["-x", index]));
    words.into_iter().map(str::to_owned).collect()
}

/// The port of a device as plans name it.
fn port_of<'f>(facts: &'f HostFacts, device: &str) -> Option<&'f RdmaPort> {
    let (name, number) = port_name(device);
    let device = facts.rdma.iter().find(|device| device.name == name)?;
    device.ports.iter().find(|port| port.number == number.unwrap_or(1))
}

/// Index of the GID of the far port that belongs to one of the near port: of the same kind and family. Tables of two devices
/// have their entries in different orders.
fn far_gid(near: &RdmaPort, index: u32, far: &RdmaPort) -> Option<u32> {
    let of = |gid: &Gid| (gid.kind.clone(), gid.ipv4().is_some(), gid.gid.starts_with("fe80"));
    let wanted = of(near.gids.iter().find(|gid| gid.index == index)?);
    far.gids.iter().find(|gid| of(gid) == wanted).map(|gid| gid.index)
}

/// Where a host's server of perftest is reached: an IPv4 address of its RDMA port or of the interface below it, or what the
/// plan says.
fn address(host: &Host, facts: &HostFacts, device: &str) -> String {
    let port = port_of(facts, device);
    let of_port = port.into_iter().flat_map(|port| &port.gids).find_map(Gid::ipv4);
    let below = port.and_then(|port| facts.interface(port.netdev.as_deref()?));
    let ipv4 = |address: &String| address.split('/').next()?.parse::<std::net::Ipv4Addr>().ok();
    let found = of_port.or_else(|| below?.addresses.iter().find_map(ipv4));
    found.map_or_else(|| host.address.clone(), |ip| ip.to_string())
}

/// The two hosts of a run of perftest.
struct Ends<'a> {
    launch: &'a Launch,
    server: &'a Host,
    client: &'a Host,
}

/// Runs a program of perftest between two hosts. Both are ended there after a while.
async fn beside(ends: Ends<'_>, server: Vec<String>, mut client: Vec<String>, address: &str) -> Perftest {
    client.push(address.to_owned());
    let limit = PERFTEST_LIMIT.to_string();
    let wait = Duration::from_secs(PERFTEST_LIMIT + 10);
    let run = |host: &Host, words: &[String]| {
        let (launch, host, limit) = (ends.launch.clone(), host.clone(), limit.clone());
        let words = words.to_vec();
        async move {
            let arguments: Vec<&str> = [limit.as_str()].into_iter().chain(words.iter().map(String::as_str)).collect();
            run_once(&launch, &host, LIMITED, &arguments, wait).await
        }
    };
    let later = async {
        // The server listens by then; perftest's client does not try twice.
        tokio::time::sleep(Duration::from_secs(2)).await;
        run(ends.client, &client).await
    };
    let (served, asked) = tokio::join!(run(ends.server, &server), later);
    let failed = failure([("server", ends.server, &served), ("client", ends.client, &asked)]);
    let output = [("server", served), ("client", asked)].map(|(name, said)| (name.to_owned(), lines(said)));
    Perftest { server, client, output: output.into(), failed }
}

/// How a run of perftest failed, at either end.
fn failure(ends: [(&str, &Host, &Result<Said, Failure>); 2]) -> Option<String> {
    let words = |(end, host, said): (&str, &Host, &Result<Said, Failure>)| match said {
        Ok(said) if said.end.is_empty() => None,
        Ok(said) => Some(format!("{end} on {}: {}", host.name, said.end)),
        Err(failure) => Some(failure.to_string()),
    };
    ends.into_iter().find_map(words)
}

fn lines(said: Result<Said, Failure>) -> Vec<String> {
    match said {
        Ok(said) => {
            let end = (!said.end.is_empty()).then(|| format!("ended: {}", said.end));
            said.stdout.into_iter().chain(said.stderr).chain(end).collect()
        }
        Err(failure) => vec![failure.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use railgauge_model::journal::event::LinkRecord;
    use railgauge_wire::{
        failure::{Kind, Stage},
        terms::{Carrier, GpuPath, LinkLayer},
        unit::Bytes,
    };

    use super::*;

    #[test]
    fn only_names_of_devices_become_arguments() {
        for device in ["mlx5_0", "mlx5_0:2", "rocep1s0.1", "bnxt_re-a"] {
            assert!(is_argument(device), "{device}");
        }
        for device in ["", "-x", "a b", "a;b", "$(a)", "a\nb", "ü", "a/b"] {
            assert!(!is_argument(device), "{device}");
        }
        assert!(words("p", "mlx5_0:2", Some(3), &[]).ends_with(&["-x".to_owned(), "3".to_owned()]));
    }

    #[test]
    fn each_end_of_perftest_has_a_gid_and_an_address_of_its_own_device() {
        let gid = |index, gid: &str, kind: &str| Gid {
            index,
            gid: gid.to_owned(),
            kind: Some(kind.to_owned()),
            netdev: None,
        };
        let (v1, v2) = ("IB/RoCE v1", "RoCE v2");
        let (mapped, local) = ("0000:0000:0000:0000:0000:ffff:0a00:00", "fe80:0000:0000:0000:0000:00ff:fe00:0001");
        let port = |gids| RdmaPort { number: 1, netdev: Some("eth1".into()), gids, ..RdmaPort::default() };
        let near = port(vec![gid(0, local, v1), gid(1, local, v2), gid(3, &format!("{mapped}01"), v2)]);
        let far = port(vec![gid(0, local, v2), gid(2, &format!("{mapped}02"), v1), gid(5, &format!("{mapped}02"), v2)]);
        assert_eq!([1, 3, 0, 9].map(|index| far_gid(&near, index, &far)), [Some(0), Some(5), None, None]);
        let device = |name: &str, port| railgauge_wire::facts::RdmaDevice {
            name: name.into(),
            ports: vec![port],
            ..Default::default()
        };
        let interface = railgauge_wire::facts::Interface {
            name: "eth1".into(),
            addresses: vec!["fe80::1".into(), "10.9.9.9".into()],
            ..Default::default()
        };
        let facts = HostFacts {
            rdma: vec![device("a", near), device("b", far), device("c", port(vec![]))],
            interfaces: vec![interface],
            ..HostFacts::default()
        };
        let host = Host {
            name: "h".into(),
            address: "h.example".into(),
            user: None,
            port: None,
            devices: vec![],
            tcp: vec![],
        };
        let found = ["a", "b", "c", "gone"].map(|device| address(&host, &facts, device));
        assert_eq!(found, ["10.0.0.1", "10.0.0.2", "10.9.9.9", "h.example"]);
    }

    fn known() -> KnownBytes {
        let end = |host: &str| known::CountedEnd {
            host: host.into(),
            device: "lo".into(),
            port: 1,
            before: known::Reading::default(),
            after: known::Reading::default(),
        };
        KnownBytes {
            at: String::new(),
            op: "write",
            message_bytes: Bytes(1),
            messages: 1,
            payload_bytes: (Some(Bytes(1)), Some(Bytes(1))),
            seconds: 1.0,
            link: LinkRecord {
                transport: Carrier::Tcp,
                link_layer: LinkLayer::Ethernet,
                gpu_path: GpuPath::None,
                software: false,
                from_device: "lo".into(),
                to_device: "lo".into(),
                rate_gbps: None,
                mtu: 1500,
                write_order: None,
                settings: BTreeMap::new(),
            },
            from: end("a"),
            to: end("b"),
        }
    }

    #[test]
    fn contact_is_whole_only_with_everything_that_is_promised() {
        let failure = || Failure::new(Stage::Facts, Kind::Internal, "no".to_owned());
        let hosts = ["a", "b"].map(str::to_owned);
        let whole = || Contact {
            facts: hosts.iter().map(|host| (host.clone(), HostFacts::default())).collect(),
            trees: hosts.iter().map(|host| (host.clone(), Ok(RawTree::default()))).collect(),
            versions: hosts.iter().map(|host| (host.clone(), Ok(vec!["kernel".to_owned()]))).collect(),
            known: Some(Ok(known())),
            ..Contact::default()
        };
        assert!(whole().is_whole());
        let without = [
            Contact { lost: [("c".to_owned(), failure())].into(), ..whole() },
            Contact { trees: [("a".to_owned(), Ok(RawTree::default()))].into(), ..whole() },
            Contact { versions: [("a".to_owned(), Err(failure())), ("b".to_owned(), Ok(vec![]))].into(), ..whole() },
            Contact { known: None, ..whole() },
            Contact {
                perftest: vec![Perftest {
                    server: vec![],
                    client: vec![],
                    output: BTreeMap::new(),
                    failed: Some("ended with exit status 1".to_owned()),
                }],
                ..whole()
            },
            Contact { known: Some(Err(failure())), ..whole() },
        ];
        assert!(without.iter().all(|contact| !contact.is_whole()));
        let mut without_tree = whole();
        without_tree.trees.insert("b".to_owned(), Err(failure()));
        assert!(!without_tree.is_whole());
    }
}
