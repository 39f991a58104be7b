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

use super::{device::Device, gid::Gid, pkey::Pkey, port::Port, queue_pair::QueuePair};

/// How long an event may be behind the completion that it explains: far more than two interrupts are apart, and nothing beside
/// a failed case.
const BEHIND: Duration = Duration::from_millis(100);

/// `enum ibv_event_type` of <infiniband/verbs.h>, as far as it says that something is wrong or was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    CqErr,
    QpFatal,
    QpRequestErr,
    QpAccessErr,
    DeviceFatal,
    PortErr,
    LidChange,
    PkeyChange,
    GidChange,
}

impl What {
    const fn of(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::CqErr,
            1 => Self::QpFatal,
            2 => Self::QpRequestErr,
            3 => Self::QpAccessErr,
            8 => Self::DeviceFatal,
            10 => Self::PortErr,
            11 => Self::LidChange,
            12 => Self::PkeyChange,
            18 => Self::GidChange,
            // Established, drained, migrated, active, another subnet manager, shared queues, which we have none of.
            _ => return None,
        })
    }

    /// Its name, what it means, and what to look at.
    const fn words(self) -> (&'static str, &'static str, Kind, Entry) {
        match self {
            Self::CqErr => {
                ("IBV_EVENT_CQ_ERR", "a completion queue ran over or broke", Kind::Internal, remedy::LOOK_AT_DEVICE)
            }
            Self::QpFatal => (
                "IBV_EVENT_QP_FATAL",
                "the device stopped a queue pair after an error of its own",
                Kind::Fabric,
                remedy::LOOK_AT_DEVICE,
            ),
            Self::QpRequestErr => (
                "IBV_EVENT_QP_REQ_ERR",
                "the peer sent a request that a queue pair cannot take",
                Kind::Fabric,
                remedy::LOOK_AT_PEER_ERROR,
            ),
            Self::QpAccessErr => (
                "IBV_EVENT_QP_ACCESS_ERR",
                "the peer asked for memory that it may not touch",
                Kind::Fabric,
                remedy::LOOK_AT_PEER_ERROR,
            ),
            Self::DeviceFatal => (
                "IBV_EVENT_DEVICE_FATAL",
                "the device failed and will be reset",
                Kind::Configuration,
                remedy::RESET_DEVICE,
            ),
            Self::PortErr => ("IBV_EVENT_PORT_ERR", "the port went down", Kind::Fabric, remedy::LINK_WENT_DOWN),
            Self::LidChange => (
                "IBV_EVENT_LID_CHANGE",
                "the subnet manager gave the port another LID",
                Kind::Configuration,
                remedy::SUBNET_CHANGED,
            ),
            Self::PkeyChange => (
                "IBV_EVENT_PKEY_CHANGE",
                "the subnet manager changed the port's partitions",
                Kind::Configuration,
                remedy::SUBNET_CHANGED,
            ),
            Self::GidChange => (
                "IBV_EVENT_GID_CHANGE",
                "the GID in use was taken away or changed",
                Kind::Configuration,
                remedy::ADDRESS_CHANGED,
            ),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Device,
    Port(u8),
    QueuePair(u32),
    /// By the address of libibverbs' own object.
    CompletionQueue(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    what: What,
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
            let what = What::of(code);
            // SAFETY: the library has filled in the member that belongs to this kind of event; what it points to lives
            // until the event is acknowledged, right below.
            let on = what.map(|what| unsafe { about(what, &*event.as_ptr()) });
            // SAFETY: acknowledged once; nothing of it is used afterwards.
            unsafe { (library.ibv_ack_async_event)(event.as_mut_ptr()) };
            if let (Some(what), Some(on)) = (what, on) {
                seen.push(Seen { what, on });
                self.count.store(seen.len(), Ordering::Release);
            }
        }
    }

    fn since(&self, first: usize) -> Vec<Seen> {
        self.seen.lock().get(first..).unwrap_or_default().to_vec()
    }
}

/// # Safety
/// `event` is one of the library's of the kind `what`, not acknowledged yet.
unsafe fn about(what: What, event: &ibv_async_event) -> On {
    // SAFETY: as the caller vouches, this is the member that is set.
    unsafe {
        match what {
            What::CqErr => On::CompletionQueue(event.element.cq as usize),
            What::QpFatal | What::QpRequestErr | What::QpAccessErr => On::QueuePair((*event.element.qp).qp_num),
            What::DeviceFatal => On::Device,
            What::PortErr | What::LidChange | What::PkeyChange | What::GidChange => {
                On::Port(u8::try_from(event.element.port_num).unwrap_or(0))
            }
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
    /// Whether a port that went down ends nothing.
    rides_out: bool,
    /// Events that were seen before the link stood.
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
            for queue in [pair.send_queue(), pair.receive_queue()] {
                self.queues.push(queue.raw() as usize);
            }
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
            let is_ridden_out = self.rides_out && seen.what == What::PortErr;
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
        match seen.what {
            What::LidChange => now().is_ok_and(|port| port.lid != self.port.lid),
            What::PkeyChange => {
                self.pkey.is_some_and(|pkey| self.port.pkeys(&self.device).is_ok_and(|table| !table.contains(&pkey)))
            }
            What::GidChange => {
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
    let (name, meaning, kind, remedy) = seen.what.words();
    let on = match seen.on {
        On::Device => device.to_owned(),
        On::Port(number) => format!("{device}:{number}"),
        On::QueuePair(number) => format!("{device}:{port}, queue pair {number:#x}"),
        On::CompletionQueue(_) => format!("{device}:{port}"),
    };
    Failure::new(stage, kind, format!("{on}: {meaning} while the link was in use ({name})")).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_the_case_with_its_name_its_device_and_its_port() {
        let seen = Seen { what: What::PortErr, on: On::Port(2) };
        let failure = failure(Stage::Measure, "mlx5_3", 2, seen);
        assert_eq!(failure.kind, Kind::Fabric);
        assert!(failure.cause.contains("mlx5_3:2") && failure.cause.contains("IBV_EVENT_PORT_ERR"), "{failure}");
        assert!(failure.remedy.is_some());
    }

    #[test]
    fn every_event_of_the_header_that_harms_has_words_and_the_others_are_passed_over() {
        let known: Vec<u32> = (0..64).filter(|code| What::of(*code).is_some()).collect();
        assert_eq!(known, [0, 1, 2, 3, 8, 10, 11, 12, 18]);
        let names: std::collections::BTreeSet<_> =
            known.iter().filter_map(|code| What::of(*code)).map(|what| what.words().0).collect();
        assert_eq!(names.len(), known.len());
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
