use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use railgauge_model::schedule::devices::devices;
use railgauge_wire::{
    Answer, Ask, Bytes, Endpoint, Failure, GigabitsPerSecond, GpuPath, HostFacts, Kind, LinkId, LinkLayer, LinkSpec,
    Opened, Role, Stage, Transport, remedy,
};

use super::{
    failures::{both_named, host_of, unexpected},
    gpus,
};
use crate::cluster::{Agent, Asked};
use railgauge_model::{
    journal::event::LinkRecord,
    plan::{
        Plan,
        model::{Host, Test},
    },
    schedule::{Flow, Port},
};

/// An open link between two agents. A copy refers to the same link.
#[derive(Clone)]
pub(super) struct Link {
    pub from: Agent,
    pub to: Agent,
    pub id: LinkId,
    pub ports: (u8, u8),
    pub record: LinkRecord,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct IdleKey {
    flow: Flow,
    class: usize,
    qps: u32,
}

pub(super) struct Links {
    /// Tests with equal settings share links: class of each test, by its index in the plan.
    classes: Vec<usize>,
    largest: Vec<Bytes>,
    idle: HashMap<IdleKey, (Link, u64)>,
    clock: u64,
}

/// Idle links kept per host, which keeps buffers and queue pairs for each.
const IDLE_LINKS: usize = 64;
const IDLE_BYTES: Bytes = Bytes::from_mib(512);
/// How long closing may take before it is given up.
pub(super) const CLOSE_LIMIT: Duration = Duration::from_secs(5);

impl Links {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut classes: Vec<usize> = Vec::new();
        let mut first: Vec<&Test> = Vec::new();
        let mut largest: Vec<Bytes> = Vec::new();
        for test in &plan.tests {
            let class = first.iter().position(|other| shares(other, test)).unwrap_or_else(|| {
                first.push(test);
                largest.push(Bytes::ZERO);
                first.len() - 1
            });
            largest[class] = largest[class].max(test.sizes.iter().copied().max().unwrap_or(Bytes(8)));
            classes.push(class);
        }
        Self { classes, largest, idle: HashMap::new(), clock: 0 }
    }

    pub(super) fn take(&mut self, test: usize, flow: &Flow, qps: u32) -> Option<Link> {
        self.idle.remove(&IdleKey { flow: flow.clone(), class: self.classes[test], qps }).map(|(link, _)| link)
    }

    pub(super) fn keep(&mut self, test: usize, flow: &Flow, qps: u32, link: Link) -> Vec<Link> {
        self.clock += 1;
        let key = IdleKey { flow: flow.clone(), class: self.classes[test], qps };
        self.idle.insert(key, (link, self.clock));
        let mut going = Vec::new();
        for host in [&flow.from.host, &flow.to.host] {
            while self.crowded(host) {
                let of_host = self.idle.iter().filter(|(key, _)| touches(key, host));
                let Some(oldest) = of_host.min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone()) else {
                    break;
                };
                going.extend(self.idle.remove(&oldest).map(|(link, _)| link));
            }
        }
        going
    }

    pub(super) fn forget(&mut self, host: &str) -> Vec<Link> {
        let keys: Vec<IdleKey> = self.idle.keys().filter(|key| touches(key, host)).cloned().collect();
        keys.iter().filter_map(|key| self.idle.remove(key)).map(|(link, _)| link).collect()
    }

    pub(super) fn empty(&mut self) -> Vec<Link> {
        self.idle.drain().map(|(_, (link, _))| link).collect()
    }

    pub(super) fn largest(&self, test: usize) -> Bytes {
        self.largest[self.classes[test]]
    }

    fn crowded(&self, host: &str) -> bool {
        let (mut links, mut bytes) = (0, Bytes::ZERO);
        for key in self.idle.keys().filter(|key| touches(key, host)) {
            links += 1;
            bytes = bytes.saturating_add(self.largest[key.class].saturating_mul(u64::from(key.qps)));
        }
        // One link always stays: without it, no two cells of a round could share anything.
        links > 1 && (links > IDLE_LINKS || bytes > IDLE_BYTES)
    }
}

fn touches(key: &IdleKey, host: &str) -> bool {
    &*key.flow.from.host == host || &*key.flow.to.host == host
}

