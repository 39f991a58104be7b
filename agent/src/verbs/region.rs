//! A memory region: bytes a device may read and write, with the keys that allow it.

use std::{fmt, ptr::NonNull, sync::Arc};

use railgauge_wire::failure::{Failure, Kind, Stage};
use rdma_sys::{ibv_access_flags, ibv_mr};

use crate::memory::host::Buffer;

use super::{
    domain::Domain,
    words::{self, Doing},
};

/// Bytes that stay where they are for as long as this value lives.
///
/// # Safety
/// `address` must be valid for reads and writes of `length` bytes until the value is dropped, by anybody: the CPU (if
/// it is host memory) and every device it is registered with, at the same time.
pub unsafe trait Backing: fmt::Debug + Send + Sync {
    /// Where the bytes start; a device address for GPU memory.
    fn address(&self) -> u64;
    /// How many there are.
    fn length(&self) -> usize;
    /// Copies `bytes` to offset `at`. Panics if they do not fit.
    fn put(&self, at: usize, bytes: &[u8]);
    /// Copies what is at offset `at` into `bytes`. Panics if there are not so many.
    fn get(&self, at: usize, bytes: &mut [u8]);
    /// Whether the CPU can read and write the bytes at `address` directly.
    fn host(&self) -> bool;
    /// A dma-buf holding the bytes and the offset of the first one, where that is how devices reach them.
    fn dma_buf(&self) -> Option<(std::os::fd::RawFd, u64)> {
        None
    }
}

// SAFETY: the mapping is the buffer's own and stays until it is dropped; devices and the CPU share it by raw access
// only, because nothing here makes references to its bytes.
unsafe impl Backing for Buffer {
    fn address(&self) -> u64 {
        Self::address(self) as u64
    }

    fn length(&self) -> usize {
        self.len()
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len() && bytes.len() <= self.len() - at, "outside of the buffer");
        // SAFETY: the range was just checked, and `bytes` is no part of the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), Self::address(self).add(at), bytes.len()) };
    }

    fn get(&self, at: usize, bytes: &mut [u8]) {
        assert!(at <= self.len() && bytes.len() <= self.len() - at, "outside of the buffer");
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(Self::address(self).add(at), bytes.as_mut_ptr(), bytes.len()) };
    }

    fn host(&self) -> bool {
        true
    }
}

/// What a peer may do with a region beyond writing and reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// Atomics of the peer.
    pub atomics: bool,
    /// PCIe relaxed ordering: writes may become visible in any order until the completion.
    pub relaxed_ordering: bool,
}

/// Registered memory.
#[derive(Debug)]
pub struct Region {
    handle: NonNull<ibv_mr>,
    domain: Arc<Domain>,
    backing: Arc<dyn Backing>,
}

impl Region {
    /// Registers all of `backing` for local writes, remote writes and remote reads, and what `access` adds.
    ///
    /// # Errors
    /// Limits, permissions, or memory of a kind the device cannot reach.
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
            Failure::new(Stage::Open, Kind::Unsupported, cause).help("install a newer rdma-core on this host")
        };
        let (pd, address, length) = (domain.handle.as_ptr(), backing.address(), backing.length());
        // Optional flags may only be given to the newer entry point; C does this in a macro named ibv_reg_mr.
        let optional = if access.relaxed_ordering { ibv_access_flags::IBV_ACCESS_RELAXED_ORDERING.0 } else { 0 };
        let handle = if let Some((fd, offset)) = backing.dma_buf() {
            let register = library.ibv_reg_dmabuf_mr.ok_or_else(|| unsupported("ibv_reg_dmabuf_mr (rdma-core 34)"))?;
            // SAFETY: the domain is alive and `Backing` vouches for descriptor and range.
            unsafe { register(pd, offset, length, address, fd, (flags.0 | optional).cast_signed()) }
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

    /// Key for local work requests.
    pub fn local_key(&self) -> u32 {
        // SAFETY: the handle is registered; the key never changes.
        unsafe { self.handle.as_ref() }.lkey
    }

    /// Key for the peer's work requests.
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
