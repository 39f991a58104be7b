//! cuBLASLt or AMD's hipBLASLt, opened at run time from the host's own library. Signatures and numbers are those of `cublasLt.h` and
//! `library_types.h` (cuBLAS 11.4 to 13), and of `hipblaslt.h`, `hipblas-common.h` and `library_types.h` (ROCm 6.3).

use std::ffi::{c_char, c_int, c_void};

use libloading::os::unix::RTLD_LAZY;
use railgauge_wire::{Failure, Kind, Stage, remedy};

use super::{Handle, Vendor};
use crate::system::library::{Library, Owned, functions, said};

/// `cublasStatus_t`, `hipblasStatus_t`.
pub(super) type Status = c_int;
/// `CUBLAS_STATUS_SUCCESS`, `HIPBLAS_STATUS_SUCCESS`.
pub(super) const SUCCESS: Status = 0;

/// Newest first: CUDA 13, 12 and 11.
pub(crate) const NAMES: [&str; 3] = ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"];

/// ROCm 7 and 6, and where ROCm installs it.
pub(crate) const HIP_NAMES: [&str; 4] =
    ["libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so", "/opt/rocm/lib/libhipblaslt.so"];

/// `cublasLtMatmulAlgo_t`: opaque, 64 bytes. Of `hipblasLtMatmulAlgo_t`, which has 24, the first three words.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Algorithm(pub [u64; 8]);

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Proposal {
    pub(super) algorithm: Algorithm,
    pub(super) workspace: usize,
    pub(super) state: Status,
    pub(super) waves: f32,
    pub(super) reserved: [c_int; 4],
}

/// `hipblasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct HipProposal {
    algorithm: [u64; 3],
    workspace: usize,
    state: Status,
    waves: f32,
    reserved: [c_int; 4],
}

impl From<HipProposal> for Proposal {
    fn from(told: HipProposal) -> Self {
        let [first, second, third] = told.algorithm;
        let algorithm = Algorithm([first, second, third, 0, 0, 0, 0, 0]);
        let HipProposal { workspace, state, waves, reserved, .. } = told;
        Self { algorithm, workspace, state, waves, reserved }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    /// `CUBLASLT_MATMUL_DESC_TRANSA`, `HIPBLASLT_MATMUL_DESC_TRANSA`.
    pub(super) transpose_a: c_int,
    /// `CUBLAS_OP_T`, `HIPBLAS_OP_T`.
    pub(super) transposed: c_int,
    /// `CUBLAS_COMPUTE_32F`, `HIPBLAS_COMPUTE_32F`.
    pub(super) compute_32f: c_int,
    /// `CUBLAS_COMPUTE_32F_FAST_TF32`, `HIPBLAS_COMPUTE_32F_FAST_TF32`.
    pub(super) compute_tf32: c_int,
}

const CUDA_NUMBERS: Numbers = Numbers { transpose_a: 3, transposed: 1, compute_32f: 68, compute_tf32: 77 };
const HIP_NUMBERS: Numbers = Numbers { transpose_a: 0, transposed: 112, compute_32f: 2, compute_tf32: 6 };

type Place = *const c_void;
type Made = *mut Handle;

functions! {
    pub(super) struct Blas {
        vendor: Vendor,
        name: &'static str,
    }
    required {
        create = "cublasLtCreate" | "hipblasLtCreate": fn(Made) -> Status,
        destroy = "cublasLtDestroy" | "hipblasLtDestroy": fn(Handle) -> Status,
        product_create = "cublasLtMatmulDescCreate" | "hipblasLtMatmulDescCreate": fn(Made, c_int, c_int) -> Status,
        product_set = "cublasLtMatmulDescSetAttribute" | "hipblasLtMatmulDescSetAttribute":
            fn(Handle, c_int, Place, usize) -> Status,
        product_destroy = "cublasLtMatmulDescDestroy" | "hipblasLtMatmulDescDestroy": fn(Handle) -> Status,
        layout_create = "cublasLtMatrixLayoutCreate" | "hipblasLtMatrixLayoutCreate": fn(Made, c_int, u64, u64, i64) -> Status,
        layout_destroy = "cublasLtMatrixLayoutDestroy" | "hipblasLtMatrixLayoutDestroy": fn(Handle) -> Status,
        preference_create = "cublasLtMatmulPreferenceCreate" | "hipblasLtMatmulPreferenceCreate": fn(Made) -> Status,
        preference_set = "cublasLtMatmulPreferenceSetAttribute" | "hipblasLtMatmulPreferenceSetAttribute":
            fn(Handle, c_int, Place, usize) -> Status,
        preference_destroy = "cublasLtMatmulPreferenceDestroy" | "hipblasLtMatmulPreferenceDestroy": fn(Handle) -> Status,
        propose = "cublasLtMatmulAlgoGetHeuristic" | "hipblasLtMatmulAlgoGetHeuristic":
            fn(Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut c_void, *mut c_int) -> Status,
        multiply = "cublasLtMatmul" | "hipblasLtMatmul":
            fn(Handle, Handle, Place, u64, Handle, u64, Handle, Place, u64, Handle, u64, Handle, *const Algorithm, u64, usize, Handle) -> Status,
    }
    optional {
        version = "cublasLtGetVersion" | "": fn() -> usize,
        hip_version = "" | "hipblasLtGetVersion": fn(Handle, *mut c_int) -> Status,
        algorithm_get = "cublasLtMatmulAlgoConfigGetAttribute" | "":
            fn(*const Algorithm, c_int, *mut c_void, usize, *mut usize) -> Status,
        words = "cublasLtGetStatusString" | "": fn(Status) -> *const c_char,
    }
}

impl Blas {
    /// The newest library that gives a handle for the current context of a GPU of this vendor.
    pub(super) fn open(vendor: Vendor) -> Result<(Self, Owned<c_void>), Failure> {
        let (called, names, install) = match vendor {
            Vendor::Nvidia => ("cuBLASLt", &NAMES[..], remedy::INSTALL_CUBLASLT),
            Vendor::Amd => ("hipBLASLt", &HIP_NAMES[..], remedy::INSTALL_HIPBLASLT),
        };
        let mut why = Vec::new();
        for name in names {
            let library = match Library::open(name, RTLD_LAZY) {
                Ok(library) => library,
                Err(not_opened) => {
                    why.push(not_opened.to_string());
                    continue;
                }
            };
            match Self::look_up(&library, vendor as usize, vendor, name) {
                Ok(blas) => match blas.handle() {
                    Ok(handle) => return Ok((blas, handle)),
                    Err(failure) => why.push(failure.cause),
                },
                Err(missing) => why.push(format!("{name}: {missing}")),
            }
        }
        let cause = format!("{called} cannot be used: {}", why.join("; "));
        Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(install))
    }

