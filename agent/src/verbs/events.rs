//! Asynchronous events: what happens to a device, a port or a queue beside the work that was posted (`ibv_get_async_event(3)`).
//!
//! A context has one stream of events for all links on it. Whoever looks drains it, without ever waiting, and keeps what was
//! there for the others; a link asks for what concerns it. librdmacm has one context of a device for all of its connections, so
//! that several [`Device`]s of ours may stand for one context: they share what was read.

use std::{
    ptr::NonNull,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy::{self, Entry},
};
use rdma_sys::{ibv_async_event, ibv_context};

use super::{
    device::Device,
    gid::{Gid, Pkey},
    port::Port,
    queue_pair::QueuePair,
};

/// How long an event may be behind the completion that it explains: far more than two interrupts are apart, and nothing beside
/// a failed case.
const BEHIND: Duration = Duration::from_millis(100);

/// One of `enum ibv_event_type` of <infiniband/verbs.h>: its number, its name, and what it means.
type Event = (u32, &'static str, &'static str);

const CQ_ERR: u32 = 0;
const QP_FATAL: u32 = 1;
const QP_REQ_ERR: u32 = 2;
const QP_ACCESS_ERR: u32 = 3;
const DEVICE_FATAL: u32 = 8;
const PORT_ERR: u32 = 10;
const LID_CHANGE: u32 = 11;
const PKEY_CHANGE: u32 = 12;
const GID_CHANGE: u32 = 18;

/// Those that say that something is wrong or was changed. The others are: established, drained, migrated, active, another
/// subnet manager, and those of shared queues, which we have none of.
static EVENTS: [Event; 9] = [
    (CQ_ERR, "CQ_ERR", "a completion queue ran over or broke"),
    (QP_FATAL, "QP_FATAL", "the device stopped a queue pair after an error of its own"),
    (QP_REQ_ERR, "QP_REQ_ERR", "the peer sent a request that a queue pair cannot take"),
    (QP_ACCESS_ERR, "QP_ACCESS_ERR", "the peer asked for memory that it may not touch"),
    (DEVICE_FATAL, "DEVICE_FATAL", "the device failed and will be reset"),
    (PORT_ERR, "PORT_ERR", "the port went down"),
    (LID_CHANGE, "LID_CHANGE", "the subnet manager gave the port another LID"),
    (PKEY_CHANGE, "PKEY_CHANGE", "the subnet manager changed the port's partitions"),
    (GID_CHANGE, "GID_CHANGE", "the GID in use was taken away or changed"),
];

