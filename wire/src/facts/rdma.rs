//! RDMA devices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{PciFunction, Traffic};
use crate::unit::GigabitsPerSecond;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RdmaDevice {
    /// Name, such as `mlx5_0`.
    pub name: String,
    /// What it speaks, as the kernel says: `CA` (InfiniBand and RoCE), `RNIC` (iWARP), …
    pub kind: Option<String>,
    /// Kernel driver, such as `mlx5_core` or `rdma_rxe`.
    pub driver: Option<String>,
    pub software: bool,
    pub firmware: Option<String>,
    pub board: Option<String>,
    pub guid: Option<String>,
    pub pci: Option<String>,
    pub numa: Option<u32>,
    /// PCIe link speed in GT/s and width, as running.
    pub pcie: Option<(f64, u32)>,
    /// PCIe link speed in GT/s and width, at best.
    pub pcie_max: Option<(f64, u32)>,
    /// The file by which programs open it; `None` where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_file: Option<DeviceFile>,
    /// Settings of its PCIe function, and the bridges above it.
    pub function: PciFunction,
    pub ports: Vec<RdmaPort>,
}

/// A device and the number of its port by the name that plans give a port: `mlx5_0:2` is the second, and `mlx5_0` tells no number,
/// which is the first.
pub fn port_name(name: &str) -> (&str, Option<u8>) {
    let split = name.rsplit_once(':').and_then(|(device, number)| Some((device, number.parse().ok()?)));
    split.map_or((name, None), |(device, number)| (device, Some(number)))
}

/// The file `/dev/infiniband/uverbs*` of a device. Containers see every device in sysfs, but have the files that they were given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceFile {
    Open,
    /// It is not there; its name.
    Missing(String),
    /// The agent may not open it; its name.
    Refused(String),
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RdmaPort {
    /// Number, counted from 1.
    pub number: u8,
    /// Logical state, such as `ACTIVE`.
    pub state: Option<String>,
    /// Physical state, such as `LinkUp`.
    pub physical: Option<String>,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Option<String>,
    /// Rate that is reckoned with; `None` where nobody knows it. Of a bond the sum of the members that carry traffic.
    pub rate_gbps: Option<GigabitsPerSecond>,
    /// Where `rate_gbps` is from, and so why it may differ from `verbs_rate_gbps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_source: Option<RateSource>,
    /// Rate that the driver reports (`rate` in sysfs), true or not; `None` for software and where it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbs_rate_gbps: Option<GigabitsPerSecond>,
    /// Active RDMA MTU in bytes.
    pub mtu: Option<u32>,
    /// Local identifier on an InfiniBand fabric; 0 until a subnet manager has given one.
    pub lid: Option<u32>,
    /// Local identifier of the subnet manager; 0 if there is none.
    pub subnet_manager: Option<u32>,
    pub partitions: Vec<String>,
    /// Traffic class the driver forces on every queue pair, where it has such a switch (MLNX_OFED).
    pub traffic_class: Option<u32>,
    /// Type of service of connections made by rdma_cm, where it was configured.
    pub cm_tos: Option<u32>,
    pub netdev: Option<String>,
    /// Interfaces of the physical ports below, where `netdev` is a bond that the device drives by itself (`mlx5_bond_0`);
    /// empty for all others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// Counters that have reached their largest value and stay there: nothing that happens since can be seen in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saturated: Vec<String>,
    /// Byte counters of the driver that are there and cannot be read: name and error.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable_counters: BTreeMap<String, String>,
    /// GID table, set entries only.
    pub gids: Vec<Gid>,
    pub traffic: Option<Traffic>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    Driver,
    /// The speed of the network interface: the driver's rate is made of it in steps that end too early
    /// ([`RateOrigin::InterfaceInSteps`](crate::drivers::RateOrigin)), or is the same for all devices.
    Interface,
    /// The speeds of the members of the bond that carry traffic: the driver reports that of one.
    Members,
}

impl RateSource {
    /// Why this source is used, in words.
    pub const fn why(self) -> &'static str {
        match self {
            Self::Driver => "as the driver reports",
            Self::Interface => "the interface's speed: this driver's rates are known to be wrong",
            Self::Members => "the members of the bond that carry traffic: the driver reports the rate of one",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gid {
    /// Index.
    pub index: u32,
    pub gid: String,
    /// `IB/RoCE v1`, `RoCE v2`, …
    pub kind: Option<String>,
    pub netdev: Option<String>,
}

impl Gid {
    /// The IPv4 address it stands for (`::ffff:a.b.c.d`), if it does.
    pub fn ipv4(&self) -> Option<std::net::Ipv4Addr> {
        self.gid.parse::<std::net::Ipv6Addr>().ok()?.to_ipv4_mapped()
    }
}
