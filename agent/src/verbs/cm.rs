//! rdma_cm: connections by librdmacm, which iWARP and eRDMA in standard mode require.
//!
//! The library opens the device itself and changes the states of queue pairs, so everything of a connection uses its context
//! ([`Identifier::device`]).

use std::{
    mem,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
    ptr::{self, NonNull},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use railgauge_wire::{Failure, Kind, Stage, remedy};
use rdma_sys::*;
use rustix::fs::{OFlags, fcntl_setfl};
use socket2::SockAddr;

use super::{
    Device, Doing, Domain,
    library::CmLibrary,
    words::{self},
};
use crate::system::{
    log,
    wait::{READABLE, wait},
};

/// Time limit to resolve an address or a route, in milliseconds.
const RESOLVE_MS: i32 = 5_000;

/// `RDMA_OPTION_ID` and `RDMA_OPTION_ID_TOS` of <rdma/rdma_cma.h>.
const TYPE_OF_SERVICE: (i32, i32) = (0, 0);

fn failed(what: &str) -> Failure {
    let failure = words::last(Stage::Join, Doing::ConnectionManager, "librdmacm");
    Failure { cause: format!("{} ({what})", failure.cause), ..failure }
}

#[derive(Debug)]
pub struct Events {
    library: &'static CmLibrary,
    handle: NonNull<rdma_event_channel>,
    /// In order, those that nobody has waited for.
    waiting: Mutex<Vec<Event>>,
}

#[derive(Debug)]
pub struct Event {
    pub kind: rdma_cm_event_type::Type,
    /// The identifier of the event; for a connection request, the new one.
    id: *mut rdma_cm_id,
    pub status: i32,
    pub private: Vec<u8>,
}

impl Events {
    pub fn new() -> Result<Arc<Self>, Failure> {
        let library = CmLibrary::get()?;
        // SAFETY: no preconditions.
        let handle = unsafe { (library.rdma_create_event_channel)() };
        let handle =
            NonNull::new(handle).ok_or_else(|| failed("creating an event channel").remedy(remedy::RDMA_CM_DEVICE))?;
        let events = Self { library, handle, waiting: Mutex::default() };
        // So that deadlines are kept.
        fcntl_setfl(&events, OFlags::NONBLOCK).map_err(|_| failed("preparing an event channel"))?;
        Ok(Arc::new(events))
    }

    pub(crate) fn library(&self) -> &str {
        self.library.file()
    }

    /// The next event; a request for a connection with its new identifier.
    pub fn next(self: &Arc<Self>, limit: Instant) -> Result<(Event, Option<Identifier>), Failure> {
        let event = first(&self.waiting, |_| true, || self.take(limit))?;
        let request = event.request().map(|handle| Identifier { handle, events: self.clone() });
        Ok((event, request))
    }

    fn take(&self, limit: Instant) -> Result<Event, Failure> {
        loop {
            let mut event = ptr::null_mut();
            // SAFETY: the channel is alive and `event` valid for writing.
            if unsafe { (self.library.rdma_get_cm_event)(self.handle.as_ptr(), &raw mut event) } == 0 {
                // SAFETY: the library handed out an event that stays until it is acknowledged, right below.
                let copy = unsafe { copied(&*event) };
                // SAFETY: acknowledged once; nothing of it is used afterwards.
                unsafe { (self.library.rdma_ack_cm_event)(event) };
                return Ok(copy);
            }
            if std::io::Error::last_os_error().kind() != std::io::ErrorKind::WouldBlock {
                return Err(failed("waiting for an event"));
            }
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::new(Stage::Join, Kind::Deadline, "rdma_cm: the peer did not answer in time")
                    .remedy(remedy::PING_PEER));
            }
            wait([(self.as_fd(), READABLE)], Some(left.min(Duration::from_millis(100))))
                .map_err(|error| Failure::new(Stage::Join, Kind::Internal, format!("waiting for rdma_cm: {error}")))?;
        }
    }

    /// Events of other identifiers are kept for those who wait for them.
    fn expect(&self, id: &Identifier, kind: rdma_cm_event_type::Type, limit: Instant) -> Result<(), Failure> {
        let own = |event: &Event| event.id == id.handle.as_ptr();
        let event = first(&self.waiting, own, || self.take(limit))?;
        if event.kind == kind { Ok(()) } else { Err(event.failure()) }
    }
}

