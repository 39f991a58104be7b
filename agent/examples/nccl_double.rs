//! A double of NCCL for tests on hosts without a GPU: it tells its version, `NCCL_DOUBLE_VERSION` (22803), and can do nothing.
//! With `NCCL_DOUBLE_STOP` it makes an id, and the group of that id never comes together: the rank of this number stops its
//! process, the others wait for it as those of NCCL do. Never part of the product.
#![allow(non_snake_case, missing_docs, reason = "the names are NCCL's, and so is their meaning")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are NCCL's")]

use std::ffi::{c_char, c_int, c_void};

/// `ncclInternalError`.
const INTERNAL: c_int = 3;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    let told = std::env::var("NCCL_DOUBLE_VERSION").ok().and_then(|text| text.parse().ok()).unwrap_or(22_803);
    // SAFETY: the caller gives a place for the number, as `nccl.h` demands.
    unsafe { version.write(told) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(_status: c_int) -> *const c_char {
    c"said by a double".as_ptr()
}

/// The rank that stops.
fn stops() -> Option<c_int> {
    std::env::var("NCCL_DOUBLE_STOP").ok()?.parse().ok()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetUniqueId(id: *mut [u8; 128]) -> c_int {
    if stops().is_none() {
        return INTERNAL;
    }
    // SAFETY: the caller gives a place for an `ncclUniqueId`, which has 128 bytes.
    unsafe { id.write([7; 128]) };
    0
}

/// `ncclUniqueId`, which travels by value.
#[repr(C)]
pub struct UniqueId([u8; 128]);

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommInitRank(_comm: *mut *mut c_void, _ranks: c_int, _id: UniqueId, rank: c_int) -> c_int {
    let Some(stops) = stops() else { return INTERNAL };
    if stops == rank {
        // SAFETY: no memory is touched; all threads of this process stop.
        unsafe { libc::raise(libc::SIGSTOP) };
    }
    loop {
        std::thread::park();
    }
}

macro_rules! unable {
    ($($name:ident)+) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> c_int {
                INTERNAL
            }
        )+
    };
}

unable! {
    ncclCommAbort ncclCommDestroy ncclCommGetAsyncError ncclAllReduce ncclBroadcast
    ncclReduce ncclAllGather ncclReduceScatter ncclSend ncclRecv ncclRedOpCreatePreMulSum ncclGroupStart ncclGroupEnd
}
