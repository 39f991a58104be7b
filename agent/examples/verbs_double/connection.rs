//! librdmacm: identifiers, their events, and connections made over a Unix socket per listener.
//!
//! A request is `address of the listener → socket`; over it travel the queue pairs' numbers and the private data, as the
//! MPA or CM messages carry them. What iWARP needs and RoCE has too: the library moves the queue pairs (R librdmacm/cma.c
//! ucma_init_conn_qp, ucma_modify_qp_rtr, ucma_modify_qp_rts).

use std::{
    ffi::{c_int, c_void},
    io::{self, Read, Write},
    mem,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    thread,
};

use parking_lot::Mutex;
use rdma_sys::*;

use crate::{
    device, event, fabric, port,
    queue_pair::{self, Pair},
    refused,
    settings::settings,
    wire::{self, Plain},
};

/// What either side tells the other, with its private data behind it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    /// 0 refuses, 1 asks, grants or confirms.
    granted: u32,
    number: u32,
    reads: u32,
    length: u32,
    gid: [u8; 16],
}

// SAFETY: four numbers of 32 bits and an array of 16 bytes.
unsafe impl Plain for Word {}

/// Bytes of private data that a request shows (R librdmacm: requests over TCP's port space arrive padded to 56).
const REQUEST: usize = 56;

#[repr(C)]
struct Channel {
    channel: rdma_event_channel,
    events: c_int,
}

#[repr(C)]
struct Identifier {
    id: rdma_cm_id,
    events: c_int,
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    /// Socket of a listener.
    listening: Option<PathBuf>,
    shared: Arc<Shared>,
}

/// What an identifier's threads have of it.
struct Shared {
    stream: Mutex<Option<UnixStream>>,
    pair: Mutex<Option<Arc<Pair>>>,
    ended: Mutex<bool>,
}

/// An event, with the bytes it points to.
#[repr(C)]
struct Event {
    event: rdma_cm_event,
    private: Vec<u8>,
}

const UNSET: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Writes an event to a channel.
fn raise(events: c_int, id: usize, kind: rdma_cm_event_type::Type, status: c_int, private: Vec<u8>) {
    // SAFETY: all zero (null pointers, numbers) is a valid value of this structure.
    let mut event: rdma_cm_event = unsafe { mem::zeroed() };
    event.id = ptr::with_exposed_provenance_mut(id);
    (event.event, event.status) = (kind, status);
    let mut made = Box::new(Event { event, private });
    // SAFETY: all zero is a valid value of this member, which is the one of connections.
    let mut param: rdma_conn_param = unsafe { mem::zeroed() };
    if !made.private.is_empty() {
        param.private_data = made.private.as_ptr().cast();
        param.private_data_len = made.private.len() as u8;
    }
    made.event.param.conn = param;
    event::write(events, &Box::into_raw(made).expose_provenance());
}

/// A socket address as it is given.
///
/// # Safety
/// It is one of IPv4 or IPv6.
unsafe fn read(address: *const libc::sockaddr) -> Option<(IpAddr, u16)> {
    // SAFETY: the family says which structure it is.
    unsafe {
        match c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let found = &*address.cast::<libc::sockaddr_in>();
                Some((Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr)).into(), u16::from_be(found.sin_port)))
            }
            libc::AF_INET6 => {
                let found = &*address.cast::<libc::sockaddr_in6>();
                Some((Ipv6Addr::from(found.sin6_addr.s6_addr).into(), u16::from_be(found.sin6_port)))
            }
            _ => None,
        }
    }
}

fn socket((ip, port): (IpAddr, u16)) -> Option<PathBuf> {
    Some(settings()?.directory.join(format!("cm-{ip}-{port}.sock").replace(':', ".")))
}

/// Ports that nobody else on this fabric has: by the process's number.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process = fabric::fabric().map_or(0, |fabric| fabric.process as u16);
    20_000 + (process % 40) * 1000 + NEXT.fetch_add(1, Ordering::Relaxed) % 1000
}

fn say(mut to: &UnixStream, word: Word, private: &[u8]) -> io::Result<()> {
    wire::put(&mut to, &Word { length: private.len() as u32, ..word })?;
    to.write_all(private)
}