/// The first event wanted, of those that wait or that come.
fn first<E>(
    waiting: &Mutex<Vec<E>>,
    wanted: impl Fn(&E) -> bool,
    take: impl Fn() -> Result<E, Failure>,
) -> Result<E, Failure> {
    loop {
        let mut known = waiting.lock();
        if let Some(at) = known.iter().position(&wanted) {
            return Ok(known.remove(at));
        }
        drop(known);
        let event = take()?;
        waiting.lock().push(event);
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open for as long as the channel lives.
        unsafe { BorrowedFd::borrow_raw(self.handle.as_ref().fd) }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        for request in self.waiting.get_mut().iter().filter_map(Event::request) {
            // SAFETY: the library's new identifier, which nothing else has got.
            unsafe { destroy(self.library, request.as_ptr()) };
        }
        // SAFETY: came from rdma_create_event_channel; identifiers on it hold an Arc of this.
        unsafe { (self.library.rdma_destroy_event_channel)(self.handle.as_ptr()) };
    }
}

/// # Safety
/// The identifier is the library's and in no other hands, it has no queue pair, and its events are acknowledged.
unsafe fn destroy(library: &CmLibrary, id: *mut rdma_cm_id) {
    // SAFETY: the caller's promise.
    if unsafe { (library.rdma_destroy_id)(id) } != 0 {
        log!("{}", failed("destroying an identifier"));
    }
}

// SAFETY: librdmacm allows every call on a channel from any thread.
unsafe impl Send for Events {}
// SAFETY: as above.
unsafe impl Sync for Events {}

/// # Safety
/// `event` is one of the library's, not acknowledged yet.
unsafe fn copied(event: &rdma_cm_event) -> Event {
    // SAFETY: for connected port spaces, the only ones used here, this is the member that is set.
    let param = unsafe { &event.param.conn };
    let private = if param.private_data.is_null() {
        Vec::new()
    } else {
        // SAFETY: the library says that so many bytes are there.
        unsafe { std::slice::from_raw_parts(param.private_data.cast(), usize::from(param.private_data_len)) }.to_vec()
    };
    Event { kind: event.event, id: event.id, status: event.status, private }
}

impl Event {
    /// The new identifier of a request.
    fn request(&self) -> Option<NonNull<rdma_cm_id>> {
        let request = self.kind == rdma_cm_event_type::RDMA_CM_EVENT_CONNECT_REQUEST;
        NonNull::new(self.id).filter(|_| request)
    }

    pub fn established(&self) -> Result<bool, Failure> {
        use rdma_cm_event_type as is;
        match self.kind {
            is::RDMA_CM_EVENT_ESTABLISHED => Ok(true),
            is::RDMA_CM_EVENT_DISCONNECTED | is::RDMA_CM_EVENT_TIMEWAIT_EXIT => Ok(false),
            _ => Err(self.failure()),
        }
    }

    pub fn failure(&self) -> Failure {
        use rdma_cm_event_type as is;
        let (what, kind, remedy) = match self.kind {
            is::RDMA_CM_EVENT_ADDR_ERROR => {
                ("the peer's address does not resolve", Kind::Fabric, Some(remedy::PING_PEER))
            }
            is::RDMA_CM_EVENT_ROUTE_ERROR => ("no route to the peer", Kind::Fabric, Some(remedy::COMPARE_ROUTES)),
            is::RDMA_CM_EVENT_UNREACHABLE => {
                ("the peer is unreachable", Kind::Fabric, Some(remedy::CHECK_PATH_TO_PEER))
            }
            is::RDMA_CM_EVENT_REJECTED => {
                ("the peer refused the connection", Kind::Fabric, Some(remedy::LOOK_AT_PEER_ERROR))
            }
            is::RDMA_CM_EVENT_CONNECT_ERROR => ("connecting failed", Kind::Fabric, Some(remedy::LOOK_AT_PEER_ERROR)),
            is::RDMA_CM_EVENT_DISCONNECTED => ("the peer hung up", Kind::Fabric, Some(remedy::LOOK_AT_PEER_ERROR)),
            is::RDMA_CM_EVENT_DEVICE_REMOVAL => {
                ("the device went away", Kind::Configuration, Some(remedy::LOOK_AT_DEVICE))
            }
            _ => ("an event out of turn", Kind::Internal, None),
        };
        let cause = format!("rdma_cm: {what} (event {}, status {})", self.kind, self.status);
        Failure::new(Stage::Join, kind, cause).remedy_if(remedy)
    }
}

