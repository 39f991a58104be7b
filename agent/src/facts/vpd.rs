//! Vital product data: what the maker of a card wrote on it (PCI Local Bus Specification 3.0, appendix I).
//!
//! A list of resources: an identifier string (the name of the product), read-only fields (VPD-R), writable ones (VPD-W) and an end tag. A
//! field is a keyword of two letters, a length and so many bytes.

const IDENTIFIER: u8 = 0x82;
const READ_ONLY: u8 = 0x90;
const LARGE: u8 = 0x80;
/// Name of the small resource that ends the list; the low three bits of a small tag are its length.
const END: u8 = 0x0f;

pub(crate) const LONGEST: u64 = 1 << 15;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Vpd {
    pub name: Option<String>,
    pub part_number: Option<String>,
    pub serial: Option<String>,
    pub maker: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the card holds no vital product data")]
    None,
    #[error("the card's vital product data is cut off")]
    Cut,
    #[error("the checksum of the card's vital product data is wrong")]
    Sum,
}

pub(crate) fn read(bytes: &[u8]) -> Result<Vpd, Broken> {
    let mut vpd = Vpd::default();
    let mut at = 0;
    loop {
        let Some(&tag) = bytes.get(at) else { return Err(if at == 0 { Broken::None } else { Broken::Cut }) };
        if tag & LARGE == 0 {
            // Some firmware has one more small resource; zeros and ones are unwritten memory.
            if tag >> 3 == END {
                return if at == 0 { Err(Broken::None) } else { Ok(vpd) };
            }
            if tag >> 3 == 0 {
                return Err(if at == 0 { Broken::None } else { Broken::Cut });
            }
            at += 1 + usize::from(tag & 7);
            continue;
        }
        if tag == u8::MAX {
            return Err(if at == 0 { Broken::None } else { Broken::Cut });
        }
        let length = bytes.get(at + 1..at + 3).map(|two| usize::from(u16::from_le_bytes([two[0], two[1]])));
        let begin = at + 3;
        let length = length.ok_or(Broken::Cut)?;
        let body = bytes.get(begin..begin + length).ok_or(Broken::Cut)?;
        match tag {
            IDENTIFIER => vpd.name = text(body),
            READ_ONLY => fields(bytes, begin, body, &mut vpd)?,
            _ => {}
        }
        at = begin + length;
    }
}

fn fields(bytes: &[u8], begin: usize, body: &[u8], vpd: &mut Vpd) -> Result<(), Broken> {
    let mut at = 0;
    while at < body.len() {
        let header = body.get(at..at + 3).ok_or(Broken::Cut)?;
        let value = body.get(at + 3..at + 3 + usize::from(header[2])).ok_or(Broken::Cut)?;
        match &header[..2] {
            b"PN" => vpd.part_number = text(value),
            b"SN" => vpd.serial = text(value),
            b"MN" => vpd.maker = text(value),
            // The sum of all bytes from the first one to the first of this field is zero.
            b"RV" if !value.is_empty() => {
                let sum = bytes.get(..=begin + at + 3).ok_or(Broken::Cut)?;
                let sum = sum.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
                return if sum == 0 { Ok(()) } else { Err(Broken::Sum) };
            }
            _ => {}
        }
        at += 3 + value.len();
    }
    Ok(())
}

/// A text without the blanks and zeros around it; `None` where there is none, or it cannot be printed.
pub(crate) fn text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim_matches(|c: char| c == '\0' || c.is_ascii_whitespace());
    let printable = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    (printable && !text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn written(name: &str, list: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = vec![IDENTIFIER];
        bytes.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        bytes.extend(name.as_bytes());
        let mut body: Vec<u8> = Vec::new();
        for (keyword, value) in list {
            body.extend(keyword.as_bytes());
            body.push(u8::try_from(value.len()).unwrap());
            body.extend(value.as_bytes());
        }
        body.extend(b"RV\x01");
        bytes.push(READ_ONLY);
        bytes.extend(u16::try_from(body.len() + 1).unwrap().to_le_bytes());
        bytes.extend(body);
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        bytes.extend([sum.wrapping_neg(), END << 3]);
        bytes
    }

    #[test]
    fn a_card_says_what_it_is() {
        let list = [("PN", "MCX75310AAS-NEAT "), ("EC", "A7"), ("V2", "MCX75310AAS-NEAT"), ("SN", "MT2326XZ0DQ8\0\0")];
        let bytes = written("NVIDIA ConnectX-7 HHHL Adapter Card", &list);
        let some = |text: &str| Some(text.to_owned());
        let wanted = Vpd {
            name: some("NVIDIA ConnectX-7 HHHL Adapter Card"),
            part_number: some("MCX75310AAS-NEAT"),
            serial: some("MT2326XZ0DQ8"),
            maker: None,
        };
        assert_eq!(read(&bytes), Ok(wanted.clone()));
        assert_eq!(read(&[bytes, vec![0xff; 100]].concat()), Ok(wanted));
    }

    #[test]
    fn what_is_damaged_says_nothing() {
        let bytes = written("Card", &[("PN", "P1"), ("SN", "S1234")]);
        for cut in 1..bytes.len() {
            assert_eq!(read(&bytes[..cut]), Err(Broken::Cut), "{cut}");
        }
        let at = bytes.windows(5).position(|five| five == b"S1234").unwrap();
        let mut other = bytes.clone();
        other[at] = b'T';
        assert_eq!(read(&other), Err(Broken::Sum));
        let mut long = bytes;
        long[at - 1] = 0xff;
        assert_eq!(read(&long), Err(Broken::Cut));
        for none in [&[][..], &[0; 64], &[0xff; 64], &[END << 3]] {
            assert_eq!(read(none), Err(Broken::None), "{none:?}");
        }
    }

    #[test]
    fn what_cannot_be_printed_is_not_known() {
        let found = read(&written("\u{1b}[2J", &[("SN", "\u{7}\u{7}"), ("PN", "  ")])).unwrap();
        assert_eq!(found, Vpd::default());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_turn_for_ever(bytes in prop::collection::vec(any::<u8>(), 0..400), begin in 0_u8..4) {
            let begin: &[u8] = [&[][..], &[IDENTIFIER, 2, 0, b'a', b'b'], &[READ_ONLY, 0xff, 0], &[0x90, 6, 0, b'S', b'N']][usize::from(begin)];
            let _ = read(&[begin, &bytes].concat());
        }
    }
}
