//! Places that may be read for a kit. Everything else stays on the host.

use std::path::Path;

/// Files and folders below the root. A path is allowed if it is one of these or is below one.
pub(super) const PLACES: &[(&str, &str)] = &[
    ("sys/class/infiniband", "RDMA devices"),
    ("sys/class/infiniband_verbs", "their device files"),
    ("sys/class/net", "network interfaces"),
    ("sys/class/iommu", "IOMMUs"),
    ("sys/class/dmi/id/sys_vendor", "maker of the machine"),
    ("sys/class/dmi/id/product_name", "model of the machine"),
    ("sys/devices", "where the links of these folders lead; processors and NUMA nodes"),
    ("sys/bus/pci/devices", "PCI functions"),
    ("sys/bus/pci/drivers", "where their links `driver` lead"),
    ("sys/bus/auxiliary/drivers", "the same of auxiliary devices"),
    ("sys/bus/virtio/drivers", "the same of virtual devices"),
    ("sys/kernel/iommu_groups", "IOMMU groups of PCI functions"),
    ("sys/kernel/mm", "huge pages"),
    ("sys/kernel/config/rdma_cm", "type of service of rdma_cm"),
    ("sys/module", "kernel modules and their versions"),
    ("proc/sys/kernel/hostname", "name of the host"),
    ("proc/sys/kernel/osrelease", "kernel"),
    ("proc/sys/kernel/arch", "architecture"),
    ("proc/sys/kernel/numa_balancing", "a setting"),
    ("proc/sys/net/ipv4/tcp_ecn", "a setting"),
    ("proc/cmdline", "kernel command line"),
    ("proc/cpuinfo", "processors"),
    ("proc/meminfo", "memory"),
    ("proc/self/limits", "limits of the agent"),
    ("proc/self/status", "capabilities and processors of the agent"),
    ("proc/self/uid_map", "its user namespace"),
    ("proc/driver/nvidia/version", "NVIDIA's driver"),
    ("proc/net/snmp", "counters of TCP"),
    ("proc/net/netstat", "counters of TCP"),
    ("usr/lib/os-release", "operating system"),
    ("etc/os-release", "operating system"),
    ("run/systemd/container", "kind of container"),
];

pub(super) const MARKS: &[&str] =
    &["var/run/secrets/kubernetes.io", "run/.containerenv", ".dockerenv", "singularity.d", ".singularity.d"];

/// Files of a PCI function that are read. Others must not be: reading `resource0` reads registers of the device, `vpd` and `rom` may hang
/// it, and `vpd` has serial numbers (kernel documentation: ABI/testing/sysfs-bus-pci).
pub(super) const PCI_FILES: &[&str] = &[
    "aer_dev_correctable",
    "aer_dev_fatal",
    "aer_dev_nonfatal",
    "aer_rootport_total_err_cor",
    "aer_rootport_total_err_fatal",
    "aer_rootport_total_err_nonfatal",
    "class",
    "config",
    "current_link_speed",
    "current_link_width",
    "device",
    "local_cpulist",
    "max_link_speed",
    "max_link_width",
    "numa_node",
    "power_state",
    "revision",
    "sriov_numvfs",
    "sriov_totalvfs",
    "subsystem_device",
    "subsystem_vendor",
    "vendor",
    // Links.
    "driver",
    "iommu_group",
    "physfn",
];

/// Omitted entries below devices and interfaces: many, useless, or links to other trees.
pub(super) const SKIPPED: &[&str] =
    &["device", "subsystem", "power", "queues", "uevent", "brport", "bridge", "wireless"];

/// `path` is without the root.
pub(super) fn allowed(path: &Path) -> bool {
    // A `..` could leave the allowed place.
    let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    plain && PLACES.iter().any(|(place, _)| path.starts_with(place))
}
