//! A device: found by name, opened once, closed when the last object made of it is gone.
//!
//! Each thread of a link has an open device, one context and one protection domain. Links of this process use them one after the other,
//! since opening a device takes milliseconds to seconds and a plan opens thousands of links. Links and threads at once do not share
//! contexts: mlx5 has 16 doorbell registers in each, and further queue pairs take a lock to ring theirs (rdma-core providers/mlx5/mlx5.c).
//! Only those that rdma_cm joins do: librdmacm opens a device once.

use std::{any::Any, collections::HashMap, ffi::CStr, fmt, mem, ptr::NonNull, sync::Arc};

use parking_lot::Mutex;
use railgauge_wire::{Failure, Kind, Stage, remedy};
use rdma_sys::{ibv_pd, *};

use super::{
    Doing, Library, file,
    happened::Happened,
    words::{self},
};
use crate::system::{library::Owned, tree::Tree};

/// What a device speaks (`ibv_device::transport_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Infiniband,
    Iwarp,
    /// A transport of its own without reliable connections: EFA, usNIC.
    Other,
}

impl Speaks {
    const fn of(transport: ibv_transport_type::Type) -> Self {
        match transport {
            ibv_transport_type::IBV_TRANSPORT_IWARP => Self::Iwarp,
            ibv_transport_type::IBV_TRANSPORT_IB | ibv_transport_type::IBV_TRANSPORT_UNKNOWN => Self::Infiniband,
            _ => Self::Other,
        }
    }
}

pub struct Device {
    pub(super) library: &'static Library,
    name: String,
    speaks: Speaks,
    /// Dropped before the owner, who keeps the context.
    happened: Arc<Happened>,
    /// Closes the context when it is dropped.
    _owner: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

struct List {
    library: &'static Library,
    first: NonNull<*mut ibv_device>,
    length: usize,
}

impl List {
    fn new(library: &'static Library) -> Result<Self, Failure> {
        let mut length = 0;
        // SAFETY: `length` is valid for writing; the list is freed exactly once, on drop.
        let first = unsafe { (library.ibv_get_device_list)(&raw mut length) };
        let first = NonNull::new(first).ok_or_else(|| words::last(Stage::Open, Doing::ListDevices, "libibverbs"))?;
        Ok(Self { library, first, length: usize::try_from(length).unwrap_or(0) })
    }

    fn devices(&self) -> impl Iterator<Item = (String, *mut ibv_device)> {
        // SAFETY: the library says that so many entries follow, and they stay until the list is freed.
        let devices = unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.length) };
        devices.iter().map(|device| {
            // SAFETY: every entry points to a device with a NUL-terminated name.
            let name = unsafe { CStr::from_ptr((**device).name.as_ptr()) };
            (name.to_string_lossy().into_owned(), *device)
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub work_requests: u32,
    pub completions: u32,
    /// Reads and atomics outstanding per queue pair, as initiator and as responder.
    pub reads: u8,
    pub ports: u8,
    pub atomics: bool,
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: came from ibv_get_device_list; opened devices survive their list.
        unsafe { (self.library.ibv_free_device_list)(self.first.as_ptr()) };
    }
}

impl Device {
    /// Sorted by name and number: `mlx5_2` before `mlx5_10`.
    pub fn names() -> Result<Vec<String>, Failure> {
        let list = List::new(Library::get()?)?;
        let mut names: Vec<_> = list.devices().map(|(name, _)| name).collect();
        railgauge_wire::natural::sort(&mut names);
        Ok(names)
    }

    pub fn open(name: &str) -> Result<Arc<Self>, Failure> {
        let library = Library::get()?;
        let list = List::new(library)?;
        let Some((_, device)) = list.devices().find(|(known, _)| known == name) else {
            let listed: Vec<_> = list.devices().map(|(name, _)| name).collect();
            return Err(file::unlisted(&Tree::host(), name, &listed));
        };
        // SAFETY: the device is of a list that is not freed yet.
        let (context, transport) = unsafe { ((library.ibv_open_device)(device), (*device).transport_type) };
        // SAFETY: just opened; everything made of it holds an Arc of this device.
        let owner = unsafe { Owned::new(context, library.ibv_close_device) };
        let owner = owner.ok_or_else(|| words::last(Stage::Open, Doing::OpenDevice, name))?;
        // SAFETY: the owner closes the context, and is dropped after this.
        let happened = Arc::new(unsafe { Happened::new(*owner, library) });
        let speaks = Speaks::of(transport);
        Ok(Arc::new(Self { library, name: name.to_owned(), speaks, happened, _owner: Arc::new(owner) }))
    }

