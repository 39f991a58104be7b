//! Launches the kernels of `kernels.ptx`, or of `kernels.hip` on AMD's GPUs.
//!
//! HIP does not accept text as CUDA's driver accepts PTX, so HIPRTC, opened at run time, compiles the kernels for the GPU at hand.
//! Signatures and numbers are those of `hiprtc.h` (ROCm 5.5 to 6.3). By default the compiler uses the architecture of the current device.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    sync::OnceLock,
};

use railgauge_wire::{Bytes, Checked, Failure, Kind, Pattern, Stage, remedy};

use super::{Buffer, Device, Handle, Stream, Vendor, device::Kernels, table::Values};
use crate::{
    fault,
    memory::pattern::{self, Part},
    system::{
        library::{Library, functions, said},
        log,
    },
};

/// The source, with the end mark that the driver looks for.
const SOURCE: &str = concat!(include_str!("kernels.ptx"), "\0");
const HIP_SOURCE: &str = concat!(include_str!("kernels.hip"), "\0");
const THREADS: u32 = 256;
/// Limit of a grid: enough blocks for every GPU, few enough to launch quickly.
const BLOCKS: u64 = 4096;
/// `CU_JIT_ERROR_LOG_BUFFER` and its size.
const ERROR_LOG: i32 = 5;
const ERROR_LOG_BYTES: i32 = 6;

/// Compiled by the driver at first use.
fn kernels(device: &Device) -> Result<&Kernels, Failure> {
    device.kernels.get_or_init(|| load(device)).as_ref().map_err(Clone::clone)
}

fn load(device: &Device) -> Result<Kernels, Failure> {
    device.enter()?;
    let driver = device.driver();
    let module = match device.vendor() {
        Vendor::Nvidia => from_text(device)?,
        Vendor::Amd => compiled(device)?,
    };
    let function = |name: &str| {
        let text = CString::new(name).unwrap_or_default();
        let mut function = std::ptr::null_mut();
        // SAFETY: the module was loaded above and stays as long as the context; the name ends with NUL.
        let status = unsafe { (driver.module_function)(&raw mut function, module, text.as_ptr().cast::<c_char>()) };
        device.check(status, &format!("finding the kernel {name}")).map(|()| function)
    };
    Ok(Kernels {
        write_pattern: function("write_pattern")?,
        check_pattern: function("check_pattern")?,
        write_values: function("write_values")?,
        check_values: function("check_values")?,
        write_outer: function("write_outer")?,
        check_outer: function("check_outer")?,
    })
}

fn from_text(device: &Device) -> Result<Handle, Failure> {
    let mut log = vec![0_u8; 4096];
    let mut names = [ERROR_LOG, ERROR_LOG_BYTES];
    let mut options = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
    let mut module = std::ptr::null_mut();
    // SAFETY: the source ends with NUL; both options have the types the driver expects; all live through the call.
    let status = unsafe {
        let source = SOURCE.as_ptr().cast::<c_void>();
        (device.driver().module_load)(&raw mut module, source, 2, names.as_mut_ptr(), options.as_mut_ptr())
    };
    device.check(status, "compiling the kernels").map_err(|failure| {
        let words = String::from_utf8_lossy(&log);
        let words = words.trim_end_matches('\0').trim();
        Failure { cause: format!("{}: {words}", failure.cause), ..failure }
    })?;
    Ok(module)
}

fn compiled(device: &Device) -> Result<Handle, Failure> {
    let of_gpu = |failure: Failure| failure.about(format_args!("GPU {}", device.index()));
    let source = CStr::from_bytes_with_nul(HIP_SOURCE.as_bytes())
        .map_err(|_| Failure::new(Stage::Open, Kind::Internal, "the kernels' source has a NUL in it"))?;
    let code = compile(source).map_err(of_gpu)?;
    let mut module = std::ptr::null_mut();
    let none = std::ptr::null_mut();
    // SAFETY: the code is whole, as the compiler gave it, and lives through the call; there are no options.
    let status =
        unsafe { (device.driver().module_load)(&raw mut module, code.as_ptr().cast(), 0, std::ptr::null_mut(), none) };
    device.check(status, "loading the kernels")?;
    Ok(module)
}

