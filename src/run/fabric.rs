//! Places of the rails of a run's hosts in the plan's topology, and the ways of its flows.

use std::collections::BTreeSet;

use railgauge_model::schedule::devices::devices;
use railgauge_model::{
    journal::event::{Case, FlowRoute},
    plan::model::Host,
    schedule::{Inventory, Port},
    topology::{attach::nic_of, fabric::Route},
};
use railgauge_wire::{HostFacts, Transport};

pub(super) fn place(inventory: &mut Inventory, host: &Host, facts: &HostFacts) {
    let Some(fabric) = inventory.fabric().cloned() else { return };
    let names = [host.name.as_str(), host.address.as_str()];
    for transport in [Transport::Verbs, Transport::Tcp] {
        let devices = devices(host, Some(facts), transport);
        let places = match devices.is_empty() {
            // TCP without devices in the plan uses the host's routes: known where the host has one place.
            true => match fabric.of_host(&names).as_slice() {
                [one] => vec![Some(*one)],
                _ => vec![nic_of(&fabric, &names, None, Some(facts))],
            },
            false => devices.iter().map(|device| nic_of(&fabric, &names, Some(device), Some(facts))).collect(),
        };
        inventory.place(&host.name, transport, places);
    }
}

/// The ways that forwarding tables give to the flows of these cases, each pair of ends once. Without tables there are none: which of
/// several equal paths a flow uses is unknown.
pub(super) fn routes(inventory: &Inventory, cases: &[Case]) -> Vec<FlowRoute> {
    let Some(fabric) = inventory.fabric().filter(|fabric| fabric.has_tables()) else { return Vec::new() };
    let place =
        |transport, port: &Port| inventory.places(&port.host, transport).get(port.rail as usize).copied().flatten();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for case in cases.iter().filter(|case| case.flow.members.is_empty()) {
        let (transport, from, to) = (case.cell.transport, &case.flow.from, &case.flow.to);
        // Some tests move bytes against the direction of the flow, or both ways.
        for (from, to) in [(from, to), (to, from)] {
            let (Some(start), Some(end)) = (place(transport, from), place(transport, to)) else { continue };
            if seen.insert((transport, from, to))
                && let Route::Known(path) = fabric.route(start, end)
            {
                found.push(FlowRoute { transport, from: from.clone(), to: to.clone(), path });
            }
        }
    }
    found
}
