//! One end of a link: what `open` made and `join` connected. The files of the steps have its operations.

use std::{collections::BTreeMap, sync::Arc};

use railgauge_wire::{
    ControlEndpoint, Ece, Endpoint, Failure, GpuPath, Joining, Kind, Op, Role, Service, Stage, TestMetric,
    VerbsEndpoint, WriteLatency, WriteOrder,
    remedy::{self, Entry},
};

use super::{
    Copies, HEADER, Layout, Listener, Mailbox, Manager, Sink, Waiter,
    stream::Granted,
    turns::{Announcer, Turns},
};
use crate::{
    bench::control::Control,
    endpoint::verbs::{
        choice::Choice,
        join::{self, Target, unfit},
        settings::{Pace, Settings},
    },
    verbs::{
        Address, Capacity, CompletionQueue, Doing, Poller, QueuePair, Receives, Region, Sends, Template, Verb, Walk,
        Watch,
        receive::Landing,
        words::{self},
    },
};

/// Largest message that mlx5 puts into a completion, in bytes.
const SCATTERED: u64 = 64;

pub(crate) struct VerbsEnd {
    /// First: fields are dropped in order, and queue pairs must be destroyed before their memory is freed.
    pub connection: Connection,
    pub progress: Progress,
    pub resources: Resources,
    pub notes: BTreeMap<String, String>,
}

/// Unchanged from `open` to `close`.
pub(crate) struct Resources {
    pub service: Service,
    pub rides_out: bool,
    pub choice: Choice,
    pub settings: Settings,
    pub layout: Layout,
    pub region: Arc<Region>,
    pub gpu_path: GpuPath,
    /// Whether the NIC's driver would copy small messages into place with the CPU, which fails for GPU memory.
    pub scatters: bool,
    pub queue: Arc<CompletionQueue>,
    /// Takes from `queue`.
    pub poller: Poller,
    pub capacity: Capacity,
    /// Whether what the peer writes here may be polled: host memory, registered without relaxed ordering.
    pub polled: bool,
    /// Whether the memory is a GPU's that the device reaches itself.
    pub direct: bool,
}

pub(crate) struct Connection {
    pub role: Role,
    /// What rdma_cm needs, where the link is joined by it.
    pub manager: Option<Manager>,
    pub pairs: Vec<Arc<QueuePair>>,
    /// First packet sequence numbers, the control queue pair's last.
    pub psns: Vec<u32>,
    pub mailbox: Mailbox,
    pub peer: Option<Peer>,
    pub watch: Arc<Watch>,
    /// What the device says of the order of bytes, where the last byte of a write is polled; known once joined.
    pub write_order: Option<WriteOrder>,
}

impl Resources {
    /// Handles arrivals without borrowing this.
    pub(crate) fn sink<'a>(
        &self,
        receives: &'a mut [Receives],
        mailbox: &'a mut Mailbox,
        stage: Option<Copies>,
    ) -> Sink<'a> {
        Sink::new(receives, mailbox, self.settings.receives, self.service, stage)
    }

    pub(crate) fn watch(&self) -> Watch {
        let Choice { domain, port, gid, pkey, .. } = &self.choice;
        Watch::new(domain.device(), port.clone(), *gid, *pkey).riding_out(self.rides_out)
    }
}

#[derive(Default)]
pub(crate) struct Progress {
    pub announcer: Announcer,
    pub listener: Listener,
    /// Turns in a case that the ends run by themselves.
    pub turns: Turns,
    /// Receives per queue pair, once the first operation needs them.
    pub receives: Vec<Receives>,
    /// Messages sent per queue pair that took a receive of the peer's.
    pub sent: Vec<u64>,
    /// The receive with the data to check, per queue pair, if it arrived in one.
    pub received: Vec<Option<u64>>,
}

pub(crate) struct Peer {
    pub endpoint: VerbsEndpoint,
    /// Bytes of half a share of its buffer.
    pub area: u64,
    pub addresses: Vec<Arc<Address>>,
    /// Path MTU in use, in bytes.
    pub mtu: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Batches {
    pub list: u32,
    pub signal_every: u32,
    pub inline: u32,
}

impl VerbsEnd {
    pub(crate) fn peer(&self) -> Result<&Peer, Failure> {
        self.connection
            .peer
            .as_ref()
            .ok_or_else(|| Failure::new(Stage::Converse, Kind::Internal, "the link is not joined yet"))
    }

