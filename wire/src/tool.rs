//! Programs of a host that report neighbouring switches and cables, and their limits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{raw::RawContent, unit::Bytes};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// The switch at the other end of each Ethernet cable by the host's lldpd, as JSON.
    Neighbours,
    Fabric,
    Tables,
}

impl Tool {
    /// The first one whose program is installed runs.
    pub const fn commands(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Neighbours => &[&["lldpcli", "-f", "json", "show", "neighbors"]],
            Self::Fabric => &[&["ibnetdiscover"]],
            // dump_lfts is a script around dump_fts (infiniband-diags).
            Self::Tables => &[&["dump_fts"], &["dump_lfts"]],
        }
    }

    /// lldpd answers from memory. The others query every switch of the subnet; a lost packet costs a second or more.
    pub const fn limit(self) -> Duration {
        match self {
            Self::Neighbours => Duration::from_secs(2),
            Self::Fabric => Duration::from_secs(60),
            Self::Tables => Duration::from_secs(180),
        }
    }

    /// A neighbour takes about a kilobyte, a cable of ibnetdiscover 200 bytes, an entry of a table 60.
    pub const fn most(self) -> Bytes {
        match self {
            Self::Neighbours => Bytes::from_mib(4),
            Self::Fabric | Self::Tables => Bytes::from_mib(64),
        }
    }
}

/// Bytes of output in a page. As hexadecimal digits they are well below a reply's limit.
pub const PAGE: usize = 128 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolPage {
    /// At most [`PAGE`] bytes.
    pub content: RawContent,
    /// Offset in bytes; `None` for the last page.
    pub next: Option<u64>,
}