/// For 32-bit arguments the driver copies the lower half: hosts of GPUs are little-endian.
fn launch(stream: &Stream, function: Handle, items: u64, arguments: &mut [u64]) -> Result<(), Failure> {
    let mut pointers: Vec<*mut c_void> = arguments.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
    // At most BLOCKS, which fits.
    let blocks = items.div_ceil(u64::from(THREADS)).clamp(1, BLOCKS) as u32;
    let device = stream.device();
    // SAFETY: every caller below gives as many arguments as its kernel declares, and none is wider; the driver copies
    // them before it returns.
    let status = unsafe {
        let none = std::ptr::null_mut();
        (device.driver().launch)(function, blocks, 1, 1, THREADS, 1, 1, 0, stream.handle(), pointers.as_mut_ptr(), none)
    };
    device.check(status, "launching a kernel")
}

fn inside(buffer: &Buffer, at: u64, length: u64) -> Result<(), Failure> {
    if at.is_multiple_of(8) && at.checked_add(length).is_some_and(|end| end <= buffer.len()) {
        return Ok(());
    }
    let cause = format!("{length} bytes at {at} of a GPU buffer of {}", buffer.len());
    Err(Failure::new(Stage::Verify, Kind::Internal, cause))
}

/// Writes the pattern of queue pair `qp` into `pattern.size` bytes from offset `at` on, and waits. For the sending side; also injects a
/// test's fault (see [`fault`]).
pub fn fill(stream: &Stream, buffer: &Buffer, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
    write(stream, buffer, at, pattern, qp, 0)?;
    if pattern.size.is_zero() { Ok(()) } else { flip_bit(stream, buffer, at + pattern.size.0 / 2) }
}

/// Flips one bit of the byte at `at` if a test asks for it.
pub(super) fn flip_bit(stream: &Stream, buffer: &Buffer, at: u64) -> Result<(), Failure> {
    if fault::flips_bits() {
        let mut byte = [0];
        stream.to_host(&mut byte, buffer, at)?;
        fault::flip_bit(&mut byte);
        stream.to_device(buffer, at, &byte)?;
    }
    Ok(())
}

/// Overwrites the same bytes with the complement of the pattern, and waits for it.
pub fn poison(stream: &Stream, buffer: &Buffer, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
    write(stream, buffer, at, pattern, qp, u64::MAX)
}

fn write(stream: &Stream, buffer: &Buffer, at: u64, pattern: &Pattern, qp: u32, flip: u64) -> Result<(), Failure> {
    let words = Words { are_random: true, flip };
    put(stream, buffer, (at, pattern.size.0), pattern::key(pattern, qp), words)?;
    stream.wait()
}

/// A pattern: words that all differ, or zeros, xor `flip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) are_random: bool,
    pub(crate) flip: u64,
}

impl Words {
    fn mask(self) -> u64 {
        if self.are_random { u64::MAX } else { 0 }
    }
}

/// The arguments of both kernels of patterns, with the device entered.
fn of_words(
    stream: &Stream,
    buffer: &Buffer,
    (at, length): (u64, u64),
    key: u64,
    words: Words,
) -> Result<Vec<u64>, Failure> {
    inside(buffer, at, length)?;
    stream.device().enter()?;
    Ok(vec![buffer.address() + at, length, key, words.flip, words.mask()])
}

/// Does not wait.
pub(crate) fn put(
    stream: &Stream,
    buffer: &Buffer,
    (at, length): (u64, u64),
    key: u64,
    words: Words,
) -> Result<(), Failure> {
    let mut arguments = of_words(stream, buffer, (at, length), key, words)?;
    launch(stream, kernels(stream.device())?.write_pattern, length.div_ceil(8), &mut arguments)
}

