//! The device list, contexts, and what a device says of itself.

use std::{
    ffi::{c_char, c_int},
    mem,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rdma_sys::*;

use crate::{
    completion, event, fabric, port, post, refused,
    settings::{Settings, settings},
};

/// A device of the list.
#[repr(C)]
pub struct Device {
    device: ibv_device,
    pub number: u8,
}

/// An open device. `verbs.context` is what callers have.
#[repr(C)]
struct Context {
    verbs: verbs_context,
    events: c_int,
}

/// Whether the program called `ibv_fork_init`: forks of programs that did not corrupt registered memory on kernels before 5.12.
static PROTECTED: AtomicBool = AtomicBool::new(false);

pub fn is_protected() -> bool {
    PROTECTED.load(Ordering::Relaxed)
}

struct List(Vec<*mut Device>);

// SAFETY: the devices are made once, live as long as the process, and are only read.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

fn write_text(to: &mut [c_char], text: &str) {
    let room = to.len() - 1;
    for (place, byte) in to.iter_mut().zip(text.bytes().take(room)) {
        *place = byte.cast_signed();
    }
}

/// All devices of this host.
fn devices() -> &'static [*mut Device] {
    static LIST: OnceLock<List> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        let Some(Settings { devices, profile, .. }) = settings() else { return List(Vec::new()) };
        let made = (0..*devices).map(|number| {
            // SAFETY: all zero (no functions, numbers) is a valid value of this structure.
            let mut device: ibv_device = unsafe { mem::zeroed() };
            (device.node_type, device.transport_type) = (profile.node, profile.transport);
            let name = format!("{}{number}", profile.device);
            write_text(&mut device.name, &name);
            write_text(&mut device.dev_name, &format!("uverbs{number}"));
            write_text(&mut device.ibdev_path, &format!("/sys/class/infiniband/{name}"));
            Box::into_raw(Box::new(Device { device, number }))
        });
        List(made.collect())
    });
    &list.0
}

/// Number of a context's device.
///
/// # Safety
/// The context is open.
pub unsafe fn number(context: *mut ibv_context) -> u8 {
    // SAFETY: the caller vouches for it; all devices are ours.
    unsafe { (*(*context).device.cast::<Device>()).number }
}

/// The first device as librdmacm opens it: once, for all its identifiers.
pub fn shared() -> Option<*mut ibv_context> {
    static CONTEXT: OnceLock<usize> = OnceLock::new();
    let device = devices().first()?;
    // SAFETY: the device is of the list, which is never freed.
    let opened = CONTEXT.get_or_init(|| unsafe { ibv_open_device(device.cast()) }.expose_provenance());
    (*opened != 0).then(|| std::ptr::with_exposed_provenance_mut(*opened))
}

exported! {
    fn ibv_fork_init() -> c_int {
        PROTECTED.store(true, Ordering::Relaxed);
        0
    }
    /// All devices, and a null behind them.
    fn ibv_get_device_list(length: *mut c_int) -> *mut *mut ibv_device {
        if settings().is_none() {
            return refused(libc::ENOSYS);
        }
        let devices = devices();
        if !length.is_null() {
            *length = devices.len() as c_int;
        }
        let list = libc::calloc(devices.len() + 1, size_of::<*mut ibv_device>()).cast::<*mut ibv_device>();
        if list.is_null() {
            return refused(libc::ENOMEM);
        }
        for (i, device) in devices.iter().enumerate() {
            *list.add(i) = device.cast();
        }
        list
    }
    fn ibv_free_device_list(list: *mut *mut ibv_device) -> () { libc::free(list.cast()) }
    fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char { (*device).name.as_ptr() }
    fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context {
        if fabric::fabric().is_none() {
            return refused(libc::EIO);
        }
        let Ok((async_fd, events)) = event::pipe() else { return refused(libc::EMFILE) };
        event::listen(events);
        event::note("contexts", c_int::from((*device.cast::<Device>()).number));
        let mut context = Box::new(Context { verbs: mem::zeroed(), events });
        let verbs = &mut context.verbs;
        verbs.sz = size_of::<verbs_context>();
        verbs.query_port = Some(port::query);
        verbs.context.device = device;
        verbs.context.async_fd = async_fd;
        verbs.context.cmd_fd = -1;
        verbs.context.num_comp_vectors = 1;
        // How a context says that it is the end of a verbs_context.
        verbs.context.abi_compat = std::ptr::without_provenance_mut(usize::MAX);
        verbs.context.ops.poll_cq = Some(completion::poll);
        verbs.context.ops.req_notify_cq = Some(completion::arm);
        verbs.context.ops.post_send = Some(post::send);
        verbs.context.ops.post_recv = Some(post::receive);
        &raw mut (*Box::into_raw(context)).verbs.context
    }
    fn ibv_close_device(context: *mut ibv_context) -> c_int {
        let whole = context.wrapping_byte_sub(mem::offset_of!(Context, verbs) + mem::offset_of!(verbs_context, context));
        let whole = Box::from_raw(whole.cast::<Context>());
        event::forget(whole.events);
        libc::close(whole.events);
        libc::close(whole.verbs.context.async_fd);
        0
    }
    fn ibv_query_device(context: *mut ibv_context, into: *mut ibv_device_attr) -> c_int {
        let Some(Settings { profile, host, .. }) = settings() else { return libc::EIO };
        let limits = &profile.limits;
        let found = &mut *into;
        *found = mem::zeroed();
        write_text(&mut found.fw_ver, "28.43.1014");
        found.node_guid = port::guid(*host, number(context)).to_be();
        found.sys_image_guid = found.node_guid;
        (found.vendor_id, found.vendor_part_id) = profile.vendor;
        (found.max_mr_size, found.page_size_cap) = (u64::MAX, 0xffff_ffff_ffff_f000);
        (found.max_qp, found.max_cq, found.max_mr, found.max_pd, found.max_ah) = (1 << 17, 1 << 20, 1 << 20, 1 << 15, 1 << 20);
        found.max_qp_wr = limits.work_requests as c_int;
        (found.max_sge, found.max_sge_rd) = (limits.elements as c_int, limits.elements as c_int);
        found.max_cqe = limits.completions as c_int;
        (found.max_qp_rd_atom, found.max_qp_init_rd_atom) = (c_int::from(limits.reads), c_int::from(limits.reads));
        found.max_res_rd_atom = found.max_qp_rd_atom * found.max_qp;
        found.atomic_cap = limits.atomics;
        found.max_pkeys = profile.pkeys.len() as u16;
        found.phys_port_cnt = 1;
        0
    }
}
