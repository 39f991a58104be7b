//! A memory region: bytes a device may read and write, with the keys that allow it.
//!
//! mlx5 puts small messages into the completion and copies them into place with the CPU, which cannot reach GPU memory. It reads the
//! environment when a queue pair or a completion queue is made (rdma-core providers/mlx5/verbs.c, `use_scatter_to_cqe`); perftest sets
//! the variable for the whole process. Here it is off only while the queues of GPU links are made.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use parking_lot::{Mutex, MutexGuard};
use railgauge_wire::{Failure, Kind, Stage, remedy};
use rdma_sys::{ibv_access_flags, ibv_mr};

use super::{
    Doing, Domain,
    library::Mlx5,
    words::{self},
};
use crate::{memory::backing::Backing, system::library::Owned};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    pub atomics: bool,
    /// PCIe relaxed ordering: writes may become visible in any order until the completion.
    pub relaxed_ordering: bool,
    /// Of a dma-buf: by the device's second PCI function.
    pub data_direct: bool,
}

/// `None` for devices of other providers.
fn mlx5_of(domain: &Domain) -> Option<&'static Mlx5> {
    // SAFETY: the context is open, and its device lives as long.
    Mlx5::get().filter(|mlx5| unsafe { (mlx5.mlx5dv_is_supported)((*domain.device().context()).device) })
}

/// `MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT`.
const DATA_DIRECT: i32 = 1;

#[derive(Debug)]
pub struct Region {
    handle: Owned<ibv_mr>,
    _domain: Arc<Domain>,
    backing: Arc<dyn Backing>,
}

impl Region {
    /// Registers all of `backing` for local writes, remote writes and remote reads, plus `access`.
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
        // Only the newer entry point accepts optional flags; C does this in a macro named ibv_reg_mr.
        let optional = if access.relaxed_ordering { ibv_access_flags::IBV_ACCESS_RELAXED_ORDERING.0 } else { 0 };
        let handle = if let (Some(fd), Some(mlx5)) = (backing.dma_buf(), mlx5_of(domain).filter(|_| access.data_direct))
        {
            let flags = (flags.0 | optional).cast_signed();
            // SAFETY: the domain is alive and mlx5's, and `Backing` vouches for descriptor and range.
            unsafe { (mlx5.mlx5dv_reg_dmabuf_mr)(pd, 0, length, address, fd, flags, DATA_DIRECT) }
        } else if let Some(fd) = backing.dma_buf() {
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
        // SAFETY: the registration is new; the backing lives as long as it.
        let handle = unsafe { Owned::new(handle, library.ibv_dereg_mr) }.ok_or_else(|| {
            let failure = words::last(Stage::Open, Doing::Register, domain.device().name());
            Failure { cause: format!("{} ({length} bytes)", failure.cause), ..failure }
        })?;
        Ok(Self { handle, _domain: Arc::clone(domain), backing })
    }

    /// Whether the device takes dma-bufs, tested as by NCCL with an invalid descriptor: drivers with dma-bufs refuse the descriptor
    /// (`EBADF`), others the operation.
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
        let made = unsafe { Owned::new(register(domain.handle.as_ptr(), 0, 0, 0, -1, 0), library.ibv_dereg_mr) };
        let error = std::io::Error::last_os_error();
        match error.raw_os_error().filter(|_| made.is_none()) {
            Some(libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::ENOSYS) => {
                Err(refused(format!("its driver registers none ({error})")))
            }
            _ => Ok(()),
        }
    }

    /// Whether the device has a second PCI function by which it reaches memory of GPUs (kernel
    /// drivers/infiniband/hw/mlx5/data_direct.c). NCCL takes it by default (transport/net_ib/init.cc, `NCCL_IB_DATA_DIRECT`).
    pub(crate) fn has_data_direct(domain: &Domain) -> bool {
        let mut path = [0; libc::PATH_MAX as usize];
        mlx5_of(domain).is_some_and(|mlx5| {
            let context = domain.device().context();
            // SAFETY: the context is open and mlx5's; there is room for the path.
            unsafe { (mlx5.mlx5dv_get_data_direct_sysfs_path)(context, path.as_mut_ptr(), path.len()) == 0 }
        })
    }

    pub fn backing(&self) -> &dyn Backing {
        &*self.backing
    }

    pub fn address(&self) -> u64 {
        self.backing.address()
    }

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