    pub(crate) fn device(&self) -> &str {
        self.resources.choice.domain.device().name()
    }

    /// The operation that measures `metric` of `op` with messages of `size` bytes on this link: another one if the latency of writes uses
    /// immediate data. Service and device support both.
    pub(crate) fn operation(&self, op: Op, metric: TestMetric, size: u64) -> Result<Op, Failure> {
        self.supports(op, size)?;
        let used = if metric == TestMetric::Latency { self.latency_op(op)? } else { op };
        if used != op {
            self.supports(used, size).map_err(|failure| {
                let cause = format!("{}, by which the latency of {op} would be taken here", failure.cause);
                Failure { cause, ..failure }.remedy(remedy::POLL_WRITES)
            })?;
        }
        Ok(used)
    }

    /// `Err` unless this service and device can do `op` with messages of `size` bytes.
    pub(crate) fn supports(&self, op: Op, size: u64) -> Result<(), Failure> {
        let unsupported =
            |cause: String, remedy: Entry| Err(Failure::new(Stage::Measure, Kind::Unsupported, cause).remedy(remedy));
        if !self.resources.service.carries(op) {
            return unsupported(
                format!("service {} has no operation {op}", self.resources.service),
                remedy::RC_SERVICE,
            );
        }
        if self.resources.gpu_path == GpuPath::Staged && !op.takes_receives() {
            let cause = format!("{op} does not notify its target, so the data would not be copied on to the GPU");
            return unsupported(cause, remedy::STAGED_OPERATION);
        }
        if self.resources.scatters && op == Op::Send && size <= SCATTERED {
            let cause =
                format!("{}: its driver copies messages of up to {SCATTERED} bytes with the CPU", self.device());
            return unsupported(cause, remedy::SCATTER_TO_CQE_OFF);
        }
        if op.is_atomic() && !self.resources.choice.domain.device().limits()?.atomics {
            let cause =
                format!("{} has no atomics: they are optional, and iWARP devices rarely have them", self.device());
            return unsupported(cause, remedy::LEAVE_TESTS_OUT);
        }
        if op == Op::WriteImm && self.resources.choice.driver.is("siw") {
            let cause = format!("{}: siw has no writes with immediate data", self.device());
            return unsupported(cause, remedy::LEAVE_TESTS_OUT);
        }
        let mtu = u64::from(self.peer()?.mtu);
        if self.resources.service == Service::Ud && size > mtu {
            let cause = format!("a datagram of {size} bytes is over the path MTU of {mtu}");
            let remedy = remedy::FIT_PATH_MTU.with([("mtu", mtu.to_string())]);
            return Err(Failure::new(Stage::Measure, Kind::Unsupported, cause).remedy(remedy));
        }
        if op.is_atomic() && size != 8 {
            let cause = format!("an atomic works on 8 bytes, not on {size}");
            return Err(Failure::new(Stage::Measure, Kind::Configuration, cause).remedy(remedy::SIZE_OF_ATOMICS));
        }
        if size > self.resources.layout.max_size {
            let cause = format!("{size} bytes asked for on a link opened for {}", self.resources.layout.max_size);
            return Err(Failure::new(Stage::Measure, Kind::Internal, cause));
        }
        Ok(())
    }

    pub(crate) fn batches(&self, size: u64) -> Batches {
        let Pace { list, signal_every, .. } = self.resources.settings.pace(size);
        Batches { list, signal_every, inline: self.resources.settings.inline_bandwidth }
    }

    /// A ring of requests on queue pair `i` that does `op` with messages of `size` bytes along `walk`.
    pub(crate) fn sends(&self, i: usize, op: Op, size: u64, walk: Walk, batches: Batches) -> Result<Sends, Failure> {
        self.ring(i, self.template(i, op, size, walk, batches)?)
    }

