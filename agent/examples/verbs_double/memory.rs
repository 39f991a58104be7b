//! Protection domains, regions, and how bytes get to their place: in order, the last one last, words whole.

use std::{
    collections::{HashMap, HashSet},
    ffi::{c_char, c_int, c_uint, c_void},
    mem, ptr,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
    },
};

use parking_lot::{Mutex, RwLock};
use rdma_sys::*;

use crate::{device, event, fabric, queue_pair, refused, settings::settings};

/// A protection domain.
#[repr(C)]
struct Domain {
    pd: ibv_pd,
    regions: AtomicU32,
}

/// Registered memory. Whoever touches it holds `alive`, so that it is not given back meanwhile.
pub struct Region {
    domain: usize,
    address: u64,
    length: u64,
    access: u32,
    pub alive: RwLock<bool>,
    /// Queue pairs that posted a request with it.
    users: Mutex<HashSet<u32>>,
}

/// Notes that a queue pair posts requests with these elements.
pub fn used(elements: &[ibv_sge], pair: u32) {
    let regions = elements.iter().filter_map(|element| local(element.lkey));
    regions.for_each(|region| _ = region.users.lock().insert(pair));
}

/// A queue pair is gone.
pub fn unused(pair: u32) {
    let regions = REGIONS.lock();
    regions.iter().flat_map(HashMap::values).for_each(|region| _ = region.users.lock().remove(&pair));
}

static REGIONS: Mutex<Option<HashMap<u32, Arc<Region>>>> = Mutex::new(None);

/// Distinguishes local keys from remote ones: each is refused in the other's place.
const REMOTE: u32 = 0x8000_0000;

/// The region of a local key.
pub fn local(key: u32) -> Option<Arc<Region>> {
    if key & REMOTE != 0 { None } else { REGIONS.lock().as_ref()?.get(&key).cloned() }
}

/// The region of a remote key.
pub fn remote(key: u32) -> Option<Arc<Region>> {
    if key & REMOTE == 0 { None } else { REGIONS.lock().as_ref()?.get(&(key & !REMOTE)).cloned() }
}

impl Region {
    /// Whether a queue pair of `domain` may touch `length` bytes at `address` with all of `access`.
    pub fn allows(&self, domain: usize, address: u64, length: u64, access: u32) -> bool {
        let inside =
            address >= self.address && address.checked_add(length).is_some_and(|end| end <= self.address + self.length);
        self.domain == domain && inside && self.access & access == access
    }
}

/// Whether a word may be moved whole.
fn word(address: u64, length: usize) -> bool {
    length == 8 && address.is_multiple_of(8)
}

/// Reads bytes at an address behind `into`.
///
/// # Safety
/// They are registered memory whose region is held alive.
pub unsafe fn take(address: u64, length: usize, into: &mut Vec<u8>) {
    if word(address, length) {
        // SAFETY: aligned, and the caller vouches for the memory.
        let value = unsafe { (*(address as *const AtomicU64)).load(Ordering::Acquire) };
        into.extend_from_slice(&value.to_ne_bytes());
        return;
    }
    let old = into.len();
    into.reserve(length);
    // SAFETY: the caller vouches for the source, and there is room behind the old end.
    unsafe {
        into.as_mut_ptr().add(old).copy_from_nonoverlapping(address as *const u8, length);
        into.set_len(old + length);
    }
}

/// Puts bytes to an address, the last one last.
///
/// # Safety
/// It is registered memory whose region is held alive.
pub unsafe fn place(address: u64, bytes: &[u8]) {
    let Some((last, rest)) = bytes.split_last() else { return };
    if let Some(value) = bytes.as_array::<8>().filter(|_| word(address, bytes.len())) {
        // SAFETY: aligned, and the caller vouches for the memory.
        unsafe { (*(address as *const AtomicU64)).store(u64::from_ne_bytes(*value), Ordering::Release) };
        return;
    }
    // SAFETY: the caller vouches for the memory.
    unsafe { (address as *mut u8).copy_from_nonoverlapping(rest.as_ptr(), rest.len()) };
    fence(Ordering::Release);
    // SAFETY: as above.
    unsafe { place_byte(address + rest.len() as u64, *last) };
}

/// Puts one byte to an address.
///
/// # Safety
/// As [`place`].
pub unsafe fn place_byte(address: u64, byte: u8) {
    // SAFETY: the caller vouches for the memory.
    unsafe { (*(address as *const AtomicU8)).store(byte, Ordering::Release) };
}

/// Changes a word and returns what it was.
///
/// # Safety
/// As [`place`], and it is aligned.
pub unsafe fn change(address: u64, how: impl Fn(u64) -> u64) -> u64 {
    // SAFETY: the caller vouches for the memory.
    let word = unsafe { &*(address as *const AtomicU64) };
    let mut was = word.load(Ordering::Acquire);
    while let Err(now) = word.compare_exchange_weak(was, how(was), Ordering::AcqRel, Ordering::Acquire) {
        was = now;
    }
    was
}

/// Whether this process has memory there. The kernel pins it; an address of nobody is EFAULT.
fn mapped(address: u64, length: usize) -> bool {
    let page = 4096;
    let first = address & !(page - 1);
    let pages = (address + length as u64 - first).div_ceil(page);
    let mut present = vec![0u8; pages as usize];
    // SAFETY: one byte per page is there to be written; the kernel checks the range.
    unsafe { libc::mincore(first as *mut c_void, (pages * page) as usize, present.as_mut_ptr()) == 0 }
}

