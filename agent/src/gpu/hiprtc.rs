//! HIPRTC, opened at run time: HIP takes no text as CUDA's driver takes PTX, so this compiles the kernels for the GPU at hand.
//!
//! Signatures and numbers are those of `hiprtc.h` (ROCm 5.5 to 6.3). Without an option for it the compiler takes the architecture of the
//! current device.

use std::{
    ffi::{CStr, c_char, c_int},
    sync::OnceLock,
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use super::driver::Handle;
use crate::system::library::{Library, functions, said};

/// `hiprtcResult`.
type Status = c_int;
/// `HIPRTC_SUCCESS`.
const SUCCESS: Status = 0;

/// What HIPRTC may be called, the newest first: ROCm 7, 6 and 5, and where ROCm installs it.
const NAMES: [&str; 5] =
    ["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so", "/opt/rocm/lib/libhiprtc.so"];

type Texts = *mut *const c_char;

functions! {
    struct Compiler {}
    required {
        create = "hiprtcCreateProgram": fn(*mut Handle, *const c_char, *const c_char, c_int, Texts, Texts) -> Status,
        compile = "hiprtcCompileProgram": fn(Handle, c_int, Texts) -> Status,
        destroy = "hiprtcDestroyProgram": fn(*mut Handle) -> Status,
        log_size = "hiprtcGetProgramLogSize": fn(Handle, *mut usize) -> Status,
        log = "hiprtcGetProgramLog": fn(Handle, *mut c_char) -> Status,
        code_size = "hiprtcGetCodeSize": fn(Handle, *mut usize) -> Status,
        code = "hiprtcGetCode": fn(Handle, *mut c_char) -> Status,
        words = "hiprtcGetErrorString": fn(Status) -> *const c_char,
    }
    optional {}
}

/// Compiles a source for the device whose context is current.
pub(super) fn compile(source: &CStr) -> Result<Vec<u8>, Failure> {
    static COMPILER: OnceLock<Result<Compiler, Failure>> = OnceLock::new();
    COMPILER.get_or_init(open).as_ref().map_err(Clone::clone)?.compile(source)
}

fn refused(cause: String) -> Failure {
    Failure::new(Stage::Open, Kind::Unsupported, cause)
}

fn open() -> Result<Compiler, Failure> {
    let library = Library::first(&NAMES).map_err(|why| {
        refused(format!("there is no HIPRTC on this host to compile the kernels with: {why}"))
            .remedy(remedy::INSTALL_HIPRTC)
    })?;
    Compiler::look_up(&library, 0)
        .map_err(|missing| refused(format!("{}: {missing}", library.name())).remedy(remedy::INSTALL_HIPRTC))
}

/// A program that is destroyed once.
struct Program<'c> {
    compiler: &'c Compiler,
    handle: Handle,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `Compiler::compile`, destroyed once.
        unsafe { (self.compiler.destroy)(&raw mut self.handle) };
    }
}

impl Compiler {
    fn compile(&self, source: &CStr) -> Result<Vec<u8>, Failure> {
        let mut program = Program { compiler: self, handle: std::ptr::null_mut() };
        let none: Texts = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes; source and name end with NUL; there are no headers.
        let status =
            unsafe { (self.create)(&raw mut program.handle, source.as_ptr(), c"kernels.hip".as_ptr(), 0, none, none) };
        self.check(status, "preparing the kernels")?;
        // SAFETY: the program lives; there are no options.
        let status = unsafe { (self.compile)(program.handle, 0, none) };
        self.check(status, "compiling the kernels")
            .map_err(|failure| Failure { cause: format!("{}: {}", failure.cause, self.log(&program)), ..failure })?;
        let mut size = 0;
        // SAFETY: the program lives; `size` is valid for writes.
        self.check(unsafe { (self.code_size)(program.handle, &raw mut size) }, "asking for the kernels")?;
        let mut code = vec![0_u8; size];
        // SAFETY: the program lives; there is room for as many bytes as it told.
        self.check(unsafe { (self.code)(program.handle, code.as_mut_ptr().cast()) }, "taking the kernels")?;
        Ok(code)
    }

    /// What the compiler said of a program, as far as it does.
    fn log(&self, program: &Program<'_>) -> String {
        let mut size = 0;
        // SAFETY: the program lives; `size` is valid for writes.
        if unsafe { (self.log_size)(program.handle, &raw mut size) } != SUCCESS {
            return String::new();
        }
        let mut text = vec![0_u8; size];
        // SAFETY: the program lives; there is room for as many bytes as it told.
        if unsafe { (self.log)(program.handle, text.as_mut_ptr().cast()) } != SUCCESS {
            return String::new();
        }
        String::from_utf8_lossy(&text).trim_matches(['\0', '\n', ' ']).to_owned()
    }

    fn check(&self, status: Status, what: &str) -> Result<(), Failure> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: it answers every number with a static string.
        let said = unsafe { said((self.words)(status)) };
        Err(refused(format!("{what}: {}", said.unwrap_or_else(|| format!("HIPRTC error {status}")))))
    }
}
