//! What a link needs of rdma_cm before it is joined: where it listens or connects from, and the token of its requests.
//!
//! The responder listens on its RDMA interface, and the initiator asks for one connection per queue pair and one for the control queue
//! pair. Each request has the link's token, so that no stranger can join.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use railgauge_wire::{Failure, Kind, Role, Stage, remedy};

use crate::{
    endpoint::verbs::choice::Choice,
    facts::rdma,
    system::{
        interfaces::{self, Address},
        tree::Tree,
    },
    verbs::{Domain, Gid, Identifier, cm::Events},
};

const MAGIC: &[u8; 8] = b"RGAUGE\0\x01";

/// Bytes of the token in a request, which has 56 bytes in all.
const TOKEN: usize = 32;

pub(crate) struct Manager {
    pub(super) events: Arc<Events>,
    identifier: Arc<Identifier>,
    pub address: SocketAddr,
    token: Vec<u8>,
}

impl Manager {
    /// Listens if `role` is the responder's.
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

    pub(crate) fn domain(&self, name: &str) -> Result<Arc<Domain>, Failure> {
        Domain::new(&self.identifier.device(name)?)
    }

    pub(crate) fn library(&self) -> &str {
        self.events.library()
    }

    pub(super) fn request(&self, index: u32) -> Vec<u8> {
        [&MAGIC[..], &index.to_be_bytes(), &self.token].concat()
    }

    /// `None` for a stranger's request. Requests are padded with zeros.
    pub(super) fn index(&self, request: &[u8]) -> Option<u32> {
        let rest = request.strip_prefix(&MAGIC[..])?;
        let (index, rest) = rest.split_first_chunk()?;
        let token = rest.get(..self.token.len())?;
        (token == self.token).then(|| u32::from_be_bytes(*index))
    }
}

/// The GID's, else the interface's first.
fn address(tree: &Tree, device: &str, port: u8, gid: Option<Gid>, all: &[Address]) -> Option<IpAddr> {
    let of_gid = gid.and_then(|gid| gid.ipv4()).map(IpAddr::from);
    of_gid.or_else(|| {
        // iWARP has no `gid_attrs/ndevs` on older kernels: the interface is that of the device below.
        let interface = rdma::below(tree, device, port).netdev?;
        let mine = all.iter().filter(|found| found.up && found.interface == interface).map(|found| found.ip);
        let usable = |ip: &IpAddr| match ip {
            IpAddr::V4(_) => true,
            // Link-local addresses need a scope, which rdma_cm does not accept.
            IpAddr::V6(ip) => !ip.is_unicast_link_local(),
        };
        mine.filter(usable).min_by_key(IpAddr::is_ipv6)
    })
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
