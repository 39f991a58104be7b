//! A queue pair: created, moved through its states, destroyed. `send` and `receive` post to it.
//!
//! The states and the attributes that each service requires are those of the InfiniBand Architecture Specification 1.4, tables 91 to 93,
//! and `ibv_modify_qp(3)`.

use std::{mem, ptr, sync::Arc};

use railgauge_wire::{Ece, Failure, Service, Stage, WriteOrder};
use rdma_sys::*;

use super::{
    CompletionQueue, Doing, Domain, Identifier,
    words::{self},
};
use crate::system::library::Owned;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    pub sends: u32,
    pub receives: u32,
    /// Largest inline payload asked for, in bytes; less is taken where the device has less.
    pub inline: u32,
}

#[derive(Debug)]
pub struct QueuePair {
    /// First: it is destroyed before what it was made of.
    made: Made,
    domain: Arc<Domain>,
    queue: Arc<CompletionQueue>,
    service: Service,
    inline: u32,
}

#[derive(Debug)]
enum Made {
    Here(Owned<ibv_qp>),
    ByManager(Identifier),
}

/// Inline sizes to fall back to, in bytes: what devices are known to offer.
const INLINE_STEPS: [u32; 6] = [220, 188, 96, 64, 32, 0];

pub(crate) const fn service_code(service: Service) -> ibv_qp_type::Type {
    match service {
        Service::Rc => ibv_qp_type::IBV_QPT_RC,
        Service::Uc => ibv_qp_type::IBV_QPT_UC,
        Service::Ud => ibv_qp_type::IBV_QPT_UD,
    }
}

impl QueuePair {
    /// `connection`: a future one, which moves the queue pair through its states.
    pub fn new(
        domain: &Arc<Domain>,
        queue: &Arc<CompletionQueue>,
        service: Service,
        capacity: Capacity,
        mut connection: Option<Identifier>,
    ) -> Result<Self, Failure> {
        let device = domain.device();
        let smaller = INLINE_STEPS.into_iter().filter(|inline| *inline < capacity.inline);
        let mut refused = 0;
        for inline in std::iter::once(capacity.inline).chain(smaller) {
            let mut attributes = attributes(queue, service, Capacity { inline, ..capacity });
            let made = match connection.take() {
                Some(with) => with.create(domain, &mut attributes).map(Made::ByManager).map_err(|(with, errno)| {
                    connection = Some(with);
                    errno
                }),
                None => {
                    let library = device.library();
                    // SAFETY: domain and queue are alive, and the attributes valid for the call.
                    let made = unsafe {
                        let made = (library.ibv_create_qp)(domain.handle.as_ptr(), &raw mut attributes);
                        Owned::new(made, library.ibv_destroy_qp)
                    };
                    made.map(Made::Here)
                        .ok_or_else(|| std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL))
                }
            };
            match made {
                Ok(made) => {
                    let (domain, queue) = (Arc::clone(domain), Arc::clone(queue));
                    let inline = attributes.cap.max_inline_data.min(capacity.inline);
                    return Ok(Self { made, domain, queue, service, inline });
                }
                Err(errno) => refused = errno,
            }
            // By driver, too much inline data is EINVAL or ENOMEM; a smaller size does not help with other errors.
            if refused != libc::EINVAL && refused != libc::ENOMEM {
                break;
            }
        }
        let stage = if connection.is_some() { Stage::Join } else { Stage::Open };
        let failure = words::verb(stage, Doing::CreateQueuePair, device.name(), refused);
        let Capacity { sends, receives, .. } = capacity;
        Err(Failure { cause: format!("{} ({service}, {sends} sends, {receives} receives)", failure.cause), ..failure })
    }

    /// Set if rdma_cm made it.
    pub fn connection(&self) -> Option<&Identifier> {
        if let Made::ByManager(connection) = &self.made { Some(connection) } else { None }
    }

    pub(super) fn raw(&self) -> *mut ibv_qp {
        match &self.made {
            Made::Here(handle) => handle.as_ptr(),
            Made::ByManager(connection) => connection.queue_pair(),
        }
    }

    pub fn number(&self) -> u32 {
        // SAFETY: the handle is alive; the number never changes.
        unsafe { (*self.raw()).qp_num }
    }

    pub fn service(&self) -> Service {
        self.service
    }

    /// In bytes.
    pub fn inline(&self) -> u32 {
        self.inline
    }

    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    pub fn queue(&self) -> &Arc<CompletionQueue> {
        &self.queue
    }

    pub fn change(&self, change: &Change) -> Result<(), Failure> {
        let (mut attributes, mask) = change.attributes(self.service);
        let modify = self.domain.device().library().ibv_modify_qp;
        // SAFETY: the queue pair is alive, and the attributes named by the mask are set.
        match unsafe { modify(self.raw(), &raw mut attributes, mask) } {
            0 => Ok(()),
            // Some providers return -1 and leave the reason in errno.
            -1 => Err(words::last(change.stage(), change.doing(), self.domain.device().name())),
            errno => Err(words::verb(change.stage(), change.doing(), self.domain.device().name(), errno)),
        }
    }

    /// What it offers beyond the specification; once connected, what both ends have of it.
    pub fn ece(&self) -> Option<Ece> {
        let (query, mut found) = (self.domain.device().library().ibv_query_ece?, Ece::default());
        // SAFETY: the queue pair is alive and `found` valid for writing.
        (unsafe { query(self.raw(), &raw mut found) } == 0 && found.options != 0).then_some(found)
    }

    /// Takes what the peer offers, before RTR; the driver reduces it to what both ends have (`ibv_set_ece(3)`).
    pub fn accept(&self, mut of_peer: Ece) -> Result<(), Failure> {
        let device = self.domain.device();
        let Some(set) = device.library().ibv_set_ece else { return Ok(()) };
        // SAFETY: the queue pair is alive and `of_peer` valid.
        match unsafe { set(self.raw(), &raw mut of_peer) } {
            0 => Ok(()),
            errno => Err(words::verb(Stage::Join, Doing::Receive, device.name(), errno)),
        }
    }

    /// Whether the device guarantees that the bytes of an RDMA WRITE land in order, so that the last one is written last. Call it in RTS:
    /// mlx5 says no in every other state (rdma-core `mlx5_query_qp_data_in_order`).
    pub fn writes_land_in_order(&self) -> WriteOrder {
        let Some(query) = self.domain.device().library().ibv_query_qp_data_in_order else {
            return WriteOrder::Unknown;
        };
        // SAFETY: the queue pair is alive.
        match unsafe { query(self.raw(), ibv_wr_opcode::IBV_WR_RDMA_WRITE, 0) } {
            0 => WriteOrder::NotPromised,
            _ => WriteOrder::Promised,
        }
    }
}

