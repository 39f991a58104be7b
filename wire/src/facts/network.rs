use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Traffic;
use crate::unit::{GigabitsPerSecond, MegabitsPerSecond};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    pub name: String,
    pub mtu: Option<u32>,
    pub state: Option<String>,
    /// `None` where unknown, and for virtual interfaces (veth, bridges, …), whose number limits nothing.
    pub speed_mbps: Option<MegabitsPerSecond>,
    /// Without prefix lengths.
    pub addresses: Vec<String>,
    /// Of its IPv4 addresses, such as `10.77.0.0/24`.
    pub networks: Vec<String>,
    /// Bond of the interface or of its VLAN's device, or the mode of the bond itself.
    pub bond: Option<Bond>,
    /// Members of the bond that it is, or is a VLAN of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<BondMember>,
    pub driver: Option<(String, String)>,
    pub pause: Option<Pause>,
    /// IEEE 802.1Qaz; `None` where the driver has no data centre bridging.
    pub dcb: Option<Dcb>,
    /// The field of a packet that sets its priority, `dscp` or `pcp`, if the driver reports it.
    pub trust: Option<String>,
    /// Congestion control of RoCE (DCQCN), where the driver shows its switches.
    pub ecn: Option<Ecn>,
    pub traffic: Option<Traffic>,
}

impl Interface {
    /// Whether a plan means it: by its name, or one of its addresses.
    pub fn is(&self, word: &str) -> bool {
        self.name == word || self.addresses.iter().any(|address| address == word)
    }
}

impl Interface {
    /// Speeds of the members that carry traffic, the fastest first; `None` without a bond or with an unknown speed. One connection uses
    /// one of them, except for `balance-rr`.
    pub fn member_rates(&self) -> Option<Vec<GigabitsPerSecond>> {
        let carrying = self.members.iter().filter(|member| member.carries());
        rates(carrying).filter(|_| !self.members.is_empty())
    }

    /// Members that should carry traffic and do not: their link is down, or the bond omits them in a mode in which all carry.
    pub fn idle_members(&self) -> impl Iterator<Item = &BondMember> {
        let spare = self.has_spares();
        self.members.iter().filter(move |member| !member.is_up() || (!member.carries() && !spare))
    }

    /// Whether one member of a bond carries everything and the others are spares (kernel Documentation/networking/bonding.rst).
    pub fn has_spares(&self) -> bool {
        self.bond == Some(Bond::Master("active-backup".to_owned()))
    }
}

/// The fastest first; `None` if one is unknown.
pub(super) fn rates<'a>(members: impl Iterator<Item = &'a BondMember>) -> Option<Vec<GigabitsPerSecond>> {
    let mut rates: Vec<_> =
        members.map(|member| Some(GigabitsPerSecond::from(member.speed_mbps?))).collect::<Option<_>>()?;
    rates.sort_by(|a, b| b.0.total_cmp(&a.0));
    Some(rates)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bond {
    Member(String),
    Master(String),
}

/// A member of a bond (kernel Documentation/networking/bonding.rst, and drivers/net/bonding/bond_sysfs_slave.c).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BondMember {
    pub name: String,
    /// Its link as the bond watches it (`mii_status`): `up`, `down`, …
    pub link: Option<String>,
    /// Whether the bond uses it (`state`): `active` or `backup`.
    pub state: Option<String>,
    pub speed_mbps: Option<MegabitsPerSecond>,
}

impl BondMember {
    /// Up if unknown.
    pub fn is_up(&self) -> bool {
        self.link.as_deref().is_none_or(|link| link == "up")
    }

    pub fn carries(&self) -> bool {
        self.is_up() && self.state.as_deref() != Some("backup")
    }
}

/// The device at the other end of an interface's cable (LLDP, IEEE 802.1AB).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbour {
    pub interface: String,
    /// Identifier of the device, in lower case: its chassis id, else its name or its management address.
    pub chassis: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Whether it reports to bridge or route, or reports no function.
    pub is_switch: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub receive: bool,
    pub send: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Dcb {
    pub pfc: Vec<u8>,
    /// Traffic class of each priority; empty where unknown.
    pub classes: Vec<u8>,
    pub dscp: BTreeMap<u8, u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ecn {
    /// As receiver: answers marked packets with notifications (notification point).
    pub notifies: Vec<u8>,
    pub reacts: Vec<u8>,
}
