//! Asynchronous events: what happens to a device, a port or a queue apart from posted work (`ibv_get_async_event(3)`).
//!
//! A context has one stream of events for all its links. Each reader drains it without waiting, and keeps the events for the others.
//! librdmacm has one context of a device for all its connections, so several [`Device`]s may share a context: they share what was read.

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

/// Maximum delay of an event after the completion that it explains: far longer than between two interrupts, and short for a failed case.
const BEHIND: Duration = Duration::from_millis(100);

/// An `enum ibv_event_type` of <infiniband/verbs.h>: its number, its name, and its meaning.
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

/// Events of faults and changes. Omitted: established, drained, migrated, active, another subnet manager, and those of shared queues,
/// which we do not use.
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

#[derive(Debug)]
pub(super) struct Happened {
    seen: Mutex<Vec<Seen>>,
    /// Length of `seen`, read without the lock.
    count: AtomicUsize,
}

/// Events of contexts that librdmacm has opened, by the context's address.
static SHARED: Mutex<Vec<(usize, Weak<Happened>)>> = Mutex::new(Vec::new());

impl Happened {
    /// For a context with other users: one for all of them. The context must stay open while the returned value lives, so that its
    /// address is not reused.
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
        // Locked from poll to push, so that an event that one thread takes is visible to all.
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

/// The resources of a link that its events concern.
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

    /// For a link that outlives breaks of its port: the retries of its queue pairs decide when it ends.
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

    /// Finds the event behind a failure, which may arrive a little after the failed completion: a device uses different queues. Call it
    /// only after a failure, since it waits if there is no event.
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

    /// Whether a changed table still has what the link uses: an address added elsewhere, or a LID assigned again, does no harm.
    /// a LID that is given again, does no harm.
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
