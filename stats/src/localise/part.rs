//! The parts that can be named.

/// One end of a pair: a host's NIC by rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// Number of the host.
    pub host: u32,
    /// Rail.
    pub rail: u32,
}

/// Direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Both directions, or it is not known which.
    Both,
    /// Only what the part sends.
    Send,
    /// Only what the part receives.
    Receive,
}

/// A part of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Every pair on a rail, on all hosts: the rail's switch.
    Rail(u32),
    /// Everything in a group and to it: its switch.
    Group(u32),
    /// Everything of a group on one rail: its switch where each rail has one.
    GroupRail {
        /// The group.
        group: u32,
        /// The rail.
        rail: u32,
    },
    /// Everything that leaves a group, while pairs within it are good: its uplinks.
    Uplink(u32),
    /// Pairs between two groups, while both groups' other pairs are good.
    Boundary(u32, u32),
    /// A host: all its NICs are low.
    Host(u32, Way),
    /// One NIC of a host whose other NICs are good.
    Nic(Port, Way),
    /// The way between two hosts, on all rails that were tested.
    Hosts(u32, u32),
    /// The way between two NICs; `Way::Send` if only from the first to the second.
    Link(Port, Port, Way),
    /// Some of several paths between two NICs; the rest are good.
    Paths(Port, Port, Vec<u32>),
}

impl Part {
    /// Whether a single host or NIC is meant.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Host(..) | Self::Nic(..))
    }

    /// Whether the way between two ends is meant.
    pub fn is_link(&self) -> bool {
        matches!(self, Self::Hosts(..) | Self::Link(..) | Self::Paths(..))
    }

    /// Whether several hosts share the part.
    pub fn is_shared(&self) -> bool {
        !self.is_end() && !self.is_link()
    }
}
