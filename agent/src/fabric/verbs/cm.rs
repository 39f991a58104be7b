//! Joining by rdma_cm: the responder listens on its RDMA interface, the initiator asks for one connection per queue
//! pair and one for the control queue pair. Each request carries the link's token, so that no stranger is let in.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    link::{Role, VerbsEndpoint},
    remedy,
};

use super::end::VerbsEnd;
use crate::{
    bench::control::Control,
    endpoint::verbs::choice::Choice,
    facts::rdma,
    system::{
        interfaces::{self, Address},
        tree::Tree,
    },
    verbs::{
        cm::{Events, Identifier, Terms},
        completion::CompletionQueue,
        domain::Domain,
        gid::Gid,
        queue_pair::{Capacity, QueuePair},
        scatter,
    },
};

/// First bytes of every request.
const MAGIC: &[u8; 8] = b"RGAUGE\0\x01";

/// Bytes of the token that travel: requests hold 56 bytes in all.
const TOKEN: usize = 32;

/// What rdma_cm needs of an end until it is joined.
pub(crate) struct Manager {
    events: Arc<Events>,
    /// Bound to the device; listening at the responder.
    identifier: Arc<Identifier>,
    /// Where it is bound, with the listening port.
    pub address: SocketAddr,
    token: Vec<u8>,
}

impl Manager {
    /// Binds to the device of `choice`, and listens if `role` is the responder's.
    pub(crate) fn new(choice: &Choice, role: Role, qps: u32, token: &str) -> Result<Self, Failure> {
        let device = choice.domain.device().name();
        let all = interfaces::addresses().unwrap_or_default();
        let ip = address(&Tree::host(), device, choice.port.number, choice.gid, &all).ok_or_else(|| {
            let cause = format!(
                "{}: the network interface behind it has no address, and rdma_cm connects by address",
                choice.name()
            );
            Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::IP_ADDRESS)
        })?;
        let events = Events::new()?;
        let identifier = Arc::new(Identifier::new(&events)?);
        identifier.bind(SocketAddr::new(ip, 0))?;
        let port = if role == Role::Responder { identifier.listen(qps + 1)? } else { 0 };
        let token = token.bytes().take(TOKEN).collect();
        Ok(Self { events, identifier, address: SocketAddr::new(ip, port), token })
    }

    /// The device as librdmacm has opened it, with a protection domain.
    pub(crate) fn domain(&self, name: &str) -> Result<Arc<Domain>, Failure> {
        Domain::new(&self.identifier.device(name)?)
    }

    /// The name that librdmacm was opened by.
    pub(crate) fn library(&self) -> &str {
        self.events.library()
    }

    fn request(&self, index: u32) -> Vec<u8> {
        [&MAGIC[..], &index.to_be_bytes(), &self.token].concat()
    }

    /// The number in a request of our peer's; `None` if it is a stranger's. Requests arrive padded with zeros.
    fn index(&self, request: &[u8]) -> Option<u32> {
        let rest = request.strip_prefix(&MAGIC[..])?;
        let (index, rest) = rest.split_first_chunk()?;
        let token = rest.get(..self.token.len())?;
        (token == self.token).then(|| u32::from_be_bytes(*index))
    }
}

/// An address of the interface behind a port: that of the GID, else the interface's first.
fn address(tree: &Tree, device: &str, port: u8, gid: Option<Gid>, all: &[Address]) -> Option<IpAddr> {
    let of_gid = gid.and_then(|gid| gid.ipv4()).map(IpAddr::from);
    of_gid.or_else(|| {
        // iWARP has no `gid_attrs/ndevs` on older kernels: the interface is that of the device below.
        let interface = rdma::below(tree, device, port).netdev?;
        let mine = all.iter().filter(|found| found.up && found.interface == interface).map(|found| found.ip);
        let usable = |ip: &IpAddr| match ip {
            IpAddr::V4(_) => true,
            // Link-local addresses need a scope that rdma_cm cannot be told.
            IpAddr::V6(ip) => !ip.is_unicast_link_local(),
        };
        mine.filter(usable).min_by_key(IpAddr::is_ipv6)
    })
}

impl VerbsEnd {
    pub(crate) fn connect_all(&mut self, peer: &VerbsEndpoint, control: &Control) -> Result<(), Failure> {
        let Some(manager) = &self.connection.manager else {
            return Err(Failure::new(Stage::Join, Kind::Internal, "this end was not opened for rdma_cm"));
        };
        let made = match self.connection.role {
            Role::Initiator => self.ask(manager, peer, control)?,
            Role::Responder => self.grant(manager, peer, control)?,
        };
        let mut made: Vec<_> = made.into_iter().map(Arc::new).collect();
        if let Some(last) = made.pop() {
            self.connection.mailbox.attach(last);
        }
        self.connection.pairs = made;
        Ok(())
    }

