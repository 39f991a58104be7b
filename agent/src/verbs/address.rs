//! Where a packet goes: the address vector of a connected queue pair, and the handle a datagram carries.

use std::{mem, ptr::NonNull, sync::Arc};

use railgauge_wire::failure::{Failure, Stage};
use rdma_sys::*;

use super::{
    domain::Domain,
    words::{self, Doing},
};

/// A path from a local port to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    pub port: u8,
    pub gid_index: u8,
    /// The peer's GID, where the packets carry a global route header: always on Ethernet, and between subnets.
    pub peer_gid: Option<[u8; 16]>,
    /// The peer's local identifier; 0 on Ethernet.
    pub peer_lid: u16,
    pub service_level: u8,
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
}

impl Path {
    pub(super) fn attributes(&self) -> ibv_ah_attr {
        // SAFETY: all zero is a valid value of this structure of numbers.
        let mut attributes: ibv_ah_attr = unsafe { mem::zeroed() };
        attributes.port_num = self.port;
        attributes.dlid = self.peer_lid;
        attributes.sl = self.service_level;
        if let Some(raw) = self.peer_gid {
            attributes.is_global = 1;
            attributes.grh = ibv_global_route {
                dgid: ibv_gid { raw },
                flow_label: self.flow_label,
                sgid_index: self.gid_index,
                // The most there is: a path through any number of routers (perftest and NCCL do the same).
                hop_limit: 255,
                traffic_class: self.traffic_class,
            };
        }
        attributes
    }
}

#[derive(Debug)]
pub struct Address {
    handle: NonNull<ibv_ah>,
    domain: Arc<Domain>,
}

impl Address {
    /// A handle for datagrams along `path`.
    pub fn new(domain: &Arc<Domain>, path: &Path) -> Result<Self, Failure> {
        let device = domain.device();
        let mut attributes = path.attributes();
        // SAFETY: the domain is alive and the attributes are valid for the call.
        let handle = unsafe { (device.library().ibv_create_ah)(domain.handle.as_ptr(), &raw mut attributes) };
        let handle = NonNull::new(handle).ok_or_else(|| words::last(Stage::Join, Doing::Address, device.name()))?;
        Ok(Self { handle, domain: Arc::clone(domain) })
    }

    pub(super) fn raw(&self) -> *mut ibv_ah {
        self.handle.as_ptr()
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        // SAFETY: came from ibv_create_ah.
        unsafe { (self.domain.device().library().ibv_destroy_ah)(self.handle.as_ptr()) };
    }
}

// SAFETY: libibverbs allows every call on an address handle from any thread.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}