/// Flags that old kernels do not know and `IBV_ACCESS_OPTIONAL_RANGE` of <infiniband/verbs.h> lets them ignore.
const OPTIONAL: u32 = 0x3ff0_0000;

fn register(pd: *mut ibv_pd, address: *mut c_void, length: usize, access: u32) -> *mut ibv_mr {
    let needs_local = (ibv_access_flags::IBV_ACCESS_REMOTE_WRITE | ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC).0;
    // K include/rdma/ib_verbs.h ib_check_mr_access.
    if access & needs_local != 0 && access & ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0 == 0 {
        return refused(libc::EINVAL);
    }
    if length == 0 {
        return refused(libc::EINVAL);
    }
    if !device::is_protected() {
        event::misused("memory is registered without ibv_fork_init");
        return refused(libc::EINVAL);
    }
    if !mapped(address.addr() as u64, length) {
        return refused(libc::EFAULT);
    }
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let process = fabric::fabric().map_or(0, |fabric| fabric.process);
    // No two processes have a key in common, so that a key that went astray is noticed.
    let key = (process % 0x400) << 20 | (NEXT.fetch_add(1, Ordering::Relaxed) * 2 + 1) & 0xf_ffff;
    let region = Region {
        domain: pd.addr(),
        address: address.addr() as u64,
        length: length as u64,
        access,
        alive: RwLock::new(true),
        users: Mutex::default(),
    };
    REGIONS.lock().get_or_insert_default().insert(key, Arc::new(region));
    // SAFETY: the domain is one of ours and alive.
    let context = unsafe {
        (*pd.cast::<Domain>()).regions.fetch_add(1, Ordering::Relaxed);
        (*pd).context
    };
    Box::into_raw(Box::new(ibv_mr { context, pd, addr: address, length, handle: key, lkey: key, rkey: key | REMOTE }))
}

exported! {
    fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
        let mut pd: ibv_pd = mem::zeroed();
        pd.context = context;
        Box::into_raw(Box::new(Domain { pd, regions: AtomicU32::new(0) })).cast()
    }
    /// Refused while there are regions in it.
    fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int {
        if (*pd.cast::<Domain>()).regions.load(Ordering::Relaxed) != 0 {
            event::misused("a domain with regions is freed");
            return libc::EBUSY;
        }
        drop(Box::from_raw(pd.cast::<Domain>()));
        0
    }
    /// The exported function knows no optional flags; the macro of the headers calls the next one for them.
    fn ibv_reg_mr(pd: *mut ibv_pd, address: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr {
        match access.cast_unsigned() {
            access if access & OPTIONAL != 0 => refused(libc::EINVAL),
            access => register(pd, address, length, access),
        }
    }
    fn ibv_reg_mr_iova2(pd: *mut ibv_pd, address: *mut c_void, length: usize, iova: u64, access: c_uint) -> *mut ibv_mr {
        if iova != address.addr() as u64 { refused(libc::EOPNOTSUPP) } else { register(pd, address, length, access) }
    }
    /// Takes what exporters of host memory say their dma-buf is: the memory at `iova`.
    fn ibv_reg_dmabuf_mr(pd: *mut ibv_pd, _offset: u64, length: usize, iova: u64, fd: c_int, access: c_int) -> *mut ibv_mr {
        if !settings().is_some_and(|settings| settings.profile.dma_buf) {
            return refused(libc::EOPNOTSUPP);
        }
        if libc::fcntl(fd, libc::F_GETFD) < 0 {
            return refused(libc::EBADF);
        }
        register(pd, ptr::with_exposed_provenance_mut(iova as usize), length, access.cast_unsigned())
    }
    fn mlx5dv_is_supported(_device: *mut ibv_device) -> bool {
        queue_pair::is_mlx5()
    }
    /// R mlx5/verbs.c mlx5_get_data_direct_sysfs_path: ENODEV where the device has no second function.
    fn mlx5dv_get_data_direct_sysfs_path(_context: *mut ibv_context, into: *mut c_char, room: usize) -> c_int {
        if !queue_pair::is_mlx5() {
            return libc::EOPNOTSUPP;
        }
        if !settings().is_some_and(|settings| settings.profile.data_direct) {
            return libc::ENODEV;
        }
        let path = c"/sys/devices/pci0000:15/0000:15:01.1/0000:1a:00.0".to_bytes_with_nul();
        if room < path.len() {
            return libc::ENOSPC;
        }
        into.copy_from_nonoverlapping(path.as_ptr().cast(), path.len());
        0
    }
    /// K mlx5/mr.c reg_user_mr_dmabuf_by_data_direct: EINVAL for a device without a second function.
    fn mlx5dv_reg_dmabuf_mr(
        pd: *mut ibv_pd, offset: u64, length: usize, iova: u64, fd: c_int, access: c_int, of_mlx5: c_int
    ) -> *mut ibv_mr {
        let by_second = of_mlx5 & 1 != 0;
        if !queue_pair::is_mlx5() || by_second && !settings().is_some_and(|settings| settings.profile.data_direct) {
            return refused(libc::EINVAL);
        }
        event::note("data-direct", c_int::from(by_second));
        ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access)
    }
    fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int {
        let region = REGIONS.lock().as_mut().and_then(|regions| regions.remove(&(*mr).lkey));
        let Some(region) = region else { return libc::EINVAL };
        if !region.users.lock().is_empty() {
            event::misused("memory is given back before the queue pairs that use it");
        }
        *region.alive.write() = false;
        (*(*mr).pd.cast::<Domain>()).regions.fetch_sub(1, Ordering::Relaxed);
        drop(Box::from_raw(mr));
        0
    }
}
