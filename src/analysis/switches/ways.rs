//! Which links the measured flows passed.

use std::collections::HashMap;

use railgauge_model::{
    plan::model::Host,
    schedule::Port,
    topology::{
        Fabric,
        attach::nic_of,
        fabric::{End, Hop, Node, Route},
    },
};
use railgauge_wire::terms::Transport;

use crate::analysis::{journal::Journal, row::Row};

/// The fabric of a run, and where the ends of its flows are in it.
pub(super) struct Ways<'j> {
    pub fabric: Fabric,
    journal: &'j Journal,
    hosts: HashMap<&'j str, &'j Host>,
    /// Ways that forwarding tables gave when the run was planned.
    tabled: HashMap<(Transport, &'j Port, &'j Port), &'j [Hop]>,
}

/// The ways that a flow may have taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Taken {
    /// This one.
    This(Vec<Hop>),
    /// One of these, and nobody knows which.
    OneOf(Vec<Vec<Hop>>),
    /// Nobody knows; in words.
    Unknown(String),
}

impl<'j> Ways<'j> {
    /// `None` where the plan knows nothing of switches.
    pub(super) fn of(journal: &'j Journal) -> Option<Self> {
        let fabric = Fabric::join(&journal.plan.topology.as_ref()?.told);
        let hops = 2 * fabric.links.len() as u64;
        // A forged journal may have any number here, and hops that do not join.
        let joins = |pair: &[Hop]| fabric.hop(pair[0]).2.node == fabric.hop(pair[1]).1.node;
        let sound = |path: &[Hop]| {
            !path.is_empty() && path.iter().all(|hop| u64::from(*hop) < hops) && path.windows(2).all(joins)
        };
        let tabled = journal.routes.iter().filter(|route| sound(&route.path));
        let tabled = tabled.map(|route| ((route.transport, &route.from, &route.to), route.path.as_slice())).collect();
        let hosts = journal.plan.hosts.iter().map(|host| (host.name.as_str(), host)).collect();
        Some(Self { fabric, journal, hosts, tabled })
    }

    /// The NIC port of the fabric that a host used as this device; `None` where no source knows it.
    pub(super) fn nic(&self, host: &str, device: &str) -> Option<u32> {
        let plan = self.hosts.get(host)?;
        let facts = self.journal.hosts.get(host).map(|up| &up.facts);
        let device = (!device.is_empty()).then_some(device);
        nic_of(&self.fabric, &[&plan.name, &plan.address], device, facts)
    }

    /// The ways of a flow between two ends, by the devices that were really used.
    pub(super) fn taken(&self, transport: Transport, [from, to]: [(&Port, &str); 2]) -> Taken {
        let place = |(port, device): (&Port, &str)| self.nic(&port.host, device);
        let (Some(start), Some(end)) = (place(from), place(to)) else {
            return Taken::Unknown("the topology does not know one of its ends".into());
        };
        let fits = |path: &[Hop]| {
            let ends =
                (path.first().map(|hop| self.fabric.hop(*hop).1), path.last().map(|hop| self.fabric.hop(*hop).2));
            matches!(ends, (Some(first), Some(last)) if first.node == Node::Nic(start) && last.node == Node::Nic(end))
        };
        if let Some(path) = self.tabled.get(&(transport, from.0, to.0)).filter(|path| fits(path)) {
            return Taken::This(path.to_vec());
        }
        match self.fabric.route(start, end) {
            Route::Known(path) => Taken::This(path),
            Route::OneOf(paths) => Taken::OneOf(paths),
            Route::Unknown(why) => Taken::Unknown(why),
        }
    }

    /// Whether a hop is between two switches.
    pub(super) fn is_between_switches(&self, hop: Hop) -> bool {
        let (_, from, to) = self.fabric.hop(hop);
        matches!((from.node, to.node), (Node::Switch(_), Node::Switch(_)))
    }

    /// Whether a hop may stand for several cables between two switches.
    pub(super) fn is_place(&self, hop: Hop) -> bool {
        self.fabric.hop(hop).0.is_place()
    }

    /// Whether a hop is one cable between two switches.
    pub(super) fn is_switch_cable(&self, hop: Hop) -> bool {
        self.is_between_switches(hop) && !self.is_place(hop)
    }

    /// A link in one direction, as a technician finds it: `leaf12 port 7 to spine1 port 3`, `gpu031 mlx5_3 to leaf12 port 7`.
    pub(super) fn name(&self, hop: Hop) -> String {
        let (_, from, to) = self.fabric.hop(hop);
        format!("{} to {}", self.fabric.end_name(from), self.fabric.end_name(to))
    }

    /// A link, from the end at which a technician finds it: the switch's, and of two switches the one nearer to the hosts.
    pub(super) fn cable(&self, hop: Hop) -> String {
        let (_, a, b) = self.fabric.hop(hop);
        let height = |end: &End| match end.node {
            Node::Switch(switch) => self.fabric.switches[switch as usize].level.unwrap_or(u32::MAX),
            Node::Nic(_) => u32::MAX,
        };
        let (here, there) = if height(b) < height(a) { (b, a) } else { (a, b) };
        if self.is_place(hop) {
            return format!("a cable between {} and {}", self.fabric.end_name(here), self.fabric.end_name(there));
        }
        format!("{}, cable to {}", self.fabric.end_name(here), self.fabric.end_name(there))
    }
}

/// The ends of a row of a pair: hosts, rails by the flow, and the devices that were used.
pub(super) fn ends<'r>(row: &'r Row, flow: &'r railgauge_model::schedule::Flow) -> [(&'r Port, &'r str); 2] {
    [(&flow.from, &row.src_device), (&flow.to, &row.dst_device)]
}