fn hear(mut from: &UnixStream) -> io::Result<(Word, Vec<u8>)> {
    let word: Word = wire::get(&mut from)?;
    let mut private = vec![0; word.length.min(256) as usize];
    from.read_exact(&mut private)?;
    Ok((word, private))
}

/// What this side tells of itself.
fn own(granted: u32, pair: Option<&Arc<Pair>>, reads: u8) -> Word {
    let device = pair.map_or(0, |pair| pair.device);
    let index = settings().map_or(0, |settings| settings.profile.address_index());
    let gid = port::gid(device, index).map_or([0; 16], |(gid, _)| gid);
    Word { granted, number: pair.map_or(0, |pair| pair.number), reads: u32::from(reads), length: 0, gid }
}

/// Moves a queue pair to RTS as the peer's word says.
fn connect(pair: &Arc<Pair>, peer: &Word, reads: u8) -> Result<(), c_int> {
    use ibv_qp_attr_mask as mask;
    let profile = settings().ok_or(libc::EIO)?.profile;
    // SAFETY: all zero is a valid value of this structure of numbers.
    let mut to: ibv_qp_attr = unsafe { mem::zeroed() };
    to.qp_state = ibv_qp_state::IBV_QPS_RTR;
    (to.path_mtu, to.dest_qp_num, to.max_dest_rd_atomic, to.min_rnr_timer) = (profile.mtu.1, peer.number, reads, 12);
    (to.ah_attr.is_global, to.ah_attr.port_num) = (1, 1);
    to.ah_attr.grh.dgid = ibv_gid { raw: peer.gid };
    to.ah_attr.grh.sgid_index = profile.address_index() as u8;
    let receive =
        mask::IBV_QP_STATE | mask::IBV_QP_AV | mask::IBV_QP_PATH_MTU | mask::IBV_QP_DEST_QPN | mask::IBV_QP_RQ_PSN;
    pair.modify(&to, (receive | mask::IBV_QP_MAX_DEST_RD_ATOMIC | mask::IBV_QP_MIN_RNR_TIMER).0)?;
    to.qp_state = ibv_qp_state::IBV_QPS_RTS;
    (to.max_rd_atomic, to.retry_cnt, to.rnr_retry, to.timeout) = (reads.min(peer.reads as u8), 7, 7, 18);
    let send = mask::IBV_QP_STATE | mask::IBV_QP_SQ_PSN | mask::IBV_QP_MAX_QP_RD_ATOMIC | mask::IBV_QP_RETRY_CNT;
    pair.modify(&to, (send | mask::IBV_QP_RNR_RETRY | mask::IBV_QP_TIMEOUT).0)
}

/// Waits for the end of a connection, and tells of it once.
fn watch(events: c_int, id: usize, shared: &Shared, mut stream: &UnixStream) {
    let mut byte = [0];
    let _ = stream.read(&mut byte);
    if !mem::replace(&mut *shared.ended.lock(), true) {
        if let Some(pair) = &*shared.pair.lock() {
            pair.fail();
        }
        raise(events, id, rdma_cm_event_type::RDMA_CM_EVENT_DISCONNECTED, 0, Vec::new());
    }
}

impl Identifier {
    fn new(channel: *mut rdma_event_channel, events: c_int, context: *mut c_void) -> *mut Self {
        // SAFETY: all zero (null pointers, numbers) is a valid value of this structure.
        let mut id: rdma_cm_id = unsafe { mem::zeroed() };
        (id.channel, id.context, id.ps) = (channel, context, rdma_port_space::RDMA_PS_TCP);
        let shared = Shared { stream: Mutex::new(None), pair: Mutex::new(None), ended: Mutex::new(true) };
        let (local, remote) = (UNSET, UNSET);
        let made = Self { id, events, local, remote, listening: None, shared: Arc::new(shared) };
        let made = Box::into_raw(Box::new(made));
        made.expose_provenance();
        made
    }

