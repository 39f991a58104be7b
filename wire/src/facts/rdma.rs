use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{PciFunction, Traffic};
use crate::unit::GigabitsPerSecond;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RdmaDevice {
    pub name: String,
    /// What it speaks, as the kernel says: `CA` (InfiniBand and RoCE), `RNIC` (iWARP), …
    pub kind: Option<String>,
    pub driver: Option<String>,
    pub software: bool,
    pub firmware: Option<String>,
    pub board: Option<String>,
    pub guid: Option<String>,
    pub pci: Option<String>,
    pub numa: Option<u32>,
    /// Current PCIe link speed in GT/s and width.
    pub pcie: Option<(f64, u32)>,
    /// Best PCIe link speed in GT/s and width.
    pub pcie_max: Option<(f64, u32)>,
    /// `None` if not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_file: Option<DeviceFile>,
    pub function: PciFunction,
    pub ports: Vec<RdmaPort>,
}

impl RdmaDevice {
    /// Whether it is known that the agent cannot open it.
    pub fn is_refused(&self) -> bool {
        self.device_file.as_ref().is_some_and(|file| *file != DeviceFile::Open)
    }
}

/// Splits a port's name in plans: `mlx5_0:2` is the second, and `mlx5_0` has no number, which means the first.
pub fn port_name(name: &str) -> (&str, Option<u8>) {
    let split = name.rsplit_once(':').and_then(|(device, number)| Some((device, number.parse().ok()?)));
    split.map_or((name, None), |(device, number)| (device, Some(number)))
}

/// The file `/dev/infiniband/uverbs*` of a device. Containers see every device in sysfs, but only some of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceFile {
    Open,
    Missing(String),
    Refused(String),
    /// The file may be opened, and libibverbs has no provider for the driver.
    NoProvider,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RdmaPort {
    pub number: u8,
    pub state: Option<String>,
    pub physical: Option<String>,
    pub link_layer: Option<String>,
    /// Usable rate; `None` if unknown. For a bond the sum of the members that carry traffic.
    pub rate_gbps: Option<GigabitsPerSecond>,
    /// Source of `rate_gbps`, which explains differences from `verbs_rate_gbps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_source: Option<RateSource>,
    /// Rate that the driver reports (`rate` in sysfs), true or not; `None` for software and where missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbs_rate_gbps: Option<GigabitsPerSecond>,
    pub mtu: Option<u32>,
    /// 0 until a subnet manager has assigned one.
    pub lid: Option<u32>,
    /// 0 without a subnet manager.
    pub subnet_manager: Option<u32>,
    pub partitions: Vec<String>,
    /// Traffic class that the driver forces on every queue pair (MLNX_OFED).
    pub traffic_class: Option<u32>,
    pub cm_tos: Option<u32>,
    pub netdev: Option<String>,
    /// Interfaces of the physical ports below, where `netdev` is a bond that the device drives by itself (`mlx5_bond_0`); otherwise
    /// empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// Counters stuck at their largest value, which hide later events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saturated: Vec<String>,
    /// Byte counters of the driver that exist but cannot be read: name and error.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable_counters: BTreeMap<String, String>,
    pub gids: Vec<Gid>,
    pub traffic: Option<Traffic>,
}

impl RdmaPort {
    /// By the kernel's state of the port: `4: ACTIVE` in sysfs.
    pub fn is_active(&self) -> bool {
        self.state.as_deref().is_some_and(|state| state.contains("ACTIVE"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    Driver,
    /// The speed of the network interface: the driver's rate has steps that end too early
    /// ([`RateOrigin::InterfaceInSteps`](crate::drivers::RateOrigin)), is the same for all devices, or less.
    Interface,
    /// The sum of the bond's members that carry traffic: the driver reports that of one.
    Members,
}

impl RateSource {
    pub const fn why(self) -> &'static str {
        match self {
            Self::Driver => "as the driver reports",
            Self::Interface => "the interface's speed: this driver's rates are known to be wrong, or less",
            Self::Members => "the members of the bond that carry traffic: the driver reports the rate of one",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gid {
    pub index: u32,
    pub gid: String,
    /// `IB/RoCE v1`, `RoCE v2`, …
    pub kind: Option<String>,
    pub netdev: Option<String>,
}

impl Gid {
    /// For `::ffff:a.b.c.d`.
    pub fn ipv4(&self) -> Option<std::net::Ipv4Addr> {
        self.gid.parse::<std::net::Ipv6Addr>().ok()?.to_ipv4_mapped()
    }
}
