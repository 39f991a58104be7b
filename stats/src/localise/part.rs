#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    pub host: u32,
    pub rail: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    #[default]
    Both,
    Send,
    Receive,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Every pair on a rail, on all hosts: the rail's switch.
    Rail(u32),
    Group(u32),
    /// A group on one rail, its switch where each rail has one; or, while pairs within are good, everything that leaves the group on that
    /// rail.
    GroupRail {
        group: u32,
        rail: u32,
    },
    /// A group's uplinks, while pairs within it are good; or only the traffic out of the group (`Way::Send`), or into it.
    Uplink(u32, Way),
    /// While both groups' other pairs are good; `Way::Send` if only from the first to the second.
    Boundary(u32, u32, Way),
    /// Between these hosts and all others, without groups in the plan: the smaller side.
    Cut(Vec<u32>),
    Host(u32, Way),
    Nic(Port, Way),
    Hosts(u32, u32),
    /// `Way::Send` if only from the first to the second.
    Link(Port, Port, Way),
    Paths(Port, Port, Vec<u32>),
}

impl Part {
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Host(..) | Self::Nic(..))
    }

    pub fn is_link(&self) -> bool {
        matches!(self, Self::Hosts(..) | Self::Link(..) | Self::Paths(..))
    }

    pub fn is_shared(&self) -> bool {
        !self.is_end() && !self.is_link()
    }
}

impl Part {
    /// Direction of a pair through a part between groups; [`Way::Both`] for other parts.
    pub(super) fn way_of(&self, from: Port, groups: &[u32]) -> Way {
        match *self {
            Self::Uplink(group, _) | Self::Boundary(group, _, _) => {
                if groups.get(from.host as usize) == Some(&group) {
                    Way::Send
                } else {
                    Way::Receive
                }
            }
            _ => Way::Both,
        }
    }

    /// [`Way::Both`] for parts without a direction.
    pub(super) fn way(&self) -> Way {
        match *self {
            Self::Host(_, way) | Self::Nic(_, way) | Self::Uplink(_, way) | Self::Boundary(_, _, way) => way,
            _ => Way::Both,
        }
    }

    /// Restricts an end or a way between groups to one direction.
    pub(super) fn only(self, way: Way) -> Self {
        match self {
            Self::Host(host, _) => Self::Host(host, way),
            Self::Nic(port, _) => Self::Nic(port, way),
            Self::Uplink(group, _) => Self::Uplink(group, way),
            Self::Boundary(a, b, _) => Self::Boundary(a, b, way),
            part => part,
        }
    }

    /// `groups` is the group of each host by its number, empty if not known; for some paths between two ends every path counts.
    pub fn passed(&self, from: Port, to: Port, groups: &[u32]) -> bool {
        let group = |port: Port| groups.get(port.host as usize).copied();
        let (a, b) = (group(from), group(to));
        let end = |sends: bool, receives: bool, way: Way| match way {
            Way::Both => sends || receives,
            Way::Send => sends,
            Way::Receive => receives,
        };
        match *self {
            Self::Cut(ref side) => side.contains(&from.host) != side.contains(&to.host),
            Self::Rail(rail) => from.rail == rail && to.rail == rail,
            Self::Group(group) => a == Some(group) || b == Some(group),
            Self::GroupRail { group, rail } => {
                a == Some(group) && from.rail == rail || b == Some(group) && to.rail == rail
            }
            Self::Uplink(group, way) => a != b && end(a == Some(group), b == Some(group), way),
            Self::Boundary(x, y, way) => end((a, b) == (Some(x), Some(y)), (a, b) == (Some(y), Some(x)), way),
            Self::Host(host, way) => end(from.host == host, to.host == host, way),
            Self::Nic(port, way) => end(from == port, to == port, way),
            Self::Hosts(x, y) => (from.host.min(to.host), from.host.max(to.host)) == (x.min(y), x.max(y)),
            Self::Link(x, y, Way::Both) | Self::Paths(x, y, _) => (from.min(to), from.max(to)) == (x.min(y), x.max(y)),
            Self::Link(x, y, Way::Send) => (from, to) == (x, y),
            Self::Link(x, y, Way::Receive) => (from, to) == (y, x),
        }
    }
}