    /// Opens the device behind the address.
    fn bound(&mut self, address: (IpAddr, u16)) -> Result<(), c_int> {
        let context = device::shared().ok_or(libc::ENODEV)?;
        self.local = (address.0, if address.1 == 0 { free_port() } else { address.1 });
        (self.id.verbs, self.id.port_num) = (context, 1);
        Ok(())
    }
}

fn result(done: Result<(), c_int>) -> c_int {
    match done {
        Ok(()) => 0,
        Err(errno) => {
            refused::<u8>(errno);
            -1
        }
    }
}

/// A listener's thread: every stream that comes is a request, with an identifier of its own.
fn requests(listener: &UnixListener, channel: usize, events: c_int) {
    for stream in listener.incoming().flatten() {
        let Ok((word, mut private)) = hear(&stream) else { continue };
        if word.granted == 0 {
            // The listener ends.
            return;
        }
        let new = Identifier::new(ptr::with_exposed_provenance_mut(channel), events, ptr::null_mut());
        // SAFETY: just made, and nobody else has it yet.
        let made = unsafe { &mut *new };
        let Some(context) = device::shared() else { continue };
        (made.id.verbs, made.id.port_num) = (context, 1);
        *made.shared.stream.lock() = Some(stream);
        // What the peer said is kept beside the identifier until it is granted.
        PENDING.lock().push((new.expose_provenance(), word));
        private.resize(REQUEST, 0);
        raise(events, new.expose_provenance(), rdma_cm_event_type::RDMA_CM_EVENT_CONNECT_REQUEST, 0, private);
    }
}

/// Requests that were neither granted nor refused, and what they said.
static PENDING: Mutex<Vec<(usize, Word)>> = Mutex::new(Vec::new());

fn pending(id: usize) -> Option<Word> {
    let mut pending = PENDING.lock();
    let place = pending.iter().position(|(known, _)| *known == id)?;
    Some(pending.swap_remove(place).1)
}

/// The private data of a parameter.
///
/// # Safety
/// The parameter is valid for the call.
unsafe fn private(parameters: *const rdma_conn_param) -> Vec<u8> {
    // SAFETY: the caller vouches for it.
    unsafe {
        let (data, length) = ((*parameters).private_data.cast::<u8>(), usize::from((*parameters).private_data_len));
        if data.is_null() { Vec::new() } else { std::slice::from_raw_parts(data, length).to_vec() }
    }
}

