//! GPUs of this host by NVML, opened at run time, and their state in the NVLink fabric by `nvmlDeviceGetGpuFabricInfoV`, with the layouts
//! of its header, versions 2 and 3.

use nvml_wrapper_sys::bindings::{
    NVML_GPU_FABRIC_STATE_COMPLETED, NVML_GPU_FABRIC_STATE_IN_PROGRESS, NVML_GPU_FABRIC_STATE_NOT_STARTED,
    nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t, nvmlReturn_enum_NVML_SUCCESS,
};
use railgauge_wire::{
    Bytes, Failure, Gpu, GpuFabric, Kind, MegabytesPerSecond, MemoryFaults, PciFunction, Registration, Stage,
    facts::serial_number,
};

use super::{
    CHIP, CLOCK_MEMORY, CLOCK_SM, NVLINKS, Nvml, amd,
    nvml::{DOUBLE_BIT, Device, SINGLE_BIT, UNCORRECTED, VOLATILE, id, on},
    state::{self, watts},
};
use crate::system::tree::Tree;

/// NVIDIA's, or else AMD's.
pub(crate) fn all(tree: &Tree) -> Result<Vec<Gpu>, Failure> {
    let gpus = gpus()?;
    Ok(if gpus.is_empty() { amd::state::gpus(tree) } else { gpus })
}

