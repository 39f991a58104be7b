//! AMD's GPUs by AMD SMI, opened at run time.
//!
//! Signatures, numbers and offsets are those of `amdsmi.h`. Structures change between versions: each answer is read as bytes at the
//! offsets of the version found ([`layout`]), and other versions are refused. Sources:
//!
//! | version of AMD SMI | ROCm | read in |
//! | --- | --- | --- |
//! | 24.6 and 24.7 | 6.2 and 6.3 | `amdsmi.h` |
//! | 25 | 6.4 | the bindings that AMD makes of it for Python (6.4.0 and 6.4.4) |
//! | 26 | 7 | `amdsmi.h` of 26.1 and 26.5, bindings of 7.0.0 and 7.0.2 |

use std::{
    ffi::{c_char, c_int, c_void},
    sync::OnceLock,
};

use thiserror::Error;

use super::super::Handle;
use super::layout::{self, Layout, Space};
use crate::system::library::{Library, NoFunction, functions, said};

/// `amdsmi_status_t`.
type Status = c_int;
/// `AMDSMI_STATUS_SUCCESS`.
pub(super) const SUCCESS: Status = 0;
/// `AMDSMI_INIT_AMD_GPUS`.
const GPUS: u64 = 1 << 1;
/// `AMDSMI_PROCESSOR_TYPE_AMD_GPU`.
const AMD_GPU: c_int = 1;
/// `AMDSMI_CLK_TYPE_GFX` and `AMDSMI_CLK_TYPE_MEM`.
pub(super) const CLOCK_GFX: c_int = 0;
pub(super) const CLOCK_MEMORY: c_int = 4;
/// `AMDSMI_TEMPERATURE_TYPE_HOTSPOT` and `AMDSMI_TEMPERATURE_TYPE_VRAM`.
pub(super) const HOTSPOT: c_int = 1;
pub(super) const MEMORY: c_int = 2;
/// `AMDSMI_TEMP_CURRENT`.
const NOW: c_int = 0;
/// `AMDSMI_MEM_TYPE_VRAM`.
pub(super) const VRAM: c_int = 0;
/// `AMDSMI_GPU_BLOCK_UMC`: the memory's controllers. Blocks are 64 bits wide, as the last of them is.
const MEMORY_BLOCK: u64 = 1;

/// Names of AMD SMI: of ROCm 7, 6.4, and 6.2 and 6.3; and where ROCm installs it.
pub(crate) const NAMES: [&str; 5] =
    ["libamd_smi.so", "libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24", "/opt/rocm/lib/libamd_smi.so"];

/// Limit of GPUs of a host, and of programs of a GPU.
const MOST: u32 = 256;

/// A status other than success, in the library's own words; or why the library is not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub(crate) struct Refused(String);

type Gpu = Handle;
type To = *mut c_void;

functions! {
    pub(super) struct Smi {
        pub(super) layout: &'static Layout,
    }
    required {
        lib_version = "amdsmi_get_lib_version": fn(To) -> Status,
        init = "amdsmi_init": fn(u64) -> Status,
        words = "amdsmi_status_code_to_string": fn(Status, *mut *const c_char) -> Status,
        sockets = "amdsmi_get_socket_handles": fn(*mut u32, *mut Handle) -> Status,
        processors = "amdsmi_get_processor_handles": fn(Handle, *mut u32, *mut Gpu) -> Status,
        kind = "amdsmi_get_processor_type": fn(Gpu, *mut c_int) -> Status,
        bdf = "amdsmi_get_gpu_device_bdf": fn(Gpu, *mut u64) -> Status,
        uuid = "amdsmi_get_gpu_device_uuid": fn(Gpu, *mut u32, *mut c_char) -> Status,
        asic = "amdsmi_get_gpu_asic_info": fn(Gpu, To) -> Status,
        board = "amdsmi_get_gpu_board_info": fn(Gpu, To) -> Status,
        driver = "amdsmi_get_gpu_driver_info": fn(Gpu, To) -> Status,
        pcie = "amdsmi_get_pcie_info": fn(Gpu, To) -> Status,
        power = "amdsmi_get_power_info": fn(Gpu, To) -> Status,
        power_cap = "amdsmi_get_power_cap_info": fn(Gpu, u32, To) -> Status,
        clock = "amdsmi_get_clock_info": fn(Gpu, c_int, To) -> Status,
        temperature = "amdsmi_get_temp_metric": fn(Gpu, c_int, c_int, *mut i64) -> Status,
        memory_total = "amdsmi_get_gpu_memory_total": fn(Gpu, c_int, *mut u64) -> Status,
        ecc_enabled = "amdsmi_get_gpu_ecc_enabled": fn(Gpu, *mut u64) -> Status,
        ecc_count = "amdsmi_get_gpu_ecc_count": fn(Gpu, u64, To) -> Status,
        programs = "amdsmi_get_gpu_process_list": fn(Gpu, *mut u32, To) -> Status,
    }
    optional {
        violations = "amdsmi_get_violation_status": fn(Gpu, To) -> Status,
        xgmi_errors = "amdsmi_gpu_xgmi_error_status": fn(Gpu, *mut c_int) -> Status,
        bad_pages = "amdsmi_get_gpu_bad_page_info": fn(Gpu, *mut u32, To) -> Status,
    }
}

