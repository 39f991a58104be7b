//! Joining by exchange: reachability of the peer, and connected queue pairs.

use railgauge_wire::{
    Failure, GRH, Kind, LinkLayer, Stage, VerbsEndpoint,
    remedy::{self, Remedy},
};

use super::{choice::Choice, settings::Settings};
use crate::verbs::{Change, QueuePair, gid, port::mtu_code, queue_pair::Path};

pub(crate) fn unfit(cause: String, remedy: impl Into<Remedy>) -> Failure {
    Failure::new(Stage::Join, Kind::Configuration, cause).remedy(remedy)
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub path: Path,
    pub mtu: u32,
    pub number: u32,
    pub psn: u32,
    pub own_psn: u32,
    /// Concurrent reads and atomics of the peer that this end answers.
    pub accepted: u8,
    pub reads: u8,
}

pub(crate) fn connect(pair: &QueuePair, settings: &Settings, to: &Target) -> Result<(), Failure> {
    let mtu = mtu_code(to.mtu).ok_or_else(|| unfit(format!("{} is not a path MTU", to.mtu), remedy::PATH_MTU))?;
    pair.change(&Change::Receive { path: to.path, mtu, peer: to.number, psn: to.psn, reads: to.accepted })?;
    let (retries, timeout) = (settings.retries, settings.timeout);
    pair.change(&Change::Send { psn: to.own_psn, reads: to.reads, retries, timeout })
}

/// `Err` unless both GIDs are of compatible kinds.
pub(crate) fn same_network(choice: &Choice, peer: &VerbsEndpoint) -> Result<(), Failure> {
    gid::must_talk(choice.pkey.map(|pkey| pkey.value), peer.pkey)?;
    let own = choice.gid.map_or("", |gid| gid.kind.word());
    if matches!(choice.link_layer, LinkLayer::RoceV1 | LinkLayer::RoceV2) && own != peer.gid_type {
        let cause = format!("GID types differ: {own} here, {} at the peer", peer.gid_type);
        return Err(unfit(cause, remedy::SAME_GID_TYPE));
    }
    let link_local = |raw: &[u8; 16]| raw[0] == 0xfe && raw[1] & 0xc0 == 0x80;
    let theirs = gid::from_hex(&peer.gid);
    if let (Some(own), Some(theirs)) = (choice.gid, theirs)
        && choice.port.ethernet
        && link_local(&own.raw) != link_local(&theirs)
    {
        let cause = format!("one GID is link-local and the other is not: {own} here, {} there", peer.gid);
        return Err(unfit(cause, remedy::SAME_SUBNET));
    }
    Ok(())
}

pub(crate) fn path(choice: &Choice, settings: &Settings, peer: &VerbsEndpoint, i: usize) -> Result<Path, Failure> {
    let (peer_gid, peer_lid) = Ends::of(choice, peer).address()?;
    Ok(Path {
        port: choice.port.number,
        gid_index: choice.gid.map_or(0, |gid| gid.index),
        peer_gid,
        peer_lid,
        service_level: settings.service_level,
        traffic_class: settings.traffic_class,
        flow_label: settings.label(i),
    })
}

/// The record of a link of InfiniBand whose packets carry a global route header.
pub(crate) fn grh(choice: &Choice, peer: &VerbsEndpoint) -> Option<(String, String)> {
    let carries = Ends::of(choice, peer).address().is_ok_and(|(gid, _)| gid.is_some());
    (carries && choice.link_layer == LinkLayer::Infiniband).then(|| (GRH.to_owned(), "true".to_owned()))
}

#[derive(Debug, Clone, Copy)]
struct Ends {
    ethernet: bool,
    grh_required: bool,
    own: Option<[u8; 16]>,
    theirs: Option<[u8; 16]>,
    their_lid: u16,
}

