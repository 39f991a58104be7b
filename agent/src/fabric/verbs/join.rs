//! Joining: the peer's endpoint is looked at, and the queue pairs are connected to it.

use std::sync::Arc;

use railgauge_wire::{
    failure::Failure,
    link::{ControlEndpoint, Endpoint, Joining, VerbsEndpoint, WriteLatency, WriteOrder},
    remedy,
    terms::Service,
};

use super::{
    end::{Peer, VerbsEnd},
    layout::Layout,
};
use crate::{
    bench::control::Control,
    endpoint::verbs::join::{self, Target, unfit},
    verbs::address::Address,
};

impl VerbsEnd {
    pub(crate) fn join(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure> {
        self.connect(peer, control)?;
        let pairs = self.connection.pairs.iter();
        if self.resources.settings.write_latency == Some(WriteLatency::Poll) {
            // In RTS, the only state in which mlx5 answers.
            self.connection.write_order =
                pairs.clone().map(|pair| pair.writes_land_in_order()).reduce(WriteOrder::both);
        }
        if self.connection.manager.is_some() {
            let all = pairs.chain(self.connection.mailbox.queue_pair()).map(|pair| &**pair);
            self.connection.watch = Arc::new(self.resources.watch().of(all));
        }
        Ok(())
    }

    fn connect(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure> {
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
            let area = Layout::area_of(peer.length.0, self.connection.pairs.len());
            let mtu = self.resources.settings.mtu.min(peer.mtu);
            self.connection.peer = Some(Peer { endpoint: peer.clone(), area, addresses: Vec::new(), mtu });
            return Ok(());
        }
        let mtu = self.resources.settings.mtu.min(peer.mtu);
        let settings = &self.resources.settings;
        let (service, accepted, reads) = (self.resources.service, settings.reads, settings.reads.min(peer.max_reads));
        let paths = (0..self.connection.pairs.len())
            .map(|i| join::path(&self.resources.choice, settings, peer, i))
            .collect::<Result<Vec<_>, _>>()?;
        for (i, (pair, path)) in self.connection.pairs.iter().zip(&paths).enumerate() {
            let (number, psn, own_psn) = (peer.qp_numbers[i], peer.psns[i], self.connection.psns[i]);
            let to = Target { path: *path, mtu, number, psn, own_psn, accepted, reads };
            join::connect(pair, settings, &to)?;
        }
        let own_psn = self.connection.psns.last().copied().unwrap_or(0);
        if let (Some(pair), Some(path)) = (self.connection.mailbox.queue_pair(), paths.first()) {
            let (number, psn) = (mailbox.qp_number, mailbox.psn);
            join::connect(pair, settings, &Target { path: *path, mtu, number, psn, own_psn, accepted, reads: 1 })?;
        }
        self.connection.mailbox.address_to(&mailbox);
        let addresses = if service == Service::Ud {
            let domain = &self.resources.choice.domain;
            paths.iter().map(|path| Address::new(domain, path).map(Arc::new)).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        let area = Layout::area_of(peer.length.0, self.connection.pairs.len());
        self.connection.peer = Some(Peer { endpoint: peer.clone(), area, addresses, mtu });
        Ok(())
    }

    /// `Err` unless the peer can be this end's.
    fn fit(&self, peer: &VerbsEndpoint) -> Result<ControlEndpoint, Failure> {
        let own = self.resources.layout.qps as usize;
        if peer.qp_numbers.len() != own || peer.psns.len() != own {
            let cause = format!("{own} queue pairs here, {} at the peer", peer.qp_numbers.len());
            return Err(unfit(cause, remedy::SAME_AT_BOTH_ENDS.with([("setting", "number of queue pairs")])));
        }
        join::same_network(&self.resources.choice, peer)?;
        peer.control.ok_or_else(|| unfit("the peer has no control queue pair".to_owned(), remedy::REMOVE_OLD_AGENT))
    }
}
