//! A queue pair: created, moved through its states, destroyed. Posting is in `send` and `receive`.

use std::{mem, ptr, ptr::NonNull, sync::Arc};

use railgauge_wire::{
    failure::{Failure, Stage},
    link::WriteOrder,
    terms::Service,
};
use rdma_sys::*;

use super::{
    cm::Identifier,
    completion::CompletionQueue,
    domain::Domain,
    transition::Change,
    words::{self, Doing},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    pub sends: u32,
    pub receives: u32,
    /// Largest inline payload asked for, in bytes; less is taken where the device has less.
    pub inline: u32,
}

#[derive(Debug)]
pub struct QueuePair {
    handle: NonNull<ibv_qp>,
    domain: Arc<Domain>,
    send_queue: Arc<CompletionQueue>,
    receive_queue: Arc<CompletionQueue>,
    service: Service,
    inline: u32,
    /// The connection it belongs to, if rdma_cm made it.
    connection: Option<Identifier>,
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
    pub fn new(
        domain: &Arc<Domain>,
        send_queue: &Arc<CompletionQueue>,
        receive_queue: &Arc<CompletionQueue>,
        service: Service,
        capacity: Capacity,
    ) -> Result<Self, Failure> {
        let device = domain.device();
        let smaller = INLINE_STEPS.into_iter().filter(|inline| *inline < capacity.inline);
        let mut refused = 0;
        for inline in std::iter::once(capacity.inline).chain(smaller) {
            let mut attributes = attributes(send_queue, receive_queue, service, Capacity { inline, ..capacity });
            // SAFETY: domain and queues are alive, and the attributes valid for the call.
            let handle = unsafe { (device.library().ibv_create_qp)(domain.handle.as_ptr(), &raw mut attributes) };
            if let Some(handle) = NonNull::new(handle) {
                return Ok(Self {
                    handle,
                    domain: Arc::clone(domain),
                    send_queue: Arc::clone(send_queue),
                    receive_queue: Arc::clone(receive_queue),
                    service,
                    inline: attributes.cap.max_inline_data.min(capacity.inline),
                    connection: None,
                });
            }
            refused = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
            // Too much inline data is EINVAL or ENOMEM, by driver; everything else is not cured by asking for less.
            if refused != libc::EINVAL && refused != libc::ENOMEM {
                break;
            }
        }
        let failure = words::verb(Stage::Open, Doing::CreateQueuePair, device.name(), refused);
        let Capacity { sends, receives, .. } = capacity;
        Err(Failure { cause: format!("{} ({service}, {sends} sends, {receives} receives)", failure.cause), ..failure })
    }

    /// The queue pair of a connection that is about to be made, which moves it through its states.
    pub fn connected(
        domain: &Arc<Domain>,
        queue: &Arc<CompletionQueue>,
        capacity: Capacity,
        connection: Identifier,
    ) -> Result<Self, Failure> {
        let service = Service::Rc;
        let smaller = INLINE_STEPS.into_iter().filter(|inline| *inline < capacity.inline);
        let mut refused = 0;
        for inline in std::iter::once(capacity.inline).chain(smaller) {
            let mut attributes = attributes(queue, queue, service, Capacity { inline, ..capacity });
            match connection.create(domain, &mut attributes) {
                Ok(handle) => {
                    return Ok(Self {
                        handle,
                        domain: Arc::clone(domain),
                        send_queue: Arc::clone(queue),
                        receive_queue: Arc::clone(queue),
                        service,
                        inline: attributes.cap.max_inline_data.min(capacity.inline),
                        connection: Some(connection),
                    });
                }
                Err(errno) => refused = errno,
            }
        }
        Err(words::verb(Stage::Join, Doing::CreateQueuePair, domain.device().name(), refused))
    }

    /// The connection it belongs to, if rdma_cm made it.
    pub fn connection(&self) -> Option<&Identifier> {
        self.connection.as_ref()
    }

    pub(super) fn raw(&self) -> *mut ibv_qp {
        self.handle.as_ptr()
    }

    pub fn number(&self) -> u32 {
        // SAFETY: the handle is alive; the number never changes.
        unsafe { (*self.handle.as_ptr()).qp_num }
    }

    pub fn service(&self) -> Service {
        self.service
    }

    /// Largest inline payload it takes, in bytes.
    pub fn inline(&self) -> u32 {
        self.inline
    }

    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Where its sends complete.
    pub fn send_queue(&self) -> &Arc<CompletionQueue> {
        &self.send_queue
    }

    /// Where its receives complete.
    pub fn receive_queue(&self) -> &Arc<CompletionQueue> {
        &self.receive_queue
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

    /// Whether the device promises that the bytes of an RDMA WRITE land in order, so that the last one is written last.
    /// To be asked in RTS: mlx5 says no in every other state (rdma-core `mlx5_query_qp_data_in_order`).
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

fn attributes(
    send_queue: &CompletionQueue,
    receive_queue: &CompletionQueue,
    service: Service,
    capacity: Capacity,
) -> ibv_qp_init_attr {
    // SAFETY: all zero (null pointers, numbers) is a valid value of this structure.
    let mut attributes: ibv_qp_init_attr = unsafe { mem::zeroed() };
    attributes.qp_context = ptr::null_mut();
    attributes.send_cq = send_queue.raw();
    attributes.recv_cq = receive_queue.raw();
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

impl Drop for QueuePair {
    fn drop(&mut self) {
        match &self.connection {
            Some(connection) => connection.destroy(),
            // SAFETY: came from ibv_create_qp; its queues are alive until this has returned.
            None => unsafe {
                (self.domain.device().library().ibv_destroy_qp)(self.handle.as_ptr());
            },
        }
    }
}

// SAFETY: libibverbs allows every call on a queue pair from any thread.
unsafe impl Send for QueuePair {}
// SAFETY: as above.
unsafe impl Sync for QueuePair {}