    /// A device that `owner` has opened and keeps open for as long as it lives.
    ///
    /// # Safety
    /// The context must be open for as long as `owner` lives.
    pub(super) unsafe fn borrowed(
        context: NonNull<ibv_context>,
        name: &str,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Result<Arc<Self>, Failure> {
        let library = Library::get()?;
        // SAFETY: the caller vouches for the context; its device has a NUL-terminated name.
        let (found, transport) = unsafe {
            let device = (*context.as_ptr()).device;
            (CStr::from_ptr((*device).name.as_ptr()).to_string_lossy().into_owned(), (*device).transport_type)
        };
        if found != name {
            let cause = format!("rdma_cm takes {found} for the address of {name}: two devices share an address");
            return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::ADDRESS_OF_ITS_OWN));
        }
        // SAFETY: as above, and the owner is dropped after this.
        let happened = unsafe { Happened::shared(context, library) };
        Ok(Arc::new(Self { library, name: found, speaks: Speaks::of(transport), happened, _owner: owner }))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn iwarp(&self) -> bool {
        self.speaks == Speaks::Iwarp
    }

    pub(crate) fn speaks(&self) -> Speaks {
        self.speaks
    }

    pub(super) fn context(&self) -> *mut ibv_context {
        self.happened.context.as_ptr()
    }

    pub(super) fn happened(&self) -> &Happened {
        &self.happened
    }

    pub(crate) fn library(&self) -> &'static Library {
        self.library
    }

    pub fn limits(&self) -> Result<Limits, Failure> {
        // SAFETY: all zero is a valid value of this structure of numbers.
        let mut found: ibv_device_attr = unsafe { mem::zeroed() };
        // SAFETY: the context is open and `found` valid for writing.
        match unsafe { (self.library.ibv_query_device)(self.context(), &raw mut found) } {
            0 => Ok(Limits {
                work_requests: u32::try_from(found.max_qp_wr).unwrap_or(0),
                completions: u32::try_from(found.max_cqe).unwrap_or(0),
                reads: found.max_qp_rd_atom.min(found.max_qp_init_rd_atom).clamp(0, 255) as u8,
                ports: found.phys_port_cnt,
                atomics: found.atomic_cap != ibv_atomic_cap::IBV_ATOMIC_NONE,
            }),
            errno => Err(words::verb(Stage::Open, Doing::Query, &self.name, errno)),
        }
    }
}

#[derive(Debug)]
pub struct Domain {
    pub(super) handle: Owned<ibv_pd>,
    device: Arc<Device>,
}

impl Domain {
    pub fn new(device: &Arc<Device>) -> Result<Arc<Self>, Failure> {
        let library = device.library;
        // SAFETY: the context is open.
        let handle = unsafe { Owned::new((library.ibv_alloc_pd)(device.context()), library.ibv_dealloc_pd) };
        let handle = handle.ok_or_else(|| words::last(Stage::Open, Doing::AllocateDomain, device.name()))?;
        Ok(Arc::new(Self { handle, device: Arc::clone(device) }))
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

type Open = HashMap<String, Vec<Arc<Domain>>>;

static OPEN: Mutex<Option<Open>> = Mutex::new(None);

/// A domain of device `name` that no other link or thread has, on a context of its own. Those that are given back are kept.
pub(crate) fn domain(name: &str) -> Result<Arc<Domain>, Failure> {
    let mut open = OPEN.lock();
    let known = open.get_or_insert_default().entry(name.to_owned()).or_default();
    // A device that was reset or unplugged no longer answers: open it again.
    known.retain(|domain| Arc::strong_count(domain) > 1 || domain.device().limits().is_ok());
    if let Some(free) = known.iter().find(|domain| Arc::strong_count(domain) == 1) {
        return Ok(free.clone());
    }
    let domain = Domain::new(&Device::open(name)?)?;
    known.push(domain.clone());
    Ok(domain)
}
