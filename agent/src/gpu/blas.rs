//! cuBLASLt, opened at run time from the host's own library. Signatures and numbers are those of `cublasLt.h` and `library_types.h`
//! (cuBLAS 11.4 to 13).

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::OnceLock,
};

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use super::driver::Handle;
use crate::system::library::{NoFunction, NotOpened};

/// `cublasStatus_t`.
pub(super) type Status = c_int;
/// `CUBLAS_STATUS_SUCCESS`.
pub(super) const SUCCESS: Status = 0;

/// What the library may be called, the newest first: CUDA 13, 12 and 11.
pub(crate) const NAMES: [&str; 3] = ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"];

/// `cublasLtMatmulAlgo_t`: opaque, 64 bytes.
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

type Place = *const c_void;
type Made = *mut Handle;

macro_rules! table {
    (required { $($name:ident = $symbol:literal: fn($($arg:ty),*) -> $out:ty,)+ } optional { $oname:ident = $osymbol:literal: $otype:ty, }) => {
        /// The functions of one library.
        pub(super) struct Blas {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) -> $out,)+
            $oname: Option<$otype>,
            name: &'static str,
        }

        impl Blas {
            fn load(library: &Library, name: &'static str) -> Result<Self, NoFunction> {
                // SAFETY: each symbol has the signature that `cublasLt.h` declares for it; the library is never closed.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!($symbol, "\0").as_bytes()).map_err(|_| NoFunction($symbol))?,)+
                        $oname: library.get(concat!($osymbol, "\0").as_bytes()).ok().map(|symbol| *symbol),
                        name,
                    })
                }
            }
        }
    };
}

table! {
    required {
        create = "cublasLtCreate": fn(Made) -> Status,
        destroy = "cublasLtDestroy": fn(Handle) -> Status,
        version = "cublasLtGetVersion": fn() -> usize,
        product_create = "cublasLtMatmulDescCreate": fn(Made, c_int, c_int) -> Status,
        product_set = "cublasLtMatmulDescSetAttribute": fn(Handle, c_int, Place, usize) -> Status,
        product_destroy = "cublasLtMatmulDescDestroy": fn(Handle) -> Status,
        layout_create = "cublasLtMatrixLayoutCreate": fn(Made, c_int, u64, u64, i64) -> Status,
        layout_destroy = "cublasLtMatrixLayoutDestroy": fn(Handle) -> Status,
        preference_create = "cublasLtMatmulPreferenceCreate": fn(Made) -> Status,
        preference_set = "cublasLtMatmulPreferenceSetAttribute": fn(Handle, c_int, Place, usize) -> Status,
        preference_destroy = "cublasLtMatmulPreferenceDestroy": fn(Handle) -> Status,
        propose = "cublasLtMatmulAlgoGetHeuristic":
            fn(Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Proposal, *mut c_int) -> Status,
        algorithm_get = "cublasLtMatmulAlgoConfigGetAttribute":
            fn(*const Algorithm, c_int, *mut c_void, usize, *mut usize) -> Status,
        multiply = "cublasLtMatmul":
            fn(Handle, Handle, Place, u64, Handle, u64, Handle, Place, u64, Handle, u64, Handle, *const Algorithm, u64, usize, Handle) -> Status,
    }
    optional { words = "cublasLtGetStatusString": unsafe extern "C" fn(Status) -> *const c_char, }
}

impl Blas {
    /// A library of this host and a handle of it for the current context: of the newest library that gives one.
    ///
    /// # Errors
    /// There is no library, or none that is there goes with this GPU and its driver; in words.
    pub(super) fn open() -> Result<(&'static Self, Handle), Failure> {
        let mut why = Vec::new();
        for number in 0..NAMES.len() {
            match library(number) {
                Ok(blas) => match blas.handle() {
                    Ok(handle) => return Ok((blas, handle)),
                    Err(failure) => why.push(failure.cause),
                },
                Err(none) => why.push(none.to_string()),
            }
        }
        let cause = format!("cuBLASLt cannot be used: {}", why.join("; "));
        Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::INSTALL_CUBLASLT))
    }

    fn handle(&self) -> Result<Handle, Failure> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes.
        self.check(unsafe { (self.create)(&raw mut handle) }, &format!("starting {}", self.name))?;
        Ok(handle)
    }

    /// Its name and version, for the record.
    pub(super) fn record(&self) -> String {
        // SAFETY: it takes nothing and only answers.
        format!("{} ({})", self.name, unsafe { (self.version)() })
    }

    /// Turns a status into a failure that says what was tried and what the library answered.
    ///
    /// # Errors
    /// The status is not success.
    pub(super) fn check(&self, status: Status, what: &str) -> Result<(), Failure> {
        if status == SUCCESS {
            return Ok(());
        }
        let said = self.words.map(|words| {
            // SAFETY: it answers every number with a static string.
            unsafe { words(status) }
        });
        let said = said.filter(|text| !text.is_null()).map(|text| {
            // SAFETY: a static string of the library, which stays open.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        });
        let said = said.unwrap_or_else(|| format!("status {status}"));
        Err(Failure::new(Stage::Open, Kind::Unsupported, format!("{what}: {said}")))
    }
}

/// Why a library is not used.
#[derive(Debug, thiserror::Error)]
enum NoLibrary {
    /// The loader does not open it.
    #[error(transparent)]
    NotOpened(NotOpened),
    /// It is not what its name says.
    #[error("{name}: {missing}")]
    Lacks {
        /// What it is called.
        name: &'static str,
        /// What it has not got.
        missing: NoFunction,
    },
}

/// A library by its number in [`NAMES`], opened once per process.
fn library(number: usize) -> Result<&'static Blas, &'static NoLibrary> {
    static LIBRARIES: [OnceLock<Result<Blas, NoLibrary>>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    let open = || {
        let name = NAMES[number];
        // SAFETY: NVIDIA's library, whose initialisers are made to run in any process.
        let library = unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL) }
            .map_err(|error| NoLibrary::NotOpened(NotOpened(error)))?;
        let loaded = Blas::load(&library, name).map_err(|missing| NoLibrary::Lacks { name, missing });
        // It registers code with the driver: it stays.
        std::mem::forget(library);
        loaded
    };
    LIBRARIES[number].get_or_init(open).as_ref()
}