fn shares(a: &Test, b: &Test) -> bool {
    let class = |test: &Test| (test.transport, test.service, test.memory, test.gpu_path);
    let turned = |test: &Test| (test.threads, test.gpu_distance);
    class(a) == class(b) && turned(a) == turned(b) && a.knobs == b.knobs && a.gpus == b.gpus
}

/// A secret for one link or group: 32 bytes of the kernel's randomness, in hexadecimal digits. Fails without: a guessable value must not be
/// used.
pub(super) fn token() -> Result<String, Failure> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        let cause = format!("cannot get random bytes for the secret of a link: {error}");
        Failure::new(Stage::Connect, Kind::Configuration, cause).remedy(remedy::CHECK_RANDOM)
    })?;
    Ok(hex::encode(bytes))
}

pub(super) fn fresh_id() -> LinkId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(super) struct Wanted<'a> {
    pub hosts: &'a [Host],
    pub test: &'a Test,
    pub flow: &'a Flow,
    pub qps: u32,
    pub max_size: Bytes,
    pub id: LinkId,
    pub token: String,
    pub rides_out: bool,
}

pub(super) async fn open(
    wanted: Wanted<'_>,
    from: (&Agent, &HostFacts),
    to: (&Agent, &HostFacts),
) -> Result<Link, Failure> {
    begin(wanted, from, to).await?.finish().await
}

/// Opens both ends, and asks them to join. Later requests on the link follow that, unless they join [by rdma_cm](Joining::by_manager).
///
/// # Errors
/// Either end's failure, with its host's name.
pub(super) async fn begin(
    wanted: Wanted<'_>,
    from: (&Agent, &HostFacts),
    to: (&Agent, &HostFacts),
) -> Result<Joining, Failure> {
    let limit = wanted.test.deadline;
    let from_spec = spec(&wanted, Role::Initiator, &wanted.flow.from, from.1)?;
    let to_spec = spec(&wanted, Role::Responder, &wanted.flow.to, to.1)?;
    let link = wanted.id;
    let ports = (from_spec.port, to_spec.port);
    let opened = tokio::join!(open_end(from.0, link, from_spec, limit), open_end(to.0, link, to_spec, limit));
    let ends = match opened {
        (Ok(from_end), Ok(to_end)) => gpus::as_far(wanted.test, Role::Initiator, from.0.host(), &from_end)
            .and(gpus::as_far(wanted.test, Role::Responder, to.0.host(), &to_end))
            .map(|()| (smaller(from_end.rate_gbps, to_end.rate_gbps), from_end.endpoint, to_end.endpoint)),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    };
    match ends {
        Ok((rate, from_end, to_end)) => Ok(Joining {
            rate,
            by_manager: is_by_manager(&from_end) || is_by_manager(&to_end),
            asked: (from.0.send(Ask::Join { link, peer: to_end }), to.0.send(Ask::Join { link, peer: from_end })),
            from: from.0.clone(),
            to: to.0.clone(),
            id: link,
            ports,
            limit,
        }),
        Err(failure) => {
            tokio::join!(close_end(from.0, link), close_end(to.0, link));
            Err(failure)
        }
    }
}

pub(super) struct Joining {
    asked: (Asked, Asked),
    pub from: Agent,
    pub to: Agent,
    pub id: LinkId,
    ports: (u8, u8),
    limit: Duration,
    pub rate: Option<GigabitsPerSecond>,
    /// Whether rdma_cm joins them. Then nothing may be asked of the link before both have joined: the initiator is connected before the
    /// responder, and siw leaves what it sends in between unread until it sends again (`siw_accept` answers first, and listens then).
    pub by_manager: bool,
}

fn is_by_manager(endpoint: &Endpoint) -> bool {
    match endpoint {
        Endpoint::Verbs(endpoint) => endpoint.cm_port.is_some(),
        Endpoint::Tcp(_) => false,
        Endpoint::Several(ends) => ends.iter().any(is_by_manager),
    }
}

impl Joining {
    /// Waits until both ends have joined. After a failure both are closed.
    pub(super) async fn finish(self) -> Result<Link, Failure> {
        let Self { asked, from, to, id, ports, limit, .. } = self;
        // The first failure ends it: an end whose peer has given up would wait for its whole limit.
        let joined = tokio::try_join!(joined(&from, asked.0, limit), joined(&to, asked.1, limit))
            .map_err(|failure| both_named(failure, from.host(), to.host()))
            .and_then(|ends| agreed(ends, from.host(), to.host()));
        match joined {
            Ok((from_end, to_end)) => Ok(Link { record: record(from_end, &to_end), from, to, id, ports }),
            Err(failure) => {
                tokio::join!(close_end(&from, id), close_end(&to, id));
                Err(failure)
            }
        }
    }
}