/// What kind of failure an event is, and what to look at.
const fn remedy(code: u32) -> (Kind, Entry) {
    match code {
        CQ_ERR => (Kind::Internal, remedy::LOOK_AT_DEVICE),
        QP_FATAL => (Kind::Fabric, remedy::LOOK_AT_DEVICE),
        QP_REQ_ERR | QP_ACCESS_ERR => (Kind::Fabric, remedy::LOOK_AT_PEER_ERROR),
        PORT_ERR => (Kind::Fabric, remedy::LINK_WENT_DOWN),
        LID_CHANGE | PKEY_CHANGE => (Kind::Configuration, remedy::SUBNET_CHANGED),
        GID_CHANGE => (Kind::Configuration, remedy::ADDRESS_CHANGED),
        _ => (Kind::Configuration, remedy::RESET_DEVICE),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Device,
    Port(u8),
    QueuePair(u32),
    CompletionQueue(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    event: Event,
    on: On,
}

/// Events of a context, in the order in which they came.
#[derive(Debug)]
pub(super) struct Happened {
    seen: Mutex<Vec<Seen>>,
    /// How many are in `seen`: read without the lock.
    count: AtomicUsize,
}

/// What happened to contexts that librdmacm has opened, by the context's address.
static SHARED: Mutex<Vec<(usize, Weak<Happened>)>> = Mutex::new(Vec::new());

impl Happened {
    /// Of a context that others may use too: one for all of them, for as long as any of them uses it. The context must stay
    /// open for as long as what is returned lives, so that its address is not another's meanwhile.
    pub(super) fn shared(context: NonNull<ibv_context>) -> Arc<Self> {
        let (mut shared, address) = (SHARED.lock(), context.as_ptr().expose_provenance());
        shared.retain(|(_, happened)| happened.strong_count() > 0);
        let known = shared.iter().find(|(known, _)| *known == address).and_then(|(_, happened)| happened.upgrade());
        known.unwrap_or_else(|| {
            let new = Arc::new(Self::new(context));
            shared.push((address, Arc::downgrade(&new)));
            new
        })
    }

    /// Of a context that was just opened; from here on reading its events does not wait.
    pub(super) fn new(context: NonNull<ibv_context>) -> Self {
        // SAFETY: the context is open, and so is its descriptor; the calls take no pointers.
        unsafe {
            let descriptor = (*context.as_ptr()).async_fd;
            let flags = libc::fcntl(descriptor, libc::F_GETFL);
            libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
        Self { seen: Mutex::new(Vec::new()), count: AtomicUsize::new(0) }
    }

    fn drain(&self, device: &Device) {
        let (context, library) = (device.context.as_ptr(), device.library());
        // SAFETY: the context is open.
        let mut ready = libc::pollfd { fd: unsafe { (*context).async_fd }, events: libc::POLLIN, revents: 0 };
        // Held from the look on: what is there is taken by one of those who look, and nobody waits for it in vain.
        let mut seen = self.seen.lock();
        // SAFETY: `ready` is one valid entry. Asked first, since a provider may make its descriptor block again.
        while unsafe { libc::poll(&raw mut ready, 1, 0) } == 1 && ready.revents & libc::POLLIN != 0 {
            let mut event = std::mem::MaybeUninit::<ibv_async_event>::uninit();
            // SAFETY: the context is open and `event` valid for writing.
            if unsafe { (library.ibv_get_async_event)(context, event.as_mut_ptr()) } != 0 {
                return;
            }
            // SAFETY: as above. The event's number is read as one: a library newer than the bindings may have others.
            let code = unsafe { (&raw const (*event.as_ptr()).event_type).cast::<u32>().read() };
            let known = EVENTS.iter().find(|event| event.0 == code);
            // SAFETY: the library has filled in the member that belongs to this kind of event; what it points to lives
            // until the event is acknowledged, right below.
            let new = known.map(|known| Seen { event: *known, on: unsafe { about(code, &*event.as_ptr()) } });
            // SAFETY: acknowledged once; nothing of it is used afterwards.
            unsafe { (library.ibv_ack_async_event)(event.as_mut_ptr()) };
            if let Some(new) = new {
                seen.push(new);
                self.count.store(seen.len(), Ordering::Release);
            }
        }
    }

    fn since(&self, first: usize) -> Vec<Seen> {
        self.seen.lock().get(first..).unwrap_or_default().to_vec()
    }
}

/// # Safety
/// `event` is one of the library's of this kind, one of [`EVENTS`], not acknowledged yet.
unsafe fn about(code: u32, event: &ibv_async_event) -> On {
    // SAFETY: as the caller vouches, this is the member that is set.
    unsafe {
        match code {
            CQ_ERR => On::CompletionQueue(event.element.cq as usize),
            QP_FATAL | QP_REQ_ERR | QP_ACCESS_ERR => On::QueuePair((*event.element.qp).qp_num),
            PORT_ERR | LID_CHANGE | PKEY_CHANGE | GID_CHANGE => {
                On::Port(u8::try_from(event.element.port_num).unwrap_or(0))
            }
            _ => On::Device,
        }
    }
}

/// What a link stands on: it looks for events that concern this.
#[derive(Debug)]
pub(crate) struct Watch {
    device: Arc<Device>,
    port: Port,
    gid: Option<Gid>,
    pkey: Option<Pkey>,
    queue_pairs: Vec<u32>,
    queues: Vec<usize>,
    rides_out: bool,
    first: AtomicUsize,
}

impl Watch {
    /// Of a link on this port, which uses this GID and this partition. What happened before is not its own.
    pub(crate) fn new(device: &Arc<Device>, port: Port, gid: Option<Gid>, pkey: Option<Pkey>) -> Self {
        device.happened().drain(device);
        let first = AtomicUsize::new(device.happened().count.load(Ordering::Acquire));
        Self {
            device: device.clone(),
            port,
            gid,
            pkey,
            queue_pairs: Vec::new(),
            queues: Vec::new(),
            rides_out: false,
            first,
        }
    }

    /// The same, for a link that outlives breaks of its port: the retries of its queue pairs decide when it ends.
    #[must_use]
    pub(crate) fn riding_out(mut self, rides_out: bool) -> Self {
        self.rides_out = rides_out;
        self
    }

    #[must_use]
    pub(crate) fn of<'p>(mut self, pairs: impl IntoIterator<Item = &'p QueuePair>) -> Self {
        for pair in pairs {
            self.queue_pairs.push(pair.number());
            self.queues.push(pair.queue().raw() as usize);
        }
        self
    }

    /// Looks for the event behind a failure, which may be told a little later than the completion that failed: a device tells
    /// of them by different queues. Only where something failed, since it waits where nothing happened.
    pub(crate) fn check_behind(&self, stage: Stage) -> Result<(), Failure> {
        let until = Instant::now() + BEHIND;
        loop {
            self.check(stage)?;
            if Instant::now() >= until {
                return Ok(());
            }
            thread::sleep(BEHIND / 20);
        }
    }

    /// Looks, and never waits: one system call where nothing happened.
    pub(crate) fn check(&self, stage: Stage) -> Result<(), Failure> {
        let happened = self.device.happened();
        happened.drain(&self.device);
        let first = self.first.load(Ordering::Relaxed);
        let count = happened.count.load(Ordering::Acquire);
        if count <= first {
            return Ok(());
        }
        for seen in happened.since(first) {
            let is_ridden_out = self.rides_out && seen.event.0 == PORT_ERR;
            if !is_ridden_out && self.concerns(seen) && self.still(seen) {
                return Err(failure(stage, self.device.name(), self.port.number, seen));
            }
        }
        self.first.store(count, Ordering::Relaxed);
        Ok(())
    }

    fn concerns(&self, seen: Seen) -> bool {
        match seen.on {
            On::Device => true,
            On::Port(number) => number == self.port.number,
            On::QueuePair(number) => self.queue_pairs.contains(&number),
            On::CompletionQueue(queue) => self.queues.contains(&queue),
        }
    }

    /// Whether an event that says that a table changed changed what the link uses: an address that is added elsewhere, or
    /// a LID that is given again, harms nobody.
    fn still(&self, seen: Seen) -> bool {
        let now = || Port::query(&self.device, self.port.number);
        match seen.event.0 {
            LID_CHANGE => now().is_ok_and(|port| port.lid != self.port.lid),
            PKEY_CHANGE => {
                self.pkey.is_some_and(|pkey| self.port.pkeys(&self.device).is_ok_and(|table| !table.contains(&pkey)))
            }
            GID_CHANGE => {
                self.gid.is_some_and(|gid| self.port.gids(&self.device).is_ok_and(|table| !same(&table, gid)))
            }
            _ => true,
        }
    }
}

fn same(table: &[Gid], gid: Gid) -> bool {
    table.iter().any(|entry| (entry.index, entry.raw) == (gid.index, gid.raw))
}

fn failure(stage: Stage, device: &str, port: u8, seen: Seen) -> Failure {
    let (code, name, meaning) = seen.event;
    let (kind, remedy) = remedy(code);
    let on = match seen.on {
        On::Device => device.to_owned(),
        On::Port(number) => format!("{device}:{number}"),
        On::QueuePair(number) => format!("{device}:{port}, queue pair {number:#x}"),
        On::CompletionQueue(_) => format!("{device}:{port}"),
    };
    Failure::new(stage, kind, format!("{on}: {meaning} while the link was in use (IBV_EVENT_{name})")).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_the_case_with_its_name_its_device_and_its_port() {
        let event = *EVENTS.iter().find(|event| event.0 == PORT_ERR).unwrap();
        let seen = Seen { event, on: On::Port(2) };
        let failure = failure(Stage::Measure, "mlx5_3", 2, seen);
        assert_eq!(failure.kind, Kind::Fabric);
        assert!(failure.cause.contains("mlx5_3:2") && failure.cause.contains("IBV_EVENT_PORT_ERR"), "{failure}");
        assert!(failure.remedy.is_some());
    }

    #[test]
    fn an_address_that_is_added_beside_the_one_in_use_is_no_change_of_it() {
        use super::super::gid::GidKind::RoceV2;
        let gid =
            |index, last| Gid { index, raw: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, last], kind: RoceV2 };
        let own = gid(3, 1);
        assert!(same(&[own, gid(5, 9)], own));
        assert!(!same(&[gid(3, 9)], own), "another address at its index");
        assert!(!same(&[gid(5, 1)], own), "the address at another index");
    }
}
