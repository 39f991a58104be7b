//! Address handles.

use std::ffi::c_int;

use rdma_sys::*;

use crate::{port, refused, settings::settings};

/// A handle.
#[repr(C)]
pub struct Address {
    ah: ibv_ah,
    pub path: ibv_ah_attr,
}

/// `Err` unless a path can be taken from this device, as the kernel's `rdma_check_ah_attr` and `rdma_fill_sgid_attr`
/// (core/verbs.c) judge it.
///
/// # Errors
/// An errno.
pub fn check(device: u8, path: &ibv_ah_attr) -> Result<(), c_int> {
    let Some(settings) = settings() else { return Err(libc::EIO) };
    let profile = settings.profile;
    let roce = profile.link_layer == 2;
    let wanted = roce || (profile.grh_required && !settings.hostile.grh_dropped);
    if path.port_num != 1 || (wanted && path.is_global == 0) {
        return Err(libc::EINVAL);
    }
    if path.is_global != 0 && port::gid(device, u32::from(path.grh.sgid_index)).is_none() {
        return Err(libc::EINVAL);
    }
    Ok(())
}

exported! {
    /// Over InfiniBand the mlx5 provider makes handles without the kernel, so nothing but the port is looked at there
    /// (R mlx5/verbs.c mlx5_create_ah).
    fn ibv_create_ah(pd: *mut ibv_pd, path: *mut ibv_ah_attr) -> *mut ibv_ah {
        let path = *path;
        let infiniband = settings().is_some_and(|settings| settings.profile.link_layer != 2);
        let checked = check(crate::device::number((*pd).context), &path);
        match checked {
            Err(errno) if !infiniband || path.port_num != 1 => refused(errno),
            _ => Box::into_raw(Box::new(Address { ah: ibv_ah { context: (*pd).context, pd, handle: 1 }, path })).cast(),
        }
    }
    fn ibv_destroy_ah(ah: *mut ibv_ah) -> c_int {
        drop(Box::from_raw(ah.cast::<Address>()));
        0
    }
}