    pub(crate) fn template(
        &self,
        i: usize,
        op: Op,
        size: u64,
        walk: Walk,
        batches: Batches,
    ) -> Result<Template, Failure> {
        let peer = self.peer()?;
        let theirs = peer.endpoint.address + i as u64 * 2 * peer.area;
        // Reads and atomics fetch bytes; everything else sends them.
        let brings = op.pulls() || op.is_atomic();
        let verb = match op {
            Op::Write => Verb::Write,
            Op::WriteImm => Verb::WriteImmediate,
            Op::Read => Verb::Read,
            Op::AtomicFadd => Verb::FetchAdd { add: 1 },
            Op::AtomicCas => Verb::CompareSwap { compare: 0, swap: 0 },
            _ => match (peer.addresses.get(i), peer.endpoint.qp_numbers.get(i)) {
                (Some(address), Some(number)) => {
                    let (address, queue_key) = (address.clone(), peer.endpoint.qkey);
                    Verb::SendTo { address, queue_pair: *number, queue_key }
                }
                _ => Verb::Send,
            },
        };
        Ok(Template {
            verb,
            size: u32::try_from(size).unwrap_or(u32::MAX),
            // Results of atomics go where the peer's own atomics do not work.
            local: if op.pulls() { self.resources.layout.incoming(i) } else { self.resources.layout.outgoing(i) },
            remote: if op.pulls() { theirs } else { theirs + peer.area },
            remote_key: peer.endpoint.rkey,
            walk,
            inline: !brings && size <= u64::from(batches.inline.min(self.connection.pairs[i].inline())),
            list: batches.list,
            signal_every: batches.signal_every,
            tag: i as u32,
        })
    }

    pub(crate) fn ring(&self, i: usize, template: Template) -> Result<Sends, Failure> {
        Sends::new(&self.connection.pairs[i], &self.resources.region, template)
            .ok_or_else(|| Failure::new(Stage::Measure, Kind::Internal, "a message would leave the registered buffer"))
    }

    pub(crate) fn walk(&self, op: Op, size: u64) -> Result<Walk, Failure> {
        let area = self.resources.layout.area.min(self.peer()?.area);
        Ok(if op.is_atomic() {
            Layout::words()
        } else if self.resources.gpu_path == GpuPath::Staged {
            // Staged messages all have one place.
            Walk::default()
        } else {
            self.resources.layout.walk(size, area)
        })
    }

    pub(crate) fn waiter(&self, control: &Control, stage: Stage) -> Waiter {
        Waiter::new(&self.resources.queue, control, stage)
            .watching(&self.connection.watch, self.connection.mailbox.reader())
    }

    pub(crate) fn granted(&self, stage: Option<Copies>) -> Granted {
        let reader = self.connection.mailbox.reader();
        Granted::new(reader, &self.progress.sent, self.resources.service, stage)
    }

    /// Posts receives on every queue pair, and announces their number to the peer.
    pub(crate) fn post_receives(&mut self) -> Result<(), Failure> {
        if self.progress.receives.is_empty() {
            let header = if self.resources.layout.datagrams { HEADER } else { 0 };
            let size = u32::try_from(self.resources.layout.max_size + header).unwrap_or(u32::MAX);
            // A quarter at a time: three quarters are always posted, and credits are rare.
            let batch = (self.resources.settings.receives / 4).clamp(1, 128);
            for (i, pair) in self.connection.pairs.iter().enumerate() {
                let landing = Landing {
                    first: self.resources.layout.incoming(i) - header,
                    size,
                    walk: self.resources.layout.landing(),
                };
                let receives =
                    Receives::new(pair, &self.resources.region, landing, batch, i as u32).ok_or_else(|| {
                        Failure::new(Stage::Measure, Kind::Internal, "a receive would leave the registered buffer")
                    })?;
                self.progress.receives.push(receives);
            }
        }
        for i in 0..self.progress.receives.len() {
            self.replace_receives(i, 0)?;
            self.connection.mailbox.write(super::mailbox::Slot::Posted(i), self.progress.receives[i].posted())?;
        }
        Ok(())
    }

