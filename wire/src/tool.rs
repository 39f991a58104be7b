//! Programs of a host that tell of the switches and cables next to it, run by its agent: which, and within which bounds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{raw::RawContent, unit::Bytes};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// What the host's lldpd hears: the switch at the other end of each Ethernet cable, as JSON.
    Neighbours,
    Fabric,
    Tables,
}

impl Tool {
    /// The commands that answer it; the first one whose program is installed is run.
    pub const fn commands(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Neighbours => &[&["lldpcli", "-f", "json", "show", "neighbors"]],
            Self::Fabric => &[&["ibnetdiscover"]],
            // dump_lfts is a script around dump_fts (infiniband-diags).
            Self::Tables => &[&["dump_fts"], &["dump_lfts"]],
        }
    }

    /// How long it may run. lldpd answers from memory. The others ask every switch of the subnet; a packet that is lost costs them
    /// a second or more.
    pub const fn limit(self) -> Duration {
        match self {
            Self::Neighbours => Duration::from_secs(2),
            Self::Fabric => Duration::from_secs(60),
            Self::Tables => Duration::from_secs(180),
        }
    }

    /// The most that it may write. A neighbour takes about a kilobyte, a cable of ibnetdiscover 200 bytes, an entry of a table 60.
    pub const fn most(self) -> Bytes {
        match self {
            Self::Neighbours => Bytes::from_mib(4),
            Self::Fabric | Self::Tables => Bytes::from_mib(64),
        }
    }
}

/// Bytes of output in a page. As hexadecimal digits they are well below what a reply may have.
pub const PAGE: usize = 128 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolPage {
    /// The bytes, at most [`PAGE`].
    pub content: RawContent,
    /// Offset in bytes of the next page; `None` if this is the last one.
    pub next: Option<u64>,
}