/// Variable that mlx5 reads.
const NAME: &str = "MLX5_SCATTER_TO_CQE";

/// The environment's own entry: libc keeps the pointer (putenv(3)), so the value can change without moving anything another thread may be
/// reading.
static ENTRY: [AtomicU8; 22] = entry();

const VALUE: usize = NAME.len() + 1;

static IS_OURS: AtomicBool = AtomicBool::new(false);

/// One thread makes queues at a time, each with its own value.
static MAKING: Mutex<()> = Mutex::new(());

const fn entry() -> [AtomicU8; 22] {
    let mut entry = [const { AtomicU8::new(0) }; 22];
    let name = NAME.as_bytes();
    let mut at = 0;
    while at < name.len() {
        entry[at] = AtomicU8::new(name[at]);
        at += 1;
    }
    entry[name.len()] = AtomicU8::new(b'=');
    entry[name.len() + 1] = AtomicU8::new(b'1');
    entry
}

/// Has libibverbs look for huge pages, which are protected from forks whole (`ibv_fork_init(3)`).
const HUGE_PAGES: &str = "RDMAV_HUGEPAGES_SAFE";

/// Puts both variables into the environment, this module's with its default value. Keeps a value set by a user. Does nothing once there are
/// other threads, which may be reading the environment.
pub(crate) fn prepare() {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads == 1 {
        // SAFETY: this thread is the only one.
        unsafe { put() };
    }
}

/// # Safety
/// No other thread uses the environment.
unsafe fn put() {
    if std::env::var_os(NAME).is_none() {
        // SAFETY: the entry is a string that ends in a zero and lives for ever, and is never anything else; no other
        // thread reads the environment, as the caller vouches.
        let refused = unsafe { libc::putenv(ENTRY.as_ptr().cast_mut().cast()) };
        IS_OURS.store(refused == 0, Ordering::Release);
    }
    // SAFETY: the caller's promise.
    unsafe { std::env::set_var(HUGE_PAGES, "1") };
}

/// Whether queues can be made without scattering.
pub(crate) fn can_be_off() -> bool {
    IS_OURS.load(Ordering::Acquire) || std::env::var_os(NAME).is_some_and(|value| value == "0")
}

pub(crate) struct Making(#[expect(dead_code, reason = "held, never looked at")] MutexGuard<'static, ()>);

/// Waits for other threads; from here on mlx5 scatters to completions unless `off`.
pub(crate) fn making(off: bool) -> Making {
    let held = Making(MAKING.lock());
    ENTRY[VALUE].store(if off { b'0' } else { b'1' }, Ordering::Release);
    held
}

impl Drop for Making {
    fn drop(&mut self) {
        ENTRY[VALUE].store(b'1', Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattering_is_off_while_queues_for_gpu_memory_are_made_and_on_for_others() {
        // SAFETY: no other thread of this program uses the environment.
        unsafe { put() };
        assert!(can_be_off());
        let value = || std::env::var(NAME).unwrap();
        let off = making(true);
        assert_eq!(value(), "0");
        drop(off);
        let on = making(false);
        assert_eq!(value(), "1");
        drop(on);
        assert_eq!(value(), "1");
        std::thread::scope(|scope| {
            for off in [true, false, true, false] {
                scope.spawn(move || {
                    for _ in 0..1000 {
                        let _making = making(off);
                        assert_eq!(value(), if off { "0" } else { "1" });
                    }
                });
            }
        });
    }
}
