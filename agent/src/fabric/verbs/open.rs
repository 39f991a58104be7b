//! Opens one end: device, memory, queues, queue pairs, and the data for the peer.
//!
//! With rdma_cm, the responder listens on its RDMA interface, and the initiator asks for one connection per queue pair and one for the
//! control queue pair. Each request has the link's token, so that no stranger can join.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    link::{Completion, Endpoint, Footprint, Joining, LinkSpec, Opened, Role, VerbsEndpoint, WriteLatency, WriteOrder},
    remedy,
    terms::{Carrier, GpuPath, LinkLayer, Memory, Service},
    unit,
};

use super::{
    end::{Connection, Progress, Resources, VerbsEnd},
    mailbox::{self, Mailbox},
    memory::{self, Bytes, Layout},
};
use crate::{
    bench::control::Control,
    endpoint::verbs::{
        choice::{Choice, choose, described, psns, settle},
        settings::SPARE,
    },
    facts::{machine, rdma},
    system::{
        interfaces::{self, Address},
        tree::Tree,
    },
    verbs::{
        cm::{Events, Identifier, Terms},
        completion::{CompletionQueue, Poller},
        device::Domain,
        gid::Gid,
        queue_pair::{Capacity, Change, QueuePair},
        region,
    },
};

/// Queue key of datagrams: any value that both ends know.
const QKEY: u32 = 0x5247_0001;