/// Adds errors to the tally. Does not wait.
pub(crate) fn compare(
    stream: &Stream,
    buffer: &Buffer,
    (at, length): (u64, u64),
    key: u64,
    words: Words,
    tally: &Tally,
) -> Result<(), Failure> {
    let mut arguments = of_words(stream, buffer, (at, length), key, words)?;
    arguments.push(tally.address());
    launch(stream, kernels(stream.device())?.check_pattern, length.div_ceil(8), &mut arguments)
}

/// Compares `pattern.size` bytes from offset `at` on with the pattern, on the GPU.
pub fn check(stream: &Stream, buffer: &Buffer, at: u64, pattern: &Pattern, qp: u32) -> Result<Checked, Failure> {
    let tally = Tally::new(stream)?;
    let words = Words { are_random: true, flip: 0 };
    compare(stream, buffer, (at, pattern.size.0), pattern::key(pattern, qp), words, &tally)?;
    let (wrong, first_wrong) = tally.read(stream)?;
    Ok(Checked { verified: pattern.size, wrong: Bytes(wrong), first_wrong })
}

pub fn write_values(stream: &Stream, buffer: &Buffer, values: &Values, part: &Part) -> Result<(), Failure> {
    inside(buffer, 0, end(part, values))?;
    stream.device().enter()?;
    let function = kernels(stream.device())?.write_values;
    launch(stream, function, part.count, &mut arguments(buffer, values, part))
}

/// Compares a part of a collective's buffer with what it must hold, on the GPU.
pub fn check_values(stream: &Stream, buffer: &Buffer, values: &Values, part: &Part) -> Result<Checked, Failure> {
    inside(buffer, 0, end(part, values))?;
    let tally = Tally::new(stream)?;
    let mut arguments = arguments(buffer, values, part);
    arguments.push(tally.address());
    launch(stream, kernels(stream.device())?.check_values, part.count, &mut arguments)?;
    let (wrong, first_wrong) = tally.read(stream)?;
    let width = 1 << values.shift();
    Ok(Checked {
        verified: Bytes(part.count * width),
        wrong: Bytes(wrong * width),
        first_wrong: first_wrong.map(|at| at + part.at * width),
    })
}

/// End of a part in its buffer, in bytes.
fn end(part: &Part, values: &Values) -> u64 {
    part.at.saturating_add(part.count) << values.shift()
}

fn arguments(buffer: &Buffer, values: &Values, part: &Part) -> Vec<u64> {
    vec![
        buffer.address() + (part.at << values.shift()),
        part.count,
        values.table(part),
        part.offset,
        values.key,
        u64::from(values.shift()),
        u64::from(values.ranks),
        u64::from(values.cap()),
        u64::from(values.most()),
        u64::from(values.mode()),
        u64::from(part.first),
        u64::from(part.many),
    ]
}

/// A square matrix of whole numbers: each is r₁·c₁ + r₂·c₂ of its row and its column.
pub(crate) struct Outer<'a> {
    /// Two numbers (i32) of every row.
    pub(crate) rows: &'a Buffer,
    pub(crate) columns: &'a Buffer,
    /// Elements of the numbers −256 to 255, four bytes each.
    pub(crate) table: &'a Buffer,
    pub(crate) length: u32,
    /// Base-2 logarithm of the width of an element.
    pub(crate) shift: u32,
}

impl Outer<'_> {
    fn elements(&self) -> u64 {
        u64::from(self.length) * u64::from(self.length)
    }

    /// The matrix and its inputs are as long as the kernels read.
    fn arguments(&self, matrix: &Buffer) -> Result<Vec<u64>, Failure> {
        inside(matrix, 0, self.elements() << self.shift)?;
        inside(self.rows, 0, u64::from(self.length) * 8)?;
        inside(self.columns, 0, u64::from(self.length) * 8)?;
        inside(self.table, 0, 512 * 4)?;
        Ok(vec![
            matrix.address(),
            self.elements(),
            self.rows.address(),
            self.columns.address(),
            self.table.address(),
            u64::from(self.length),
            u64::from(self.shift),
        ])
    }
}

