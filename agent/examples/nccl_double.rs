//! A double of NCCL for tests on hosts without a GPU: it tells its version, `NCCL_DOUBLE_VERSION` (22803), and can do nothing.
//! Never part of the product.
#![allow(non_snake_case, missing_docs, reason = "the names are NCCL's, and so is their meaning")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are NCCL's")]

use std::ffi::{c_char, c_int};

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
    ncclGetUniqueId ncclCommInitRank ncclCommAbort ncclCommDestroy ncclCommGetAsyncError ncclAllReduce ncclBroadcast
    ncclReduce ncclAllGather ncclReduceScatter ncclSend ncclRecv ncclRedOpCreatePreMulSum ncclGroupStart ncclGroupEnd
}
