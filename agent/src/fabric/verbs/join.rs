//! Joining: the peer's endpoint is looked at, and the queue pairs are connected to it.

use std::sync::Arc;

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    link::{Endpoint, Joining, VerbsEndpoint},
    remedy::{self, Remedy},
    terms::{LinkLayer, Service},
};

use super::{
    choice::Choice,
    end::{Peer, VerbsEnd},
    layout::Layout,
    settings::Settings,
};
use crate::bench::control::Control;
use crate::verbs::{
    address::{Address, Path},
    gid,
    port::mtu_code,
    queue_pair::QueuePair,
    transition::Change,
};

fn unfit(cause: String, remedy: impl Into<Remedy>) -> Failure {
    Failure::new(Stage::Join, Kind::Configuration, cause).remedy(remedy)
}

impl VerbsEnd {
    /// Joins this end with its peer.
    ///
    /// # Errors
    /// The peer does not fit, or its address cannot be resolved.
    pub fn join(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure> {
        let Endpoint::Verbs(peer) = peer else {
            return Err(unfit(
                "this end is verbs on one thread, the other is not".to_owned(),
                remedy::SAME_AT_BOTH_ENDS.with([("setting", "fabric and number of threads")]),
            ));
        };
        let mailbox = self.fit(peer)?;
        if self.resources.settings.joining == Joining::RdmaCm {
            self.connect_all(peer, control)?;
            self.connection.mailbox.address_to(&mailbox);
            let area = Layout::area_of(peer.length, self.connection.pairs.len());
            let mtu = self.resources.settings.mtu.min(peer.mtu);
            self.connection.peer = Some(Peer { endpoint: peer.clone(), area, addresses: Vec::new(), mtu });
            return Ok(());
        }
        let mtu = self.resources.settings.mtu.min(peer.mtu);
        let (service, reads) = (self.resources.service, self.resources.settings.reads.min(peer.max_reads));
        let paths = (0..self.connection.pairs.len())
            .map(|i| path(&self.resources.choice, &self.resources.settings, peer, i))
            .collect::<Result<Vec<_>, _>>()?;
        for (i, (pair, path)) in self.connection.pairs.iter().zip(&paths).enumerate() {
            self.connect(pair, path, mtu, (peer.qp_numbers[i], peer.psns[i]), self.connection.psns[i], reads)?;
        }
        let own_psn = self.connection.psns.last().copied().unwrap_or(0);
        if let (Some(pair), Some(path)) = (self.connection.mailbox.queue_pair(), paths.first()) {
            self.connect(pair, path, mtu, (mailbox.qp_number, mailbox.psn), own_psn, 1)?;
        }
        self.connection.mailbox.address_to(&mailbox);
        let addresses = if service == Service::Ud {
            let domain = &self.resources.choice.domain;
            paths.iter().map(|path| Address::new(domain, path).map(Arc::new)).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        let area = Layout::area_of(peer.length, self.connection.pairs.len());
        self.connection.peer = Some(Peer { endpoint: peer.clone(), area, addresses, mtu });
        Ok(())
    }

    /// `Err` unless the peer can be this end's.
    fn fit(&self, peer: &VerbsEndpoint) -> Result<railgauge_wire::link::ControlEndpoint, Failure> {
        let own = self.resources.layout.qps as usize;
        if peer.qp_numbers.len() != own || peer.psns.len() != own {
            let cause = format!("{own} queue pairs here, {} at the peer", peer.qp_numbers.len());
            return Err(unfit(cause, remedy::SAME_AT_BOTH_ENDS.with([("setting", "number of queue pairs")])));
        }
        same_network(&self.resources.choice, peer)?;
        peer.control.ok_or_else(|| unfit("the peer has no control queue pair".to_owned(), remedy::REMOVE_OLD_AGENT))
    }

    fn connect(
        &self,
        pair: &QueuePair,
        path: &Path,
        mtu: u32,
        (peer, peer_psn): (u32, u32),
        psn: u32,
        reads: u8,
    ) -> Result<(), Failure> {
        let mtu = mtu_code(mtu).ok_or_else(|| unfit(format!("{mtu} is not a path MTU"), remedy::PATH_MTU))?;
        let accepted = self.resources.settings.reads;
        pair.change(&Change::Receive { path: *path, mtu, peer, psn: peer_psn, reads: accepted })?;
        let (retries, timeout) = (self.resources.settings.retries, self.resources.settings.timeout);
        pair.change(&Change::Send { psn, reads, retries, timeout })
    }
}

/// `Err` unless the peer's GID is of a kind that this side's can reach.
///
/// # Errors
/// As said, with what to set.
pub fn same_network(choice: &Choice, peer: &VerbsEndpoint) -> Result<(), Failure> {
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
pub fn path(choice: &Choice, settings: &Settings, peer: &VerbsEndpoint, i: usize) -> Result<Path, Failure> {
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
