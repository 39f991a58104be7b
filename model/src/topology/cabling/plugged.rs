use std::fmt;

use crate::topology::fabric::{End, Fabric, Link, Node};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attached {
    pub host: String,
    pub device: String,
    /// Ports of one rail may be plugged into several leaves (dual ToR).
    pub rail: u32,
    /// A system image GUID, or the PCI address of the board.
    pub board: Option<String>,
    /// The switch's port; `None` if no source knows a cable of the port.
    pub at: Option<At>,
    pub run: Run,
    /// Whether its host reports the link as up; `None` where unknown.
    pub is_up: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct At {
    pub key: String,
    pub name: String,
    pub port: Option<String>,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.port {
            Some(port) => write!(f, "{} port {port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// In Gbit/s.
    pub rate_gbps: Option<f64>,
    pub width: Option<u32>,
    /// Speed of a lane: `HDR`.
    pub speed: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trunk {
    pub ends: [At; 2],
    pub run: Run,
}

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