fn attributes(queue: &CompletionQueue, service: Service, capacity: Capacity) -> ibv_qp_init_attr {
    // SAFETY: all zero (null pointers, numbers) is a valid value of this structure.
    let mut attributes: ibv_qp_init_attr = unsafe { mem::zeroed() };
    attributes.qp_context = ptr::null_mut();
    attributes.send_cq = queue.raw();
    attributes.recv_cq = queue.raw();
    attributes.qp_type = service_code(service);
    attributes.sq_sig_all = 0;
    attributes.cap = ibv_qp_cap {
        max_send_wr: capacity.sends,
        max_recv_wr: capacity.receives,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: capacity.inline,
    };
    attributes
}

/// Shortest wait that a receiver without a posted receive asks for, as a code of the specification's table 45: 12 is 0.64 ms, NCCL's and
/// perftest's value.
const RNR_TIMER: u8 = 12;

/// Retries for a receiver that was not ready. 7 would mean for ever.
const RNR_RETRIES: u8 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Initialise {
        port: u8,
        /// Index in the port's table.
        pkey_index: u16,
        atomics: bool,
        qkey: u32,
    },
    Receive {
        path: Path,
        mtu: ibv_mtu::Type,
        peer: u32,
        /// First packet sequence number of the peer.
        psn: u32,
        reads: u8,
    },
    Send {
        /// Our first packet sequence number.
        psn: u32,
        reads: u8,
        retries: u8,
        timeout: u8,
    },
}

impl Change {
    pub(super) const fn doing(&self) -> Doing {
        match self {
            Self::Initialise { .. } => Doing::Initialise,
            Self::Receive { .. } => Doing::Receive,
            Self::Send { .. } => Doing::Send,
        }
    }

    pub(super) const fn stage(&self) -> Stage {
        match self {
            Self::Initialise { .. } => Stage::Open,
            Self::Receive { .. } | Self::Send { .. } => Stage::Join,
        }
    }

