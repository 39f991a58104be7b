//! Joining by exchange: whether the peer's end can be reached from this one, and queue pairs connected to its own.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    link::VerbsEndpoint,
    remedy::{self, Remedy},
    terms::LinkLayer,
};

use super::{choice::Choice, settings::Settings};
use crate::verbs::{address::Path, gid, port::mtu_code, queue_pair::QueuePair, transition::Change};

/// A peer that does not fit this end, and what to set.
pub(crate) fn unfit(cause: String, remedy: impl Into<Remedy>) -> Failure {
    Failure::new(Stage::Join, Kind::Configuration, cause).remedy(remedy)
}

/// One queue pair of the peer's, and how to connect to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// The way there.
    pub path: Path,
    /// Path MTU in bytes.
    pub mtu: u32,
    /// Number of the peer's queue pair.
    pub number: u32,
    /// Its first packet sequence number.
    pub psn: u32,
    /// This queue pair's own first packet sequence number.
    pub own_psn: u32,
    /// Reads and atomics of the peer's that this end answers at once.
    pub accepted: u8,
    /// Reads and atomics of this end's in flight.
    pub reads: u8,
}

/// Connects an initialised queue pair.
///
/// # Errors
/// The path MTU is not one of InfiniBand's, or the device refuses.
pub(crate) fn connect(pair: &QueuePair, settings: &Settings, to: &Target) -> Result<(), Failure> {
    let mtu = mtu_code(to.mtu).ok_or_else(|| unfit(format!("{} is not a path MTU", to.mtu), remedy::PATH_MTU))?;
    pair.change(&Change::Receive { path: to.path, mtu, peer: to.number, psn: to.psn, reads: to.accepted })?;
    let (retries, timeout) = (settings.retries, settings.timeout);
    pair.change(&Change::Send { psn: to.own_psn, reads: to.reads, retries, timeout })
}

/// `Err` unless the peer's GID is of a kind that this side's can reach.
///
/// # Errors
/// As said, with what to set.
pub(crate) fn same_network(choice: &Choice, peer: &VerbsEndpoint) -> Result<(), Failure> {
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

/// The path of queue pair `i`.
///
/// # Errors
/// The peer has no address.
pub(crate) fn path(choice: &Choice, settings: &Settings, peer: &VerbsEndpoint, i: usize) -> Result<Path, Failure> {
    let (own, theirs) = (choice.gid, gid::from_hex(&peer.gid));
    let other_subnet = || own.zip(theirs).is_some_and(|(own, theirs)| own.raw[..8] != theirs[..8]);
    let routed = choice.port.ethernet || other_subnet();
    if routed && theirs.is_none() {
        return Err(unfit("the peer has no GID".to_owned(), remedy::IP_ADDRESS));
    }
    Ok(Path {
        port: choice.port.number,
        gid_index: own.map_or(0, |gid| gid.index),
        peer_gid: if routed { theirs } else { None },
        peer_lid: peer.lid,
        service_level: settings.service_level,
        traffic_class: settings.traffic_class,
        flow_label: settings.label(i),
    })
}
