//! What NVML says of the GPUs of this host. NVML is opened at run time; a host without it has no GPUs to tell of.

use nvml_wrapper::{
    Device, Nvml,
    enum_wrappers::device::{Clock, EccCounter, MemoryError, RetirementCause, TemperatureSensor},
    error::NvmlError,
};
use railgauge_wire::{
    facts::{Gpu, MemoryFaults, PciFunction, serial_number},
    unit::{Bytes, MegabytesPerSecond},
};
use thiserror::Error;

use super::{amd, state};
use crate::system::tree::Tree;

/// Most NVLinks a GPU has (`NVML_NVLINK_MAX_LINKS`).
pub(super) const NVLINKS: u32 = 18;

/// What NVML did not do although it is there.
#[derive(Debug, Error)]
pub enum NvmlFailed {
    /// It does not start.
    #[error("NVML: {0}")]
    Start(NvmlError),
    /// It does not say how many GPUs there are.
    #[error("NVML: counting GPUs: {0}")]
    Count(NvmlError),
    /// It does not tell of the GPU of this index.
    #[error("NVML: GPU {0}: {1}")]
    Gpu(u32, NvmlError),
}

/// All GPUs of this host: NVIDIA's, or where there are none AMD's.
///
/// # Errors
/// NVML is there and does not answer.
pub(crate) fn all(tree: &Tree) -> Result<Vec<Gpu>, NvmlFailed> {
    let gpus = gpus()?;
    Ok(if gpus.is_empty() { amd::facts::gpus(tree) } else { gpus })
}

/// All GPUs in NVML's order, which is that of PCI addresses; or why they are not known. No driver is no
/// error: then there are none.
///
/// # Errors
/// NVML is there and does not answer.
fn gpus() -> Result<Vec<Gpu>, NvmlFailed> {
    let nvml = match Nvml::init() {
        Ok(nvml) => nvml,
        Err(NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound | NvmlError::DriverNotLoaded) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(NvmlFailed::Start(error)),
    };
    let count = nvml.device_count().map_err(NvmlFailed::Count)?;
    let driver = nvml.sys_driver_version().ok();
    let cuda = nvml.sys_cuda_driver_version().ok();
    let cuda = cuda.map(|version| format!("{}.{}", version / 1000, version % 1000 / 10));
    let one = |index: u32| {
        let device = nvml.device_by_index(index).map_err(|error| NvmlFailed::Gpu(index, error))?;
        Ok(Gpu { driver: driver.clone(), cuda: cuda.clone(), ..gpu(index, &device) })
    };
    (0..count).map(one).collect()
}