#[derive(Debug)]
pub struct Identifier {
    handle: NonNull<rdma_cm_id>,
    events: Arc<Events>,
}

#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    pub private: &'a [u8],
    pub accept: u8,
    pub outstanding: u8,
    pub retries: u8,
}

impl Terms<'_> {
    fn parameters(&self) -> rdma_conn_param {
        // SAFETY: all zero (a null pointer, numbers) is a valid value of this structure.
        let mut parameters: rdma_conn_param = unsafe { mem::zeroed() };
        parameters.private_data = self.private.as_ptr().cast();
        parameters.private_data_len = self.private.len() as u8;
        parameters.responder_resources = self.accept;
        parameters.initiator_depth = self.outstanding;
        parameters.flow_control = 1;
        parameters.retry_count = self.retries.min(7);
        parameters.rnr_retry_count = 6;
        parameters
    }
}

impl Identifier {
    pub fn new(events: &Arc<Events>) -> Result<Self, Failure> {
        let mut handle = ptr::null_mut();
        let (create, space) = (events.library.rdma_create_id, rdma_port_space::RDMA_PS_TCP);
        // SAFETY: the channel is alive and `handle` valid for writing.
        let rc = unsafe { create(events.handle.as_ptr(), &raw mut handle, ptr::null_mut(), space) };
        match NonNull::new(handle) {
            Some(handle) if rc == 0 => Ok(Self { handle, events: events.clone() }),
            _ => Err(failed("creating an identifier")),
        }
    }

    fn done(&self, rc: i32, what: &str) -> Result<(), Failure> {
        if rc == 0 { Ok(()) } else { Err(failed(what)) }
    }

    pub fn bind(&self, address: SocketAddr) -> Result<(), Failure> {
        let to = SockAddr::from(address);
        // SAFETY: the identifier is alive and the address valid for the call.
        let rc = unsafe { (self.events.library.rdma_bind_addr)(self.handle.as_ptr(), to.as_ptr().cast()) };
        self.done(rc, &format!("binding to {}", address.ip()))
    }

    pub fn listen(&self, backlog: u32) -> Result<u16, Failure> {
        let (library, id) = (self.events.library, self.handle.as_ptr());
        // SAFETY: the identifier is alive and bound.
        self.done(unsafe { (library.rdma_listen)(id, backlog.cast_signed()) }, "listening")?;
        // SAFETY: as above.
        Ok(u16::from_be(unsafe { (library.rdma_get_src_port)(id) }))
    }

    pub fn device(self: &Arc<Self>, name: &str) -> Result<Arc<Device>, Failure> {
        // SAFETY: the identifier is alive.
        let context = NonNull::new(unsafe { self.handle.as_ref() }.verbs).ok_or_else(|| {
            Failure::new(Stage::Open, Kind::Configuration, "rdma_cm: no RDMA device has this address")
        })?;
        // SAFETY: the context is open for as long as an identifier is bound to it, and this one is kept.
        unsafe { Device::borrowed(context, name, self.clone()) }
    }

    pub fn traffic_class(&self, class: u8) {
        let mut class = class;
        let (level, option) = TYPE_OF_SERVICE;
        // SAFETY: the identifier is alive, and the option is one byte long. A refusal shows in the counters only.
        unsafe {
            (self.events.library.rdma_set_option)(self.handle.as_ptr(), level, option, (&raw mut class).cast(), 1)
        };
    }

