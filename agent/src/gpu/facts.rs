//! What NVML says of the GPUs of this host. NVML is opened at run time; a host without it has no GPUs to tell of.

use nvml_wrapper::{Device, Nvml, error::NvmlError};
use railgauge_wire::facts::Gpu;

use crate::facts::tree::Tree;

/// Most NVLinks a GPU has (`NVML_NVLINK_MAX_LINKS`).
const NVLINKS: u32 = 18;

/// All GPUs in NVML's order, which is that of PCI addresses; or why they are not known, in words. No driver is no
/// error: then there are none.
///
/// # Errors
/// NVML is there and does not answer.
pub fn gpus(tree: &Tree) -> Result<Vec<Gpu>, String> {
    let nvml = match Nvml::init() {
        Ok(nvml) => nvml,
        Err(NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound | NvmlError::DriverNotLoaded) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(format!("NVML: {error}")),
    };
    let count = nvml.device_count().map_err(|error| format!("NVML: counting GPUs: {error}"))?;
    let driver = nvml.sys_driver_version().ok();
    let cuda = nvml.sys_cuda_driver_version().ok();
    let cuda = cuda.map(|version| format!("{}.{}", version / 1000, version % 1000 / 10));
    let one = |index: u32| {
        let device = nvml.device_by_index(index).map_err(|error| format!("NVML: GPU {index}: {error}"))?;
        Ok(Gpu { driver: driver.clone(), cuda: cuda.clone(), ..gpu(tree, index, &device) })
    };
    (0..count).map(one).collect()
}

fn gpu(tree: &Tree, index: u32, device: &Device<'_>) -> Gpu {
    let pci = device.pci_info().ok().map(|pci| address(pci.domain, pci.bus, pci.device));
    let numa = pci.as_ref().and_then(|pci| tree.value::<i64>(format!("sys/bus/pci/devices/{pci}/numa_node")));
    let links = (0..NVLINKS).map(|link| device.link_wrapper_for(link).is_active());
    // A GPU without NVLink answers "not supported" for every one.
    let active: Vec<bool> = links.filter_map(Result::ok).collect();
    Gpu {
        index,
        uuid: device.uuid().ok(),
        name: device.name().ok(),
        driver: None,
        cuda: None,
        pcie: device.current_pcie_link_gen().ok().zip(device.current_pcie_link_width().ok()),
        pcie_max: device.max_pcie_link_gen().ok().zip(device.max_pcie_link_width().ok()),
        memory_bytes: device.memory_info().ok().map(|memory| memory.total),
        ecc: device.is_ecc_enabled().ok().map(|state| state.currently_enabled),
        numa: numa.and_then(|node| u32::try_from(node).ok()),
        nvlinks: (!active.is_empty())
            .then(|| u32::try_from(active.iter().filter(|active| **active).count()).unwrap_or(u32::MAX)),
        pci,
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
