//! Raw files of sysfs and procfs: those behind the facts, and others about RDMA devices, network interfaces and the PCI functions above
//! them.

use serde::{Deserialize, Serialize};

/// Bytes of a file in one text: as hexadecimal digits they fit every limit of a reply.
pub const CHUNK: usize = 2048;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RawPage {
    pub entries: Vec<RawEntry>,
    /// Number of the next page's first entry; `None` for the last page.
    pub next: Option<u64>,
    /// In the first page only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<RawLeftOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawEntry {
    /// Path without the root: `sys/class/net/eth0/mtu`.
    pub path: String,
    pub content: RawContent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RawContent {
    File {
        /// As hexadecimal digits, at most [`CHUNK`] bytes in each text.
        hex: Vec<String>,
        whole: bool,
    },
    Link {
        /// Where it leads, as a path without the root.
        to: String,
    },
    Directory,
    Unreadable {
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawLeftOut {
    /// Path without the root.
    pub path: String,
    pub why: String,
}

impl RawContent {
    pub fn of(bytes: &[u8], whole: bool) -> Self {
        let digits = |chunk: &[u8]| chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::File { hex: bytes.chunks(CHUNK).map(digits).collect(), whole }
    }

    /// `None` for other entries, or invalid digits.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let Self::File { hex, .. } = self else { return None };
        let mut bytes = Vec::new();
        for text in hex {
            let pairs = text.as_bytes().chunks(2);
            for pair in pairs {
                let digits = std::str::from_utf8(pair).ok().filter(|digits| digits.len() == 2)?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for length in [0, 1, CHUNK, CHUNK + 1] {
            let bytes: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            let content = RawContent::of(&bytes, true);
            assert_eq!(content.bytes(), Some(bytes));
        }
        let odd = RawContent::File { hex: vec!["0g".into()], whole: true };
        assert_eq!((odd.bytes(), RawContent::Directory.bytes()), (None, None));
    }
}
