//! A double of AMD SMI for tests on hosts without a GPU: what `agent/src/gpu/amd` needs of it, with the structures of `amdsmi.h` written
//! anew from the header. Never part of the product.
//!
//! Put beside an agent as `libamd_smi.so` and named by `LD_LIBRARY_PATH`. It has the GPUs of the double of HIP: two, at 0000:d0:00.0 and
//! 0000:d1:00.0. `AMDSMI_DOUBLE_VERSION` is its version, `26.1` if it is not set; up to 24 its structures are those of 24.7, from 25 on
//! those of 26. `AMDSMI_DOUBLE` makes the GPUs others or bad ones, in the words of `doubles/values.rs`; `programs=NUMBER` others use one
//! beside the agent itself, whatever that does; `AMDSMI_DOUBLE_DEAD` is a library that does not start, `AMDSMI_DOUBLE_HANGS` one that
//! does not come back from starting.
#![allow(non_snake_case, non_camel_case_types, reason = "the names are AMD's, and so is their meaning")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are AMD's")]

use std::ffi::{c_char, c_int, c_void};

use values::{BUSES, value};

#[path = "doubles/values.rs"]
mod values;

/// The variable with what is said of the GPUs.
const WORDS: &str = "AMDSMI_DOUBLE";

/// What a healthy GPU under load says.
const USUAL: [(&str, u64); 22] = [
    ("gfx", 2100),
    ("gfx_best", 2100),
    ("memory", 1300),
    ("memory_best", 1300),
    ("watts", 640),
    ("limit", 750),
    ("celsius", 62),
    ("memory_celsius", 48),
    ("heat", 0),
    ("power", 0),
    ("speed", 32_000),
    ("speed_best", 32_000),
    ("width", 16),
    ("width_best", 16),
    ("replays", 3),
    ("corrected", 5),
    ("uncorrected", 0),
    ("corrected_all", 5),
    ("uncorrected_all", 0),
    ("ecc", 7),
    ("programs", 0),
    ("bad_pages", 0),
];

type Status = c_int;
type Gpu = *mut c_void;

const SUCCESS: Status = 0;
const INVAL: Status = 1;
const NOT_SUPPORTED: Status = 2;
const OUT_OF_RESOURCES: Status = 15;
const DRIVER_NOT_LOADED: Status = 34;

/// The memory's controllers among the blocks of a GPU.
const UMC: u64 = 1;

