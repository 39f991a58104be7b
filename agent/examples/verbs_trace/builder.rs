//! A queue pair's own functions, by which requests are built and handed over (`ibv_wr_*`).

use std::{collections::HashMap, ffi::c_int, ffi::c_void, sync::OnceLock};

use parking_lot::Mutex;
use rdma_sys::{ibv_ah, ibv_data_buf, ibv_qp, ibv_qp_ex, ibv_sge};

use crate::{
    exported, lines,
    posts::{Request, Shape},
};

exported! {
    IBVERBS, real:
    ibv_qp_to_qp_ex @ "IBVERBS_1.6" (qp: *mut ibv_qp) -> *mut ibv_qp_ex;
}

/// The functions of one queue pair as they were, and the requests between `start` and `complete`.
struct Building {
    /// A copy of the structure: only its function pointers are used.
    original: ibv_qp_ex,
    requests: Vec<Request>,
}

fn buildings() -> &'static Mutex<HashMap<usize, Building>> {
    static BUILDINGS: OnceLock<Mutex<HashMap<usize, Building>>> = OnceLock::new();
    BUILDINGS.get_or_init(|| Mutex::new(HashMap::new()))
}

// SAFETY: the pointers in it are never followed but by calls that the program makes.
unsafe impl Send for Building {}

/// Puts our functions into a queue pair that was just created for them.
///
/// # Safety
/// The queue pair is extended, and nobody uses it yet.
pub unsafe fn patch(qp: *mut ibv_qp) {
    // SAFETY: the caller's.
    unsafe {
        let ex = ibv_qp_to_qp_ex(qp);
        let Some(own) = ex.as_mut() else { return };
        buildings().lock().insert(ex.addr(), Building { original: ex.read(), requests: Vec::new() });
        own.wr_rdma_write = own.wr_rdma_write.map(|_| wr_rdma_write as _);
        own.wr_rdma_write_imm = own.wr_rdma_write_imm.map(|_| wr_rdma_write_imm as _);
        own.wr_rdma_read = own.wr_rdma_read.map(|_| wr_rdma_read as _);
        own.wr_send = own.wr_send.map(|_| wr_send as _);
        own.wr_send_imm = own.wr_send_imm.map(|_| wr_send_imm as _);
        own.wr_atomic_cmp_swp = own.wr_atomic_cmp_swp.map(|_| wr_atomic_cmp_swp as _);
        own.wr_atomic_fetch_add = own.wr_atomic_fetch_add.map(|_| wr_atomic_fetch_add as _);
        own.wr_set_ud_addr = own.wr_set_ud_addr.map(|_| wr_set_ud_addr as _);
        own.wr_set_inline_data = own.wr_set_inline_data.map(|_| wr_set_inline_data as _);
        own.wr_set_inline_data_list = own.wr_set_inline_data_list.map(|_| wr_set_inline_data_list as _);
        own.wr_set_sge = own.wr_set_sge.map(|_| wr_set_sge as _);
        own.wr_set_sge_list = own.wr_set_sge_list.map(|_| wr_set_sge_list as _);
        own.wr_start = own.wr_start.map(|_| wr_start as _);
        own.wr_complete = own.wr_complete.map(|_| wr_complete as _);
        own.wr_abort = own.wr_abort.map(|_| wr_abort as _);
    }
}

/// Forgets a queue pair that is being destroyed.
pub fn gone(qp: *mut ibv_qp) {
    // The extended structure begins with the plain one.
    buildings().lock().remove(&qp.addr());
}

/// A request of `opcode` begins: the flags are those that the program has set in the queue pair.
unsafe fn begin(qp: *mut ibv_qp_ex, opcode: u32, remote: Option<(u64, u32)>, operands: Option<(u64, u64)>) {
    // SAFETY: the queue pair is the caller's, and alive.
    let flags = unsafe { (*qp).wr_flags };
    let shape = Shape { opcode, flags, elements: 0, length: 0, operands, immediate: matches!(opcode, 1 | 3) };
    with(qp, |building| building.requests.push(Request { shape, local: 0, remote, datagram: None }));
}

