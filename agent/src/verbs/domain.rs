//! A protection domain: what may be used together.

use std::{ptr::NonNull, sync::Arc};

use railgauge_wire::failure::{Failure, Stage};
use rdma_sys::ibv_pd;

use super::{
    device::Device,
    words::{self, Doing},
};

#[derive(Debug)]
pub struct Domain {
    pub(super) handle: NonNull<ibv_pd>,
    device: Arc<Device>,
}

impl Domain {
    /// A new domain of `device`.
    pub fn new(device: &Arc<Device>) -> Result<Arc<Self>, Failure> {
        // SAFETY: the context is open.
        let handle = unsafe { (device.library.ibv_alloc_pd)(device.context.as_ptr()) };
        let handle =
            NonNull::new(handle).ok_or_else(|| words::last(Stage::Open, Doing::AllocateDomain, device.name()))?;
        Ok(Arc::new(Self { handle, device: Arc::clone(device) }))
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: came from ibv_alloc_pd; everything made in it holds an Arc of this.
        unsafe { (self.device.library.ibv_dealloc_pd)(self.handle.as_ptr()) };
    }
}

// SAFETY: libibverbs allows every call on a domain from any thread.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}
