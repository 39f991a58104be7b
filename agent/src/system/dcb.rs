//! Data centre bridging over netlink (the kernel's uapi/linux/dcbnl.h, IEEE 802.1Qaz): flow control per priority, and
//! which packets have which priority. `dcb pfc show` and `dcb app show` print the same.

use std::{collections::BTreeMap, io};

use railgauge_wire::facts::Dcb;

use super::netlink::{ask, attribute, attributes, find};

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
const MESSAGE: usize = 4;
/// Where `prio_tc` stands in `struct ieee_ets`: behind three flags, twice eight bandwidths and eight algorithms.
const PRIORITY_CLASSES: std::ops::Range<usize> = 27..35;

/// Priorities of an interface; `None` if its driver has no data centre bridging.
pub(crate) fn ieee(interface: &str) -> io::Result<Option<Dcb>> {
    // struct dcbmsg: u8 family, u8 command, u16 padding.
    let mut body = vec![0, IEEE_GET, 0, 0];
    body.extend(attribute(ATTR_IFNAME, &[interface.as_bytes(), &[0]].concat()));
    match ask(RTM_GETDCB, &body) {
        Ok(answer) => Ok(read(answer.get(MESSAGE..).unwrap_or_default())),
        // No such operations in the driver, or no such family in the kernel.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The answer's attributes. `None` if the driver has neither flow control nor an application table.
fn read(answer: &[u8]) -> Option<Dcb> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let dcb = read(&answer).unwrap();
        assert_eq!((dcb.pfc, dcb.classes), (vec![3, 6], vec![0, 0, 0, 3, 0, 0, 6, 0]));
        assert_eq!(dcb.dscp, [(26, 3), (48, 6)].into());
    }

    #[test]
    fn the_loopback_interface_has_none_and_a_missing_one_is_an_error() {
        assert_eq!(ieee("lo").unwrap(), None);
        assert!(ieee("nowhere0").is_err());
    }
}
