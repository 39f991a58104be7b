use super::{At, Run, Trunk};
use crate::topology::fabric::{End, Fabric, Link, Node};

/// What every NIC port of a fabric is plugged into, by its index in [`Fabric::nics`], and the cables between switches. Only the first of
/// several cables of a port counts.
pub fn plugged(fabric: &Fabric) -> (Vec<Option<(At, Run)>>, Vec<Trunk>) {
    let mut nics = vec![None; fabric.nics.len()];
    let mut trunks = Vec::new();
    let at = |end: &End, switch: u32| {
        let place = &fabric.switches[switch as usize];
        At { key: place.key.clone(), name: place.name.clone(), port: end.port.clone() }
    };
    let run = |link: &Link| Run { rate_gbps: link.rate_gbps, width: link.width, speed: link.speed.clone() };
    for link in &fabric.links {
        let [one, other] = &link.ends;
        match (one.node, other.node) {
            (Node::Switch(first), Node::Switch(second)) => {
                trunks.push(Trunk { ends: [at(one, first), at(other, second)], run: run(link) });
            }
            (Node::Nic(nic), Node::Switch(switch)) => {
                nics[nic as usize].get_or_insert_with(|| (at(other, switch), run(link)));
            }
            (Node::Switch(switch), Node::Nic(nic)) => {
                nics[nic as usize].get_or_insert_with(|| (at(one, switch), run(link)));
            }
            (Node::Nic(_), Node::Nic(_)) => {}
        }
    }
    (nics, trunks)
}
