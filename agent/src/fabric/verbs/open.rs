//! Opens one end: device, memory, queues, queue pairs, and the data for the peer.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use railgauge_wire::{
    Carrier, Completion, Endpoint, Failure, Footprint, GpuPath, Joining, Kind, LinkLayer, LinkSpec, Memory, Opened,
    Role, Service, Stage, VerbsEndpoint, WriteLatency, WriteOrder, remedy, unit,
};

use super::{
    Layout, Mailbox, Manager, Resources, VerbsEnd,
    end::{Connection, Progress},
    mailbox::{self},
    memory::{self, Bytes},
};
use crate::{
    bench::control::Control,
    endpoint::verbs::{
        choice::{choose, described, psns, settle},
        join,
        settings::SPARE,
    },
    facts::machine,
    system::tree::Tree,
    verbs::{Capacity, Change, CompletionQueue, Identifier, Poller, QueuePair, cm::Terms, region},
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
            let control = QueuePair::new(&domain, &mailbox.queue, Service::Rc, mailbox::CAPACITY, None)?;
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
        let peer = self.connection.peer.as_ref();
        settings.extend(peer.and_then(|peer| join::grh(&self.resources.choice, &peer.endpoint)));
        if self.resources.settings.ece {
            let options = self.ece().filter(|_| peer.is_some_and(|peer| peer.endpoint.ece.is_some()));
            settings.insert("ece".to_owned(), options.map_or("none".to_owned(), |ece| format!("{:#x}", ece.options)));
        }
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
            ece: self.ece(),
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
            (&self.connection.mailbox.queue, super::mailbox::CAPACITY)
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
        let limit = control.deadline;
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
        let limit = control.deadline;
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