/// Both ends, if both report the same transport: one end alone does not determine what carried the bytes.
fn agreed((from, to): (Opened, Opened), from_host: &str, to_host: &str) -> Result<(Opened, Opened), Failure> {
    if from.transport == to.transport {
        return Ok((from, to));
    }
    let cause = format!("it uses {} for joining, the other end uses {}", from.transport, to.transport);
    Err(Failure::new(Stage::Join, Kind::Internal, cause).at(from_host).with(to_host).remedy(remedy::LEAVE_HOST_OUT))
}

/// A link in use. Dropping it closes both ends without waiting, since they would otherwise continue.
pub(super) struct Held {
    ends: Option<(Agent, Agent)>,
    id: LinkId,
}

impl Held {
    pub(super) fn new(from: &Agent, to: &Agent, id: LinkId) -> Self {
        Self { ends: Some((from.clone(), to.clone())), id }
    }

    pub(super) fn keep(mut self) {
        self.ends = None;
    }

    /// Closes it, and waits for both ends: the next try must not meet its traffic.
    pub(super) async fn close(mut self) {
        let Some((from, to)) = &self.ends else { return };
        tokio::join!(close_end(from, self.id), close_end(to, self.id));
        self.ends = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for agent in self.ends.iter().flat_map(|(from, to)| [from, to]) {
            drop(agent.send(Ask::Close { link: self.id }));
        }
    }
}

/// Closes both ends. An end that does not answer is left until its agent ends.
pub(super) async fn close(link: Link) {
    tokio::join!(close_end(&link.from, link.id), close_end(&link.to, link.id));
}

async fn close_end(agent: &Agent, link: LinkId) {
    let _ = agent.ask(Ask::Close { link }, CLOSE_LIMIT).await;
}

async fn open_end(agent: &Agent, link: LinkId, spec: LinkSpec, limit: Duration) -> Result<Opened, Failure> {
    match agent.ask(Ask::Open { link, spec: Box::new(spec) }, limit).await? {
        Answer::Opened(opened) => Ok(*opened),
        other => Err(unexpected(agent.host(), Stage::Open, &other)),
    }
}

async fn joined(agent: &Agent, asked: Asked, limit: Duration) -> Result<Opened, Failure> {
    match asked.within(limit).await? {
        Answer::Joined(opened) => Ok(*opened),
        other => Err(unexpected(agent.host(), Stage::Join, &other)),
    }
}

pub(super) fn spec(wanted: &Wanted<'_>, role: Role, port: &Port, facts: &HostFacts) -> Result<LinkSpec, Failure> {
    let (test, name) = (wanted.test, &port.host);
    let host = host_of(wanted.hosts, name)?;
    let devices = devices(host, Some(facts), test.transport);
    let chosen = devices.get(port.rail as usize);
    let mut device = chosen.cloned();
    let mut address = None;
    let mut number = 1;
    match (test.transport, chosen) {
        (Transport::Verbs, None) => return Err(no_rail(name, port.rail, &devices, facts)),
        (Transport::Tcp, None) if port.rail > 0 => {
            return Err(Failure::new(
                Stage::Open,
                Kind::Configuration,
                format!("no TCP address is given for rail {}", port.rail),
            )
            .at(name));
        }
        (Transport::Verbs, Some(text)) => {
            if let Some((before, after)) = text.rsplit_once(':') {
                number = after.parse().map_err(|_| {
                    Failure::new(Stage::Open, Kind::Configuration, format!("{text} is not a port of a device")).at(name)
                })?;
                device = Some(before.to_owned());
            }
        }
        (Transport::Tcp, Some(text)) if text.parse::<std::net::IpAddr>().is_ok() => address = device.take(),
        (Transport::Tcp | Transport::Nccl | Transport::Cpu | Transport::Gpu | Transport::Nic, _) => {}
    }
    let gpu = gpus::of_end(test, role, port, chosen.map(String::as_str), facts)?;
    Ok(LinkSpec {
        role,
        transport: test.transport,
        service: test.service,
        device,
        port: number,
        address,
        memory: *test.memory.of(role),
        gpu,
        gpu_path: test.gpu_path,
        qps: wanted.qps,
        threads: test.threads,
        max_size: wanted.max_size,
        token: wanted.token.clone(),
        rides_out: wanted.rides_out,
        knobs: test.knobs.clone(),
    })
}