impl VerbsEnd {
    /// On the calling thread, which is pinned to the device's node.
    pub(crate) fn open(spec: &LinkSpec) -> Result<Self, Failure> {
        let (mut choice, limits, mut settings) = choose(spec)?;
        if spec.memory != Memory::Host && spec.gpu_path != Some(GpuPath::Staged) {
            // The CPU copies inline payload, and cannot reach this memory.
            (settings.inline_bandwidth, settings.inline_latency) = (0, 0);
        }
        if choice.link_layer == LinkLayer::Iwarp && spec.service != Service::Rc {
            let cause =
                format!("{}: iWARP has reliable connections only, not the service {}", choice.name(), spec.service);
            return Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::RC_SERVICE));
        }
        let exchange = settings.joining == Joining::Exchange;
        // eRDMA in compatibility mode has queue pairs that are joined by exchange (kernel: drivers/infiniband/hw/erdma).
        if choice.link_layer == LinkLayer::Iwarp && exchange && !choice.driver.is("erdma") {
            let cause = format!("{}: iWARP joins queue pairs by rdma_cm only", choice.name());
            return Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::LEAVE_JOINING_OUT));
        }
        let manager = match settings.joining {
            Joining::RdmaCm if spec.service != Service::Rc => {
                let cause = format!("service {} is not joined by rdma_cm", spec.service);
                return Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::RC_OR_EXCHANGE));
            }
            Joining::RdmaCm => Some(Manager::new(&choice, spec.role, spec.qps.max(1), &spec.token)?),
            Joining::Auto | Joining::Exchange => None,
        };
        if let Some(manager) = &manager {
            // A connection must use the device as librdmacm has opened it.
            choice.domain = manager.domain(choice.domain.device().name())?;
        }
        let (device, domain) = (choice.domain.device().clone(), choice.domain.clone());
        let mut notes = settle(&choice, &settings)?;
        let mut note = |name: &str, value: String| notes.insert(name.to_owned(), value);

        let datagrams = spec.service == Service::Ud;
        let cache = match settings.footprint {
            Footprint::Cache => 0,
            Footprint::Dram => machine::last_level_cache(&Tree::host()).map(|size| size.0).ok_or_else(|| {
                let cause = "the size of the last-level cache cannot be read, so nothing says what lies beyond it";
                Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::CACHE_FOOTPRINT)
            })?,
        };
        let layout = Layout::new(spec.qps, spec.max_size.0, settings.footprint, cache, datagrams);
        let Bytes { region, ordered, path, scatters, notes: of_memory } =
            memory::take(spec, (&domain, &choice.driver), &settings, limits.atomics, layout.length())?;
        if let Some(manager) = &manager {
            note("librdmacm", manager.library().to_owned());
        }
        note("buffer_bytes", layout.length().to_string());
        for (name, value) in of_memory {
            note(&name, value);
        }

        let receives = settings.receives.saturating_mul(spec.qps);
        let entries = settings.depth.saturating_add(SPARE).saturating_mul(spec.qps).saturating_add(receives);
        let entries = entries.min(limits.completions);
        let direct = spec.memory != Memory::Host && path != GpuPath::Staged;
        let making = region::making(direct);
        let queue = CompletionQueue::new(&device, entries, settings.completion == Completion::Events)?;
        let inline = settings.inline_latency.max(settings.inline_bandwidth);
        let capacity = Capacity { sends: settings.depth.max(SPARE) + SPARE, receives: settings.receives, inline };
        let pair = || QueuePair::new(&domain, &queue, spec.service, capacity, None).map(Arc::new);
        // Read from a separate queue pair: rdma_cm makes the measured ones later.
        let inline = pair()?.inline().min(inline);
        let mut mailbox = Mailbox::new(&domain, layout.qps)?;
        let mut pairs = Vec::new();
        if manager.is_none() {
            pairs = (0..layout.qps).map(|_| pair()).collect::<Result<Vec<_>, _>>()?;
            let control = QueuePair::new(&domain, mailbox.queue(), Service::Rc, mailbox::CAPACITY, None)?;
            mailbox.attach(Arc::new(control));
            let pkey_index = choice.pkey.map_or(0, |pkey| pkey.index);
            let initialise =
                Change::Initialise { port: choice.port.number, pkey_index, atomics: limits.atomics, qkey: QKEY };
            for pair in pairs.iter().chain(mailbox.queue_pair()) {
                pair.change(&initialise)?;
            }
        }
        drop(making);
        // The CPU sees what the device writes, in order.
        let polled = ordered && region.backing().cells().is_some();
        if let Some(gid) = choice.gid {
            note("gid", gid.to_string());
            note("gid_type", gid.kind.word().to_owned());
        }
        note("inline", inline.to_string());
        let qps = layout.qps as usize;
        let resources = Resources {
            service: spec.service,
            rides_out: spec.rides_out,
            choice,
            settings,
            layout,
            region,
            gpu_path: path,
            scatters,
            poller: Poller::new(&queue),
            queue,
            capacity,
            polled,
            direct,
        };
        let watch = resources.watch().of(pairs.iter().chain(mailbox.queue_pair()).map(|pair| &**pair));
        let connection = Connection {
            role: spec.role,
            manager,
            pairs,
            psns: psns(qps + 1),
            mailbox,
            peer: None,
            watch: Arc::new(watch),
            write_order: None,
        };
        let progress = Progress { sent: vec![0; qps], received: vec![None; qps], ..Progress::default() };
        Ok(Self { resources, connection, progress, notes })
    }

    pub(crate) fn opened(&self) -> Opened {
        let mut settings = self.resources.settings.record();
        settings.extend(self.notes.clone());
        let mtu = self.connection.peer.as_ref().map_or(self.resources.settings.mtu, |peer| peer.mtu);
        settings.insert("mtu".to_owned(), mtu.to_string());
        let write_order = self.connection.write_order;
        if let Some(method) = self.resources.settings.write_latency {
            settings
                .insert("write_latency".to_owned(), detection(method, self.resources.direct, write_order).to_owned());
        }
        Opened {
            endpoint: Endpoint::Verbs(self.endpoint()),
            device: self.resources.choice.name(),
            transport: match self.resources.service {
                Service::Rc => Carrier::VerbsRc,
                Service::Uc => Carrier::VerbsUc,
                Service::Ud => Carrier::VerbsUd,
            },
            link_layer: self.resources.choice.link_layer,
            gpu_path: self.resources.gpu_path,
            rate_gbps: self.resources.choice.rate_gbps,
            mtu,
            software: self.resources.choice.driver.software,
            write_order,
            settings,
        }
    }

    fn endpoint(&self) -> VerbsEndpoint {
        let control_psn = self.connection.psns.last().copied().unwrap_or(0);
        let cm = self.connection.manager.as_ref().map(|manager| manager.address);
        VerbsEndpoint {
            // rdma_cm makes the queue pairs at the join, and exchanges their numbers itself.
            qp_numbers: (0..self.resources.layout.qps as usize)
                .map(|i| self.connection.pairs.get(i).map_or(0, |pair| pair.number()))
                .collect(),
            psns: self.connection.psns[..self.resources.layout.qps as usize].to_vec(),
            address: self.resources.region.address(),
            length: unit::Bytes::of(self.resources.region.length()),
            rkey: self.resources.region.remote_key(),
            polled: self.resources.polled,
            control: Some(self.connection.mailbox.endpoint(control_psn)),
            qkey: QKEY,
            cm_port: cm.map(|address| address.port()).filter(|port| *port > 0),
            cm_address: cm.map(|address| address.ip().to_string()),
            ..described(&self.resources.choice, &self.resources.settings)
        }
    }
}