/// In NVML's order, which is that of PCI addresses. Empty without a driver.
fn gpus() -> Result<Vec<Gpu>, Failure> {
    let failed = |why| Failure::new(Stage::Facts, Kind::Unsupported, format!("NVML: {why}"));
    let nvml = match Nvml::start() {
        Ok(nvml) => nvml,
        Err(error) if error.is_absence() => return Ok(Vec::new()),
        Err(error) => return Err(failed(error.to_string())),
    };
    let count = nvml.count().map_err(|error| failed(format!("counting GPUs: {error}")))?;
    let driver = nvml.driver_version();
    let cuda = nvml.cuda_version().map(|version| format!("{}.{}", version / 1000, version % 1000 / 10));
    let one = |index: u32| {
        let device = nvml.by_index(index).map_err(|error| failed(format!("GPU {index}: {error}")))?;
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
        fabric: fabric(device),
        persistence: device.number(nvml.persistence).and_then(on),
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
        // The collector of facts adds the values of sysfs and CUDA.
        cuda_device: None,
        numa: None,
        function: PciFunction::default(),
        pci: device.pci().map(|(domain, bus, device)| address(domain, bus, device)),
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

/// From whichever field this driver fills.
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
    // Older GPUs retire pages, newer ones remap rows; only one answers.
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

fn address(domain: u32, bus: u32, device: u32) -> String {
    format!("{domain:04x}:{bus:02x}:{device:02x}.0")
}

/// Faults: lowest bit of the field in `healthMask`, and its name. A field of two bits is 1 if true
/// (`NVML_GPU_FABRIC_HEALTH_MASK_*_TRUE`).
const TROUBLES: [(u32, &str); 4] = [
    (0, "degraded bandwidth"),
    (2, "recovering a route"),
    (4, "unhealthy route"),
    (6, "recovering from an access timeout"),
];
/// The field of four bits for a wrong configuration (`…_INCORRECT_CONFIGURATION_*`).
const CONFIGURATION: u32 = 8;
const MISCONFIGURED: [(u32, &str); 4] =
    [(2, "wrong system GUID"), (3, "wrong chassis serial number"), (4, "no partition"), (5, "too few NVLinks")];

/// `None` without an NVLink fabric or where the driver does not report it.
pub(super) fn fabric(device: &Device) -> Option<GpuFabric> {
    // Older drivers know version 2 only, which equals version 3 without the last field.
    let versions = [(3, size_of::<nvmlGpuFabricInfo_v3_t>()), (2, size_of::<nvmlGpuFabricInfo_v2_t>())];
    versions.into_iter().find_map(|(version, size)| device.fabric(version, size)).and_then(|info| read(&info))
}

fn read(info: &nvmlGpuFabricInfo_v3_t) -> Option<GpuFabric> {
    let state = match u32::from(info.state) {
        NVML_GPU_FABRIC_STATE_NOT_STARTED => Registration::NotStarted,
        NVML_GPU_FABRIC_STATE_IN_PROGRESS => Registration::InProgress,
        NVML_GPU_FABRIC_STATE_COMPLETED => Registration::Completed,
        _ => return None,
    };
    let completed = state == Registration::Completed;
    let error = (completed && info.status != nvmlReturn_enum_NVML_SUCCESS).then_some(info.status);
    let field = |low: u32, width: u32| info.healthMask >> low & ((1 << width) - 1);
    let troubles = TROUBLES.iter().filter(|(low, _)| field(*low, 2) == 1).map(|(_, word)| *word);
    let wrong = MISCONFIGURED.iter().filter(|(value, _)| field(CONFIGURATION, 4) == *value).map(|(_, word)| *word);
    Some(GpuFabric {
        state,
        error,
        // All zeros where the fabric ends at the host, as on a board with eight GPUs.
        cluster: (completed && error.is_none() && info.clusterUuid != [0; 16]).then(|| spelt(info.clusterUuid)),
        clique: info.cliqueId,
        troubles: troubles.chain(wrong).map(str::to_owned).collect(),
    })
}

fn spelt(bytes: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let [a, b, c, d, e] = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    format!("{a}-{b}-{c}-{d}-{e}")
}

#[cfg(test)]
mod tests {
    use super::{super::nvml::struct_version, *};

    #[test]
    fn addresses_are_spelt_as_sysfs_does() {
        assert_eq!(super::address(0, 0x1b, 0), "0000:1b:00.0");
        assert_eq!(super::address(0x10000, 2, 3), "10000:02:03.0");
    }

    fn info(state: u32, status: u32, health: u32) -> nvmlGpuFabricInfo_v3_t {
        nvmlGpuFabricInfo_v3_t {
            version: 0,
            clusterUuid: [0x50, 0xf1, 0x2b, 0x3c, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0xab, 0x01],
            status,
            cliqueId: 7,
            state: u8::try_from(state).unwrap(),
            healthMask: health,
            healthSummary: 0,
        }
    }

    #[test]
    fn a_registered_gpu_tells_its_domain_and_what_is_wrong() {
        // NVML's values: 1 is true, 2 is false; 1 means no misconfiguration.
        let healthy = read(&info(3, 0, 0x1aa)).unwrap();
        assert_eq!((healthy.state, healthy.error, healthy.troubles.len()), (Registration::Completed, None, 0));
        assert_eq!(healthy.domain().as_deref(), Some("50f12b3c-0000-4000-8000-00000000ab01.7"));
        let sick = read(&info(3, 0, 0x599)).unwrap();
        assert_eq!(sick.troubles, ["degraded bandwidth", "unhealthy route", "too few NVLinks"]);
        // The driver reports no health.
        assert!(read(&info(3, 0, 0)).unwrap().troubles.is_empty());
    }

    #[test]
    fn only_a_gpu_that_is_registered_is_in_a_domain() {
        assert_eq!(read(&info(0, 0, 0)), None);
        for (state, is) in [(1, Registration::NotStarted), (2, Registration::InProgress)] {
            let read = read(&info(state, 0, 0)).unwrap();
            assert_eq!((read.state, read.domain(), read.error), (is, None, None));
        }
        let failed = read(&info(3, 999, 0)).unwrap();
        assert_eq!((failed.error, failed.domain()), (Some(999), None));
        let alone = nvmlGpuFabricInfo_v3_t { clusterUuid: [0; 16], ..info(3, 0, 0) };
        assert_eq!(read(&alone).unwrap().domain(), None);
    }

    #[test]
    fn the_two_versions_have_their_fields_in_the_same_places() {
        use std::mem::offset_of;
        assert_eq!(offset_of!(nvmlGpuFabricInfo_v2_t, healthMask), offset_of!(nvmlGpuFabricInfo_v3_t, healthMask));
        assert_eq!(offset_of!(nvmlGpuFabricInfo_v2_t, state), offset_of!(nvmlGpuFabricInfo_v3_t, state));
        assert!(size_of::<nvmlGpuFabricInfo_v2_t>() <= size_of::<nvmlGpuFabricInfo_v3_t>());
        // As NVML's header has it: (unsigned)(sizeof(nvmlGpuFabricInfo_v2_t) | (2 << 24)).
        assert_eq!(struct_version(2, 36), 0x0200_0024);
    }
}
