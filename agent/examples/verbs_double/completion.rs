//! Completion channels and queues.

use std::{
    collections::{HashSet, VecDeque},
    ffi::{c_int, c_uint, c_void},
    mem, ptr,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    thread,
};

use parking_lot::{Condvar, Mutex};
use rdma_sys::*;

use crate::{
    event,
    hostile::event::CQ_ERR,
    queue_pair::Pair,
    refused,
    settings::{Settings, settings},
};

#[repr(C)]
struct Channel {
    channel: ibv_comp_channel,
    events: c_int,
}

/// One entry, and the send requests that it gives back their room.
pub struct Entry {
    pub wc: ibv_wc,
    pub frees: Option<(Arc<Pair>, u64)>,
}

/// What a queue holds.
pub struct Queue {
    /// The address that callers have.
    handle: AtomicUsize,
    capacity: usize,
    state: Mutex<State>,
    empty: AtomicU32,
    /// Queues of queue pairs that complete here.
    users: AtomicU32,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    /// The end of its channel, where it has one and is alive.
    events: Option<c_int>,
    armed: bool,
    overrun: bool,
    taken: u64,
    /// Events written to the channel and not acknowledged.
    unacknowledged: u32,
}

#[repr(C)]
struct Completion {
    cq: ibv_cq,
    queue: Arc<Queue>,
}

/// Queues that exist: an event in a pipe may name one that does not any more.
static ALIVE: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

static ACKNOWLEDGED: Condvar = Condvar::new();

/// Empty polls in a row after which the processor is given away: the threads that move the bytes need it.
const PATIENCE: u32 = 32;

/// The queue behind a handle.
///
/// # Safety
/// It is one of ours and alive.
pub unsafe fn queue(cq: *mut ibv_cq) -> Arc<Queue> {
    // SAFETY: the caller vouches for it.
    unsafe { (*cq.cast::<Completion>()).queue.clone() }
}

impl Queue {
    /// Adds an entry; a queue that is full overruns, loses what comes, and says so by an event (InfiniBand Architecture
    /// Specification 11.6.3.1; K mlx5/cq.c mlx5_ib_cq_event).
    pub fn push(&self, entry: Entry) {
        let mut state = self.state.lock();
        let limit = settings().and_then(|settings| settings.hostile.overrun_after);
        if state.overrun {
            return;
        }
        if state.entries.len() >= self.capacity
            || limit.is_some_and(|limit| state.taken + state.entries.len() as u64 >= limit)
        {
            state.overrun = true;
            drop(state);
            event::raise(CQ_ERR, self.handle.load(Ordering::Acquire) as u64);
            return;
        }
        state.entries.push_back(entry);
        if let Some(events) = state.events.filter(|_| state.armed) {
            state.armed = false;
            state.unacknowledged += 1;
            event::write(events, &self.handle.load(Ordering::Acquire));
        }
    }

    /// A queue pair begins or ceases to complete here.
    pub fn used(&self, begins: bool) {
        if begins {
            self.users.fetch_add(1, Ordering::SeqCst)
        } else {
            self.users.fetch_sub(1, Ordering::SeqCst)
        };
    }

    /// Exchanges the last two entries, as a device that completes out of order has them.
    pub fn swap_last(&self) {
        let mut state = self.state.lock();
        if let Some(last) = state.entries.len().checked_sub(2) {
            state.entries.swap(last, last + 1);
        }
    }
}

/// The context's own operation, as `ibv_poll_cq` of the headers calls it.
///
/// # Safety
/// The queue is alive, and there is room for `most` entries.
pub unsafe extern "C" fn poll(cq: *mut ibv_cq, most: c_int, into: *mut ibv_wc) -> c_int {
    // SAFETY: the caller vouches for the queue.
    let queue = unsafe { &(*cq.cast::<Completion>()).queue };
    let mut state = queue.state.lock();
    let count = state.entries.len().min(usize::try_from(most).unwrap_or(0));
    for i in 0..count {
        let Some(Entry { wc, frees }) = state.entries.pop_front() else { break };
        if let Some((pair, sends)) = frees {
            pair.freed(sends);
        }
        // SAFETY: there is room for so many.
        unsafe { into.add(i).write(wc) };
    }
    state.taken += count as u64;
    drop(state);
    if count > 0 {
        queue.empty.store(0, Ordering::Relaxed);
    } else if queue.empty.fetch_add(1, Ordering::Relaxed) >= PATIENCE {
        thread::yield_now();
    }
    count as c_int
}

