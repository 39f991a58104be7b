//! How a GPU stands with the NVLink fabric: whether it is registered there, in which domain, and what is wrong.
//!
//! `nvmlDeviceGetGpuFabricInfoV` of NVML; the layouts are those of its header, versions 2 and 3.

use nvml_wrapper_sys::bindings::{
    NVML_GPU_FABRIC_STATE_COMPLETED, NVML_GPU_FABRIC_STATE_IN_PROGRESS, NVML_GPU_FABRIC_STATE_NOT_STARTED,
    nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t, nvmlReturn_enum_NVML_SUCCESS,
};
use railgauge_wire::facts::{GpuFabric, Registration};

use super::nvml::Device;

/// What is wrong with a GPU's part of the fabric: the lowest bit of its field in `healthMask`, and the word. A field of two bits is 1 if
/// that is so (`NVML_GPU_FABRIC_HEALTH_MASK_*_TRUE`).
const TROUBLES: [(u32, &str); 4] = [
    (0, "degraded bandwidth"),
    (2, "recovering a route"),
    (4, "unhealthy route"),
    (6, "recovering from an access timeout"),
];
/// The same for the field of four bits that tells a wrong configuration (`…_INCORRECT_CONFIGURATION_*`).
const CONFIGURATION: u32 = 8;
const MISCONFIGURED: [(u32, &str); 4] =
    [(2, "wrong system GUID"), (3, "wrong chassis serial number"), (4, "no partition"), (5, "too few NVLinks")];

/// What NVML says of a GPU and the NVLink fabric; `None` where the GPU has none, or the driver does not tell.
pub(super) fn fabric(device: &Device) -> Option<GpuFabric> {
    // Older drivers know version 2 only, which has the same fields in the same places but for the last one.
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
        // NVML's values: 1 is true, 2 is false; no misconfiguration is 1.
        let healthy = read(&info(3, 0, 0x1aa)).unwrap();
        assert_eq!((healthy.state, healthy.error, healthy.troubles.len()), (Registration::Completed, None, 0));
        assert_eq!(healthy.domain().as_deref(), Some("50f12b3c-0000-4000-8000-00000000ab01.7"));
        let sick = read(&info(3, 0, 0x599)).unwrap();
        assert_eq!(sick.troubles, ["degraded bandwidth", "unhealthy route", "too few NVLinks"]);
        // A driver that tells no health says nothing of it.
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
