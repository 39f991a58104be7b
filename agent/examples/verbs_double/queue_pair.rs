//! Queue pairs: made, moved through their states, destroyed.

use std::{
    collections::{HashMap, VecDeque},
    ffi::c_int,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use parking_lot::{Condvar, Mutex};
use rdma_sys::*;

use crate::{
    address,
    completion::{self, Entry, Queue},
    device, event, fabric,
    hostile::event as kind,
    memory, port, refused, requester,
    settings::{Settings, settings},
    transition,
};

/// A send request, copied when it was posted.
pub struct Work {
    pub wr_id: u64,
    pub opcode: ibv_wr_opcode::Type,
    pub signalled: bool,
    pub immediate: u32,
    pub payload: Payload,
    pub length: u64,
    pub remote: u64,
    pub rkey: u32,
    pub operand: u64,
    pub swap: u64,
    /// Of datagrams: the path, the peer's queue pair and its key.
    pub datagram: Option<(ibv_ah_attr, u32, u32)>,
    /// Number of the request on its queue pair, from 1.
    pub number: u64,
}

/// Where the bytes of a request are.
pub enum Payload {
    /// In the request itself.
    Inline(Vec<u8>),
    /// In memory.
    Elements(Vec<ibv_sge>),
}

/// A receive request.
pub struct Receive {
    pub wr_id: u64,
    pub elements: Vec<ibv_sge>,
}

/// A queue pair.
pub struct Pair {
    pub number: u32,
    pub service: ibv_qp_type::Type,
    pub domain: usize,
    pub device: u8,
    pub capacity: ibv_qp_cap,
    pub every_signalled: bool,
    pub send_queue: Arc<Queue>,
    pub receive_queue: Arc<Queue>,
    handle: AtomicU64,
    freed: AtomicU64,
    pub inner: Mutex<Inner>,
    /// Work was posted, or the state changed.
    pub posted: Condvar,
    /// A receive was posted, or the state changed.
    pub received: Condvar,
}

/// What changes of a queue pair.
pub struct Inner {
    pub state: ibv_qp_state::Type,
    pub attributes: Attributes,
    pub sends: VecDeque<Work>,
    pub posted: u64,
    pub receives: VecDeque<Receive>,
    pub closed: bool,
    /// Options that `ibv_query_ece` answers, and those of the peer that were set.
    pub ece: (u32, u32),
}

/// The attributes that something is done with, by their names in `struct ibv_qp_attr`.
#[derive(Clone, Copy)]
pub struct Attributes {
    pub qp_access_flags: u32,
    pub pkey_index: u16,
    pub port_num: u8,
    pub qkey: u32,
    pub ah_attr: ibv_ah_attr,
    pub path_mtu: ibv_mtu::Type,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub rq_psn: u32,
    pub max_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub sq_psn: u32,
    pub max_dest_rd_atomic: u8,
    pub dest_qp_num: u32,
}

#[repr(C)]
struct Handle {
    qp: ibv_qp,
    pair: Arc<Pair>,
    engine: Option<JoinHandle<()>>,
}

static PAIRS: Mutex<Option<HashMap<u32, Arc<Pair>>>> = Mutex::new(None);

/// The queue pair of this process that has a number.
pub fn numbered(number: u32) -> Option<Arc<Pair>> {
    PAIRS.lock().as_ref()?.get(&number).cloned()
}

/// All queue pairs of this process.
pub fn all() -> Vec<Arc<Pair>> {
    PAIRS.lock().iter().flat_map(HashMap::values).cloned().collect()
}

/// The queue pair behind a handle.
///
/// # Safety
/// It is one of ours and alive.
pub unsafe fn pair<'a>(qp: *mut ibv_qp) -> &'a Arc<Pair> {
    // SAFETY: the caller vouches for it.
    unsafe { &(*qp.cast::<Handle>()).pair }
}

/// An entry that says nothing yet.
pub fn blank(pair: &Pair, wr_id: u64, status: ibv_wc_status::Type) -> ibv_wc {
    // SAFETY: all zero is a valid value of this structure of numbers.
    let mut wc: ibv_wc = unsafe { mem::zeroed() };
    (wc.wr_id, wc.status, wc.qp_num) = (wr_id, status, pair.number);
    wc
}

impl Pair {
    /// Send requests up to this number have given back their room.
    pub fn freed(&self, sends: u64) {
        self.freed.fetch_max(sends, Ordering::AcqRel);
    }

    /// Room for send requests.
    pub fn room(&self, posted: u64) -> u64 {
        u64::from(self.capacity.max_send_wr).saturating_sub(posted - self.freed.load(Ordering::Acquire))
    }

    /// Moves into the error state: everything outstanding is flushed.
    pub fn fail(self: &Arc<Self>) {
        let mut inner = self.inner.lock();
        if inner.state != ibv_qp_state::IBV_QPS_RESET {
            inner.state = ibv_qp_state::IBV_QPS_ERR;
            self.flush(&mut inner);
        }
    }

    /// A fatal error of the device's own: an event, and the error state.
    pub fn fatal(self: &Arc<Self>) {
        self.raise(kind::QP_FATAL);
        self.fail();
    }

    /// Raises an event about this queue pair.
    pub fn raise(&self, kind: i32) {
        event::raise(kind, self.handle.load(Ordering::Acquire));
    }

    /// Completes what is queued as flushed.
    pub fn flush(self: &Arc<Self>, inner: &mut Inner) {
        for work in inner.sends.drain(..) {
            let wc = blank(self, work.wr_id, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
            self.send_queue.push(Entry { wc, frees: Some((self.clone(), work.number)) });
        }
        for receive in inner.receives.drain(..) {
            let mut wc = blank(self, receive.wr_id, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
            wc.opcode = ibv_wc_opcode::IBV_WC_RECV;
            self.receive_queue.push(Entry { wc, frees: None });
        }
        self.posted.notify_all();
        self.received.notify_all();
    }

    /// Changes state and attributes as `ibv_modify_qp` says.
    ///
    /// # Errors
    /// An errno.
    pub fn modify(self: &Arc<Self>, given: &ibv_qp_attr, mask: u32) -> Result<(), c_int> {
        use ibv_qp_attr_mask as name;
        let Some(Settings { profile, .. }) = settings() else { return Err(libc::EIO) };
        let has = |bit: ibv_qp_attr_mask| mask & bit.0 != 0;
        let mut inner = self.inner.lock();
        let to = if has(name::IBV_QP_STATE) { given.qp_state } else { inner.state };
        if !transition::allowed(self.service, inner.state, to, mask) {
            return Err(libc::EINVAL);
        }
        // K core/uverbs_cmd.c modify_qp, K mlx5/qp.c mlx5_ib_modify_qp: out of range is EINVAL.
        let wrong = (has(name::IBV_QP_PORT) && given.port_num != 1)
            || (has(name::IBV_QP_PKEY_INDEX) && !profile.pkeys.is_empty() && port::pkey(given.pkey_index).is_none())
            || (has(name::IBV_QP_MAX_QP_RD_ATOMIC) && given.max_rd_atomic > profile.limits.reads)
            || (has(name::IBV_QP_MAX_DEST_RD_ATOMIC) && given.max_dest_rd_atomic > profile.limits.reads)
            || (has(name::IBV_QP_PATH_MTU) && !(ibv_mtu::IBV_MTU_256..=profile.mtu.1).contains(&given.path_mtu));
        if wrong {
            return Err(libc::EINVAL);
        }
        if has(name::IBV_QP_AV) {
            address::check(self.device, &given.ah_attr)?;
        }
        let kept = &mut inner.attributes;
        macro_rules! keep {
            ($($bit:ident $field:ident),+ $(,)?) => { $(if has(name::$bit) { kept.$field = given.$field; })+ };
        }
        keep! {
            IBV_QP_ACCESS_FLAGS qp_access_flags, IBV_QP_PKEY_INDEX pkey_index, IBV_QP_PORT port_num, IBV_QP_QKEY qkey,
            IBV_QP_AV ah_attr, IBV_QP_PATH_MTU path_mtu, IBV_QP_TIMEOUT timeout, IBV_QP_RETRY_CNT retry_cnt,
            IBV_QP_RNR_RETRY rnr_retry, IBV_QP_RQ_PSN rq_psn, IBV_QP_MAX_QP_RD_ATOMIC max_rd_atomic,
            IBV_QP_MIN_RNR_TIMER min_rnr_timer, IBV_QP_SQ_PSN sq_psn, IBV_QP_MAX_DEST_RD_ATOMIC max_dest_rd_atomic,
            IBV_QP_DEST_QPN dest_qp_num,
        }
        inner.state = to;
        match to {
            // K mlx5/qp.c: firmware answers RTR with what both ends have.
            ibv_qp_state::IBV_QPS_RTR => inner.ece.0 = profile.ece & inner.ece.1,
            ibv_qp_state::IBV_QPS_RESET => {
                inner.sends.clear();
                inner.receives.clear();
                self.freed(inner.posted);
            }
            ibv_qp_state::IBV_QPS_ERR => self.flush(&mut inner),
            _ => {}
        }
        self.posted.notify_all();
        self.received.notify_all();
        Ok(())
    }
}

/// `struct ibv_ece`: vendor, options, mask.
type Ece = [u32; 3];

/// mlx5's vendor in it, PCI_VENDOR_ID_MELLANOX.
const MELLANOX: u32 = 0x15b3;

/// Whether the provider is mlx5, which alone has ECE and functions of its own.
pub fn is_mlx5() -> bool {
    settings().is_some_and(|settings| settings.profile.vendor.0 == 0x02c9)
}

/// Makes a queue pair.
///
/// # Safety
/// Domain and queues are ours and alive.
///
/// # Errors
/// An errno.
unsafe fn make(pd: *mut ibv_pd, wanted: &ibv_qp_init_attr) -> Result<*mut ibv_qp, c_int> {
    let (Some(Settings { profile, .. }), Some(fabric)) = (settings(), fabric::fabric()) else { return Err(libc::EIO) };
    if !profile.services.contains(&wanted.qp_type) {
        return Err(profile.no_service);
    }
    let (cap, limits) = (wanted.cap, &profile.limits);
    let over = cap.max_send_wr > limits.work_requests
        || cap.max_recv_wr > limits.work_requests
        || cap.max_send_sge > limits.elements
        || cap.max_recv_sge > limits.elements
        || cap.max_inline_data > limits.inline
        || !wanted.srq.is_null();
    if over || wanted.send_cq.is_null() || wanted.recv_cq.is_null() {
        return Err(libc::EINVAL);
    }
    let number = fabric.number().ok_or(libc::ENOMEM)?;
    // SAFETY: all zero (null pointers, numbers) is a valid value of both structures.
    let (mut qp, attributes): (ibv_qp, Attributes) = unsafe { (mem::zeroed(), mem::zeroed()) };
    // SAFETY: the caller vouches for domain and queues.
    let (context, device, send_queue, receive_queue) = unsafe {
        let context = (*pd).context;
        (context, device::number(context), completion::queue(wanted.send_cq), completion::queue(wanted.recv_cq))
    };
    send_queue.used(true);
    receive_queue.used(true);
    let pair = Arc::new(Pair {
        number,
        service: wanted.qp_type,
        domain: pd.addr(),
        device,
        capacity: cap,
        every_signalled: wanted.sq_sig_all != 0,
        send_queue,
        receive_queue,
        handle: AtomicU64::new(0),
        freed: AtomicU64::new(0),
        inner: Mutex::new(Inner {
            state: ibv_qp_state::IBV_QPS_RESET,
            attributes,
            sends: VecDeque::new(),
            posted: 0,
            receives: VecDeque::new(),
            closed: false,
            ece: (profile.ece, 0),
        }),
        posted: Condvar::new(),
        received: Condvar::new(),
    });
    (qp.context, qp.pd, qp.qp_context) = (context, pd, wanted.qp_context);
    (qp.send_cq, qp.recv_cq) = (wanted.send_cq, wanted.recv_cq);
    (qp.qp_num, qp.handle, qp.qp_type) = (number, number, wanted.qp_type);
    let engine = thread::Builder::new().name("double-send".into()).spawn({
        let pair = pair.clone();
        move || requester::run(&pair)
    });
    let handle = Box::into_raw(Box::new(Handle { qp, pair: pair.clone(), engine: engine.ok() }));
    pair.handle.store(handle.expose_provenance() as u64, Ordering::Release);
    PAIRS.lock().get_or_insert_default().insert(number, pair);
    Ok(handle.cast())
}

exported! {
    fn ibv_create_qp(pd: *mut ibv_pd, wanted: *mut ibv_qp_init_attr) -> *mut ibv_qp {
        make(pd, &*wanted).unwrap_or_else(refused)
    }
    fn ibv_modify_qp(qp: *mut ibv_qp, attributes: *mut ibv_qp_attr, mask: c_int) -> c_int {
        let pair = pair(qp);
        match pair.modify(&*attributes, mask.cast_unsigned()) {
            Ok(()) => {
                (*qp).state = pair.inner.lock().state;
                0
            }
            Err(errno) => errno,
        }
    }
    fn ibv_query_qp(qp: *mut ibv_qp, into: *mut ibv_qp_attr, _mask: c_int, init: *mut ibv_qp_init_attr) -> c_int {
        let pair = pair(qp);
        let inner = pair.inner.lock();
        let (known, into) = (&inner.attributes, &mut *into);
        *into = mem::zeroed();
        macro_rules! tell {
            ($($field:ident),+ $(,)?) => { $(into.$field = known.$field;)+ };
        }
        tell! {
            qp_access_flags, pkey_index, port_num, qkey, ah_attr, path_mtu, timeout, retry_cnt, rnr_retry, rq_psn,
            max_rd_atomic, min_rnr_timer, sq_psn, max_dest_rd_atomic, dest_qp_num,
        }
        (into.qp_state, into.cur_qp_state, into.cap) = (inner.state, inner.state, pair.capacity);
        if !init.is_null() {
            *init = mem::zeroed();
            ((*init).qp_context, (*init).send_cq, (*init).recv_cq) = ((*qp).qp_context, (*qp).send_cq, (*qp).recv_cq);
            ((*init).cap, (*init).qp_type, (*init).sq_sig_all) = (pair.capacity, pair.service, c_int::from(pair.every_signalled));
        }
        0
    }
    /// R mlx5/verbs.c mlx5_query_qp_data_in_order: 0 but in RTS. libibverbs says 0 for providers without the operation.
    fn ibv_query_qp_data_in_order(qp: *mut ibv_qp, _opcode: ibv_wr_opcode::Type, _flags: u32) -> c_int {
        let in_order = settings().is_some_and(|settings| settings.profile.in_order);
        let connected = pair(qp).service != ibv_qp_type::IBV_QPT_UD;
        c_int::from(in_order && connected && pair(qp).inner.lock().state == ibv_qp_state::IBV_QPS_RTS)
    }
    /// R mlx5/qp.c mlx5_query_ece; libibverbs: EOPNOTSUPP for providers without.
    fn ibv_query_ece(qp: *mut ibv_qp, into: *mut Ece) -> c_int {
        if !is_mlx5() {
            return libc::EOPNOTSUPP;
        }
        *into = [MELLANOX, pair(qp).inner.lock().ece.0, 0];
        0
    }
    /// R mlx5/qp.c mlx5_set_ece.
    fn ibv_set_ece(qp: *mut ibv_qp, of_peer: *mut Ece) -> c_int {
        let [vendor, options, mask] = *of_peer;
        let mut inner = pair(qp).inner.lock();
        if !is_mlx5() {
            return libc::EOPNOTSUPP;
        }
        if (vendor, mask) != (MELLANOX, 0) || inner.state > ibv_qp_state::IBV_QPS_INIT {
            return libc::EINVAL;
        }
        inner.ece = (0, options);
        0
    }
    fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int {
        let handle = Box::from_raw(qp.cast::<Handle>());
        let Handle { pair, engine, .. } = *handle;
        PAIRS.lock().get_or_insert_default().remove(&pair.number);
        memory::unused(pair.number);
        if let Some(fabric) = fabric::fabric() {
            fabric.free(pair.number);
        }
        pair.inner.lock().closed = true;
        pair.posted.notify_all();
        pair.received.notify_all();
        if let Some(engine) = engine {
            let _ = engine.join();
        }
        pair.send_queue.used(false);
        pair.receive_queue.used(false);
        0
    }
}
