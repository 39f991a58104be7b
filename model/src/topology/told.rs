use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Identity of a switch: a GUID (16 lower-case hexadecimal digits), a chassis id, or a name.
pub type SwitchKey = String;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// The source in words: `ibnetdiscover (fabric.txt)`.
    pub source: String,
    pub switches: BTreeMap<SwitchKey, Switch>,
    pub cables: Vec<Cable>,
    pub domains: BTreeMap<String, BTreeSet<String>>,
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Switch {
    pub name: String,
    pub lid: Option<u32>,
    /// Output port by destination LID, from its linear forwarding table; empty where unread. Not kept in the journal, where it would be
    /// most of it: a run records the routes of its flows.
    #[serde(skip)]
    pub routes: BTreeMap<u32, u32>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cable {
    pub a: Plug,
    pub b: Plug,
    /// Current rate in Gbit/s.
    pub rate_gbps: Option<f64>,
    /// Current lanes, such as 4 of `4xHDR`.
    pub width: Option<u32>,
    /// Speed of a lane as the source names it: `HDR`.
    pub speed: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Plug {
    pub device: Device,
    /// Port of a switch: `7`, `Ethernet12`; `None` for NICs, and where the source knows no ports (then there may be several cables).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    Switch(SwitchKey),
    Nic(Nic),
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Nic {
    pub host: Option<String>,
    /// RDMA device or network interface: `mlx5_3`, `ens8f0np0`; `None` where the source knows only hosts.
    pub device: Option<String>,
    /// From 1.
    pub port: Option<u32>,
    /// GUID of the port, 16 lower-case hexadecimal digits.
    pub guid: Option<String>,
    pub lid: Option<u32>,
}