    /// The attributes for a queue pair of `service`, and the mask that names them.
    pub(super) fn attributes(&self, service: Service) -> (ibv_qp_attr, i32) {
        use ibv_qp_attr_mask as mask;
        // SAFETY: all zero is a valid value of this structure of numbers.
        let mut a: ibv_qp_attr = unsafe { mem::zeroed() };
        let mut set = mask::IBV_QP_STATE;
        match *self {
            Self::Initialise { port, pkey_index, atomics, qkey } => {
                a.qp_state = ibv_qp_state::IBV_QPS_INIT;
                a.port_num = port;
                a.pkey_index = pkey_index;
                set |= mask::IBV_QP_PKEY_INDEX | mask::IBV_QP_PORT;
                if service == Service::Ud {
                    a.qkey = qkey;
                    set |= mask::IBV_QP_QKEY;
                } else {
                    let mut access = ibv_access_flags::IBV_ACCESS_REMOTE_WRITE;
                    if service == Service::Rc {
                        access |= ibv_access_flags::IBV_ACCESS_REMOTE_READ;
                    }
                    if service == Service::Rc && atomics {
                        access |= ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC;
                    }
                    a.qp_access_flags = access.0;
                    set |= mask::IBV_QP_ACCESS_FLAGS;
                }
            }
            Self::Receive { path, mtu, peer, psn, reads } => {
                a.qp_state = ibv_qp_state::IBV_QPS_RTR;
                if service != Service::Ud {
                    a.ah_attr = path.attributes();
                    a.path_mtu = mtu;
                    a.dest_qp_num = peer;
                    a.rq_psn = psn;
                    set |= mask::IBV_QP_AV | mask::IBV_QP_PATH_MTU | mask::IBV_QP_DEST_QPN | mask::IBV_QP_RQ_PSN;
                }
                if service == Service::Rc {
                    a.max_dest_rd_atomic = reads;
                    a.min_rnr_timer = RNR_TIMER;
                    set |= mask::IBV_QP_MAX_DEST_RD_ATOMIC | mask::IBV_QP_MIN_RNR_TIMER;
                }
            }
            Self::Send { psn, reads, retries, timeout } => {
                a.qp_state = ibv_qp_state::IBV_QPS_RTS;
                a.sq_psn = psn;
                set |= mask::IBV_QP_SQ_PSN;
                if service == Service::Rc {
                    a.max_rd_atomic = reads;
                    a.retry_cnt = retries;
                    a.rnr_retry = RNR_RETRIES;
                    a.timeout = timeout;
                    set |= mask::IBV_QP_MAX_QP_RD_ATOMIC
                        | mask::IBV_QP_RETRY_CNT
                        | mask::IBV_QP_RNR_RETRY
                        | mask::IBV_QP_TIMEOUT;
                }
            }
        }
        (a, set.0.cast_signed())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    pub port: u8,
    pub gid_index: u8,
    /// The peer's GID, where the packets carry a global route header: always on Ethernet, and between subnets.
    pub peer_gid: Option<[u8; 16]>,
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
    handle: Owned<ibv_ah>,
    _domain: Arc<Domain>,
}

impl Address {
    pub fn new(domain: &Arc<Domain>, path: &Path) -> Result<Self, Failure> {
        let device = domain.device();
        let mut attributes = path.attributes();
        let library = device.library();
        // SAFETY: the domain is alive and the attributes are valid for the call.
        let handle = unsafe {
            Owned::new((library.ibv_create_ah)(domain.handle.as_ptr(), &raw mut attributes), library.ibv_destroy_ah)
        };
        let handle = handle.ok_or_else(|| words::last(Stage::Join, Doing::Address, device.name()))?;
        Ok(Self { handle, _domain: Arc::clone(domain) })
    }

    pub(super) fn raw(&self) -> *mut ibv_ah {
        self.handle.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks(service: Service) -> [u32; 3] {
        let path = Path {
            port: 1,
            gid_index: 3,
            peer_gid: Some([1; 16]),
            peer_lid: 0,
            service_level: 0,
            traffic_class: 0,
            flow_label: 0,
        };
        let steps = [
            Change::Initialise { port: 1, pkey_index: 0, atomics: true, qkey: 7 },
            Change::Receive { path, mtu: ibv_mtu::IBV_MTU_1024, peer: 9, psn: 0, reads: 16 },
            Change::Send { psn: 0, reads: 16, retries: 6, timeout: 14 },
        ];
        steps.map(|step| step.attributes(service).1.cast_unsigned())
    }

    #[test]
    fn a_queue_pair_is_initialised_in_its_partition() {
        for service in [Service::Rc, Service::Uc, Service::Ud] {
            let step = Change::Initialise { port: 1, pkey_index: 1, atomics: false, qkey: 7 };
            assert_eq!(step.attributes(service).0.pkey_index, 1);
        }
    }

    /// The required attributes as `ibv_modify_qp(3)` lists them, by their values in <infiniband/verbs.h>.
    #[test]
    fn the_masks_are_those_of_the_manual() {
        const STATE: u32 = 1;
        let init = STATE | 1 << 3 | 1 << 4 | 1 << 5;
        let connected = STATE | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12;
        assert_eq!(
            masks(Service::Rc),
            [init, connected | 1 << 17 | 1 << 15, STATE | 1 << 16 | 1 << 13 | 1 << 10 | 1 << 11 | 1 << 9]
        );
        assert_eq!(masks(Service::Uc), [init, connected, STATE | 1 << 16]);
        assert_eq!(masks(Service::Ud), [STATE | 1 << 4 | 1 << 5 | 1 << 6, STATE, STATE | 1 << 16]);
    }
}
