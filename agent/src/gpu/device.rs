//! One GPU: its primary context, kept while anything uses it.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_int},
    sync::{Arc, OnceLock},
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use super::{
    driver::{Driver, Handle, Status, driver},
    kernels::Kernels,
};

/// `CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS`.
const FLUSH_OPTIONS: c_int = 117;
/// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST`.
const FLUSH_BY_HOST: c_int = 1;
/// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX`.
const FLUSH_CURRENT_CONTEXT: c_int = 0;
/// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER`.
const FLUSH_TO_OWNER: c_int = 100;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
const CAPABILITY_MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
const CAPABILITY_MINOR: c_int = 76;

/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
const PEER_ACCESS_ALREADY_ENABLED: Status = 704;

/// A GPU whose primary context is held. Cheap to share.
pub struct Device {
    driver: &'static Driver,
    ordinal: c_int,
    context: Handle,
    name: String,
    pci: String,
    kernels: OnceLock<Result<Kernels, Failure>>,
}

// SAFETY: contexts may be used from any thread once made current there, which every call below does; the handles are
// only numbers to this process.
unsafe impl Send for Device {}
// SAFETY: as above: the driver API is thread-safe.
unsafe impl Sync for Device {}

/// PCI addresses of the GPUs that CUDA sees, in the order of its numbers; empty without NVIDIA's driver.
///
/// # Errors
/// The driver is there and does not answer.
pub(crate) fn visible() -> Result<Vec<String>, Failure> {
    let driver = match driver() {
        Ok(driver) => driver,
        Err(failure) if failure.kind == Kind::Unsupported => return Ok(Vec::new()),
        Err(failure) => return Err(failure),
    };
    let mut count = 0;
    // SAFETY: `count` is valid for writes.
    driver.check(unsafe { (driver.device_get_count)(&raw mut count) }, "counting GPUs")?;
    let one = |ordinal| {
        let mut device = 0;
        // SAFETY: `device` is valid for writes and `ordinal` is in range.
        driver.check(unsafe { (driver.device_get)(&raw mut device, ordinal) }, &format!("asking for GPU {ordinal}"))?;
        Ok(text(driver.device_get_pci_bus_id, device).to_ascii_lowercase())
    };
    (0..count).map(one).collect()
}

/// The GPU at a PCI address.
///
/// # Errors
/// There is no driver, or CUDA does not see this GPU.
pub(crate) fn at(pci: &str) -> Result<Arc<Device>, Failure> {
    // Without a driver this says so.
    let visible = visible()?;
    let number = visible.iter().position(|known| known == pci).and_then(|number| u32::try_from(number).ok());
    let Some(number) = number else {
        if visible.is_empty() {
            return Device::open(0);
        }
        let cause = format!("the GPU at {pci} is not one of those that CUDA sees: {}", visible.join(", "));
        return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::NAME_OTHER_GPUS));
    };
    Device::open(number)
}

