//! A double of NVIDIA's cuBLASLt for tests on hosts without a GPU: what `agent/src/gpu/blas.rs` looks up, multiplying on the processor
//! what `cuda_double.rs` gives as device memory. Never part of the product.
//!
//! Put beside an agent as `libcublasLt.so.12` and named by `LD_LIBRARY_PATH`. The environment makes it a bad one, `CUBLASLT_DOUBLE`:
//! `wrong` (one element of every product is wrong), `late` (of every product from the hundredth on), `part` (the last terms of the sums
//! are left out), `lazy` (nothing is written), `fails` (every product), `none` (it proposes no algorithm), `dead` (it gives no handle).
#![allow(non_snake_case, reason = "the names are cuBLASLt's, and so is their meaning")]
#![allow(unused_unsafe, reason = "some of these functions do nothing")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are cuBLASLt's")]
#![allow(clippy::too_many_arguments, reason = "they are cuBLASLt's")]

use std::{
    ffi::{c_char, c_int, c_void},
    sync::atomic::Ordering,
};

use blas::{
    DONE, EXECUTION_FAILED, Handle, INVALID_VALUE, Layout, NOT_INITIALIZED, NOT_SUPPORTED, Product, SUCCESS, Status,
    answer, gone, is, made, read, write,
};

#[path = "doubles/blas.rs"]
#[macro_use]
mod blas;

/// The variable that makes it a bad one.
const FAULTS: &str = "CUBLASLT_DOUBLE";
/// `CUBLASLT_MATMUL_DESC_TRANSA`.
const TRANSPOSE_A: c_int = 3;
/// `CUBLAS_OP_T`.
const TRANSPOSED: c_int = 1;
/// `CUBLAS_COMPUTE_32F` and `CUBLAS_COMPUTE_32F_FAST_TF32`.
const COMPUTE: [c_int; 2] = [68, 77];
/// `cublasLtMatmulHeuristicResult_t`.
type Proposal = [u64; 12];

blas_double! { create: cublasLtCreate, destroy: cublasLtDestroy, matmul_desc_create: cublasLtMatmulDescCreate, matmul_desc_set_attribute: cublasLtMatmulDescSetAttribute, matmul_desc_destroy: cublasLtMatmulDescDestroy, matrix_layout_create: cublasLtMatrixLayoutCreate, matrix_layout_destroy: cublasLtMatrixLayoutDestroy, matmul_preference_create: cublasLtMatmulPreferenceCreate, matmul_preference_set_attribute: cublasLtMatmulPreferenceSetAttribute, matmul_preference_destroy: cublasLtMatmulPreferenceDestroy, matmul_algo_get_heuristic: cublasLtMatmulAlgoGetHeuristic, matmul: cublasLtMatmul, }

library! {
    cublasLtMatmulAlgoConfigGetAttribute(
        algorithm: *const u64, attribute: c_int, to: *mut c_void, size: usize, written: *mut usize
    ) {
        // CUBLASLT_ALGO_CONFIG_ID.
        if size != 4 {
            return INVALID_VALUE;
        }
        answer(written, 4);
        answer(to.cast::<u32>(), if attribute == 0 { algorithm.read() as u32 } else { 1 })
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtGetVersion() -> usize {
    120_900
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtGetStatusString(_status: Status) -> *const c_char {
    c"said by a double".as_ptr()
}