    fn terms<'a>(&self, private: &'a [u8], peer: &VerbsEndpoint) -> Terms<'a> {
        let outstanding = self.resources.settings.reads.min(peer.max_reads);
        Terms { private, accept: self.resources.settings.reads, outstanding, retries: self.resources.settings.retries }
    }

    /// Queue and capacity of connection number `i`; the last one is the control queue pair's.
    fn measures(&self, i: u32) -> (&Arc<CompletionQueue>, Capacity) {
        if i == self.resources.layout.qps {
            (self.connection.mailbox.queue(), super::mailbox::CAPACITY)
        } else {
            (&self.resources.queue, self.resources.capacity)
        }
    }

    fn ask(&self, manager: &Manager, peer: &VerbsEndpoint, control: &Control) -> Result<Vec<QueuePair>, Failure> {
        let to = peer.cm_address.as_ref().and_then(|ip| ip.parse::<IpAddr>().ok()).zip(peer.cm_port);
        let Some((ip, port)) = to else {
            let cause = "the peer does not listen for rdma_cm";
            let remedy = remedy::SAME_AT_BOTH_ENDS.with([("setting", "`joining`")]);
            return Err(Failure::new(Stage::Join, Kind::Configuration, cause).remedy(remedy));
        };
        let limit = control.deadline();
        (0..=self.resources.layout.qps)
            .map(|i| {
                let identifier = Identifier::new(&manager.events)?;
                if self.resources.settings.traffic_class > 0 {
                    identifier.traffic_class(self.resources.settings.traffic_class);
                }
                let own = SocketAddr::new(manager.address.ip(), 0);
                identifier.resolve(own, SocketAddr::new(ip, port), limit)?;
                let (queue, capacity) = self.measures(i);
                let making = scatter::making(self.resources.direct);
                let pair = QueuePair::connected(&self.resources.choice.domain, queue, capacity, identifier)?;
                drop(making);
                let request = manager.request(i);
                if let Some(connection) = pair.connection() {
                    connection.connect(&self.terms(&request, peer), limit)?;
                }
                Ok(pair)
            })
            .collect()
    }

    fn grant(&self, manager: &Manager, peer: &VerbsEndpoint, control: &Control) -> Result<Vec<QueuePair>, Failure> {
        let limit = control.deadline();
        let wanted = self.resources.layout.qps as usize + 1;
        let mut granted = Vec::new();
        let mut established = 0;
        while established < wanted {
            control.check(Stage::Join)?;
            let event = manager.events.next(limit)?;
            let Some(identifier) = Identifier::requested(&event, &manager.events) else {
                established += usize::from(event.established()?);
                continue;
            };
            // Our peer asks for one after the other.
            let i = granted.len() as u32;
            if manager.index(&event.private) != Some(i) {
                identifier.reject();
                continue;
            }
            let (queue, capacity) = self.measures(i);
            let making = scatter::making(self.resources.direct);
            let pair = QueuePair::connected(&self.resources.choice.domain, queue, capacity, identifier)?;
            drop(making);
            if let Some(connection) = pair.connection() {
                connection.accept(&self.terms(&[], peer))?;
            }
            granted.push(pair);
        }
        Ok(granted)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn the_address_of_an_iwarp_port_is_found_without_gid_attributes() {
        let root = tempfile::tempdir().unwrap();
        let (device, hardware) =
            (root.path().join(rdma::CLASS).join("iwp0"), root.path().join("sys/devices/0000:03:00.0"));
        fs::create_dir_all(device.join("ports/1")).unwrap();
        fs::create_dir_all(hardware.join("net/eth3")).unwrap();
        symlink(&hardware, device.join("device")).unwrap();
        let address = |interface: &str, ip: &str| Address {
            interface: interface.to_owned(),
            ip: ip.parse().unwrap(),
            prefix: None,
            up: true,
        };
        let all = [address("eth0", "10.0.0.1"), address("eth3", "fe80::1"), address("eth3", "10.3.0.1")];
        let found = super::address(&Tree::new(root.path()), "iwp0", 1, None, &all);
        assert_eq!(found, Some("10.3.0.1".parse().unwrap()));
    }
}
