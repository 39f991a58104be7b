//! What is written in the memory of a pluggable module: optics, or the end of a cable.
//!
//! | form | document | vendor | part number | serial number | sums |
//! | --- | --- | --- | --- | --- | --- |
//! | SFP | SFF-8472, page A0h | 20–35 | 40–55 | 68–83 | 63 over 0–62, 95 over 64–94 |
//! | QSFP, QSFP+, QSFP28 | SFF-8636, page 00h | 148–163 | 168–183 | 196–211 | 191 over 128–190, 223 over 192–222 |
//! | QSFP-DD, OSFP, … | CMIS, page 00h | 129–144 | 148–163 | 166–181 | 222 over 128–221 |
//!
//! The first byte says which form it is (SFF-8024, table 4-1).

use std::ops::RangeInclusive;

use railgauge_wire::facts::{Label, serial_number};

use super::vpd::text;

/// Bytes of the lower page, and of page 00h behind it.
pub(crate) const HALF: u8 = 128;

/// Where the texts stand, and the sums that guard them.
struct Layout {
    vendor: RangeInclusive<usize>,
    part_number: RangeInclusive<usize>,
    serial: RangeInclusive<usize>,
    /// Bytes of a sum, each with those it is over.
    sums: &'static [(usize, RangeInclusive<usize>)],
}

const SFF_8472: Layout =
    Layout { vendor: 20..=35, part_number: 40..=55, serial: 68..=83, sums: &[(63, 0..=62), (95, 64..=94)] };
const SFF_8636: Layout = Layout {
    vendor: 148..=163,
    part_number: 168..=183,
    serial: 196..=211,
    sums: &[(191, 128..=190), (223, 192..=222)],
};
const CMIS: Layout = Layout { vendor: 129..=144, part_number: 148..=163, serial: 166..=181, sums: &[(222, 128..=221)] };

/// Why the memory of a module says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the module is of the form {0:#04x}, which is not known here")]
    Form(u8),
    #[error("the module's memory is cut off")]
    Cut,
    #[error("the checksum of the module's memory is wrong")]
    Sum,
}

/// The form and the label of a module, from its memory: the lower page, and page 00h behind it.
pub(crate) fn read(bytes: &[u8]) -> Result<(&'static str, Label), Broken> {
    let (form, layout) = form(*bytes.first().ok_or(Broken::Cut)?)?;
    for (at, over) in layout.sums {
        let over = bytes.get(over.clone()).ok_or(Broken::Cut)?;
        let sum = over.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        if *bytes.get(*at).ok_or(Broken::Cut)? != sum {
            return Err(Broken::Sum);
        }
    }
    let field = |place: &RangeInclusive<usize>| bytes.get(place.clone()).and_then(text);
    let serial = field(&layout.serial).and_then(|serial| serial_number(&serial).map(str::to_owned));
    Ok((form, Label { vendor: field(&layout.vendor), part_number: field(&layout.part_number), serial }))
}

fn form(identifier: u8) -> Result<(&'static str, Layout), Broken> {
    Ok(match identifier {
        0x03 => ("SFP", SFF_8472),
        0x0c => ("QSFP", SFF_8636),
        0x0d => ("QSFP+", SFF_8636),
        0x11 => ("QSFP28", SFF_8636),
        0x18 => ("QSFP-DD", CMIS),
        0x19 => ("OSFP", CMIS),
        0x1a => ("SFP-DD", CMIS),
        0x1b => ("DSFP", CMIS),
        0x1e => ("QSFP+ with CMIS", CMIS),
        0x1f => ("SFP-DD with CMIS", CMIS),
        0x20 => ("SFP+ with CMIS", CMIS),
        other => return Err(Broken::Form(other)),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The memory of a module of a form with this label and right sums.
    pub(crate) fn written(identifier: u8, vendor: &str, part_number: &str, serial: &str) -> Vec<u8> {
        let (_, layout) = form(identifier).unwrap();
        let mut bytes = vec![0; 2 * usize::from(HALF)];
        bytes[0] = identifier;
        bytes[128] = identifier;
        for (place, value) in [(&layout.vendor, vendor), (&layout.part_number, part_number), (&layout.serial, serial)] {
            bytes[place.clone()].copy_from_slice(format!("{value:<16}").as_bytes());
        }
        for (at, over) in layout.sums {
            bytes[*at] = bytes[over.clone()].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        }
        bytes
    }

    #[test]
    fn every_form_has_its_places() {
        for (identifier, form) in [(0x03, "SFP"), (0x11, "QSFP28"), (0x0d, "QSFP+"), (0x18, "QSFP-DD"), (0x19, "OSFP")]
        {
            let (found, label) = read(&written(identifier, "Mellanox", "MCP1600-C003E30L", "MT2031VS01234")).unwrap();
            assert_eq!(found, form);
            let wanted = ["Mellanox", "MCP1600-C003E30L", "MT2031VS01234"].map(|text| Some(text.to_owned()));
            assert_eq!([label.vendor, label.part_number, label.serial], wanted, "{form}");
        }
    }

    #[test]
    fn no_label_and_placeholders_are_not_known() {
        let (_, label) = read(&written(0x11, "", "", "")).unwrap();
        assert!(label.is_empty());
        let (_, label) = read(&written(0x11, "Maker", "P1", "0000000000000000")).unwrap();
        assert_eq!((label.vendor.as_deref(), label.serial), (Some("Maker"), None));
    }

    #[test]
    fn what_is_damaged_says_nothing() {
        let bytes = written(0x11, "Maker", "P1", "S1234");
        assert_eq!(read(&bytes[..200]), Err(Broken::Cut));
        assert_eq!(read(&[]), Err(Broken::Cut));
        let mut other = bytes.clone();
        other[196] = b'T';
        assert_eq!(read(&other), Err(Broken::Sum));
        assert_eq!(read(&[0xff; 256]), Err(Broken::Form(0xff)));
        assert_eq!(read(&[0; 256]), Err(Broken::Form(0)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), identifier: u8) {
            let _ = read(&[&[identifier][..], &bytes].concat());
        }
    }
}
