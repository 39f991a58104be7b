//! The names of the preflight's checks. The plan reader takes the words of `waive` and `escalate` from this list, and the controller the
//! files that implement them, `crates/preflight/src/check/NAME.rs`.

/// Passes the list of checks to a macro of the caller, as `module = "name",` each, sorted by name.
#[macro_export]
macro_rules! checks {
    ($use:ident) => {
        $use! {
            acs = "acs", bond = "bond", cabling = "cabling", clock = "clock", clock_source = "clock-source",
            cpu_mask = "cpu-mask", device_count = "device-count", device_file = "device-file", dscp_map = "dscp-map",
            ecn = "ecn", firmware = "firmware", gid = "gid", gid_table = "gid-table", governor = "governor",
            gpu_busy = "gpu-busy", gpu_clocks = "gpu-clocks", gpu_count = "gpu-count", gpu_distance = "gpu-distance",
            gpu_driver = "gpu-driver", gpu_fabric = "gpu-fabric", gpu_library = "gpu-library",
            gpu_memory = "gpu-memory", gpu_nvlink = "gpu-nvlink", gpu_pcie = "gpu-pcie",
            gpu_persistence = "gpu-persistence", gpu_xid = "gpu-xid", gpudirect = "gpudirect",
            huge_pages = "huge-pages", idle = "idle", iommu = "iommu", iwarp = "iwarp",
            link_errors = "link-errors", link_rate = "link-rate", locked_memory = "locked-memory", max_read_request = "max-read-request", mtu = "mtu", numa = "numa",
            partition = "partition", pause_frames = "pause-frames", pcie_errors = "pcie-errors",
            pcie_link = "pcie-link", pfc = "pfc", port_state = "port-state", qos_trust = "qos-trust",
            saturated = "saturated-counters", software_device = "software-device", subnet_manager = "subnet-manager",
            verbs_library = "verbs-library", versions = "versions", virtual_machine = "virtual-machine",
        }
    };
}

macro_rules! names {
    ($($module:ident = $name:literal,)*) => {
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

checks!(names);
