use std::mem;

use railgauge_wire::{Failure, Kind, Stage, remedy};
use rdma_sys::*;

use super::{
    Device, Doing, Gid, Pkey,
    gid::GidKind,
    words::{self},
};
use crate::fault;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    pub number: u8,
    pub state: ibv_port_state::Type,
    pub ethernet: bool,
    pub mtu: u32,
    /// Local identifier; 0 on Ethernet.
    pub lid: u16,
    pub gid_count: u32,
    pub pkey_count: u16,
    /// Whether every packet must carry a global route header (`IBV_QPF_GRH_REQUIRED`): virtualised ports share a LID.
    pub grh_required: bool,
    /// Longest message in bytes; 0 where the port does not say.
    pub longest_message: u64,
}

/// Value of `ibv_port_attr::link_layer` for Ethernet (`IBV_LINK_LAYER_ETHERNET`).
const ETHERNET: u8 = 2;

/// `IBV_QPF_GRH_REQUIRED` of `ibv_port_attr::flags`.
const GRH_REQUIRED: u8 = 1;

/// Bytes of an `enum ibv_mtu`.
pub(crate) const fn mtu_bytes(mtu: ibv_mtu::Type) -> u32 {
    128 << mtu
}

/// The largest MTU within `bytes`.
pub(crate) fn mtu_code(bytes: u32) -> Option<ibv_mtu::Type> {
    (ibv_mtu::IBV_MTU_256..=ibv_mtu::IBV_MTU_4096).rev().find(|code| mtu_bytes(*code) <= bytes)
}

/// The extended context around `context`, if it has the operation at `offset`.
///
/// A `struct verbs_context` ends in its `struct ibv_context` and marks it by `abi_compat`, which is all ones; new operations are added at
/// its front, so `sz` shows which exist. (rdma-sys' own version of this compares with a 32-bit value and finds nothing on 64-bit
/// machines.)
///
/// # Safety
/// `context` came from `ibv_open_device` and is open.
unsafe fn extended(context: *mut ibv_context, offset: usize) -> Option<*mut verbs_context> {
    // SAFETY: the caller vouches for the context.
    if unsafe { (*context).abi_compat } as usize != usize::MAX {
        return None;
    }
    let around = context.wrapping_byte_sub(mem::offset_of!(verbs_context, context)).cast::<verbs_context>();
    // SAFETY: `abi_compat` shows that the context is the last member of a verbs_context; `sz` is right before it in every version of that
    // structure.
    let size = unsafe { (&raw const (*around).sz).read() };
    (size >= size_of::<verbs_context>() - offset).then_some(around)
}

impl Port {
    pub(crate) fn query(device: &Device, number: u8) -> Result<Self, Failure> {
        // SAFETY: all zero is a valid value of this structure of numbers.
        let mut attributes: ibv_port_attr = unsafe { mem::zeroed() };
        let (context, into) = (device.context(), &raw mut attributes);
        // SAFETY: the context is open.
        let around = unsafe { extended(context, mem::offset_of!(verbs_context, query_port)) };
        // SAFETY: `extended` vouches that the operation's slot exists.
        let errno = match around.and_then(|around| unsafe { (*around).query_port }) {
            // SAFETY: `into` is valid for writing that many bytes.
            Some(query) => unsafe { query(context, number, into, size_of::<ibv_port_attr>()) },
            // SAFETY: the old function writes fewer bytes than the structure has; the rest stays zero.
            None => unsafe { (device.library.ibv_query_port)(context, number, into) },
        };
        if errno != 0 {
            let failure = words::verb(Stage::Open, Doing::Query, &format!("{}:{number}", device.name()), errno);
            return Err(failure.remedy(remedy::CHECK_PORT_NUMBER));
        }
        Ok(Self {
            number,
            state: attributes.state,
            ethernet: attributes.link_layer == ETHERNET,
            mtu: mtu_bytes(attributes.active_mtu),
            lid: attributes.lid,
            gid_count: u32::try_from(attributes.gid_tbl_len).unwrap_or(0),
            pkey_count: attributes.pkey_tbl_len,
            grh_required: attributes.flags & GRH_REQUIRED != 0,
            longest_message: u64::from(attributes.max_msg_sz),
        })
    }

    pub(crate) fn active(&self) -> bool {
        self.state == ibv_port_state::IBV_PORT_ACTIVE
    }

