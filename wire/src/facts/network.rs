//! Network interfaces and what Ethernet is set to on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Traffic;
use crate::unit::{GigabitsPerSecond, MegabitsPerSecond};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    pub name: String,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Operational state (`up`, `down`, …).
    pub state: Option<String>,
    /// Speed; `None` where unknown, and for virtual interfaces (veth, bridges, …): their number limits nothing.
    pub speed_mbps: Option<MegabitsPerSecond>,
    /// Addresses, without prefix lengths.
    pub addresses: Vec<String>,
    /// Networks of its IPv4 addresses, such as `10.77.0.0/24`.
    pub networks: Vec<String>,
    /// Interface it is bonded into, or the mode of the bond that it is, or is a VLAN of.
    pub bond: Option<Bond>,
    /// Members of the bond that it is, or is a VLAN of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<BondMember>,
    pub driver: Option<(String, String)>,
    pub pause: Option<Pause>,
    /// Priorities (IEEE 802.1Qaz); `None` where the driver has no data centre bridging.
    pub dcb: Option<Dcb>,
    /// Which field of a packet sets its priority, `dscp` or `pcp`, where the driver says.
    pub trust: Option<String>,
    /// Congestion control of RoCE (DCQCN), where the driver shows its switches.
    pub ecn: Option<Ecn>,
    pub traffic: Option<Traffic>,
}

impl Interface {
    /// Whether a plan's word for TCP means it: its name, or one of its addresses.
    pub fn is(&self, word: &str) -> bool {
        self.name == word || self.addresses.iter().any(|address| address == word)
    }
}

impl Interface {
    /// Speeds of the members that carry traffic, the fastest first; `None` for an interface that is no bond, and
    /// where a speed is not known. One connection uses one of them, but for `balance-rr`.
    pub fn member_rates(&self) -> Option<Vec<GigabitsPerSecond>> {
        let carrying = self.members.iter().filter(|member| member.carries());
        rates(carrying).filter(|_| !self.members.is_empty())
    }

    /// Members that should carry traffic and do not: their link is down, or the bond leaves them out in a mode in which all
    /// carry. None of an interface that is no bond.
    pub fn idle_members(&self) -> impl Iterator<Item = &BondMember> {
        let spare = self.has_spares();
        self.members.iter().filter(move |member| !member.is_up() || (!member.carries() && !spare))
    }

    /// Whether it is a bond of which one member carries everything and the others wait until they are needed
    /// (kernel Documentation/networking/bonding.rst).
    pub fn has_spares(&self) -> bool {
        self.bond == Some(Bond::Master("active-backup".to_owned()))
    }
}

/// Speeds of members of a bond, the fastest first; `None` where one is not known.
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
    /// Whether its link is up; what the bond does not tell is.
    pub fn is_up(&self) -> bool {
        self.link.as_deref().is_none_or(|link| link == "up")
    }

    pub fn carries(&self) -> bool {
        self.is_up() && self.state.as_deref() != Some("backup")
    }
}

/// What an interface hears of the device at the other end of its cable (LLDP, IEEE 802.1AB).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbour {
    pub interface: String,
    /// What the device is told apart by, in lower case: its chassis id, else its name or its management address.
    pub chassis: String,
    /// Its name; without one its management address or chassis id.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Whether it says that it bridges or routes, or does not say what it does.
    pub is_switch: bool,
}

/// Global pause frames (IEEE 802.3x).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub receive: bool,
    pub send: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Dcb {
    pub pfc: Vec<u8>,
    /// Traffic class of each priority; empty where the driver does not say.
    pub classes: Vec<u8>,
    /// Priority of each DSCP that is mapped to one.
    pub dscp: BTreeMap<u8, u8>,
}

/// Priorities on which congestion control of RoCE is on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ecn {
    /// As receiver: answers marked packets with notifications (notification point).
    pub notifies: Vec<u8>,
    pub reacts: Vec<u8>,
}
