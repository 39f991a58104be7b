//! What a port says of itself: state, MTU, GIDs, partition keys.

use std::{ffi::c_int, mem};

use rdma_sys::*;

use crate::{
    device, event,
    hostile::event as kind,
    profile::Gids,
    settings::{Settings, settings},
};

/// Entries of a GID table that are set.
const RAW: [u8; 16] = [0; 16];

/// `IBV_QPF_GRH_REQUIRED`.
const GRH_REQUIRED: u8 = 1;

/// The GUID of a device: a made-up OUI, the host, the device.
pub fn guid(host: u8, device: u8) -> u64 {
    u64::from_be_bytes([0x02, 0xd0, 0x0b, 0x1e, 0, 0, host, device])
}

/// The LID of the device's port; 0 where the link layer has none.
pub fn lid(device: u8) -> u16 {
    let other = if event::changed(kind::LID_CHANGE) { 0x800 } else { 0 };
    let of = |settings: &Settings| 0x100 + u16::from(settings.host) * 16 + u16::from(device) + other;
    settings().filter(|settings| settings.profile.link_layer == 1).map_or(0, of)
}

/// The interface's IPv4 address behind a device.
pub fn address(host: u8, device: u8) -> [u8; 4] {
    [10, 100, device, host]
}

/// A set entry of the GID table, and its `enum ibv_gid_type`.
pub fn gid(device: u8, index: u32) -> Option<([u8; 16], u32)> {
    let Settings { profile, host, .. } = settings()?;
    if index == profile.address_index() && event::changed(kind::GID_CHANGE) {
        return None;
    }
    let mut local = RAW;
    local[..2].copy_from_slice(&[0xfe, 0x80]);
    local[8..].copy_from_slice(&guid(*host, device).to_be_bytes());
    let mut mapped = RAW;
    mapped[10..12].copy_from_slice(&[0xff, 0xff]);
    mapped[12..].copy_from_slice(&address(*host, device));
    let mut hardware = RAW;
    hardware[..6].copy_from_slice(&[0x02, 0xd0, 0x0b, 0x1e, *host, device]);
    match (profile.gids, index) {
        // IBV_GID_TYPE_IB, _ROCE_V1, _ROCE_V2.
        (Gids::Roce, 0) => Some((local, 1)),
        (Gids::Roce, 1) => Some((local, 2)),
        (Gids::Roce, 2) => Some((mapped, 1)),
        (Gids::Roce, 3) => Some((mapped, 2)),
        (Gids::RoceV2, 0) => Some((local, 2)),
        (Gids::RoceV2, 1) => Some((mapped, 2)),
        (Gids::Port, 0) => Some((local, 0)),
        (Gids::Iwarp, 0) => Some((hardware, 0)),
        _ => None,
    }
}

/// The index of a GID that is this device's.
pub fn owns(device: u8, raw: &[u8; 16]) -> bool {
    (0..entries()).any(|index| gid(device, index).is_some_and(|(own, _)| own == *raw))
}

/// Entries of the GID table, set or not.
fn entries() -> u32 {
    match settings().map(|settings| settings.profile.gids) {
        Some(Gids::Roce) => 255,
        Some(Gids::RoceV2) => 32,
        Some(Gids::Port) => 8,
        _ => 1,
    }
}

/// The partition key at an index; `None` outside of the table.
pub fn pkey(index: u16) -> Option<u16> {
    let lost = event::changed(kind::PKEY_CHANGE);
    settings()?.profile.pkeys.get(usize::from(index)).map(|key| if lost { 0 } else { *key })
}

/// The context's own operation, as `ibv_query_port` of the headers calls it.
///
/// # Safety
/// The context is open, and `into` valid for `length` bytes.
pub unsafe extern "C" fn query(
    context: *mut ibv_context,
    number: u8,
    into: *mut ibv_port_attr,
    length: usize,
) -> c_int {
    let Some(Settings { profile, .. }) = settings() else { return libc::EIO };
    if number != 1 {
        return libc::EINVAL;
    }
    // SAFETY: all zero is a valid value of this structure of numbers.
    let mut port: ibv_port_attr = unsafe { mem::zeroed() };
    let down = event::port_down();
    port.state = if down { ibv_port_state::IBV_PORT_DOWN } else { ibv_port_state::IBV_PORT_ACTIVE };
    // LinkUp or Disabled.
    port.phys_state = if down { 3 } else { 5 };
    (port.max_mtu, port.active_mtu) = profile.mtu;
    port.gid_tbl_len = entries() as c_int;
    port.max_msg_sz = profile.limits.message;
    port.pkey_tbl_len = profile.pkeys.len() as u16;
    // SAFETY: the caller's context is open.
    port.lid = lid(unsafe { device::number(context) });
    port.sm_lid = u16::from(profile.link_layer == 1);
    (port.active_speed, port.active_width) = profile.speed;
    port.link_layer = profile.link_layer;
    port.flags = if profile.grh_required { GRH_REQUIRED } else { 0 };
    // SAFETY: `into` has room for so many bytes, and the structure is longer.
    unsafe { into.cast::<u8>().copy_from((&raw const port).cast(), length.min(size_of::<ibv_port_attr>())) };
    0
}

exported! {
    /// The old function: it fills the structure of its days, up to `phys_state` and without the flags behind it.
    fn ibv_query_port(context: *mut ibv_context, number: u8, into: *mut ibv_port_attr) -> c_int {
        query(context, number, into, mem::offset_of!(ibv_port_attr, link_layer))
    }
    fn ibv_query_gid(context: *mut ibv_context, number: u8, index: c_int, into: *mut ibv_gid) -> c_int {
        let inside = number == 1 && u32::try_from(index).is_ok_and(|index| index < entries());
        if !inside {
            refused(libc::EINVAL);
            return -1;
        }
        (*into).raw = gid(device::number(context), index as u32).map_or(RAW, |(raw, _)| raw);
        0
    }
    fn _ibv_query_gid_ex(
        context: *mut ibv_context, number: u32, index: u32, into: *mut ibv_gid_entry, flags: u32, length: usize
    ) -> c_int {
        if number != 1 || index >= entries() || flags != 0 {
            return libc::EINVAL;
        }
        // K core/uverbs_std_types_device.c: an entry that is not set has no data.
        let Some((raw, kind)) = gid(device::number(context), index) else { return libc::ENODATA };
        let entry = ibv_gid_entry { gid: ibv_gid { raw }, gid_index: index, port_num: 1, gid_type: kind, ndev_ifindex: 0 };
        into.cast::<u8>().copy_from((&raw const entry).cast(), length.min(size_of::<ibv_gid_entry>()));
        0
    }
    fn ibv_query_pkey(_context: *mut ibv_context, number: u8, index: c_int, into: *mut u16) -> c_int {
        match u16::try_from(index).ok().and_then(pkey).filter(|_| number == 1) {
            Some(key) => {
                *into = key.to_be();
                0
            }
            None => {
                refused(libc::EINVAL);
                -1
            }
        }
    }
}

fn refused(errno: c_int) {
    crate::refused::<u8>(errno);
}