impl Ends {
    fn of(choice: &Choice, peer: &VerbsEndpoint) -> Self {
        Self {
            ethernet: choice.port.ethernet,
            grh_required: choice.port.grh_required || peer.grh_required,
            own: choice.gid.map(|gid| gid.raw),
            theirs: gid::from_hex(&peer.gid),
            their_lid: peer.lid,
        }
    }

    /// The peer's GID, where packets have a global route header, and the destination LID, as in NCCL (transport/net_ib/connect.cc):
    /// within a subnet of InfiniBand the peer's own LID, and between subnets that of a router, which the peer's GID names (FLID).
    fn address(&self) -> Result<(Option<[u8; 16]>, u16), Failure> {
        let lacking =
            |end: &str| unfit(format!("{end} has no GID, and packets need a global route header"), remedy::IP_ADDRESS);
        let global = || {
            self.own.and(self.theirs).ok_or_else(|| lacking(if self.own.is_none() { "this end" } else { "the peer" }))
        };
        if self.ethernet {
            return Ok((Some(global()?), self.their_lid));
        }
        let crossing = self.own.zip(self.theirs).filter(|(own, theirs)| gid::subnet(own) != gid::subnet(theirs));
        if let Some((own, theirs)) = crossing {
            let router = gid::flid(&theirs).ok_or_else(|| {
                let prefix = |raw: &[u8; 16]| hex::encode(&raw[..8]);
                let cause = format!(
                    "the ends are in different InfiniBand subnets ({} here, {} at the peer), and the peer's GID names no \
                     router (FLID)",
                    prefix(&own),
                    prefix(&theirs)
                );
                unfit(cause, remedy::ROUTED_INFINIBAND)
            })?;
            return Ok((Some(theirs), router));
        }
        Ok((if self.grh_required { Some(global()?) } else { None }, self.their_lid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 1, 0xb8, 0, 0, 0, 0, 0, 0, 1];
    const B: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 1, 0xb8, 0, 0, 0, 0, 0, 0, 2];

    fn infiniband() -> Ends {
        Ends { ethernet: false, grh_required: false, own: Some(A), theirs: Some(B), their_lid: 7 }
    }

    #[test]
    fn a_port_that_wants_a_global_route_header_gets_one_within_its_subnet_too() {
        assert_eq!(infiniband().address().unwrap(), (None, 7));
        let required = Ends { grh_required: true, ..infiniband() };
        assert_eq!(required.address().unwrap(), (Some(B), 7));
        let none = Ends { theirs: None, ..required }.address().unwrap_err();
        assert!(none.cause.contains("the peer has no GID"), "{none}");
        let none = Ends { own: None, ..required }.address().unwrap_err();
        assert!(none.cause.contains("this end has no GID"), "{none}");
        assert_eq!(Ends { theirs: None, own: None, ..infiniband() }.address().unwrap(), (None, 7));
    }

    #[test]
    fn ethernet_always_has_one() {
        let ends = Ends { ethernet: true, their_lid: 0, ..infiniband() };
        assert_eq!(ends.address().unwrap(), (Some(B), 0));
    }

    #[test]
    fn between_subnets_packets_go_to_the_router_that_the_gid_names_or_nowhere() {
        let other = [0xfe, 0x80, 0, 0, 0, 0, 0, 2, 0xb8, 0, 0, 0, 0, 0, 0, 2];
        let failure = Ends { theirs: Some(other), ..infiniband() }.address().unwrap_err();
        assert!(failure.cause.contains("fe80000000000001") && failure.cause.contains("fe80000000000002"), "{failure}");
        let mut routed = other;
        (routed[4], routed[5]) = (0xc0, 0x01);
        assert_eq!(Ends { theirs: Some(routed), ..infiniband() }.address().unwrap(), (Some(routed), 0xc001));
        // The FLID is not part of the prefix: hosts of one subnet have different ones.
        let mut near = B;
        (near[4], near[5]) = (0xc0, 0x02);
        assert_eq!(Ends { theirs: Some(near), ..infiniband() }.address().unwrap(), (None, 7));
    }
}