    pub fn resolve(&self, own: SocketAddr, peer: SocketAddr, limit: Instant) -> Result<(), Failure> {
        let (from, to) = (SockAddr::from(own), SockAddr::from(peer));
        let (library, id) = (self.events.library, self.handle.as_ptr());
        // SAFETY: the identifier is alive and the addresses valid for the call.
        let rc = unsafe { (library.rdma_resolve_addr)(id, from.as_ptr().cast(), to.as_ptr().cast(), RESOLVE_MS) };
        self.done(rc, &format!("resolving {peer}"))?;
        self.events.expect(self, rdma_cm_event_type::RDMA_CM_EVENT_ADDR_RESOLVED, limit)?;
        // SAFETY: as above.
        self.done(unsafe { (library.rdma_resolve_route)(id, RESOLVE_MS) }, &format!("finding a route to {peer}"))?;
        self.events.expect(self, rdma_cm_event_type::RDMA_CM_EVENT_ROUTE_RESOLVED, limit)
    }

    /// With a queue pair, which is destroyed with it: what owns this drops it before the domain and the queues.
    pub(super) fn create(self, domain: &Domain, attributes: &mut ibv_qp_init_attr) -> Result<Self, (Self, i32)> {
        let create = self.events.library.rdma_create_qp;
        // SAFETY: identifier and domain are alive, and the attributes valid for the call.
        if unsafe { create(self.handle.as_ptr(), domain.handle.as_ptr(), attributes) } == 0 {
            return Ok(self);
        }
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
        Err((self, errno))
    }

    /// Null before `create`.
    pub(super) fn queue_pair(&self) -> *mut ibv_qp {
        // SAFETY: the identifier is alive.
        unsafe { self.handle.as_ref() }.qp
    }

    pub fn connect(&self, terms: &Terms<'_>, limit: Instant) -> Result<(), Failure> {
        let mut parameters = terms.parameters();
        // SAFETY: the identifier is alive and resolved, the parameters valid for the call.
        let rc = unsafe { (self.events.library.rdma_connect)(self.handle.as_ptr(), &raw mut parameters) };
        self.done(rc, "asking for a connection")?;
        self.events.expect(self, rdma_cm_event_type::RDMA_CM_EVENT_ESTABLISHED, limit)
    }

    pub fn accept(&self, terms: &Terms<'_>) -> Result<(), Failure> {
        let mut parameters = terms.parameters();
        // SAFETY: the identifier is alive and of a request, the parameters valid for the call.
        let rc = unsafe { (self.events.library.rdma_accept)(self.handle.as_ptr(), &raw mut parameters) };
        self.done(rc, "granting a connection")
    }

    pub fn reject(&self) {
        // SAFETY: the identifier is alive and of a request.
        unsafe { (self.events.library.rdma_reject)(self.handle.as_ptr(), ptr::null(), 0) };
    }
}

impl Drop for Identifier {
    fn drop(&mut self) {
        let (library, id) = (self.events.library, self.handle.as_ptr());
        // Another identifier may get its address.
        self.events.waiting.lock().retain(|event| event.id != id);
        // SAFETY: came from rdma_create_id or a request; all its events are acknowledged. Hanging up what was never
        // connected is refused, which is as good.
        unsafe {
            if !self.queue_pair().is_null() {
                (library.rdma_destroy_qp)(id);
            }
            (library.rdma_disconnect)(id);
            destroy(library, id);
        }
    }
}

// SAFETY: librdmacm allows every call on an identifier from any thread.
unsafe impl Send for Identifier {}
// SAFETY: as above.
unsafe impl Sync for Identifier {}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_event_that_another_waits_for_is_kept_in_its_order() {
        let (waiting, next) = (Mutex::default(), Cell::new(0));
        let take = || {
            next.set(next.get() + 1);
            if next.get() > 6 { Err(Failure::new(Stage::Join, Kind::Deadline, "no event")) } else { Ok(next.get()) }
        };
        assert_eq!(first(&waiting, |event| *event == 4, take), Ok(4));
        assert_eq!(first(&waiting, |event| event % 2 == 0, take), Ok(2));
        assert_eq!([(); 4].map(|()| first(&waiting, |_| true, take)), [Ok(1), Ok(3), Ok(5), Ok(6)]);
        assert_eq!(first(&waiting, |_| true, take).unwrap_err().kind, Kind::Deadline);
    }
}