const fn detection(method: WriteLatency, direct: bool, order: Option<WriteOrder>) -> &'static str {
    match (method, order) {
        (WriteLatency::Immediate, _) if direct => "immediate data (the CPU does not watch GPU memory)",
        (WriteLatency::Immediate, _) => "immediate data",
        (WriteLatency::Poll, None) => "polls the last byte",
        (WriteLatency::Poll, Some(WriteOrder::Promised)) => {
            "polls the last byte (the device promises that it lands last)"
        }
        (WriteLatency::Poll, Some(WriteOrder::NotPromised)) => {
            "polls the last byte (the device does not promise that it lands last; the first messages are checked)"
        }
        (WriteLatency::Poll, Some(WriteOrder::Unknown)) => {
            "polls the last byte (libibverbs is too old to say whether it lands last; the first messages are checked)"
        }
    }
}

const MAGIC: &[u8; 8] = b"RGAUGE\0\x01";

/// Bytes of the token in a request, which has 56 bytes in all.
const TOKEN: usize = 32;

pub(crate) struct Manager {
    events: Arc<Events>,
    identifier: Arc<Identifier>,
    pub address: SocketAddr,
    token: Vec<u8>,
}

impl Manager {
    /// Listens if `role` is the responder's.
    pub(crate) fn new(choice: &Choice, role: Role, qps: u32, token: &str) -> Result<Self, Failure> {
        let device = choice.domain.device().name();
        let all = interfaces::addresses().unwrap_or_default();
        let ip = address(&Tree::host(), device, choice.port.number, choice.gid, &all).ok_or_else(|| {
            let cause = format!(
                "{}: the network interface behind it has no address, and rdma_cm connects by address",
                choice.name()
            );
            Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::IP_ADDRESS)
        })?;
        let events = Events::new()?;
        let identifier = Arc::new(Identifier::new(&events)?);
        identifier.bind(SocketAddr::new(ip, 0))?;
        let port = if role == Role::Responder { identifier.listen(qps + 1)? } else { 0 };
        let token = token.bytes().take(TOKEN).collect();
        Ok(Self { events, identifier, address: SocketAddr::new(ip, port), token })
    }

    pub(crate) fn domain(&self, name: &str) -> Result<Arc<Domain>, Failure> {
        Domain::new(&self.identifier.device(name)?)
    }

    pub(crate) fn library(&self) -> &str {
        self.events.library()
    }

    fn request(&self, index: u32) -> Vec<u8> {
        [&MAGIC[..], &index.to_be_bytes(), &self.token].concat()
    }

    /// `None` for a stranger's request. Requests are padded with zeros.
    fn index(&self, request: &[u8]) -> Option<u32> {
        let rest = request.strip_prefix(&MAGIC[..])?;
        let (index, rest) = rest.split_first_chunk()?;
        let token = rest.get(..self.token.len())?;
        (token == self.token).then(|| u32::from_be_bytes(*index))
    }
}

/// The GID's, else the interface's first.
fn address(tree: &Tree, device: &str, port: u8, gid: Option<Gid>, all: &[Address]) -> Option<IpAddr> {
    let of_gid = gid.and_then(|gid| gid.ipv4()).map(IpAddr::from);
    of_gid.or_else(|| {
        // iWARP has no `gid_attrs/ndevs` on older kernels: the interface is that of the device below.
        let interface = rdma::below(tree, device, port).netdev?;
        let mine = all.iter().filter(|found| found.up && found.interface == interface).map(|found| found.ip);
        let usable = |ip: &IpAddr| match ip {
            IpAddr::V4(_) => true,
            // Link-local addresses need a scope, which rdma_cm does not accept.
            IpAddr::V6(ip) => !ip.is_unicast_link_local(),
        };
        mine.filter(usable).min_by_key(IpAddr::is_ipv6)
    })
}