    /// Counts consumed receives of queue pair `i`, and posts new ones in batches.
    fn replace_receives(&mut self, i: usize, consumed: u64) -> Result<bool, Failure> {
        let ahead = u64::from(self.resources.settings.receives);
        let device = self.resources.choice.domain.device();
        self.progress.receives[i]
            .consume(consumed, ahead)
            .map_err(|errno| words::verb(Stage::Measure, Doing::Post, device.name(), errno))
    }
}

impl VerbsEnd {
    pub(crate) fn join(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure> {
        self.connect(peer, control)?;
        let pairs = self.connection.pairs.iter();
        if self.resources.settings.write_latency == Some(WriteLatency::Poll) {
            // In RTS, the only state in which mlx5 answers.
            self.connection.write_order =
                pairs.clone().map(|pair| pair.writes_land_in_order()).reduce(WriteOrder::both);
        }
        if self.connection.manager.is_some() {
            let all = pairs.chain(self.connection.mailbox.queue_pair()).map(|pair| &**pair);
            self.connection.watch = Arc::new(self.resources.watch().of(all));
        }
        Ok(())
    }

    fn connect(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure> {
        let Endpoint::Verbs(peer) = peer else {
            return Err(unfit(
                "this end is verbs on one thread, the other is not".to_owned(),
                remedy::SAME_AT_BOTH_ENDS.with([("setting", "fabric and number of threads")]),
            ));
        };
        let mailbox = self.fit(peer)?;
        if self.resources.settings.joining == Joining::RdmaCm {
            self.connect_all(peer, control)?;
            self.connection.mailbox.address_to(&mailbox);
            let area = Layout::area_of(peer.length.0, self.connection.pairs.len());
            let mtu = self.resources.settings.mtu.min(peer.mtu);
            self.connection.peer = Some(Peer { endpoint: peer.clone(), area, addresses: Vec::new(), mtu });
            return Ok(());
        }
        let mtu = self.resources.settings.mtu.min(peer.mtu);
        let settings = &self.resources.settings;
        let (service, accepted, reads) = (self.resources.service, settings.reads, settings.reads.min(peer.max_reads));
        let paths = (0..self.connection.pairs.len())
            .map(|i| join::path(&self.resources.choice, settings, peer, i))
            .collect::<Result<Vec<_>, _>>()?;
        let ece = self.ece().zip(peer.ece).filter(|(own, theirs)| own.vendor_id == theirs.vendor_id);
        for (i, (pair, path)) in self.connection.pairs.iter().zip(&paths).enumerate() {
            ece.map_or(Ok(()), |(_, theirs)| pair.accept(theirs))?;
            let (number, psn, own_psn) = (peer.qp_numbers[i], peer.psns[i], self.connection.psns[i]);
            let to = Target { path: *path, mtu, number, psn, own_psn, accepted, reads };
            join::connect(pair, settings, &to)?;
        }
        let own_psn = self.connection.psns.last().copied().unwrap_or(0);
        if let (Some(pair), Some(path)) = (self.connection.mailbox.queue_pair(), paths.first()) {
            let (number, psn) = (mailbox.qp_number, mailbox.psn);
            join::connect(pair, settings, &Target { path: *path, mtu, number, psn, own_psn, accepted, reads: 1 })?;
        }
        self.connection.mailbox.address_to(&mailbox);
        let addresses = if service == Service::Ud {
            let domain = &self.resources.choice.domain;
            paths.iter().map(|path| Address::new(domain, path).map(Arc::new)).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        let area = Layout::area_of(peer.length.0, self.connection.pairs.len());
        self.connection.peer = Some(Peer { endpoint: peer.clone(), area, addresses, mtu });
        Ok(())
    }

    /// What its queue pairs have beyond the specification, where the plan asks for it.
    pub(crate) fn ece(&self) -> Option<Ece> {
        self.connection.pairs.first().filter(|_| self.resources.settings.ece)?.ece()
    }

    /// `Err` unless the peer is compatible.
    fn fit(&self, peer: &VerbsEndpoint) -> Result<ControlEndpoint, Failure> {
        let own = self.resources.layout.qps as usize;
        if peer.qp_numbers.len() != own || peer.psns.len() != own {
            let cause = format!("{own} queue pairs here, {} at the peer", peer.qp_numbers.len());
            return Err(unfit(cause, remedy::SAME_AT_BOTH_ENDS.with([("setting", "number of queue pairs")])));
        }
        join::same_network(&self.resources.choice, peer)?;
        peer.control.ok_or_else(|| unfit("the peer has no control queue pair".to_owned(), remedy::REMOVE_OLD_AGENT))
    }
}