fn with<T>(qp: *mut ibv_qp_ex, change: impl FnOnce(&mut Building) -> T) -> T {
    let mut buildings = buildings().lock();
    // Only queue pairs of this map have our functions.
    change(buildings.get_mut(&qp.addr()).unwrap_or_else(|| std::process::abort()))
}

/// The last request gets its payload.
fn payload(qp: *mut ibv_qp_ex, inline: bool, pieces: &[(u64, u64)]) {
    with(qp, |building| {
        if let Some(last) = building.requests.last_mut() {
            last.local = pieces.first().map_or(0, |(address, _)| *address);
            last.shape.elements = pieces.len() as u32;
            last.shape.length = pieces.iter().map(|(_, length)| length).sum();
            last.shape.flags |= if inline { Shape::INLINE } else { 0 };
        }
    });
}

macro_rules! built {
    ($($name:ident($qp:ident $(, $arg:ident: $type:ty)*) $(-> $out:ty)? $note:block)+) => {
        $(
            unsafe extern "C" fn $name($qp: *mut ibv_qp_ex $(, $arg: $type)*) $(-> $out)? {
                // SAFETY: callers keep to the headers; the function behind was there when it was replaced.
                unsafe {
                    $note
                    let real = with($qp, |building| building.original.$name);
                    real.unwrap_or_else(|| std::process::abort())($qp $(, $arg)*)
                }
            }
        )+
    };
}

built! {
    wr_rdma_write(qp, rkey: u32, remote: u64) { begin(qp, 0, Some((remote, rkey)), None) }
    wr_rdma_write_imm(qp, rkey: u32, remote: u64, imm: u32) { begin(qp, 1, Some((remote, rkey)), None) }
    wr_send(qp) { begin(qp, 2, None, None) }
    wr_send_imm(qp, imm: u32) { begin(qp, 3, None, None) }
    wr_rdma_read(qp, rkey: u32, remote: u64) { begin(qp, 4, Some((remote, rkey)), None) }
    wr_atomic_cmp_swp(qp, rkey: u32, remote: u64, compare: u64, swap: u64) {
        begin(qp, 5, Some((remote, rkey)), Some((compare, swap)));
    }
    wr_atomic_fetch_add(qp, rkey: u32, remote: u64, add: u64) { begin(qp, 6, Some((remote, rkey)), Some((add, 0))) }
    wr_set_ud_addr(qp, ah: *mut ibv_ah, number: u32, key: u32) {
        with(qp, |building| {
            if let Some(last) = building.requests.last_mut() {
                last.datagram = Some((number, key));
            }
        });
    }
    wr_set_inline_data(qp, from: *mut c_void, length: usize) {
        payload(qp, true, &[(from.addr() as u64, length as u64)]);
    }
    wr_set_inline_data_list(qp, count: usize, list: *const ibv_data_buf) {
        let list = if count == 0 { &[] } else { std::slice::from_raw_parts(list, count) };
        let pieces: Vec<_> = list.iter().map(|piece| (piece.addr.addr() as u64, piece.length as u64)).collect();
        payload(qp, true, &pieces);
    }
    wr_set_sge(qp, lkey: u32, from: u64, length: u32) { payload(qp, false, &[(from, length.into())]) }
    wr_set_sge_list(qp, count: usize, list: *const ibv_sge) {
        let list = if count == 0 { &[] } else { std::slice::from_raw_parts(list, count) };
        let pieces: Vec<_> = list.iter().map(|piece| (piece.addr, piece.length.into())).collect();
        payload(qp, false, &pieces);
    }
    wr_start(qp) { with(qp, |building| building.requests.clear()) }
    wr_abort(qp) { with(qp, |building| building.requests.clear()) }
    wr_complete(qp) -> c_int {
        let requests = with(qp, |building| std::mem::take(&mut building.requests));
        let number = (*qp).qp_base.qp_num;
        lines::state().lock().posts.entry(number).or_default().send("ibv_wr", &requests);
    }
}