/// Opened and started once for the life of the process.
pub(super) fn smi() -> Result<&'static Smi, Refused> {
    static SMI: OnceLock<Result<Smi, Refused>> = OnceLock::new();
    SMI.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Smi, Refused> {
    let library = Library::first(&NAMES).map_err(|why| Refused(format!("AMD SMI is not there: {why}")))?;
    let lacks = |missing: NoFunction| Refused(format!("{}: {missing}", library.name()));
    let mut smi = Smi::look_up(&library, 0, &layout::OLD).map_err(lacks)?;
    let mut version = Space::default();
    // SAFETY: there is room for more than the structure, which is 24 bytes in every version.
    smi.check(unsafe { (smi.lib_version)(version.place()) }).map_err(not_started)?;
    // Year, major and minor number; no year from 26 on.
    let numbers = [0, 4, 8, 12].map(|at| version.word(at));
    smi.layout = Layout::of(numbers).map_err(|unknown| Refused(unknown.to_string()))?;
    // SAFETY: the flag is one of the header's.
    smi.check(unsafe { (smi.init)(GPUS) }).map_err(not_started)?;
    Ok(smi)
}

pub(super) fn not_started(why: Refused) -> Refused {
    Refused(format!("AMD SMI does not start: {why}"))
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) handle: Gpu,
}

// SAFETY: handles may be used from any thread; they are only numbers to this process.
unsafe impl Send for Known {}

