//! One GPU, with its primary context kept while in use.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_int},
    sync::{Arc, OnceLock},
};

use railgauge_wire::{Failure, Kind, LinkLayer, Stage, gather::named, remedy};

use super::{
    Handle, SUCCESS, Status, Vendor,
    driver::{Driver, driver},
};
use crate::system::log;

/// `CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS`.
const FLUSH_OPTIONS: c_int = 117;
/// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST`.
const FLUSH_BY_HOST: c_int = 1;
/// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX`.
const FLUSH_CURRENT_CONTEXT: c_int = 0;
/// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER`.
const FLUSH_TO_OWNER: c_int = 100;

/// `HSA_AMD_LINK_INFO_TYPE_PCIE` and `HSA_AMD_LINK_INFO_TYPE_XGMI` of `hsa_ext_amd.h`, as HIP reports them.
const LINK_PCIE: u32 = 2;
const LINK_XGMI: u32 = 4;

/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`, `hipErrorPeerAccessAlreadyEnabled`.
const PEER_ACCESS_ALREADY_ENABLED: Status = 704;

/// A GPU whose primary context is held. Cheap to share.
pub struct Device {
    driver: &'static Driver,
    pub(crate) ordinal: c_int,
    context: Handle,
    name: String,
    pci: String,
    pub(super) kernels: OnceLock<Result<Kernels, Failure>>,
}

/// Functions of this program's module, which is loaded as long as the context.
pub(super) struct Kernels {
    pub(super) write_pattern: Handle,
    pub(super) check_pattern: Handle,
    pub(super) write_values: Handle,
    pub(super) check_values: Handle,
    pub(super) write_outer: Handle,
    pub(super) check_outer: Handle,
}

// SAFETY: contexts may be used from any thread once made current there, which every call below does; the handles are
// only numbers to this process.
unsafe impl Send for Device {}
// SAFETY: as above: the driver API is thread-safe.
unsafe impl Sync for Device {}

/// PCI addresses of the GPUs that CUDA or HIP sees, in the order of its numbers; empty without a driver.
pub(crate) fn visible() -> Result<Vec<String>, Failure> {
    let driver = match driver() {
        Ok(driver) => driver,
        Err(failure) if failure.kind == Kind::Unsupported => return Ok(Vec::new()),
        Err(failure) => return Err(failure),
    };
    let count = driver.count()?;
    let one = |ordinal| {
        let mut device = 0;
        // SAFETY: `device` is valid for writes and `ordinal` is in range.
        driver.check(unsafe { (driver.device_get)(&raw mut device, ordinal) }, &format!("asking for GPU {ordinal}"))?;
        Ok(text(driver.device_get_pci_bus_id, device).to_ascii_lowercase())
    };
    (0..count).map(one).collect()
}

pub(crate) fn at(pci: &str) -> Result<Arc<Device>, Failure> {
    // Fails without a driver.
    let visible = visible()?;
    let number = visible.iter().position(|known| known == pci).and_then(|number| u32::try_from(number).ok());
    let Some(number) = number else {
        if visible.is_empty() {
            return Device::open(0);
        }
        let runtime = driver()?.vendor.runtime();
        let cause = format!("the GPU at {pci} is not one of those that {runtime} sees: {}", visible.join(", "));
        return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::NAME_OTHER_GPUS));
    };
    Device::open(number)
}

impl Device {
    /// Opens GPU `index`, counted from 0.
    pub fn open(index: u32) -> Result<Arc<Self>, Failure> {
        let driver = driver()?;
        let count = driver.count()?;
        let ordinal = c_int::try_from(index).unwrap_or(c_int::MAX);
        if ordinal >= count {
            let cause = match count {
                0 => format!("this host has no GPU that {} sees", driver.vendor.runtime()),
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

    /// Makes the context current on the calling thread, which the calls below require.
    pub fn enter(&self) -> Result<(), Failure> {
        // SAFETY: the context is held until `self` is dropped.
        self.check(unsafe { (self.driver.context_set_current)(self.context) }, "entering the context")
    }

    pub fn index(&self) -> u32 {
        self.ordinal.cast_unsigned()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// PCI address as the driver spells it, in lower case.
    pub fn pci(&self) -> &str {
        &self.pci
    }

    pub fn record(&self) -> BTreeMap<String, String> {
        named(vec![("gpu", self.index().to_string()), ("gpu_name", self.name.clone()), ("gpu_pci", self.pci.clone())])
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub(crate) fn vendor(&self) -> Vendor {
        self.driver.vendor
    }

    /// As [`Driver::check`], naming the GPU.
    pub(crate) fn check(&self, status: Status, what: &str) -> Result<(), Failure> {
        self.driver.check(status, what).map_err(|failure| failure.about(format_args!("GPU {}", self.ordinal)))
    }

    /// Ends a handle with the context current. Destructors can only log what the driver says.
    pub(super) fn end(&self, what: &str, end: impl FnOnce() -> Status) {
        if let Err(failure) = self.enter().and_then(|()| self.check(end(), what)) {
            log!("{failure}");
        }
    }

    /// Lets this GPU write to another's memory by itself if the two can, and returns whether; otherwise copies pass through the host.
    pub fn reach(&self, other: &Self) -> Result<bool, Failure> {
        let Some(can) = self.driver.device_can_access_peer else { return Ok(false) };
        let mut possible = 0;
        // SAFETY: `possible` is valid for writes; both ordinals are of devices that are open.
        self.check(unsafe { can(&raw mut possible, self.ordinal, other.ordinal) }, "asking for a way to another GPU")?;
        self.enter()?;
        if possible == 0 {
            return Ok(false);
        }
        let status = match (self.driver.context_enable_peer, self.driver.device_enable_peer) {
            // SAFETY: the other's context lives as long as it; flags must be 0.
            (Some(enable), _) => unsafe { enable(other.context, 0) },
            // SAFETY: the other is open, and this one current; flags must be 0.
            (None, Some(enable)) => unsafe { enable(other.ordinal, 0) },
            (None, None) => return Ok(false),
        };
        match status {
            PEER_ACCESS_ALREADY_ENABLED => Ok(true),
            status => self.check(status, "opening the way to another GPU").map(|()| true),
        }
    }

    /// The link between this GPU and another; only HIP reports it.
    pub(crate) fn link_to(&self, other: c_int) -> Option<LinkLayer> {
        let tell = self.driver.device_link?;
        let (mut kind, mut hops) = (u32::MAX, 0);
        // SAFETY: both places are valid for writes; a number that is no device is an error and nothing else.
        let status = unsafe { tell(self.ordinal, other, &raw mut kind, &raw mut hops) };
        match kind {
            LINK_XGMI if status == SUCCESS => Some(LinkLayer::Xgmi),
            LINK_PCIE if status == SUCCESS => Some(LinkLayer::Pcie),
            _ => None,
        }
    }

    /// The link between this GPU and all others that the driver sees; `None` where it differs or is unknown.
    pub(crate) fn links(&self) -> Option<LinkLayer> {
        let others = (0..self.driver.count().ok()?).filter(|other| *other != self.ordinal);
        let links: Vec<Option<LinkLayer>> = others.map(|other| self.link_to(other)).collect();
        let first = *links.first()?;
        first.filter(|_| links.iter().all(|link| *link == first))
    }

    /// Free and total memory in bytes.
    pub fn memory(&self) -> Result<(u64, u64), Failure> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are valid for writes.
        self.check(unsafe { (self.driver.memory_info)(&raw mut free, &raw mut total) }, "reading free memory")?;
        Ok((free as u64, total as u64))
    }

    /// Makes the GPU see what NICs have written to its memory, where the driver offers that. Otherwise work started afterwards sees it
    /// (CUDA's "GPUDirect RDMA", on synchronisation).
    pub fn flush_writes(&self) -> Result<(), Failure> {
        // The attribute's number is CUDA's, as the function is.
        let offers = || self.attribute(FLUSH_OPTIONS).is_some_and(|options| options & FLUSH_BY_HOST != 0);
        let Some(flush) = self.driver.flush_writes.filter(|_| offers()) else { return Ok(()) };
        self.enter()?;
        // SAFETY: both numbers are of the driver's enumerations; the context is current.
        self.check(unsafe { flush(FLUSH_CURRENT_CONTEXT, FLUSH_TO_OWNER) }, "flushing a NIC's writes")
    }

    /// Its compute capability, or the first digits of its gfx number ([`Vendor::generation`]).
    pub(super) fn generation(&self) -> Option<(u32, u32)> {
        let [major, minor] = self.vendor().generation().map(|attribute| u32::try_from(self.attribute(attribute)?).ok());
        major.zip(minor)
    }

    /// An attribute of the device by its number in the driver's header; `None` where the driver does not know it.
    pub(super) fn attribute(&self, number: c_int) -> Option<c_int> {
        let mut value = 0;
        // SAFETY: `value` is valid for writes; an unknown attribute is an error and nothing else.
        let status = unsafe { (self.driver.device_get_attribute)(&raw mut value, number, self.ordinal) };
        (status == SUCCESS).then_some(value)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: balances the retain of `open`; nothing of this device outlives it, since all hold an Arc of it.
        let status = unsafe { (self.driver.context_release)(self.ordinal) };
        if let Err(failure) = self.check(status, "releasing the context") {
            log!("{failure}");
        }
    }
}

fn text(of: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status, device: c_int) -> String {
    let mut buffer = [0 as c_char; 128];
    // SAFETY: the buffer is valid for 127 bytes of writes, and its last byte stays 0.
    unsafe {
        match of(buffer.as_mut_ptr(), 127, device) {
            SUCCESS => CStr::from_ptr(buffer.as_ptr()).to_string_lossy().into_owned(),
            _ => String::new(),
        }
    }
}