    pub(super) fn numbers(&self) -> Numbers {
        self.vendor.either(CUDA_NUMBERS, HIP_NUMBERS)
    }

    /// At most `N`, for these handles: library, product, A, B, C, D, preference.
    pub(super) fn proposals<const N: usize>(&self, handles: [Handle; 7]) -> Result<Vec<Proposal>, Failure> {
        let mut told: [Proposal; N] = [Proposal::default(); N];
        let mut told_by_hip: [HipProposal; N] = [HipProposal::default(); N];
        let to: *mut c_void = match self.vendor {
            Vendor::Nvidia => told.as_mut_ptr().cast(),
            Vendor::Amd => told_by_hip.as_mut_ptr().cast(),
        };
        let mut found: c_int = 0;
        let [library, product, a, b, c, d, preference] = handles;
        // SAFETY: all handles live; there is room for as many proposals as are asked for, of the library's own structure.
        let status =
            unsafe { (self.propose)(library, product, a, b, c, d, preference, N as c_int, to, &raw mut found) };
        self.check(status, "looking for an algorithm")?;
        let found = usize::try_from(found).unwrap_or(0).min(N);
        Ok(match self.vendor {
            Vendor::Nvidia => told[..found].to_vec(),
            Vendor::Amd => told_by_hip[..found].iter().map(|told| Proposal::from(*told)).collect(),
        })
    }

    /// 32 bits of an algorithm's configuration; `None` where the library does not report it.
    pub(super) fn configuration(&self, algorithm: &Algorithm, attribute: c_int) -> Option<u32> {
        let ask = self.algorithm_get?;
        let (mut value, mut written) = (0_u32, 0);
        // SAFETY: both places are valid for writes, the first for as many bytes as are named.
        let status = unsafe {
            let to = (&raw mut value).cast::<c_void>();
            ask(std::ptr::from_ref(algorithm), attribute, to, size_of::<u32>(), &raw mut written)
        };
        (status == SUCCESS).then_some(value)
    }

    fn handle(&self) -> Result<Owned<c_void>, Failure> {
        // SAFETY: `to` is valid for writes.
        self.made(&format!("starting {}", self.name), self.destroy, |to| unsafe { (self.create)(to) })
    }

    pub(super) fn made(
        &self,
        what: &str,
        destroy: unsafe extern "C" fn(Handle) -> Status,
        make: impl FnOnce(*mut Handle) -> Status,
    ) -> Result<Owned<c_void>, Failure> {
        let mut handle = std::ptr::null_mut();
        self.check(make(&raw mut handle), what)?;
        // SAFETY: the library has just made it. It may be used from any thread: once it is described it is only read.
        unsafe { Owned::new(handle, destroy) }
            .ok_or_else(|| Failure::new(Stage::Open, Kind::Internal, format!("{what}: there is nothing")))
    }

    /// For the record; `handle` is a handle of the library.
    pub(super) fn record(&self, handle: Handle) -> String {
        let version = match (self.version, self.hip_version) {
            // SAFETY: it takes nothing and only answers.
            (Some(version), _) => unsafe { version() }.to_string(),
            (None, Some(ask)) => {
                let mut version = 0;
                // SAFETY: the handle lives, and the place is valid for writes.
                let status = unsafe { ask(handle, &raw mut version) };
                if status == SUCCESS { version.to_string() } else { "unknown".to_owned() }
            }
            (None, None) => "unknown".to_owned(),
        };
        format!("{} ({version})", self.name)
    }

    pub(super) fn check(&self, status: Status, what: &str) -> Result<(), Failure> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: it answers every number with a static string.
        let said = self.words.and_then(|words| unsafe { said(words(status)) });
        let said = said.unwrap_or_else(|| format!("status {status}"));
        Err(Failure::new(Stage::Open, Kind::Unsupported, format!("{what}: {said}")))
    }
}