impl Smi {
    fn check(&self, status: Status) -> Result<(), Refused> {
        if status == SUCCESS {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: `text` is valid for writes.
        let told = unsafe { (self.words)(status, &raw mut text) };
        // SAFETY: a static string of the library, or null.
        let said = (told == SUCCESS).then(|| unsafe { said(text) }).flatten();
        Err(Refused(said.unwrap_or_else(|| format!("status {status}"))))
    }

    pub(super) fn gpus(&self) -> Result<Vec<(String, Known)>, Refused> {
        let mut found = Vec::new();
        for socket in self.listed(|count, to| {
            // SAFETY: there is room for as many handles as `count` says, or none are wanted.
            unsafe { (self.sockets)(count, to) }
        })? {
            let processors = self.listed(|count, to| {
                // SAFETY: as above, and the socket is the library's own.
                unsafe { (self.processors)(socket, count, to) }
            })?;
            for handle in processors {
                let (mut kind, mut bdf) = (0, 0);
                // SAFETY: the handle is the library's own, and both places are valid for writes.
                let status = unsafe {
                    match (self.kind)(handle, &raw mut kind) {
                        SUCCESS => (self.bdf)(handle, &raw mut bdf),
                        status => status,
                    }
                };
                self.check(status)?;
                if kind == AMD_GPU {
                    found.push((layout::address(bdf), Known { handle }));
                }
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    /// For functions that first return the number of entries.
    fn listed(&self, ask: impl Fn(*mut u32, *mut Handle) -> Status) -> Result<Vec<Handle>, Refused> {
        let mut count = 0;
        self.check(ask(&raw mut count, std::ptr::null_mut()))?;
        let mut handles = vec![std::ptr::null_mut(); count.min(MOST) as usize];
        count = count.min(MOST);
        self.check(ask(&raw mut count, handles.as_mut_ptr()))?;
        handles.truncate(count as usize);
        Ok(handles)
    }

    pub(super) fn told(&self, ask: impl FnOnce(To) -> Status) -> Option<Space> {
        let mut space = Space::default();
        (ask(space.place()) == SUCCESS).then_some(space)
    }

    pub(super) fn clock(&self, gpu: Known, kind: c_int) -> (Option<u32>, Option<u32>) {
        // SAFETY: there is room for more than the structure.
        let told = self.told(|to| unsafe { (self.clock)(gpu.handle, kind, to) });
        told.map_or((None, None), |space| layout::clock(&space))
    }

    pub(super) fn degrees(&self, gpu: Known, sensor: c_int) -> Option<u32> {
        let mut degrees = 0;
        // SAFETY: the place is valid for writes.
        let status = unsafe { (self.temperature)(gpu.handle, sensor, NOW, &raw mut degrees) };
        (status == SUCCESS).then_some(degrees).filter(|degrees| (1..1000).contains(degrees))?.try_into().ok()
    }

    pub(super) fn watts(&self, gpu: Known) -> Option<f64> {
        // SAFETY: there is room for more than the structure.
        let told = self.told(|to| unsafe { (self.power)(gpu.handle, to) })?;
        self.layout.watts(&told)
    }

    pub(super) fn limit_watts(&self, gpu: Known) -> Option<f64> {
        // SAFETY: there is room for more than the structure; sensor 0 is that of the socket.
        let told = self.told(|to| unsafe { (self.power_cap)(gpu.handle, 0, to) })?;
        layout::limit_watts(&told)
    }

    pub(super) fn pcie(&self, gpu: Known) -> Option<layout::Pcie> {
        // SAFETY: there is room for more than the structure.
        let told = self.told(|to| unsafe { (self.pcie)(gpu.handle, to) })?;
        Some(layout::pcie(&told))
    }

    pub(super) fn memory_has_ecc(&self, gpu: Known) -> Option<bool> {
        let mut blocks = 0;
        // SAFETY: the place is valid for writes.
        let status = unsafe { (self.ecc_enabled)(gpu.handle, &raw mut blocks) };
        (status == SUCCESS).then_some(blocks & MEMORY_BLOCK != 0)
    }

    /// Errors of its memory, corrected and uncorrected, since the driver was loaded; `None` where they are not counted.
    pub(super) fn ecc(&self, gpu: Known) -> Option<(u64, u64)> {
        self.memory_has_ecc(gpu).filter(|has_ecc| *has_ecc)?;
        // SAFETY: the block is one of the header's, and there is room for more than the structure.
        let told = self.told(|to| unsafe { (self.ecc_count)(gpu.handle, MEMORY_BLOCK, to) })?;
        Some((told.long(0), told.long(8)))
    }

    pub(super) fn violations(&self, gpu: Known) -> Option<layout::Violations> {
        let ask = self.violations?;
        // SAFETY: there is room for more than the structure.
        let told = self.told(|to| unsafe { ask(gpu.handle, to) })?;
        self.layout.violations(&told)
    }

    /// Whether its xGMI links had an error since the last call: the kernel clears it on read.
    pub(super) fn xgmi_error(&self, gpu: Known) -> Option<bool> {
        let ask = self.xgmi_errors?;
        let mut status = 0;
        // SAFETY: the place is valid for writes.
        (unsafe { ask(gpu.handle, &raw mut status) } == SUCCESS).then_some(status != 0)
    }

    pub(super) fn programs(&self, gpu: Known) -> Option<Vec<u32>> {
        let count = self.program_count(gpu)?;
        // More may have started meanwhile.
        let mut room = (count + 8).min(MOST);
        let mut list = self.layout.programs(room);
        // SAFETY: there is room for as many entries as `room` says, of the size of this version.
        let status = unsafe { (self.programs)(gpu.handle, &raw mut room, list.as_mut_ptr().cast()) };
        (status == SUCCESS).then(|| self.layout.pids(&list, room))
    }

    fn program_count(&self, gpu: Known) -> Option<u32> {
        let mut count = 0;
        // SAFETY: the place is valid for writes; with room for none it only counts.
        let status = unsafe { (self.programs)(gpu.handle, &raw mut count, std::ptr::null_mut()) };
        (status == SUCCESS).then_some(count)
    }
}
