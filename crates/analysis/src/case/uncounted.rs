//! Why bytes on the wire were not compared with the payload.

use std::fmt;

use serde::Serialize;

/// An end's device, and why the bytes on its wire were not compared with the payload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Uncounted {
    pub host: String,
    pub device: String,
    pub driver: Option<String>,
    #[serde(flatten)]
    pub why: WhyUncounted,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum WhyUncounted {
    NoCounter {
        /// Whether its interface has byte counters that may exclude RDMA.
        interface: bool,
    },
    /// The counter exists but cannot be read.
    Unreadable { counter: String, said: String },
    /// The counter did not move while payload passed: it does not work.
    Still { counter: String },
    /// The MTU of the interface below an iWARP device is unknown, and with it the number of headers.
    UnknownMtu,
    /// The same for the interface at the other end.
    UnknownMtuOfPeer { peer: String, peer_device: Box<str> },
    /// Members of its bond do not count what passes their physical ports.
    Members { members: Vec<String> },
}

impl fmt::Display for Uncounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, device, driver, why } = self;
        let driver = driver.as_ref().map(|driver| format!(" ({driver})")).unwrap_or_default();
        write!(f, "{host}: bytes on the wire of {device}{driver} not checked: ")?;
        match why {
            WhyUncounted::NoCounter { interface: false } => f.write_str("no counter for them could be read"),
            WhyUncounted::NoCounter { interface: true } => {
                f.write_str("it has no counter that is known to count RDMA; its interface's may leave RDMA out")
            }
            WhyUncounted::Unreadable { counter, said } => write!(f, "{counter} cannot be read: {said}"),
            WhyUncounted::Still { counter } => {
                write!(f, "{counter} stood still while payload passed: it is a counter that does not count")
            }
            WhyUncounted::UnknownMtu => f.write_str(
                "the MTU of the interface below it is not known, and with it the bytes of the headers; the ceiling is not \
                 known either",
            ),
            WhyUncounted::UnknownMtuOfPeer { peer, peer_device } => write!(
                f,
                "the MTU of the interface below {peer_device} of {peer}, the other end, is not known, and with it the bytes of \
                 the headers; the ceiling is not known either"
            ),
            WhyUncounted::Members { members } => {
                write!(f, "no counter of the physical ports of its bond could be read ({})", members.join(", "))
            }
        }
    }
}