impl VerbsEnd {
    pub(crate) fn connect_all(&mut self, peer: &VerbsEndpoint, control: &Control) -> Result<(), Failure> {
        let Some(manager) = &self.connection.manager else {
            return Err(Failure::new(Stage::Join, Kind::Internal, "this end was not opened for rdma_cm"));
        };
        let made = match self.connection.role {
            Role::Initiator => self.ask(manager, peer, control)?,
            Role::Responder => self.grant(manager, peer, control)?,
        };
        let mut made: Vec<_> = made.into_iter().map(Arc::new).collect();
        if let Some(last) = made.pop() {
            self.connection.mailbox.attach(last);
        }
        self.connection.pairs = made;
        Ok(())
    }

    fn terms<'a>(&self, private: &'a [u8], peer: &VerbsEndpoint) -> Terms<'a> {
        let outstanding = self.resources.settings.reads.min(peer.max_reads);
        Terms { private, accept: self.resources.settings.reads, outstanding, retries: self.resources.settings.retries }
    }

    /// The control queue pair follows the last measured one.
    fn pair(&self, i: u32, identifier: Identifier) -> Result<QueuePair, Failure> {
        let (queue, capacity) = if i == self.resources.layout.qps {
            (self.connection.mailbox.queue(), super::mailbox::CAPACITY)
        } else {
            (&self.resources.queue, self.resources.capacity)
        };
        let _making = region::making(self.resources.direct);
        QueuePair::new(&self.resources.choice.domain, queue, Service::Rc, capacity, Some(identifier))
    }

    fn ask(&self, manager: &Manager, peer: &VerbsEndpoint, control: &Control) -> Result<Vec<QueuePair>, Failure> {
        let to = peer.cm_address.as_ref().and_then(|ip| ip.parse::<IpAddr>().ok()).zip(peer.cm_port);
        let Some((ip, port)) = to else {
            let cause = "the peer does not listen for rdma_cm";
            let remedy = remedy::SAME_AT_BOTH_ENDS.with([("setting", "`joining`")]);
            return Err(Failure::new(Stage::Join, Kind::Configuration, cause).remedy(remedy));
        };
        let limit = control.deadline();
        (0..=self.resources.layout.qps)
            .map(|i| {
                let identifier = Identifier::new(&manager.events)?;
                if self.resources.settings.traffic_class > 0 {
                    identifier.traffic_class(self.resources.settings.traffic_class);
                }
                let own = SocketAddr::new(manager.address.ip(), 0);
                identifier.resolve(own, SocketAddr::new(ip, port), limit)?;
                let pair = self.pair(i, identifier)?;
                let request = manager.request(i);
                if let Some(connection) = pair.connection() {
                    connection.connect(&self.terms(&request, peer), limit)?;
                }
                Ok(pair)
            })
            .collect()
    }

    fn grant(&self, manager: &Manager, peer: &VerbsEndpoint, control: &Control) -> Result<Vec<QueuePair>, Failure> {
        let limit = control.deadline();
        let wanted = self.resources.layout.qps as usize + 1;
        let mut granted = Vec::new();
        let mut established = 0;
        while established < wanted {
            control.check(Stage::Join)?;
            let (event, request) = manager.events.next(limit)?;
            let Some(identifier) = request else {
                established += usize::from(event.established()?);
                continue;
            };
            // Our peer asks in sequence.
            let i = granted.len() as u32;
            if manager.index(&event.private) != Some(i) {
                identifier.reject();
                continue;
            }
            let pair = self.pair(i, identifier)?;
            if let Some(connection) = pair.connection() {
                connection.accept(&self.terms(&[], peer))?;
            }
            granted.push(pair);
        }
        Ok(granted)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn the_address_of_an_iwarp_port_is_found_without_gid_attributes() {
        let root = tempfile::tempdir().unwrap();
        let (device, hardware) =
            (root.path().join(rdma::CLASS).join("iwp0"), root.path().join("sys/devices/0000:03:00.0"));
        fs::create_dir_all(device.join("ports/1")).unwrap();
        fs::create_dir_all(hardware.join("net/eth3")).unwrap();
        symlink(&hardware, device.join("device")).unwrap();
        let address = |interface: &str, ip: &str| Address {
            interface: interface.to_owned(),
            ip: ip.parse().unwrap(),
            prefix: None,
            up: true,
        };
        let all = [address("eth0", "10.0.0.1"), address("eth3", "fe80::1"), address("eth3", "10.3.0.1")];
        let found = super::address(&Tree::new(root.path()), "iwp0", 1, None, &all);
        assert_eq!(found, Some("10.3.0.1".parse().unwrap()));
    }
}
