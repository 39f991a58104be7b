use std::collections::HashMap;

use railgauge_model::{
    journal::event::Case,
    plan::model::Host,
    schedule::Port,
    topology::{
        Fabric,
        attach::nic_of,
        fabric::{End, Hop, Node, Route},
    },
};
use railgauge_wire::Transport;

use crate::{journal::Journal, row::Row};

pub(crate) struct Ways<'j> {
    pub fabric: Fabric,
    journal: &'j Journal,
    hosts: HashMap<&'j str, &'j Host>,
    tabled: HashMap<(Transport, &'j Port, &'j Port), &'j [Hop]>,
}

impl<'j> Ways<'j> {
    /// `None` if the plan has no switches.
    pub(crate) fn of(journal: &'j Journal) -> Option<Self> {
        let fabric = Fabric::join(&journal.plan.topology.as_ref()?.told);
        // A forged journal may have any number here, and hops that do not join.
        let joins = |pair: &[Hop]| fabric.hop(pair[0]).2.node == fabric.hop(pair[1]).1.node;
        let sound = |path: &[Hop]| {
            !path.is_empty() && path.iter().all(|hop| fabric.hops().contains(hop)) && path.windows(2).all(joins)
        };
        let tabled = journal.routes.iter().filter(|route| sound(&route.path));
        let tabled = tabled.map(|route| ((route.transport, &route.from, &route.to), route.path.as_slice())).collect();
        let hosts = journal.plan.hosts.iter().map(|host| (host.name.as_str(), host)).collect();
        Some(Self { fabric, journal, hosts, tabled })
    }

    /// The fabric's NIC port that a host used as this device; `None` if no source has it.
    pub(crate) fn nic(&self, host: &str, device: &str) -> Option<u32> {
        let plan = self.hosts.get(host)?;
        let facts = self.journal.hosts.get(host).map(|up| &up.facts);
        let device = (!device.is_empty()).then_some(device);
        nic_of(&self.fabric, &[&plan.name, &plan.address], device, facts)
    }

    pub(crate) fn taken(&self, transport: Transport, [from, to]: [(&Port, &str); 2]) -> Route {
        let place = |(port, device): (&Port, &str)| self.nic(&port.host, device);
        let (Some(start), Some(end)) = (place(from), place(to)) else {
            return Route::Unknown("the topology does not know one of its ends".into());
        };
        let fits = |path: &[Hop]| {
            let ends =
                (path.first().map(|hop| self.fabric.hop(*hop).1), path.last().map(|hop| self.fabric.hop(*hop).2));
            matches!(ends, (Some(first), Some(last)) if first.node == Node::Nic(start) && last.node == Node::Nic(end))
        };
        if let Some(path) = self.tabled.get(&(transport, from.0, to.0)).filter(|path| fits(path)) {
            return Route::Known(path.to_vec());
        }
        self.fabric.route(start, end)
    }

    pub(super) fn is_switch_cable(&self, hop: Hop) -> bool {
        let (link, ..) = self.fabric.hop(hop);
        link.is_between_switches() && !link.is_place()
    }

    /// Named from the end at which a technician finds it: the switch's, and of two switches the one nearer to the hosts.
    pub(crate) fn cable(&self, hop: Hop) -> String {
        let (link, a, b) = self.fabric.hop(hop);
        let height = |end: &End| match end.node {
            Node::Switch(switch) => self.fabric.switches[switch as usize].level.unwrap_or(u32::MAX),
            Node::Nic(_) => u32::MAX,
        };
        let (here, there) = if height(b) < height(a) { (b, a) } else { (a, b) };
        let (here, there) = (self.fabric.end_name(here), self.fabric.end_name(there));
        if link.is_place() {
            format!("a cable between {here} and {there}")
        } else {
            format!("{here}, cable to {there}")
        }
    }
}

/// From the sender to the receiver of a pair's row: each end's port, and the device used. What is read moves from the
/// responder to the initiator.
pub(super) fn way<'r>(row: &'r Row, case: &'r Case) -> [(&'r Port, &'r str); 2] {
    let [from, to] = [(&case.flow.from, &*row.src_device), (&case.flow.to, &*row.dst_device)];
    if case.cell.op.pulls() { [to, from] } else { [from, to] }
}