fn gpu(index: u32, device: &Device<'_>) -> Gpu {
    let pci = device.pci_info().ok().map(|pci| address(pci.domain, pci.bus, pci.device));
    let links = (0..NVLINKS).map(|link| device.link_wrapper_for(link).is_active());
    // A GPU without NVLink answers "not supported" for every one.
    let active: Vec<bool> = links.filter_map(Result::ok).collect();
    let clock = |kind: Clock| device.clock_info(kind).ok().zip(device.max_clock_info(kind).ok());
    Gpu {
        index,
        uuid: device.uuid().ok(),
        serial: device.serial().ok().and_then(|serial| serial_number(&serial).map(str::to_owned)),
        part_number: device.board_part_number().ok().filter(|number| !number.trim().is_empty()),
        name: device.name().ok(),
        driver: None,
        cuda: None,
        pcie: device.current_pcie_link_gen().ok().zip(device.current_pcie_link_width().ok()),
        pcie_max: device.max_pcie_link_gen().ok().zip(device.max_pcie_link_width().ok()),
        memory_bytes: device.memory_info().ok().map(|memory| Bytes(memory.total)),
        ecc: device.is_ecc_enabled().ok().map(|state| state.currently_enabled),
        nvlinks: (!active.is_empty()).then(|| count(active.iter().filter(|active| **active))),
        nvlinks_total: (!active.is_empty()).then(|| count(active.iter())),
        nvlink_mbps: nvlink_rate(device),
        fabric: super::fabric::fabric(device),
        persistence: device.is_in_persistent_mode().ok(),
        // Numbers as NVML has them: 0 is off, 1 is on.
        mig: device.mig_mode().ok().map(|mode| mode.current == 1),
        clock_mhz: clock(Clock::SM),
        memory_clock_mhz: clock(Clock::Memory),
        throttled: device
            .current_throttle_reasons()
            .ok()
            .map(|reasons| state::holds(reasons).into_iter().map(|hold| hold.words().to_owned()).collect()),
        memory_faults: memory_faults(device),
        temperature: device.temperature(TemperatureSensor::Gpu).ok(),
        power_watts: watts(device.power_usage()).zip(watts(device.power_management_limit())),
        processes: device.running_compute_processes_count().ok(),
        // What sysfs and CUDA know is added by the collector of facts.
        cuda_device: None,
        numa: None,
        function: PciFunction::default(),
        pci,
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

/// NVML counts milliwatts.
fn watts(milliwatts: Result<u32, NvmlError>) -> Option<f64> {
    milliwatts.ok().map(|milliwatts| f64::from(milliwatts) / 1e3)
}

/// The line rate of the NVLinks, from whichever field this driver fills.
fn nvlink_rate(device: &Device<'_>) -> Option<MegabytesPerSecond> {
    use nvml_wrapper::sys_exports::field_id::{
        NVML_FI_DEV_NVLINK_GET_SPEED, NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, NVML_FI_DEV_NVLINK_SPEED_MBPS_L0,
    };
    let fields = [NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, NVML_FI_DEV_NVLINK_GET_SPEED, NVML_FI_DEV_NVLINK_SPEED_MBPS_L0];
    fields.into_iter().find_map(|id| field(device, id).filter(|rate| *rate > 0)).map(MegabytesPerSecond)
}

/// A whole number among NVML's fields.
fn field(device: &Device<'_>, id: u32) -> Option<u32> {
    state::fields(device, &[id])[0].and_then(|value| u32::try_from(value).ok())
}

fn memory_faults(device: &Device<'_>) -> MemoryFaults {
    use nvml_wrapper::sys_exports::field_id::{
        NVML_FI_DEV_REMAPPED_COR, NVML_FI_DEV_REMAPPED_FAILURE, NVML_FI_DEV_REMAPPED_PENDING, NVML_FI_DEV_REMAPPED_UNC,
    };
    let field = |id| field(device, id);
    let retired = |cause| device.retired_pages(cause).ok().map(|pages| count(pages.iter()));
    let single = retired(RetirementCause::MultipleSingleBitEccErrors);
    let double = retired(RetirementCause::DoubleBitEccError);
    // Older GPUs retire pages, newer ones remap rows; each answers for its own.
    let pending = field(NVML_FI_DEV_REMAPPED_PENDING).map(|pending| pending != 0);
    MemoryFaults {
        uncorrected: device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok(),
        retired_pages: single.zip(double).map(|(single, double)| single + double),
        remapped_rows: field(NVML_FI_DEV_REMAPPED_COR).zip(field(NVML_FI_DEV_REMAPPED_UNC)),
        pending: pending.or_else(|| device.are_pages_pending_retired().ok()),
        remapping_failed: field(NVML_FI_DEV_REMAPPED_FAILURE).map(|failed| failed != 0),
    }
}

/// A PCI address as sysfs spells it. GPUs are function 0.
fn address(domain: u32, bus: u32, device: u32) -> String {
    format!("{domain:04x}:{bus:02x}:{device:02x}.0")
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_are_spelt_as_sysfs_does() {
        assert_eq!(super::address(0, 0x1b, 0), "0000:1b:00.0");
        assert_eq!(super::address(0x10000, 2, 3), "10000:02:03.0");
    }
}
