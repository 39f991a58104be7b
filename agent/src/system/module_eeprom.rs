//! Memory of the module in a network port (its optics or cable): what `ethtool -m` prints.
//!
//! Linux 5.13 and later are asked over netlink (`ETHTOOL_MSG_MODULE_EEPROM_GET`, Documentation/networking/ethtool-netlink.rst), page by
//! page. This also reaches modules with CMIS, for which drivers such as mlx5 offer nothing else. Older kernels are asked over
//! `SIOCETHTOOL`, where a module's pages lie one behind the other. Both take CAP_NET_ADMIN.

use std::io;

use super::{
    ethtool,
    netlink::{ask_generic, attribute, find},
};

/// `GENL_ID_CTRL`: the family that knows the numbers of the others.
const CONTROL: u16 = 16;
/// `CTRL_CMD_GETFAMILY`, version 2.
const GET_FAMILY: [u8; 4] = [3, 2, 0, 0];
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// `ETHTOOL_MSG_MODULE_EEPROM_GET`, version 1 (uapi/linux/ethtool_netlink.h).
const GET: [u8; 4] = [31, 1, 0, 0];
/// A row of attributes, which the kernel wants to be told (`NLA_F_NESTED`).
const HEADER: u16 = 1 | 1 << 15;
const OFFSET: u16 = 2;
const LENGTH: u16 = 3;
const PAGE: u16 = 4;
const BANK: u16 = 5;
const ADDRESS: u16 = 6;
const DATA: u16 = 7;
/// `ETHTOOL_A_HEADER_DEV_NAME`.
const NAME: u16 = 2;

/// Bytes of half a page, which is what the upper pages have.
const HALF: u32 = 128;
/// Address of a module's memory on its bus.
pub(crate) const MODULE: u8 = 0x50;
/// Address of the diagnostics of a module with SFF-8472.
pub(crate) const DIAGNOSTICS: u8 = 0x51;

/// A part of a module's memory. It lies in one half of a page; only page 0 has a lower half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// [`MODULE`] or [`DIAGNOSTICS`].
    pub address: u8,
    pub page: u8,
    /// First byte, from the begin of the page.
    pub offset: u8,
    /// Number of bytes.
    pub length: u8,
}

/// Reads a part of the memory of the module in an interface's port.
pub(crate) fn read(interface: &str, part: Part) -> io::Result<Vec<u8>> {
    let bytes = match by_page(interface, part) {
        // Kernels before 5.6 have no such family, those before 5.13 no such question.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOENT)) => {
            in_a_row(interface, part)
        }
        answer => answer,
    }?;
    match bytes.len() >= usize::from(part.length) {
        true => Ok(bytes),
        false => Err(io::Error::other("the module's answer is too short")),
    }
}

fn by_page(interface: &str, part: Part) -> io::Result<Vec<u8>> {
    let name = |name: &str| [name.as_bytes(), &[0]].concat();
    let asked = ask_generic(CONTROL, &[GET_FAMILY.to_vec(), attribute(FAMILY_NAME, &name("ethtool"))].concat())?;
    let torn = || io::Error::other("the kernel's answer is torn");
    // Behind the header of the generic family.
    let family = asked.get(GET_FAMILY.len()..).and_then(|row| find(row, FAMILY_ID)?.first_chunk().copied());
    let family = u16::from_ne_bytes(family.ok_or_else(torn)?);
    let body = [
        GET.to_vec(),
        attribute(HEADER, &attribute(NAME, &name(interface))),
        attribute(OFFSET, &u32::from(part.offset).to_ne_bytes()),
        attribute(LENGTH, &u32::from(part.length).to_ne_bytes()),
        attribute(PAGE, &[part.page]),
        attribute(BANK, &[0]),
        attribute(ADDRESS, &[part.address]),
    ];
    let answer = ask_generic(family, &body.concat())?;
    answer.get(GET.len()..).and_then(|row| find(row, DATA)).map(<[u8]>::to_vec).ok_or_else(torn)
}

/// Where the kernel puts a page in the row of all of them (net/ethtool/eeprom.c, `fallback_set_params`).
fn in_a_row(interface: &str, part: Part) -> io::Result<Vec<u8>> {
    let behind = if part.address == DIAGNOSTICS { 2 * HALF } else { 0 };
    let offset = behind + u32::from(part.page) * HALF + u32::from(part.offset);
    ethtool::module_memory(interface, offset, u32::from(part.length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_without_modules_say_so_and_missing_ones_are_errors() {
        let part = Part { address: MODULE, page: 0, offset: 0, length: 1 };
        let code = |interface: &str| read(interface, part).unwrap_err().raw_os_error();
        assert!(matches!(code("lo"), Some(libc::EOPNOTSUPP | libc::EPERM)), "{:?}", code("lo"));
        assert!(matches!(code("nowhere0"), Some(libc::ENODEV | libc::EPERM)), "{:?}", code("nowhere0"));
    }
}
