//! A memory region: bytes a device may read and write, with the keys that allow it.

use std::{ptr::NonNull, sync::Arc};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};
use rdma_sys::{ibv_access_flags, ibv_mr};

use crate::memory::backing::Backing;

use super::{
    domain::Domain,
    words::{self, Doing},
};

/// What a peer may do with a region beyond writing and reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    pub atomics: bool,
    /// PCIe relaxed ordering: writes may become visible in any order until the completion.
    pub relaxed_ordering: bool,
}

#[derive(Debug)]
pub struct Region {
    handle: NonNull<ibv_mr>,
    domain: Arc<Domain>,
    backing: Arc<dyn Backing>,
}

impl Region {
    /// Registers all of `backing` for local writes, remote writes and remote reads, and what `access` adds.
    pub fn register(domain: &Arc<Domain>, backing: Arc<dyn Backing>, access: Access) -> Result<Self, Failure> {
        let library = domain.device().library();
        // iWARP writes read responses as remote writes, so its sinks need that permission; we give it to all.
        let mut flags = ibv_access_flags::IBV_ACCESS_LOCAL_WRITE
            | ibv_access_flags::IBV_ACCESS_REMOTE_WRITE
            | ibv_access_flags::IBV_ACCESS_REMOTE_READ;
        if access.atomics {
            flags |= ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC;
        }
        let unsupported = |what: &str| {
            let cause = format!("{}: {} has no {what}", domain.device().name(), library.file());
            Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::NEWER_RDMA_CORE)
        };
        let (pd, address, length) = (domain.handle.as_ptr(), backing.address(), backing.length());
        // Optional flags may only be given to the newer entry point; C does this in a macro named ibv_reg_mr.
        let optional = if access.relaxed_ordering { ibv_access_flags::IBV_ACCESS_RELAXED_ORDERING.0 } else { 0 };
        let handle = if let Some(fd) = backing.dma_buf() {
            let register = library.ibv_reg_dmabuf_mr.ok_or_else(|| unsupported("ibv_reg_dmabuf_mr (rdma-core 34)"))?;
            // SAFETY: the domain is alive and `Backing` vouches for descriptor and range.
            unsafe { register(pd, 0, length, address, fd, (flags.0 | optional).cast_signed()) }
        } else if optional != 0 {
            let register = library.ibv_reg_mr_iova2.ok_or_else(|| unsupported("relaxed ordering (rdma-core 28)"))?;
            // SAFETY: the domain is alive and `Backing` vouches for the range.
            unsafe { register(pd, address as *mut _, length, address, flags.0 | optional) }
        } else {
            // SAFETY: as above.
            unsafe { (library.ibv_reg_mr)(pd, address as *mut _, length, flags.0.cast_signed()) }
        };
        let handle = NonNull::new(handle).ok_or_else(|| {
            let failure = words::last(Stage::Open, Doing::Register, domain.device().name());
            Failure { cause: format!("{} ({length} bytes)", failure.cause), ..failure }
        })?;
        Ok(Self { handle, domain: Arc::clone(domain), backing })
    }

    /// Whether the device takes dma-bufs, asked as NCCL asks: an invalid descriptor is refused as a descriptor
    /// (`EBADF`) by drivers that would take a good one, and as an operation by those that know no dma-bufs.
    pub fn takes_dma_buf(domain: &Arc<Domain>) -> Result<(), Failure> {
        let (device, library) = (domain.device().name(), domain.device().library());
        let refused = |why: String| {
            Failure::new(Stage::Open, Kind::Unsupported, format!("{device}: no dma-buf: {why}"))
                .remedy(remedy::DMA_BUF_OF_NIC)
        };
        let register = library
            .ibv_reg_dmabuf_mr
            .ok_or_else(|| refused(format!("{} has no ibv_reg_dmabuf_mr (rdma-core 34)", library.file())))?;
        // SAFETY: the domain is alive; no descriptor and no bytes are given.
        let handle = unsafe { register(domain.handle.as_ptr(), 0, 0, 0, -1, 0) };
        let error = std::io::Error::last_os_error();
        if let Some(handle) = NonNull::new(handle) {
            // SAFETY: came from the registration above.
            unsafe { (library.ibv_dereg_mr)(handle.as_ptr()) };
            return Ok(());
        }
        match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::ENOSYS) => {
                Err(refused(format!("its driver registers none ({error})")))
            }
            _ => Ok(()),
        }
    }

    /// The bytes behind it.
    pub fn backing(&self) -> &dyn Backing {
        &*self.backing
    }

    /// Address of the first byte.
    pub fn address(&self) -> u64 {
        self.backing.address()
    }

    /// Number of bytes.
    pub fn length(&self) -> usize {
        self.backing.length()
    }

    pub fn local_key(&self) -> u32 {
        // SAFETY: the handle is registered; the key never changes.
        unsafe { self.handle.as_ref() }.lkey
    }

    pub fn remote_key(&self) -> u32 {
        // SAFETY: as above.
        unsafe { self.handle.as_ref() }.rkey
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: came from a registration; the backing lives until this has returned.
        unsafe { (self.domain.device().library().ibv_dereg_mr)(self.handle.as_ptr()) };
    }
}

// SAFETY: libibverbs allows every call on a region from any thread; the keys are read only.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}