/// The context's own operation, as `ibv_req_notify_cq` calls it: an event at the next entry, not for those there are.
///
/// # Safety
/// The queue is alive.
pub unsafe extern "C" fn arm(cq: *mut ibv_cq, _solicited_only: c_int) -> c_int {
    // SAFETY: the caller vouches for the queue.
    unsafe { queue(cq) }.state.lock().armed = true;
    0
}

/// Bytes in a pipe.
fn unread(fd: c_int) -> c_int {
    let mut bytes = 0;
    // SAFETY: there is room for the number.
    unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut bytes) };
    bytes
}

exported! {
    fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
        let Ok((fd, events)) = event::pipe() else { return refused(libc::EMFILE) };
        Box::into_raw(Box::new(Channel { channel: ibv_comp_channel { context, fd, refcnt: 0 }, events })).cast()
    }
    fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
        if (*channel).refcnt > 0 {
            return libc::EBUSY;
        }
        let channel = Box::from_raw(channel.cast::<Channel>());
        libc::close(channel.events);
        libc::close(channel.channel.fd);
        0
    }
    fn ibv_get_cq_event(channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, context: *mut *mut c_void) -> c_int {
        while let Some(handle) = event::read::<usize>((*channel).fd) {
            if ALIVE.lock().as_ref().is_some_and(|alive| alive.contains(&handle)) {
                *cq = ptr::with_exposed_provenance_mut(handle);
                *context = (**cq).cq_context;
                return 0;
            }
        }
        -1
    }
    fn ibv_ack_cq_events(cq: *mut ibv_cq, count: c_uint) -> () {
        let queue = queue(cq);
        let mut state = queue.state.lock();
        state.unacknowledged = state.unacknowledged.saturating_sub(count);
        ACKNOWLEDGED.notify_all();
    }
    fn ibv_create_cq(
        context: *mut ibv_context, entries: c_int, user: *mut c_void, channel: *mut ibv_comp_channel, vector: c_int
    ) -> *mut ibv_cq {
        let Some(Settings { profile, .. }) = settings() else { return refused(libc::EIO) };
        let fits = u32::try_from(entries).is_ok_and(|entries| (1..=profile.limits.completions).contains(&entries));
        if !fits || vector != 0 {
            return refused(libc::EINVAL);
        }
        let mut cq: ibv_cq = mem::zeroed();
        (cq.context, cq.channel, cq.cq_context, cq.cqe) = (context, channel, user, entries);
        let events = if channel.is_null() { None } else { Some((*channel.cast::<Channel>()).events) };
        if !channel.is_null() {
            (*channel).refcnt += 1;
        }
        let queue = Arc::new(Queue {
            handle: AtomicUsize::new(0),
            capacity: entries as usize,
            state: Mutex::new(State { events, ..State::default() }),
            empty: AtomicU32::new(0),
            users: AtomicU32::new(0),
        });
        let made = Box::into_raw(Box::new(Completion { cq, queue: queue.clone() }));
        let handle = made.expose_provenance();
        queue.handle.store(handle, Ordering::Release);
        ALIVE.lock().get_or_insert_default().insert(handle);
        made.cast()
    }
    /// Waits until the events taken from it are acknowledged, as libibverbs does.
    fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int {
        let queue = queue(cq);
        if queue.users.load(Ordering::SeqCst) > 0 {
            event::misused("a completion queue with queue pairs is destroyed");
            return libc::EBUSY;
        }
        let mut state = queue.state.lock();
        while state.unacknowledged > 0 {
            let written = state.events.map_or(0, |_| unread((*(*cq).channel.cast::<Channel>()).channel.fd));
            if written > 0 {
                // Nobody has taken them; the kernel forgets them with their queue.
                break;
            }
            ACKNOWLEDGED.wait(&mut state);
        }
        (state.events, state.entries) = (None, VecDeque::new());
        drop(state);
        ALIVE.lock().get_or_insert_default().remove(&cq.expose_provenance());
        let channel = (*cq).channel;
        if !channel.is_null() {
            (*channel).refcnt -= 1;
        }
        drop(Box::from_raw(cq.cast::<Completion>()));
        0
    }
}
