//! Parts of a host, by their makers' labels. A serial number identifies a part wherever it is built in. Machines keep theirs for root;
//! unreadable ones are unknown.

use serde::{Deserialize, Serialize};

/// Makers' placeholders for serial numbers in unconfigured firmware, in lower case.
#[rustfmt::skip]
const PLACEHOLDERS: &[&str] = &[
    "012345678", "0123456789", "01234567890123456789ab", "123456789", "1234567890", "0123456789abcdef",
    "base board serial number", "baseboard serial number", "chassis serial number", "default", "default string",
    "empty", "fill by oem", "filled by oem", "invalid", "n.a.", "n/a", "na", "no serial", "none", "not applicable",
    "not available", "not defined", "not present", "not provided", "not set", "not specified", "null", "o.e.m.", "oem",
    "s/n", "serial", "serial number", "sn", "system serial number", "tbd", "to be filled by o.e.m",
    "to be filled by o.e.m.", "to be filled by oem", "type2 - board serial number", "undefined", "unknown",
    "unspecified",
];

/// Longest serial number in bytes: a field of vital product data holds no more (PCI Local Bus Specification 3.0, appendix I).
pub const LONGEST_SERIAL: usize = 255;

/// A trimmed serial number; `None` for an empty text, one repeated character, a placeholder, and unprintable text.
pub fn serial_number(text: &str) -> Option<&str> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    let mut characters = text.chars().filter(|c| c.is_alphanumeric());
    let first = characters.next()?;
    let is_one = characters.all(|c| c == first);
    let printable = text.len() <= LONGEST_SERIAL && text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    let is_placeholder = PLACEHOLDERS.contains(&text.to_ascii_lowercase().as_str());
    (printable && !is_one && !is_placeholder).then_some(text)
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Label {
    pub vendor: Option<String>,
    /// Part number: what to order as a spare.
    pub part_number: Option<String>,
    pub serial: Option<String>,
}

impl Label {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Card {
    pub pci: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub devices: Vec<String>,
    pub interfaces: Vec<String>,
    pub label: Label,
}

/// A pluggable module of a port: optics, or the end of a cable.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    pub interface: String,
    /// Its form, such as `QSFP28` (SFF-8024).
    pub form: String,
    pub label: Label,
}

/// Parts with readable labels. GPUs have theirs in [`Gpu`](super::Gpu).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Parts {
    /// The machine as it was sold (SMBIOS, type 1).
    #[serde(skip_serializing_if = "Label::is_empty")]
    pub machine: Label,
    /// Its main board (SMBIOS, type 2).
    #[serde(skip_serializing_if = "Label::is_empty")]
    pub board: Label,
    /// Its chassis (SMBIOS, type 3).
    #[serde(skip_serializing_if = "Label::is_empty")]
    pub chassis: Label,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Card>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<Module>,
}

impl Parts {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_no_serial_numbers() {
        for none in [
            "",
            " ",
            "0",
            "00000000",
            "0000-0000",
            "XXXXXXXX",
            "None",
            "N/A",
            "To Be Filled By O.E.M.",
            "Default string",
            "  to be filled by o.e.m. ",
            "Not Specified",
            "System Serial Number",
            "0123456789",
            "....",
            "\u{fffd}\u{fffd}x1",
            "a\u{1b}[2J1",
            "Ünïcode1",
            "----",
            "\0\0\0",
        ] {
            assert_eq!(serial_number(none), None, "{none:?}");
        }
        assert_eq!(serial_number(&"a1".repeat(128)), None);
        for (text, serial) in [
            (" MT2126X01234\n", "MT2126X01234"),
            ("00A1\0\0", "00A1"),
            ("S1 2", "S1 2"),
            ("1654323021232", "1654323021232"),
        ] {
            assert_eq!(serial_number(text), Some(serial));
        }
    }

    #[test]
    fn what_is_not_known_is_not_written() {
        assert_eq!(serde_json::to_string(&Parts::default()).unwrap(), "{}");
        let read: Parts = serde_json::from_str("{\"board\":{\"serial\":\"B1\"}}").unwrap();
        assert_eq!(read.board.serial.as_deref(), Some("B1"));
    }
}
