//! Memory on a GPU, and its export to NICs.

use std::{
    ffi::{c_int, c_void},
    os::fd::{FromRawFd, OwnedFd},
    sync::Arc,
};

use railgauge_wire::{Failure, Kind, Stage, remedy};

use super::{Device, Vendor, driver::DevicePtr};

/// Granule of dma-buf exports in bytes: the largest page size of a host CPU that CUDA supports.
const GRANULE: u64 = 65_536;
/// Memory left free for the driver, NCCL and others, in bytes.
const RESERVE: u64 = 256 << 20;

/// `CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED`.
const DMA_BUF_SUPPORTED: c_int = 124;
/// `CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD`.
const DMA_BUF_FD: c_int = 1;
/// `CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE` (CUDA 12.8).
const DMA_BUF_BY_PCIE: u64 = 1;
/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
const SYNC_MEMOPS: c_int = 6;
/// `CU_POINTER_ATTRIBUTE_IS_MANAGED`.
const IS_MANAGED: c_int = 8;

/// Plain device memory, never managed: what a NIC reads must not move to the host meanwhile.
pub struct Buffer {
    device: Arc<Device>,
    allocated: DevicePtr,
    /// Within the allocation: the driver exports whole pages of the host.
    address: DevicePtr,
    length: u64,
}

impl Buffer {
    pub fn new(device: &Arc<Device>, length: u64) -> Result<Self, Failure> {
        device.enter()?;
        let taken = length.max(1).next_multiple_of(GRANULE).saturating_add(GRANULE);
        let (free, total) = device.memory()?;
        // Small buffers accompany large ones and need no reserve.
        let reserve = if length > GRANULE { RESERVE } else { 0 };
        if taken.saturating_add(reserve) > free {
            let cause = format!(
                "GPU {}: {length} bytes are wanted, and {free} of its {total} bytes are free, less {reserve} for the driver and \
                 others: {} can be taken",
                device.index(),
                (free.saturating_sub(reserve) / GRANULE * GRANULE).saturating_sub(GRANULE)
            );
            return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(device.vendor().free_memory()));
        }
        let mut allocated = 0;
        let bytes = usize::try_from(taken).unwrap_or(usize::MAX);
        // SAFETY: `allocated` is valid for writes.
        let status = unsafe { (device.driver().memory_alloc)(&raw mut allocated, bytes) };
        device.check(status, &format!("taking {length} bytes"))?;
        let buffer =
            Self { device: Arc::clone(device), allocated, address: allocated.next_multiple_of(GRANULE), length };
        buffer.refuse_managed()?;
        Ok(buffer)
    }

    /// Managed memory may be in the host when the NIC reads it: the test would measure a migration.
    fn refuse_managed(&self) -> Result<(), Failure> {
        let mut managed: c_int = 0;
        // SAFETY: `managed` is a valid place for this attribute's type, and the address is this buffer's.
        let status = unsafe {
            (self.device.driver().pointer_attribute)((&raw mut managed).cast::<c_void>(), IS_MANAGED, self.address)
        };
        self.device.check(status, "asking what kind of memory it is")?;
        if managed != 0 {
            let cause =
                format!("GPU {}: this is managed memory, which moves between host and GPU", self.device.index());
            return Err(Failure::new(Stage::Open, Kind::Unsupported, cause));
        }
        Ok(())
    }

    /// Makes the driver's copies of this memory end before their calls return, as CUDA requires for memory that other devices write
    /// ("GPUDirect RDMA", `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`).
    pub fn synchronous(&self) -> Result<(), Failure> {
        let Some(set) = self.device.driver().set_pointer_attribute else { return Ok(()) };
        let on: c_int = 1;
        // SAFETY: `on` has this attribute's type and outlives the call; the address is this buffer's.
        let status = unsafe { set((&raw const on).cast::<c_void>(), SYNC_MEMOPS, self.address) };
        self.device.check(status, "preparing memory for a NIC")
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Aligned to 64 KiB.
    pub fn address(&self) -> DevicePtr {
        self.address
    }

    pub fn len(&self) -> u64 {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// A dma-buf of the whole buffer, for `ibv_reg_dmabuf_mr`: the descriptor and the length it covers, which is the buffer's rounded up
    /// to 64 KiB. The offset in it is 0. With `pcie` it is mapped that way where the driver offers it; the third value says which mapping
    /// it is.
    pub fn dma_buf(&self, pcie: bool) -> Result<(OwnedFd, u64, &'static str), Failure> {
        let refused = |why: &str| {
            Failure::new(Stage::Open, Kind::Unsupported, format!("GPU {}: no dma-buf: {why}", self.device.index()))
                .remedy(remedy::DMA_BUF_OF_GPU)
        };
        by_nics(&self.device)?;
        let export = self.device.driver().address_range_handle.ok_or_else(|| refused("the driver is too old"))?;
        if self.device.attribute(DMA_BUF_SUPPORTED) != Some(1) {
            return Err(refused("the driver says that this GPU or kernel module does not support it"));
        }
        self.device.enter()?;
        let covered = self.length.max(1).next_multiple_of(GRANULE);
        let bytes = usize::try_from(covered).unwrap_or(usize::MAX);
        let mut descriptor: c_int = -1;
        let mut by = |flags: u64| {
            // SAFETY: `descriptor` is the int this handle type asks for; the range is of this allocation, which has a granule more.
            unsafe { export((&raw mut descriptor).cast::<c_void>(), self.address, bytes, DMA_BUF_FD, flags) }
        };
        // Drivers that do not know the flag refuse it.
        let is_pcie = pcie && by(DMA_BUF_BY_PCIE) == 0;
        if !is_pcie {
            let status = by(0);
            self.device.check(status, "exporting a dma-buf").map_err(|failure| refused(&failure.cause))?;
        }
        if descriptor < 0 {
            return Err(refused("the driver gave no descriptor"));
        }
        // SAFETY: the driver has just opened this descriptor for the caller, who owns it.
        Ok((unsafe { OwnedFd::from_raw_fd(descriptor) }, covered, if is_pcie { "pcie" } else { "default" }))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the allocation of `new`, freed once, with its context current. The driver first waits for queued work (CUDA programming
        // guide, "Stream-ordered memory allocator", on `cudaFree`; HIP's `hipFree`).
        self.device.end("freeing memory", || unsafe { (self.device.driver().memory_free)(self.allocated) });
    }
}

/// Whether NICs may reach the memory of a GPU: this program gives AMD's to none.
pub(crate) fn by_nics(device: &Device) -> Result<(), Failure> {
    if device.vendor() != Vendor::Amd {
        return Ok(());
    }
    let cause = format!("GPU {} ({}) is AMD's: RDMA with its memory is not supported", device.index(), device.name());
    Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::AMD_GPU_OVER_RDMA))
}