exported! {
    fn rdma_create_event_channel() -> *mut rdma_event_channel {
        if settings().is_none() {
            return refused(libc::ENODEV);
        }
        let Ok((fd, events)) = event::pipe() else { return refused(libc::EMFILE) };
        Box::into_raw(Box::new(Channel { channel: rdma_event_channel { fd }, events })).cast()
    }
    fn rdma_destroy_event_channel(channel: *mut rdma_event_channel) -> () {
        let channel = Box::from_raw(channel.cast::<Channel>());
        libc::close(channel.channel.fd);
        // The other end stays open: a thread may still tell of the end of a connection, to nobody.
    }
    fn rdma_create_id(
        channel: *mut rdma_event_channel, into: *mut *mut rdma_cm_id, context: *mut c_void, _space: rdma_port_space::Type
    ) -> c_int {
        *into = Identifier::new(channel, (*channel.cast::<Channel>()).events, context).cast();
        0
    }
    fn rdma_destroy_id(id: *mut rdma_cm_id) -> c_int {
        let made = Box::from_raw(id.cast::<Identifier>());
        pending(id.expose_provenance());
        *made.shared.ended.lock() = true;
        if let Some(path) = &made.listening {
            // Wakes the listener's thread, which ends.
            let _ = UnixStream::connect(path).and_then(|stream| say(&stream, Word::default(), &[]));
            let _ = std::fs::remove_file(path);
        }
        if let Some(stream) = made.shared.stream.lock().take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        0
    }
    fn rdma_bind_addr(id: *mut rdma_cm_id, address: *const libc::sockaddr) -> c_int {
        let made = &mut *id.cast::<Identifier>();
        result(read(address).ok_or(libc::EINVAL).and_then(|address| made.bound(address)))
    }
    fn rdma_listen(id: *mut rdma_cm_id, _backlog: c_int) -> c_int {
        let made = &mut *id.cast::<Identifier>();
        let Some(path) = socket(made.local) else { return result(Err(libc::EINVAL)) };
        let Ok(listener) = UnixListener::bind(&path) else { return result(Err(libc::EADDRINUSE)) };
        made.listening = Some(path);
        let (channel, events) = (made.id.channel.expose_provenance(), made.events);
        thread::spawn(move || requests(&listener, channel, events));
        0
    }
    fn rdma_get_src_port(id: *mut rdma_cm_id) -> u16 { (*id.cast::<Identifier>()).local.1.to_be() }
    fn rdma_set_option(_id: *mut rdma_cm_id, _level: c_int, _name: c_int, _value: *mut c_void, _length: usize) -> c_int { 0 }
    fn rdma_resolve_addr(
        id: *mut rdma_cm_id, from: *const libc::sockaddr, to: *const libc::sockaddr, _limit: c_int
    ) -> c_int {
        let made = &mut *id.cast::<Identifier>();
        let from = if from.is_null() { Some(UNSET) } else { read(from) };
        let Some((from, to)) = from.zip(read(to)) else { return result(Err(libc::EINVAL)) };
        made.remote = to;
        if let Err(errno) = made.bound(from) {
            return result(Err(errno));
        }
        raise(made.events, id.expose_provenance(), rdma_cm_event_type::RDMA_CM_EVENT_ADDR_RESOLVED, 0, Vec::new());
        0
    }
    fn rdma_resolve_route(id: *mut rdma_cm_id, _limit: c_int) -> c_int {
        let made = &*id.cast::<Identifier>();
        raise(made.events, id.expose_provenance(), rdma_cm_event_type::RDMA_CM_EVENT_ROUTE_RESOLVED, 0, Vec::new());
        0
    }
    /// The queue pair in INIT (R librdmacm/cma.c ucma_init_conn_qp).
    fn rdma_create_qp(id: *mut rdma_cm_id, pd: *mut ibv_pd, wanted: *mut ibv_qp_init_attr) -> c_int {
        let qp = queue_pair::ibv_create_qp(pd, wanted);
        if qp.is_null() {
            return -1;
        }
        let made = &mut *id.cast::<Identifier>();
        made.id.qp = qp;
        let pair = queue_pair::pair(qp).clone();
        let mut to: ibv_qp_attr = mem::zeroed();
        (to.qp_state, to.port_num) = (ibv_qp_state::IBV_QPS_INIT, 1);
        let access = ibv_access_flags::IBV_ACCESS_REMOTE_WRITE | ibv_access_flags::IBV_ACCESS_REMOTE_READ;
        to.qp_access_flags = access.0;
        use ibv_qp_attr_mask as mask;
        let set = mask::IBV_QP_STATE | mask::IBV_QP_PKEY_INDEX | mask::IBV_QP_PORT | mask::IBV_QP_ACCESS_FLAGS;
        let done = pair.modify(&to, set.0);
        *made.shared.pair.lock() = Some(pair);
        result(done)
    }
    fn rdma_destroy_qp(id: *mut rdma_cm_id) -> () {
        let made = &mut *id.cast::<Identifier>();
        *made.shared.pair.lock() = None;
        queue_pair::ibv_destroy_qp(mem::replace(&mut made.id.qp, ptr::null_mut()));
    }
    fn rdma_connect(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int {
        let made = &*id.cast::<Identifier>();
        let (events, number, shared, to) = (made.events, id.expose_provenance(), made.shared.clone(), made.remote);
        let (private, accepted, reads) =
            (private(parameters), (*parameters).responder_resources, (*parameters).initiator_depth);
        let pair = shared.pair.lock().clone();
        thread::spawn(move || {
            let stream = socket(to).and_then(|path| UnixStream::connect(path).ok());
            // Nobody listens there: the kernel says that the peer refused.
            let Some((stream, kept)) = stream.and_then(|stream| Some((stream.try_clone().ok()?, stream))) else {
                raise(events, number, rdma_cm_event_type::RDMA_CM_EVENT_REJECTED, -libc::ECONNREFUSED, Vec::new());
                return;
            };
            *shared.stream.lock() = Some(kept);
            let said = say(&stream, own(1, pair.as_ref(), accepted), &private);
            let (kind, private) = match said.and_then(|()| hear(&stream)) {
                Ok((word, private)) if word.granted == 1 => {
                    let connected = pair.as_ref().map_or(Ok(()), |pair| connect(pair, &word, reads.min(accepted)));
                    let confirmed = connected.is_ok() && say(&stream, own(1, pair.as_ref(), accepted), &[]).is_ok();
                    *shared.ended.lock() = !confirmed;
                    let failed = rdma_cm_event_type::RDMA_CM_EVENT_CONNECT_ERROR;
                    (if confirmed { rdma_cm_event_type::RDMA_CM_EVENT_ESTABLISHED } else { failed }, private)
                }
                Ok((_, private)) => (rdma_cm_event_type::RDMA_CM_EVENT_REJECTED, private),
                Err(_) => (rdma_cm_event_type::RDMA_CM_EVENT_UNREACHABLE, Vec::new()),
            };
            raise(events, number, kind, 0, private);
            if kind == rdma_cm_event_type::RDMA_CM_EVENT_ESTABLISHED {
                watch(events, number, &shared, &stream);
            }
        });
        0
    }
    fn rdma_accept(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int {
        let made = &*id.cast::<Identifier>();
        let (events, number, shared) = (made.events, id.expose_provenance(), made.shared.clone());
        let stream = shared.stream.lock().as_ref().and_then(|stream| stream.try_clone().ok());
        let (Some(word), Some(stream)) = (pending(number), stream) else { return result(Err(libc::EINVAL)) };
        let (accepted, reads) = ((*parameters).responder_resources, (*parameters).initiator_depth);
        let pair = shared.pair.lock().clone();
        if let Some(Err(errno)) = pair.as_ref().map(|pair| connect(pair, &word, reads.min(accepted))) {
            return result(Err(errno));
        }
        if say(&stream, own(1, pair.as_ref(), accepted), &private(parameters)).is_err() {
            return result(Err(libc::ECONNRESET));
        }
        thread::spawn(move || match hear(&stream) {
            Ok(_) => {
                *shared.ended.lock() = false;
                raise(events, number, rdma_cm_event_type::RDMA_CM_EVENT_ESTABLISHED, 0, Vec::new());
                watch(events, number, &shared, &stream);
            }
            Err(_) => raise(events, number, rdma_cm_event_type::RDMA_CM_EVENT_CONNECT_ERROR, 0, Vec::new()),
        });
        0
    }
    fn rdma_reject(id: *mut rdma_cm_id, data: *const c_void, length: u8) -> c_int {
        let made = &*id.cast::<Identifier>();
        pending(id.expose_provenance());
        let data = if data.is_null() { &[][..] } else { std::slice::from_raw_parts(data.cast(), usize::from(length)) };
        match made.shared.stream.lock().as_ref().map(|stream| say(stream, Word::default(), data)) {
            Some(Ok(())) => 0,
            _ => result(Err(libc::EINVAL)),
        }
    }
    /// Both queue pairs err, and both sides are told.
    fn rdma_disconnect(id: *mut rdma_cm_id) -> c_int {
        let shared = &(*id.cast::<Identifier>()).shared;
        let Some(stream) = shared.stream.lock().take() else { return result(Err(libc::EINVAL)) };
        if let Some(pair) = &*shared.pair.lock() {
            pair.fail();
        }
        let _ = stream.shutdown(Shutdown::Both);
        0
    }
    fn rdma_get_cm_event(channel: *mut rdma_event_channel, into: *mut *mut rdma_cm_event) -> c_int {
        match event::read::<usize>((*channel).fd) {
            Some(event) => {
                *into = ptr::with_exposed_provenance_mut(event);
                0
            }
            None => -1,
        }
    }
    fn rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int {
        drop(Box::from_raw(event.cast::<Event>()));
        0
    }
}
