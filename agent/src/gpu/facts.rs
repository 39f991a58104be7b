//! What NVML says of the GPUs of this host. NVML is opened at run time; a host without it has no GPUs to tell of.

use railgauge_wire::{
    facts::{Gpu, MemoryFaults, PciFunction, serial_number},
    unit::{Bytes, MegabytesPerSecond},
};
use thiserror::Error;

use super::{
    amd,
    nvml::{
        CHIP, CLOCK_MEMORY, CLOCK_SM, DOUBLE_BIT, Device, Nvml, Refused, SINGLE_BIT, UNCORRECTED, VOLATILE, id, on,
    },
    state::{self, watts},
};
use crate::system::tree::Tree;

/// Most NVLinks a GPU has (`NVML_NVLINK_MAX_LINKS`).
pub(super) const NVLINKS: u32 = 18;

/// What NVML did not do although it is there.
#[derive(Debug, Error)]
pub enum NvmlFailed {
    #[error("NVML: {0}")]
    Start(Refused),
    #[error("NVML: counting GPUs: {0}")]
    Count(Refused),
    #[error("NVML: GPU {0}: {1}")]
    Gpu(u32, Refused),
}

/// All GPUs of this host: NVIDIA's, or where there are none AMD's.
pub(crate) fn all(tree: &Tree) -> Result<Vec<Gpu>, NvmlFailed> {
    let gpus = gpus()?;
    Ok(if gpus.is_empty() { amd::facts::gpus(tree) } else { gpus })
}

/// All GPUs in NVML's order, which is that of PCI addresses; or why they are not known. No driver is no
/// error: then there are none.
fn gpus() -> Result<Vec<Gpu>, NvmlFailed> {
    let nvml = match Nvml::start() {
        Ok(nvml) => nvml,
        Err(error) if error.is_absence() => return Ok(Vec::new()),
        Err(error) => return Err(NvmlFailed::Start(error)),
    };
    let count = nvml.count().map_err(NvmlFailed::Count)?;
    let driver = nvml.driver_version();
    let cuda = nvml.cuda_version().map(|version| format!("{}.{}", version / 1000, version % 1000 / 10));
    let one = |index: u32| {
        let device = nvml.by_index(index).map_err(|error| NvmlFailed::Gpu(index, error))?;
        Ok(Gpu { driver: driver.clone(), cuda: cuda.clone(), ..gpu(index, &device) })
    };
    (0..count).map(one).collect()
}

fn gpu(index: u32, device: &Device) -> Gpu {
    let nvml = device.of();
    // A GPU without NVLink answers "not supported" for every one.
    let links = (0..NVLINKS).filter_map(|link| device.choice(nvml.link_state, link).ok().and_then(on));
    let active: Vec<bool> = links.collect();
    let clock = |kind| device.choice(nvml.clock, kind).ok().zip(device.choice(nvml.best_clock, kind).ok());
    Gpu {
        index,
        uuid: device.text(nvml.uuid),
        serial: device.text(nvml.serial).and_then(|serial| serial_number(&serial).map(str::to_owned)),
        part_number: device.text(nvml.part_number).filter(|number| !number.trim().is_empty()),
        name: device.text(nvml.name),
        driver: None,
        cuda: None,
        pcie: device.number(nvml.pcie_generation).zip(device.number(nvml.pcie_width)),
        pcie_max: device.number(nvml.best_pcie_generation).zip(device.number(nvml.best_pcie_width)),
        memory_bytes: device.memory().map(Bytes),
        ecc: device.current(nvml.ecc_mode).and_then(on),
        nvlinks: (!active.is_empty()).then(|| count(active.iter().filter(|active| **active))),
        nvlinks_total: (!active.is_empty()).then(|| count(active.iter())),
        nvlink_mbps: nvlink_rate(device),
        fabric: super::fabric::fabric(device),
        persistence: device.number(nvml.persistence).and_then(on),
        // Numbers as NVML has them: 0 is off, 1 is on.
        mig: device.current(nvml.mig_mode).map(|mode| mode == 1),
        clock_mhz: clock(CLOCK_SM),
        memory_clock_mhz: clock(CLOCK_MEMORY),
        throttled: device
            .held()
            .map(|reasons| state::holds(reasons).into_iter().map(|hold| hold.words().to_owned()).collect()),
        memory_faults: memory_faults(device),
        temperature: device.choice(nvml.temperature, CHIP).ok(),
        power_watts: device.number(nvml.power).map(watts).zip(device.number(nvml.power_limit).map(watts)),
        processes: device.program_count(),
        // What sysfs and CUDA know is added by the collector of facts.
        cuda_device: None,
        numa: None,
        function: PciFunction::default(),
        pci: device.pci().map(|(domain, bus, device)| address(domain, bus, device)),
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

/// The line rate of the NVLinks, from whichever field this driver fills.
fn nvlink_rate(device: &Device) -> Option<MegabytesPerSecond> {
    let fields = [
        id::NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON,
        id::NVML_FI_DEV_NVLINK_GET_SPEED,
        id::NVML_FI_DEV_NVLINK_SPEED_MBPS_L0,
    ];
    fields.into_iter().find_map(|id| field(device, id).filter(|rate| *rate > 0)).map(MegabytesPerSecond)
}

fn field(device: &Device, id: u32) -> Option<u32> {
    device.fields(&[id])[0].and_then(|value| u32::try_from(value).ok())
}

fn memory_faults(device: &Device) -> MemoryFaults {
    let nvml = device.of();
    let field = |id| field(device, id);
    // Older GPUs retire pages, newer ones remap rows; each answers for its own.
    let pending = field(id::NVML_FI_DEV_REMAPPED_PENDING).map(|pending| pending != 0);
    let retired = device.retired(SINGLE_BIT).zip(device.retired(DOUBLE_BIT));
    MemoryFaults {
        uncorrected: device.counter(nvml.ecc_errors, UNCORRECTED, VOLATILE),
        retired_pages: retired.map(|(single, double)| single + double),
        remapped_rows: field(id::NVML_FI_DEV_REMAPPED_COR).zip(field(id::NVML_FI_DEV_REMAPPED_UNC)),
        pending: pending.or_else(|| device.number(nvml.retirement_pending).and_then(on)),
        remapping_failed: field(id::NVML_FI_DEV_REMAPPED_FAILURE).map(|failed| failed != 0),
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