impl Device {
    /// Opens GPU `index`, counted from 0.
    ///
    /// # Errors
    /// There is no driver, no such GPU, or it cannot be used.
    pub fn open(index: u32) -> Result<Arc<Self>, Failure> {
        let driver = driver()?;
        let mut count = 0;
        // SAFETY: `count` is valid for writes.
        driver.check(unsafe { (driver.device_get_count)(&raw mut count) }, "counting GPUs")?;
        let ordinal = c_int::try_from(index).unwrap_or(c_int::MAX);
        if ordinal >= count {
            let cause = match count {
                0 => "this host has no GPU that CUDA sees".to_owned(),
                1 => format!("GPU {index} does not exist: this host has one GPU, number 0"),
                _ => format!("GPU {index} does not exist: this host has GPUs 0 to {}", count - 1),
            };
            return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::NAME_OTHER_GPUS));
        }
        let mut device = 0;
        // SAFETY: `device` is valid for writes and `ordinal` is in range.
        driver.check(unsafe { (driver.device_get)(&raw mut device, ordinal) }, &format!("opening GPU {index}"))?;
        let mut context = std::ptr::null_mut();
        // SAFETY: `context` is valid for writes and `device` was just given by the driver.
        let status = unsafe { (driver.context_retain)(&raw mut context, device) };
        driver.check(status, &format!("starting a context on GPU {index}"))?;
        let name = text(driver.device_get_name, device);
        let pci = text(driver.device_get_pci_bus_id, device).to_ascii_lowercase();
        let device = Self { driver, ordinal, context, name, pci, kernels: OnceLock::new() };
        device.enter()?;
        Ok(Arc::new(device))
    }

    /// Makes the context current on the calling thread. Everything below does so first where it matters.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn enter(&self) -> Result<(), Failure> {
        // SAFETY: the context is held until `self` is dropped.
        self.check(unsafe { (self.driver.context_set_current)(self.context) }, "entering the context")
    }

    /// Number of the GPU.
    pub fn index(&self) -> u32 {
        self.ordinal.cast_unsigned()
    }

    /// Name of the product.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// PCI address as CUDA spells it, in lower case.
    pub fn pci(&self) -> &str {
        &self.pci
    }

    /// What the record of a link says of it.
    pub fn record(&self) -> BTreeMap<String, String> {
        let entries =
            [("gpu", self.index().to_string()), ("gpu_name", self.name.clone()), ("gpu_pci", self.pci.clone())];
        entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The driver.
    pub(crate) fn driver(&self) -> &'static Driver {
        self.driver
    }

    /// The kernels of this program on this GPU, compiled by the driver at first use.
    pub(super) fn kernels(&self) -> Result<&Kernels, Failure> {
        self.kernels.get_or_init(|| Kernels::load(self)).as_ref().map_err(Clone::clone)
    }

    /// As [`Driver::check`], naming the GPU.
    pub(crate) fn check(&self, status: Status, what: &str) -> Result<(), Failure> {
        self.driver.check(status, what).map_err(|failure| {
            let cause = format!("GPU {}: {}", self.ordinal, failure.cause);
            Failure { cause, ..failure }
        })
    }

    /// Lets this GPU write to another's memory by itself, where the two can; copies go through the host where not. Whether they can.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn reach(&self, other: &Self) -> Result<bool, Failure> {
        let (Some(can), Some(enable)) = (self.driver.device_can_access_peer, self.driver.context_enable_peer) else {
            return Ok(false);
        };
        let mut possible = 0;
        // SAFETY: `possible` is valid for writes; both ordinals are of devices that are open.
        self.check(unsafe { can(&raw mut possible, self.ordinal, other.ordinal) }, "asking for a way to another GPU")?;
        self.enter()?;
        if possible == 0 {
            return Ok(false);
        }
        // SAFETY: the other's context lives as long as it; flags must be 0.
        match unsafe { enable(other.context, 0) } {
            PEER_ACCESS_ALREADY_ENABLED => Ok(true),
            status => self.check(status, "opening the way to another GPU").map(|()| true),
        }
    }

    /// Free and total memory in bytes.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn memory(&self) -> Result<(u64, u64), Failure> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are valid for writes.
        self.check(unsafe { (self.driver.memory_info)(&raw mut free, &raw mut total) }, "reading free memory")?;
        Ok((free as u64, total as u64))
    }

    /// Makes the GPU see what NICs have written to its memory, where the driver offers that. Where it does not, work
    /// that is started afterwards sees it (CUDA's "GPUDirect RDMA", on synchronisation).
    ///
    /// # Errors
    /// The driver refuses.
    pub fn flush_writes(&self) -> Result<(), Failure> {
        let offered = self.attribute(FLUSH_OPTIONS).is_some_and(|options| options & FLUSH_BY_HOST != 0);
        let Some(flush) = self.driver.flush_writes.filter(|_| offered) else { return Ok(()) };
        self.enter()?;
        // SAFETY: both numbers are of the driver's enumerations; the context is current.
        self.check(unsafe { flush(FLUSH_CURRENT_CONTEXT, FLUSH_TO_OWNER) }, "flushing a NIC's writes")
    }

    /// Its compute capability; `None` where the driver does not tell.
    pub(super) fn capability(&self) -> Option<(u32, u32)> {
        let number = |attribute| self.attribute(attribute).and_then(|value| u32::try_from(value).ok());
        number(CAPABILITY_MAJOR).zip(number(CAPABILITY_MINOR))
    }

    /// An attribute of the device by its number in `cuda.h`; `None` where the driver does not know it.
    pub(super) fn attribute(&self, number: c_int) -> Option<c_int> {
        let mut value = 0;
        // SAFETY: `value` is valid for writes; an unknown attribute is an error and nothing else.
        let status = unsafe { (self.driver.device_get_attribute)(&raw mut value, number, self.ordinal) };
        (status == super::driver::SUCCESS).then_some(value)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: balances the retain of `open`; nothing of this device outlives it, since all hold an Arc of it.
        unsafe { (self.driver.context_release)(self.ordinal) };
    }
}

fn text(of: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status, device: c_int) -> String {
    let mut buffer = [0 as c_char; 128];
    // SAFETY: the buffer is valid for 127 bytes of writes, and its last byte stays 0.
    unsafe {
        match of(buffer.as_mut_ptr(), 127, device) {
            super::driver::SUCCESS => CStr::from_ptr(buffer.as_ptr()).to_string_lossy().into_owned(),
            _ => String::new(),
        }
    }
}
