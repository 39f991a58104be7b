//! Netlink requests (netlink(7)).
//!
//! Data centre bridging (the kernel's uapi/linux/dcbnl.h, IEEE 802.1Qaz): flow control per priority, and the priorities of packets, as
//! `dcb pfc show` and `dcb app show` print them.
//!
//! Memory of the module in a network port (its optics or cable), as `ethtool -m` prints it. Linux 5.13 and later answer over netlink
//! (`ETHTOOL_MSG_MODULE_EEPROM_GET`, Documentation/networking/ethtool-netlink.rst), page by page. This also reaches modules with CMIS,
//! for which drivers such as mlx5 offer nothing else. Older kernels answer `SIOCETHTOOL`, with a module's pages in sequence. Both require
//! CAP_NET_ADMIN.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    time::Duration,
};

use railgauge_wire::Dcb;
use socket2::{Socket, Type};

use super::ethtool;

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of `struct nlattr`.
const ATTRIBUTE: usize = 4;
const ERROR: u16 = 2;
/// The bits of an attribute's type that are flags (nested, network byte order).
const FLAGS: u16 = 0xc000;
/// Room for an answer: the largest this program asks for is some kilobytes.
const ROOM: usize = 64 << 10;

const PATIENCE: Duration = Duration::from_secs(1);

/// Returns what follows the answer's header. `protocol` is `NETLINK_ROUTE` or `NETLINK_GENERIC`; `kind` is the type of the message, or
/// the kernel's number of a generic family.
pub(crate) fn ask(protocol: i32, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    let socket = Socket::new(libc::AF_NETLINK.into(), Type::RAW, Some(protocol.into()))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // Without an address the kernel is meant.
    socket.send(&message(kind, body))?;
    let mut answer = vec![0; ROOM];
    let length = (&socket).read(&mut answer)?;
    body_of(&answer[..length])
}

/// An attribute: length, type, bytes, and zeros up to the next multiple of four.
pub(crate) fn attribute(kind: u16, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(ATTRIBUTE + bytes.len()).unwrap_or(u16::MAX);
    let mut text = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    text.extend_from_slice(bytes);
    text.resize(text.len().next_multiple_of(4), 0);
    text
}

/// Type and bytes of attributes in sequence. Ends where one does not fit.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & !FLAGS;
        let value = bytes.get(ATTRIBUTE..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

pub(crate) fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    let flags = u16::try_from(libc::NLM_F_REQUEST).unwrap_or(1);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend([kind.to_ne_bytes(), flags.to_ne_bytes()].concat());
    // Sequence and port: one question per socket needs neither.
    bytes.extend([0; 8]);
    bytes.extend_from_slice(body);
    bytes
}