    pub(crate) fn must_be_active(&self, device: &str) -> Result<(), Failure> {
        if self.active() {
            return Ok(());
        }
        let (state, remedy) = match self.state {
            ibv_port_state::IBV_PORT_DOWN if self.ethernet => ("down", remedy::PORT_UP),
            ibv_port_state::IBV_PORT_DOWN => ("down", remedy::PORT_DOWN_INFINIBAND),
            ibv_port_state::IBV_PORT_INIT => ("initialising: no subnet manager has seen it", remedy::SUBNET_MANAGER),
            ibv_port_state::IBV_PORT_ARMED => {
                ("armed: the subnet manager has not activated it yet", remedy::SUBNET_MANAGER)
            }
            _ => ("not active", remedy::LOOK_AT_PORT),
        };
        let cause = format!("{device}:{}: the port is {state}", self.number);
        Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy))
    }

    pub(crate) fn pkeys(&self, device: &Device) -> Result<Vec<Pkey>, Failure> {
        let mut found = Vec::new();
        let mut refused = None;
        for index in 0..self.pkey_count {
            let mut key = 0_u16;
            let query = device.library.ibv_query_pkey;
            // SAFETY: the context is open and `key` valid for writing.
            match unsafe { query(device.context(), self.number, i32::from(index), &raw mut key) } {
                0 => found.push(Pkey { index, value: u16::from_be(key) }),
                _ => refused = std::io::Error::last_os_error().raw_os_error(),
            }
        }
        match refused {
            Some(errno) if found.is_empty() => Err(words::verb(Stage::Open, Doing::Query, device.name(), errno)),
            _ => Ok(found),
        }
    }

    pub(crate) fn must_take(&self, device: &str, size: u64) -> Result<(), Failure> {
        if self.longest_message == 0 || size <= self.longest_message {
            return Ok(());
        }
        let (number, most) = (self.number, self.longest_message);
        let cause =
            format!("{device}:{number}: a message of {size} bytes is over the {most} bytes that the port takes");
        Err(Failure::new(Stage::Open, Kind::Unsupported, cause)
            .remedy(remedy::FIT_LONGEST_MESSAGE.with([("most", most.to_string())])))
    }

    /// Set entries only, in the order of their indexes.
    pub(crate) fn gids(&self, device: &Device) -> Result<Vec<Gid>, Failure> {
        let mut found = Vec::new();
        let mut refused = None;
        for index in 0..self.gid_count.min(256) {
            match self.gid(device, index) {
                Ok(Some(gid)) => found.push(gid),
                Ok(None) => {}
                Err(errno) => refused = Some(errno),
            }
        }
        match refused {
            Some(errno) if found.is_empty() => Err(words::verb(Stage::Open, Doing::Query, device.name(), errno)),
            _ => Ok(found),
        }
    }

    /// With its kind from the kernel if library and kernel are new enough, else from sysfs.
    fn gid(&self, device: &Device, index: u32) -> Result<Option<Gid>, i32> {
        let context = device.context();
        let set = |raw: [u8; 16]| raw != [0; 16];
        if let Some(query) = device.library._ibv_query_gid_ex {
            // SAFETY: all zero is a valid value of this structure of numbers.
            let mut entry: ibv_gid_entry = unsafe { mem::zeroed() };
            let size = size_of::<ibv_gid_entry>();
            // SAFETY: the context is open and `entry` valid for writing that many bytes.
            if unsafe { query(context, u32::from(self.number), index, &raw mut entry, 0, size) } == 0 {
                // SAFETY: both members of the union are the same 16 bytes.
                let raw = unsafe { entry.gid.raw };
                let kind = if fault::roce_v1() { GidKind::IbOrRoceV1 } else { GidKind::from_code(entry.gid_type) };
                return Ok(set(raw).then_some(Gid { index: index as u8, raw, kind }));
            }
        }
        let mut gid = ibv_gid { raw: [0; 16] };
        let query = device.library.ibv_query_gid;
        // SAFETY: the context is open and `gid` valid for writing.
        match unsafe { query(context, self.number, index.cast_signed(), &raw mut gid) } {
            0 => {
                // SAFETY: as above.
                let raw = unsafe { gid.raw };
                let kind = GidKind::from_sysfs(device.name(), self.number, index);
                Ok(set(raw).then_some(Gid { index: index as u8, raw, kind }))
            }
            _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mtu_codes_and_bytes_agree() {
        assert_eq!(mtu_bytes(ibv_mtu::IBV_MTU_256), 256);
        assert_eq!(mtu_bytes(ibv_mtu::IBV_MTU_4096), 4096);
        assert_eq!(mtu_code(1500), Some(ibv_mtu::IBV_MTU_1024));
        assert_eq!(mtu_code(9000), Some(ibv_mtu::IBV_MTU_4096));
        assert_eq!(mtu_code(255), None);
    }

    fn port(state: ibv_port_state::Type) -> Port {
        Port {
            number: 2,
            state,
            ethernet: true,
            mtu: 1024,
            lid: 0,
            gid_count: 2,
            pkey_count: 1,
            grh_required: false,
            longest_message: 1 << 30,
        }
    }

    #[test]
    fn a_message_over_the_ports_longest_is_refused_with_both_figures() {
        let port = port(ibv_port_state::IBV_PORT_ACTIVE);
        assert!(port.must_take("mlx5_0", 1 << 30).is_ok());
        let failure = port.must_take("mlx5_0", (1 << 30) + 1).unwrap_err();
        assert_eq!(failure.kind, Kind::Unsupported);
        assert!(failure.cause.contains("1073741825") && failure.cause.contains("1073741824"), "{failure}");
        let mute = Port { longest_message: 0, ..port };
        assert!(mute.must_take("old0", 1 << 40).is_ok(), "a port that says nothing refuses nothing");
    }

    #[test]
    fn a_port_that_is_down_says_what_brings_it_up() {
        let port = port(ibv_port_state::IBV_PORT_DOWN);
        let failure = port.must_be_active("rxe0").unwrap_err();
        assert!(failure.cause.contains("rxe0:2"), "{failure}");
        assert!(failure.remedy.unwrap().commands()[0].command.starts_with("ip link set "));
    }
}