/// Writes a matrix, row by row, and waits for it.
pub(crate) fn write_outer(stream: &Stream, matrix: &Buffer, outer: &Outer<'_>) -> Result<(), Failure> {
    stream.device().enter()?;
    let function = kernels(stream.device())?.write_outer;
    launch(stream, function, outer.elements(), &mut outer.arguments(matrix)?)?;
    stream.wait()
}

/// Compares every element of a matrix: how many are wrong, and the offset of the first in bytes.
pub(crate) fn check_outer(stream: &Stream, matrix: &Buffer, outer: &Outer<'_>) -> Result<(u64, Option<u64>), Failure> {
    let tally = Tally::new(stream)?;
    let mut arguments = outer.arguments(matrix)?;
    arguments.push(tally.address());
    launch(stream, kernels(stream.device())?.check_outer, outer.elements(), &mut arguments)?;
    tally.read(stream)
}

pub(crate) struct Tally {
    buffer: Buffer,
}

impl Tally {
    pub(crate) fn new(stream: &Stream) -> Result<Self, Failure> {
        let mut bytes = [0; 16];
        bytes[8..].fill(0xff);
        let tally = Self { buffer: Buffer::new(stream.device(), 16)? };
        stream.to_device(&tally.buffer, 0, &bytes)?;
        Ok(tally)
    }

    fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// Wrong items, and the offset of the first in bytes; waits for all that was queued before.
    pub(crate) fn read(&self, stream: &Stream) -> Result<(u64, Option<u64>), Failure> {
        let mut bytes = [0; 16];
        stream.to_host(&mut bytes, &self.buffer, 0)?;
        let (words, _) = bytes.as_chunks::<8>();
        let first = u64::from_le_bytes(words[1]);
        Ok((u64::from_le_bytes(words[0]), (first != u64::MAX).then_some(first)))
    }
}

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

fn compile(source: &CStr) -> Result<Vec<u8>, Failure> {
    static COMPILER: OnceLock<Result<Compiler, Failure>> = OnceLock::new();
    COMPILER.get_or_init(open).as_ref().map_err(Clone::clone)?.compile(source)
}

fn refused(cause: String) -> Failure {
    Failure::new(Stage::Open, Kind::Unsupported, cause)
}

fn open() -> Result<Compiler, Failure> {
    let library = Library::first(&NAMES).map_err(|why| {
        refused(format!("this host has no HIPRTC to compile the kernels with: {why}")).remedy(remedy::INSTALL_HIPRTC)
    })?;
    Compiler::look_up(&library, 0)
        .map_err(|missing| refused(format!("{}: {missing}", library.name())).remedy(remedy::INSTALL_HIPRTC))
}

struct Program<'c> {
    compiler: &'c Compiler,
    handle: Handle,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `Compiler::compile`, destroyed once.
        let status = unsafe { (self.compiler.destroy)(&raw mut self.handle) };
        if status != SUCCESS {
            log!("a program of HIPRTC was not ended: error {status}");
        }
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
        // SAFETY: the program lives; there is room for as many bytes as it reported.
        self.check(unsafe { (self.code)(program.handle, code.as_mut_ptr().cast()) }, "taking the kernels")?;
        Ok(code)
    }

    fn log(&self, program: &Program<'_>) -> String {
        let mut size = 0;
        // SAFETY: the program lives; `size` is valid for writes.
        if unsafe { (self.log_size)(program.handle, &raw mut size) } != SUCCESS {
            return String::new();
        }
        let mut text = vec![0_u8; size];
        // SAFETY: the program lives; there is room for as many bytes as it reported.
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
