//! A double of AMD's hipBLASLt for tests on hosts without a GPU: what `agent/src/gpu/blas.rs` looks up, multiplying on the processor what
//! `hip_double.rs` gives as device memory. Never part of the product.
//!
//! Put beside an agent as `libhipblaslt.so.0` and named by `LD_LIBRARY_PATH`. The environment makes it a bad one as that of cuBLASLt,
//! `HIPBLASLT_DOUBLE`.
#![allow(non_snake_case, reason = "the names are hipBLASLt's, and so is their meaning")]
#![allow(unused_unsafe, reason = "some of these functions do nothing")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are hipBLASLt's")]
#![allow(clippy::too_many_arguments, reason = "they are hipBLASLt's")]

use std::{
    ffi::{c_int, c_void},
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
const FAULTS: &str = "HIPBLASLT_DOUBLE";
/// `HIPBLASLT_MATMUL_DESC_TRANSA`.
const TRANSPOSE_A: c_int = 0;
/// `HIPBLAS_OP_T`.
const TRANSPOSED: c_int = 112;
/// `HIPBLAS_COMPUTE_32F` and `HIPBLAS_COMPUTE_32F_FAST_TF32`.
const COMPUTE: [c_int; 2] = [2, 6];
/// `hipblasLtMatmulHeuristicResult_t`: 24 bytes of the algorithm, and 32 more.
type Proposal = [u64; 7];

blas_double! { create: hipblasLtCreate, destroy: hipblasLtDestroy, matmul_desc_create: hipblasLtMatmulDescCreate, matmul_desc_set_attribute: hipblasLtMatmulDescSetAttribute, matmul_desc_destroy: hipblasLtMatmulDescDestroy, matrix_layout_create: hipblasLtMatrixLayoutCreate, matrix_layout_destroy: hipblasLtMatrixLayoutDestroy, matmul_preference_create: hipblasLtMatmulPreferenceCreate, matmul_preference_set_attribute: hipblasLtMatmulPreferenceSetAttribute, matmul_preference_destroy: hipblasLtMatmulPreferenceDestroy, matmul_algo_get_heuristic: hipblasLtMatmulAlgoGetHeuristic, matmul: hipblasLtMatmul, }

library! {
    hipblasLtGetVersion(_library: Handle, to: *mut c_int) { answer(to, 1_100) }
}