pub(super) fn no_rail(host: &str, rail: u32, devices: &[String], facts: &HostFacts) -> Failure {
    let ports = || facts.rdma.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let idle: Vec<String> = ports()
        .filter_map(|(device, port)| {
            let state = match port.state.as_deref().unwrap_or("in an unknown state") {
                _ if facts.leaves_out(device) => "of a device that cannot be opened",
                _ if port.is_active() => return None,
                state => state,
            };
            Some(format!("{} port {} is {state}", device.name, port.number))
        })
        .collect();
    let down = ports().find(|(device, port)| !facts.leaves_out(device) && port.state.as_deref() == Some("DOWN"));
    let remedy = match down.map(|(_, port)| port.netdev.as_deref()) {
        Some(Some(interface)) => remedy::PORT_UP.with([("interface", interface)]),
        Some(None) => remedy::PORT_UP_INFINIBAND.into(),
        None => remedy::DEVICES_OF_HOST.into(),
    };
    let have = match (devices.is_empty(), idle.is_empty()) {
        (true, true) => "has no RDMA device".to_owned(),
        (true, false) => format!("has no active RDMA port ({})", idle.join(", ")),
        (false, true) => format!("has {} active RDMA ports ({})", devices.len(), devices.join(", ")),
        (false, false) => format!("has only {} active ({}; {})", devices.len(), devices.join(", "), idle.join(", ")),
    };
    Failure::new(Stage::Open, Kind::Configuration, format!("it {have}; rail {rail} does not exist there"))
        .at(host)
        .remedy(remedy)
}

fn smaller(from: Option<GigabitsPerSecond>, to: Option<GigabitsPerSecond>) -> Option<GigabitsPerSecond> {
    match (from, to) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn record(from: Opened, to: &Opened) -> LinkRecord {
    let rate = smaller(from.rate_gbps, to.rate_gbps);
    // A loopback at only one end is still a path that leaves that end: the other's report counts.
    let link_layer = if from.link_layer == LinkLayer::Loopback { to.link_layer } else { from.link_layer };
    let mut settings = from.settings;
    for name in ["gpu", "gpu_name", "gpu_pci", "gpu_distance"] {
        if let Some(there) = to.settings.get(name) {
            settings.insert(format!("{name}_remote"), there.clone());
        }
    }
    if to.gpu_path != from.gpu_path {
        settings.insert("gpu_path_remote".into(), to.gpu_path.to_string());
    }
    LinkRecord {
        transport: from.transport,
        link_layer,
        gpu_path: if from.gpu_path == GpuPath::None { to.gpu_path } else { from.gpu_path },
        software: from.software || to.software,
        from_device: from.device,
        to_device: to.device.clone(),
        rate_gbps: rate,
        mtu: from.mtu.min(to.mtu),
        write_order: from.write_order.zip(to.write_order).map(|(from, to)| from.both(to)),
        settings,
    }
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{DeviceFile, RdmaDevice, RdmaPort};

    use super::*;

    #[test]
    fn a_host_without_a_rail_says_what_is_in_the_way() {
        let port = |state: &str, netdev: Option<&str>| RdmaPort {
            number: 1,
            state: Some(state.into()),
            netdev: netdev.map(str::to_owned),
            ..RdmaPort::default()
        };
        let device = |port, file| RdmaDevice {
            name: "mlx5_0".into(),
            ports: vec![port],
            device_file: file,
            ..RdmaDevice::default()
        };
        for (devices, remedy) in [
            (vec![device(port("DOWN", Some("eth2")), None)], "port-up"),
            (vec![device(port("DOWN", None), Some(DeviceFile::Open))], "port-up-infiniband"),
            (vec![device(port("INIT", None), None)], "devices-of-host"),
            (vec![], "devices-of-host"),
        ] {
            let facts = HostFacts { rdma: devices, ..HostFacts::default() };
            assert_eq!(no_rail("a", 0, &[], &facts).remedy.unwrap().id, remedy);
        }
    }
}