/// What follows the header of an answer, or its error.
fn body_of(answer: &[u8]) -> io::Result<Vec<u8>> {
    let torn = || io::Error::other("the kernel's answer is torn");
    let kind = u16_at(answer, size_of::<u32>()).ok_or_else(torn)?;
    let body = answer.get(HEADER..).ok_or_else(torn)?;
    if kind != ERROR {
        return Ok(body.to_vec());
    }
    let number = body.first_chunk().copied().map(i32::from_ne_bytes).ok_or_else(torn)?;
    Err(io::Error::from_raw_os_error(number.saturating_neg()))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

const RTM_GETDCB: u16 = 78;
/// `DCB_CMD_IEEE_GET`.
const IEEE_GET: u8 = 21;
const ATTR_IFNAME: u16 = 1;
const ATTR_IEEE: u16 = 13;
const IEEE_ETS: u16 = 1;
const IEEE_PFC: u16 = 2;
const IEEE_APP_TABLE: u16 = 3;
/// An entry of the application table that is about DSCP.
const SELECTOR_DSCP: u8 = 5;
/// Bytes of `struct dcbmsg`.
const DCB_MESSAGE: usize = 4;
/// Offset of `prio_tc` in `struct ieee_ets`: after three flags, twice eight bandwidths and eight algorithms.
const PRIORITY_CLASSES: std::ops::Range<usize> = 27..35;

/// `None` if the driver has no data centre bridging.
pub(crate) fn ieee(interface: &str) -> io::Result<Option<Dcb>> {
    // struct dcbmsg: u8 family, u8 command, u16 padding.
    let mut body = vec![0, IEEE_GET, 0, 0];
    body.extend(attribute(ATTR_IFNAME, &[interface.as_bytes(), &[0]].concat()));
    match ask(libc::NETLINK_ROUTE, RTM_GETDCB, &body) {
        Ok(answer) => Ok(read_dcb(answer.get(DCB_MESSAGE..).unwrap_or_default())),
        // No such operations in the driver, or no such family in the kernel.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The answer's attributes. `None` if the driver has neither flow control nor an application table.
fn read_dcb(answer: &[u8]) -> Option<Dcb> {
    let ieee = find(answer, ATTR_IEEE)?;
    // struct ieee_pfc: u8 pfc_cap, u8 pfc_en, …: one bit of the second for each priority.
    let pfc = find(ieee, IEEE_PFC).and_then(|pfc| pfc.get(1).copied());
    let classes = find(ieee, IEEE_ETS).and_then(|ets| ets.get(PRIORITY_CLASSES)).unwrap_or_default();
    let table = find(ieee, IEEE_APP_TABLE);
    if pfc.is_none() && table.is_none() {
        return None;
    }
    // struct dcb_app: u8 selector, u8 priority, u16 protocol.
    let mut dscp = BTreeMap::new();
    for (_, entry) in attributes(table.unwrap_or_default()) {
        if let [SELECTOR_DSCP, priority, low, high] = *entry
            && let Ok(code) = u8::try_from(u16::from_ne_bytes([low, high]))
        {
            dscp.insert(code, priority);
        }
    }
    let on = |bits: u8| (0..8).filter(|priority| bits >> priority & 1 == 1).collect();
    Some(Dcb { pfc: pfc.map(on).unwrap_or_default(), classes: classes.to_vec(), dscp })
}

/// `GENL_ID_CTRL`: the family that knows the numbers of the others.
const CONTROL: u16 = 16;
/// `CTRL_CMD_GETFAMILY`, version 2.
const GET_FAMILY: [u8; 4] = [3, 2, 0, 0];
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// `ETHTOOL_MSG_MODULE_EEPROM_GET`, version 1 (uapi/linux/ethtool_netlink.h).
const GET: [u8; 4] = [31, 1, 0, 0];
/// Nested attributes, marked as the kernel requires (`NLA_F_NESTED`).
const MODULE_HEADER: u16 = 1 | 1 << 15;
const OFFSET: u16 = 2;
const LENGTH: u16 = 3;
const PAGE: u16 = 4;
const BANK: u16 = 5;
const ADDRESS: u16 = 6;
const DATA: u16 = 7;
/// `ETHTOOL_A_HEADER_DEV_NAME`.
const MODULE_NAME: u16 = 2;

/// Bytes of half a page, which is what the upper pages have.
const HALF: u32 = 128;
pub(crate) const MODULE: u8 = 0x50;
/// Address of the diagnostics of a module with SFF-8472.
pub(crate) const DIAGNOSTICS: u8 = 0x51;

/// A part of a module's memory, within half a page; only page 0 has a lower half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// [`MODULE`] or [`DIAGNOSTICS`].
    pub address: u8,
    pub page: u8,
    /// From the start of the page.
    pub offset: u8,
    pub length: u8,
}

pub(crate) fn read_module(interface: &str, part: Part) -> io::Result<Vec<u8>> {
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
    let asked =
        ask(libc::NETLINK_GENERIC, CONTROL, &[GET_FAMILY.to_vec(), attribute(FAMILY_NAME, &name("ethtool"))].concat())?;
    let torn = || io::Error::other("the kernel's answer is torn");
    // Behind the header of the generic family.
    let family = asked.get(GET_FAMILY.len()..).and_then(|row| find(row, FAMILY_ID)?.first_chunk().copied());
    let family = u16::from_ne_bytes(family.ok_or_else(torn)?);
    let body = [
        GET.to_vec(),
        attribute(MODULE_HEADER, &attribute(MODULE_NAME, &name(interface))),
        attribute(OFFSET, &u32::from(part.offset).to_ne_bytes()),
        attribute(LENGTH, &u32::from(part.length).to_ne_bytes()),
        attribute(PAGE, &[part.page]),
        attribute(BANK, &[0]),
        attribute(ADDRESS, &[part.address]),
    ];
    let answer = ask(libc::NETLINK_GENERIC, family, &body.concat())?;
    answer.get(GET.len()..).and_then(|row| find(row, DATA)).map(<[u8]>::to_vec).ok_or_else(torn)
}

/// Offset of a page in the kernel's sequence of all pages (net/ethtool/eeprom.c, `fallback_set_params`).
fn in_a_row(interface: &str, part: Part) -> io::Result<Vec<u8>> {
    let behind = if part.address == DIAGNOSTICS { 2 * HALF } else { 0 };
    let offset = behind + u32::from(part.page) * HALF + u32::from(part.offset);
    ethtool::module_memory(interface, offset, u32::from(part.length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn attributes_read_back() {
        let row = [attribute(1, b"eth0\0"), attribute(13 | FLAGS, &attribute(2, &[7]))].concat();
        assert_eq!(row.len(), 12 + 12);
        assert_eq!(find(&row, 1), Some(b"eth0\0".as_slice()));
        assert_eq!(find(find(&row, 13).unwrap(), 2), Some([7].as_slice()));
        assert_eq!(find(&row, 3), None);
    }

    #[test]
    fn errors_of_the_kernel_are_errors() {
        let refused = message(ERROR, &(-libc::EOPNOTSUPP).to_ne_bytes());
        assert_eq!(body_of(&refused).unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
        assert!(body_of(&refused[..7]).is_err());
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (attributes(&bytes).count(), body_of(&bytes));
        }
    }

    #[test]
    fn priorities_are_read() {
        let mut ets = vec![0; 51];
        ets[PRIORITY_CLASSES].copy_from_slice(&[0, 0, 0, 3, 0, 0, 6, 0]);
        let app = |selector, priority, code: u16| {
            attribute(1, &[vec![selector, priority], code.to_ne_bytes().to_vec()].concat())
        };
        let table = [app(SELECTOR_DSCP, 3, 26), app(1, 6, 0x8906), app(SELECTOR_DSCP, 6, 48)].concat();
        let mut pfc = vec![0; 136];
        pfc[..2].copy_from_slice(&[8, 0b0100_1000]);
        let ieee = [attribute(IEEE_ETS, &ets), attribute(IEEE_PFC, &pfc), attribute(IEEE_APP_TABLE, &table)].concat();
        let answer = [attribute(ATTR_IFNAME, b"eth0\0"), attribute(ATTR_IEEE, &ieee)].concat();
        let dcb = read_dcb(&answer).unwrap();
        assert_eq!((dcb.pfc, dcb.classes), (vec![3, 6], vec![0, 0, 0, 3, 0, 0, 6, 0]));
        assert_eq!(dcb.dscp, [(26, 3), (48, 6)].into());
    }

    #[test]
    fn the_loopback_interface_has_none_and_a_missing_one_is_an_error() {
        assert_eq!(ieee("lo").unwrap(), None);
        assert!(ieee("nowhere0").is_err());
    }

    #[test]
    fn interfaces_without_modules_say_so_and_missing_ones_are_errors() {
        let part = Part { address: MODULE, page: 0, offset: 0, length: 1 };
        let code = |interface: &str| read_module(interface, part).unwrap_err().raw_os_error();
        assert!(matches!(code("lo"), Some(libc::EOPNOTSUPP | libc::EPERM)), "{:?}", code("lo"));
        assert!(matches!(code("nowhere0"), Some(libc::ENODEV | libc::EPERM)), "{:?}", code("nowhere0"));
    }
}