fn version() -> (u32, u32) {
    let text = std::env::var("AMDSMI_DOUBLE_VERSION").unwrap_or_else(|_| "26.1".to_owned());
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Whether the structures are those of 25 and later.
fn is_new() -> bool {
    version().0 >= 25
}

fn bus(gpu: Gpu) -> u64 {
    gpu.addr() as u64
}

unsafe fn answer<T>(to: *mut T, value: Option<T>) -> Status {
    let Some(value) = value else { return NOT_SUPPORTED };
    // SAFETY: the caller of the library's function vouches for the place.
    unsafe { to.write(value) };
    SUCCESS
}

/// Writes a structure of the version at hand.
unsafe fn fill<T>(to: *mut c_void, value: T) -> Status {
    // SAFETY: the caller vouches for a place that is as large as the structure of this version.
    unsafe { to.cast::<T>().write(value) };
    SUCCESS
}

fn text<const N: usize>(text: &str) -> [u8; N] {
    std::array::from_fn(|i| text.as_bytes().get(i).copied().unwrap_or(0))
}

macro_rules! structures {
    ($($name:ident { $($field:ident: $type:ty,)+ })+) => {
        $(#[repr(C)] #[derive(Clone, Copy)] struct $name { $($field: $type,)+ })+
    };
}

structures! {
    version_24 { year: u32, major: u32, minor: u32, release: u32, build: *const c_char, }
    version_26 { major: u32, minor: u32, release: u32, build: *const c_char, }
    asic_24 {
        market_name: [u8; 256], vendor_id: u32, vendor_name: [u8; 64], subvendor_id: u32, device_id: u64, rev_id: u32,
        asic_serial: [u8; 32], oam_id: u32, num_of_compute_units: u32, target_graphics_version: u64, reserved: [u32; 15],
    }
    asic_26 {
        market_name: [u8; 256], vendor_id: u32, vendor_name: [u8; 256], subvendor_id: u32, device_id: u64, rev_id: u32,
        asic_serial: [u8; 256], oam_id: u32, num_of_compute_units: u32, target_graphics_version: u64, subsystem_id: u32,
        reserved: [u32; 21],
    }
    board_24 {
        model_number: [u8; 256], product_serial: [u8; 32], fru_id: [u8; 32], product_name: [u8; 256],
        manufacturer_name: [u8; 64], reserved: [u32; 32],
    }
    board_26 {
        model_number: [u8; 256], product_serial: [u8; 256], fru_id: [u8; 256], product_name: [u8; 256],
        manufacturer_name: [u8; 256], reserved: [u64; 64],
    }
    driver_24 { driver_version: [u8; 64], driver_date: [u8; 64], driver_name: [u8; 64], }
    driver_26 { driver_version: [u8; 256], driver_date: [u8; 256], driver_name: [u8; 256], }
    pcie_static { max_pcie_width: u16, max_pcie_speed: u32, interface_version: u32, slot_type: c_int, reserved: [u64; 10], }
    pcie_metric {
        pcie_width: u16, pcie_speed: u32, pcie_bandwidth: u32, replay_count: u64, l0_to_recovery: u64, roll_over: u64,
        nak_sent: u64, nak_received: u64, other_end_recovery: u32, reserved: [u64; 12],
    }
    pcie { fixed: pcie_static, metric: pcie_metric, reserved: [u64; 32], }
    power_24 {
        current_socket_power: u32, average_socket_power: u32, gfx: u32, soc: u32, mem: u32, power_limit: u32,
        reserved: [u32; 11],
    }
    power_26 {
        socket_power: u64, current_socket_power: u32, average_socket_power: u32, gfx: u64, soc: u64, mem: u64,
        power_limit: u32, reserved: [u64; 18],
    }
    power_cap { power_cap: u64, default: u64, dpm: u64, min: u64, max: u64, reserved: [u64; 3], }
    clock { clk: u32, min_clk: u32, max_clk: u32, locked: u8, deep_sleep: u8, reserved: [u32; 4], }
    error_count { correctable: u64, uncorrectable: u64, deferred: u64, reserved: [u64; 5], }
    violations_24 {
        timestamps: [u64; 2], acc: [u64; 6], per: [u64; 5], prochot_thrm: u8, ppt_pwr: u8, socket_thrm: u8, vr_thrm: u8, hbm_thrm: u8,
        reserved: [u64; 30],
    }
    violations_26 {
        timestamps: [u64; 2], acc: [u64; 7], per: [u64; 6], prochot_thrm: u8, ppt_pwr: u8, socket_thrm: u8, vr_thrm: u8, hbm_thrm: u8,
        below_host_limit: u8, acc_of_parts: [[u64; 64]; 4], per_of_parts: [[u64; 64]; 4], active_of_parts: [[u8; 64]; 4],
        reserved: [[u64; 64]; 3],
    }
    process_24 {
        name: [u8; 32], pid: u32, mem: u64, gfx: u64, enc: u64, engines: [u32; 12], gtt: u64, cpu: u64, vram: u64,
        memories: [u32; 10], container_name: [u8; 32], reserved: [u32; 4],
    }
    process_26 {
        name: [u8; 256], pid: u32, mem: u64, gfx: u64, enc: u64, engines: [u32; 12], gtt: u64, cpu: u64, vram: u64,
        memories: [u32; 10], container_name: [u8; 256], cu_occupancy: u32, evicted_time: u32, reserved: [u32; 10],
    }
}

macro_rules! amd_smi {
    ($($name:ident($($arg:ident: $type:ty),*) $body:block)+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> Status {
                #[allow(unused_unsafe, reason = "some of these functions do nothing")]
                // SAFETY: callers keep to amdsmi.h, as they must with AMD SMI itself.
                unsafe { $body }
            }
        )+
    };
}

fn number(gpu: Gpu, name: &str) -> Option<u32> {
    value(bus(gpu), name).and_then(|value| u32::try_from(value).ok())
}

/// How AMD SMI says whether a violation is active: 255 where it does not know.
fn active(gpu: Gpu, name: &str) -> u8 {
    value(bus(gpu), name).map_or(u8::MAX, |value| u8::from(value != 0))
}

amd_smi! {
    amdsmi_get_lib_version(to: *mut c_void) {
        let (major, minor) = version();
        let build = c"double".as_ptr();
        if major <= 25 {
            return fill(to, version_24 { year: major, major: minor, minor: 0, release: 0, build });
        }
        fill(to, version_26 { major, minor, release: 0, build })
    }
    amdsmi_init(flags: u64) {
        match flags {
            2 if std::env::var_os("AMDSMI_DOUBLE_DEAD").is_some() => DRIVER_NOT_LOADED,
            2 if std::env::var_os("AMDSMI_DOUBLE_HANGS").is_some() => loop {
                std::thread::sleep(std::time::Duration::from_secs(60));
            },
            2 => SUCCESS,
            _ => INVAL,
        }
    }
    amdsmi_status_code_to_string(_status: Status, to: *mut *const c_char) { answer(to, Some(c"said by a double".as_ptr())) }
    amdsmi_get_socket_handles(count: *mut u32, to: *mut Gpu) {
        let room = std::mem::replace(&mut *count, BUSES.len() as u32);
        if to.is_null() {
            return SUCCESS;
        }
        // The last first: nothing says that they come in an order.
        for (at, bus) in BUSES.iter().rev().enumerate().take(room as usize) {
            to.add(at).write(std::ptr::without_provenance_mut(*bus as usize + 0x1000));
        }
        SUCCESS
    }
    amdsmi_get_processor_handles(socket: Gpu, count: *mut u32, to: *mut Gpu) {
        let room = std::mem::replace(&mut *count, 1);
        if !to.is_null() && room > 0 {
            to.write(std::ptr::without_provenance_mut(socket.addr() - 0x1000));
        }
        SUCCESS
    }
    amdsmi_get_processor_type(_gpu: Gpu, to: *mut c_int) { answer(to, Some(1)) }
    amdsmi_get_gpu_device_bdf(gpu: Gpu, to: *mut u64) { answer(to, Some(bus(gpu) << 8)) }
    amdsmi_get_gpu_device_uuid(gpu: Gpu, length: *mut u32, to: *mut c_char) {
        let told = format!("{:02x}ff74a1-0000-1000-80d6-3d44b0c2f5a1", bus(gpu));
        if (length.read() as usize) <= told.len() {
            return INVAL;
        }
        to.cast::<u8>().copy_from_nonoverlapping(told.as_ptr(), told.len());
        answer(to.add(told.len()), Some(0))
    }
    amdsmi_get_gpu_asic_info(_gpu: Gpu, to: *mut c_void) {
        let name = "double of an AMD Instinct";
        if is_new() {
            return fill(to, asic_26 {
                market_name: text(name), vendor_id: 0x1002, vendor_name: text("AMD"), subvendor_id: 0x1002, device_id: 0x74a1,
                rev_id: 0, asic_serial: text("0x5A1"), oam_id: 0, num_of_compute_units: 304, target_graphics_version: 0x942,
                subsystem_id: 0, reserved: [0; 21],
            });
        }
        fill(to, asic_24 {
            market_name: text(name), vendor_id: 0x1002, vendor_name: text("AMD"), subvendor_id: 0x1002, device_id: 0x74a1, rev_id: 0,
            asic_serial: text("0x5A1"), oam_id: 0, num_of_compute_units: 304, target_graphics_version: 0x942, reserved: [0; 15],
        })
    }
    amdsmi_get_gpu_board_info(gpu: Gpu, to: *mut c_void) {
        let serial = format!("692345000{:02x}", bus(gpu));
        if is_new() {
            return fill(to, board_26 {
                model_number: text("102-G30213-00"), product_serial: text(&serial), fru_id: text("fru"), product_name: text("board"),
                manufacturer_name: text("AMD"), reserved: [0; 64],
            });
        }
        fill(to, board_24 {
            model_number: text("102-G30213-00"), product_serial: text(&serial), fru_id: text("fru"), product_name: text("board"),
            manufacturer_name: text("AMD"), reserved: [0; 32],
        })
    }
    amdsmi_get_gpu_driver_info(_gpu: Gpu, to: *mut c_void) {
        if is_new() {
            return fill(to, driver_26 { driver_version: text("6.10.5"), driver_date: text(""), driver_name: text("amdgpu") });
        }
        fill(to, driver_24 { driver_version: text("6.10.5"), driver_date: text(""), driver_name: text("amdgpu") })
    }
    amdsmi_get_pcie_info(gpu: Gpu, to: *mut c_void) {
        let told = |name| number(gpu, name).unwrap_or(u32::MAX);
        fill(to, pcie {
            fixed: pcie_static {
                max_pcie_width: told("width_best") as u16, max_pcie_speed: told("speed_best"), interface_version: 5, slot_type: 1,
                reserved: [0; 10],
            },
            metric: pcie_metric {
                pcie_width: told("width") as u16, pcie_speed: told("speed"), pcie_bandwidth: 77,
                replay_count: value(bus(gpu), "replays").unwrap_or(u64::MAX), l0_to_recovery: 9, roll_over: 9, nak_sent: 9,
                nak_received: 9, other_end_recovery: 9, reserved: [0; 12],
            },
            reserved: [0; 32],
        })
    }
    amdsmi_get_power_info(gpu: Gpu, to: *mut c_void) {
        let watts = number(gpu, "watts");
        if is_new() {
            return fill(to, power_26 {
                socket_power: 1, current_socket_power: watts.unwrap_or(u32::MAX), average_socket_power: u32::MAX, gfx: 1, soc: 2,
                mem: 3, power_limit: 4, reserved: [0; 18],
            });
        }
        fill(to, power_24 {
            current_socket_power: watts.unwrap_or(0xffff), average_socket_power: 0xffff, gfx: 1, soc: 2, mem: 3, power_limit: 4,
            reserved: [0; 11],
        })
    }
    amdsmi_get_power_cap_info(gpu: Gpu, sensor: u32, to: *mut c_void) {
        match value(bus(gpu), "limit").filter(|_| sensor == 0) {
            Some(limit) => fill(to, power_cap { power_cap: limit * 1_000_000, default: 1, dpm: 2, min: 3, max: 4, reserved: [0; 3] }),
            None => NOT_SUPPORTED,
        }
    }
    amdsmi_get_clock_info(gpu: Gpu, kind: c_int, to: *mut c_void) {
        let name = match kind {
            0 => "gfx",
            4 => "memory",
            _ => return INVAL,
        };
        fill(to, clock {
            clk: number(gpu, name).unwrap_or(u32::MAX), min_clk: 132, max_clk: number(gpu, &format!("{name}_best")).unwrap_or(u32::MAX),
            locked: 0, deep_sleep: 0, reserved: [0; 4],
        })
    }
    amdsmi_get_temp_metric(gpu: Gpu, sensor: c_int, metric: c_int, to: *mut i64) {
        let name = match (sensor, metric) {
            (1, 0) => "celsius",
            (2, 0) => "memory_celsius",
            _ => return NOT_SUPPORTED,
        };
        answer(to, value(bus(gpu), name).map(u64::cast_signed))
    }
    amdsmi_get_gpu_memory_total(_gpu: Gpu, kind: c_int, to: *mut u64) { answer(to, (kind == 0).then_some(192 << 30)) }
    amdsmi_get_gpu_ecc_enabled(gpu: Gpu, to: *mut u64) { answer(to, value(bus(gpu), "ecc")) }
    amdsmi_get_gpu_total_ecc_count(gpu: Gpu, to: *mut c_void) {
        let (correctable, uncorrectable) = (value(bus(gpu), "corrected_all"), value(bus(gpu), "uncorrected_all"));
        match correctable.zip(uncorrectable) {
            Some((correctable, uncorrectable)) => {
                fill(to, error_count { correctable, uncorrectable, deferred: 0, reserved: [0; 5] })
            }
            None => NOT_SUPPORTED,
        }
    }
    amdsmi_get_gpu_ecc_count(gpu: Gpu, block: u64, to: *mut c_void) {
        let (correctable, uncorrectable) = match block {
            UMC => (value(bus(gpu), "corrected"), value(bus(gpu), "uncorrected")),
            _ => (None, None),
        };
        match correctable.zip(uncorrectable) {
            Some((correctable, uncorrectable)) => {
                fill(to, error_count { correctable, uncorrectable, deferred: 0, reserved: [0; 5] })
            }
            None => NOT_SUPPORTED,
        }
    }
    amdsmi_get_violation_status(gpu: Gpu, to: *mut c_void) {
        let (power, heat) = (active(gpu, "power"), active(gpu, "heat"));
        if is_new() {
            return fill(to, violations_26 {
                timestamps: [1; 2], acc: [2; 7], per: [3; 6], prochot_thrm: u8::MAX, ppt_pwr: power, socket_thrm: heat, vr_thrm: u8::MAX,
                hbm_thrm: u8::MAX, below_host_limit: 1, acc_of_parts: [[1; 64]; 4], per_of_parts: [[1; 64]; 4],
                active_of_parts: [[1; 64]; 4], reserved: [[0; 64]; 3],
            });
        }
        fill(to, violations_24 {
            timestamps: [1; 2], acc: [2; 6], per: [3; 5], prochot_thrm: u8::MAX, ppt_pwr: power, socket_thrm: heat, vr_thrm: u8::MAX,
            hbm_thrm: u8::MAX, reserved: [0; 30],
        })
    }
    amdsmi_gpu_xgmi_error_status(gpu: Gpu, to: *mut c_int) {
        answer(to, number(gpu, "xgmi").map(|errors| errors.min(2).cast_signed()))
    }
    amdsmi_get_gpu_bad_page_info(gpu: Gpu, to: *mut u32, _pages: *mut c_void) { answer(to, number(gpu, "bad_pages")) }
    amdsmi_get_gpu_process_list(gpu: Gpu, count: *mut u32, to: *mut c_void) {
        let Some(others) = number(gpu, "programs") else { return NOT_SUPPORTED };
        let room = std::mem::replace(&mut *count, others + 1);
        if room == 0 {
            return SUCCESS;
        }
        // The first of all processes is nobody's child.
        let all = std::iter::once(std::process::id()).chain(std::iter::repeat_n(1, others as usize));
        for (at, pid) in all.enumerate().take(room as usize) {
            if is_new() {
                to.cast::<process_26>().add(at).write(process_26 {
                    name: text("program"), pid, mem: 7, gfx: 7, enc: 7, engines: [7; 12], gtt: 7, cpu: 7, vram: 7, memories: [7; 10],
                    container_name: text("container"), cu_occupancy: 7, evicted_time: 7, reserved: [7; 10],
                });
            } else {
                to.cast::<process_24>().add(at).write(process_24 {
                    name: text("program"), pid, mem: 7, gfx: 7, enc: 7, engines: [7; 12], gtt: 7, cpu: 7, vram: 7, memories: [7; 10],
                    container_name: text("container"), reserved: [7; 4],
                });
            }
        }
        if room > others { SUCCESS } else { OUT_OF_RESOURCES }
    }
}
