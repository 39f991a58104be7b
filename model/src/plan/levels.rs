//! What makers publish about links: from which value on a port is to be investigated, and from which on it is bad. Data only: another
//! maker or speed is another row.

use railgauge_wire::Nanoseconds;

railgauge_wire::words! {
    /// Whose.
    Levels {
        Nvidia = "nvidia",
    }

    /// What a port is judged by.
    LinkValue {
        /// Errors that FEC did not correct, per bit.
        PostFecBer = "post_fec_ber",
        /// Errors that no mechanism of the physical layer corrected, per bit.
        SymbolErrors = "symbol_errors",
        /// Most in any 24 hours.
        LinkDowns = "link_downs",
        /// The longest, in seconds.
        Outage = "outage",
    }
}

impl LinkValue {
    pub const fn unit(self) -> &'static str {
        match self {
            Self::PostFecBer | Self::SymbolErrors => "",
            Self::LinkDowns => "/24h",
            Self::Outage => "s",
        }
    }
}

/// Ports for which values were published.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Links {
    All,
    /// InfiniBand with this many Gb/s on each lane: 100 is NDR. All kinds of cables.
    InfiniBandLanes(f64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    pub of: LinkValue,
    pub links: Links,
    pub warning: Option<f64>,
    pub error: Option<f64>,
    /// A value of a shorter time says nothing: of port-up for a rate, of watching for others, unless it reaches a limit.
    pub after: Nanoseconds,
    pub source: &'static str,
}

const BRING_UP: &str = "docs.nvidia.com/networking/display/infinibandclusterbringupprocedure/ufm+telemetry";
const HEALTH: &str = "docs.nvidia.com/health-validation/reference/checks/infiniband.md, rdma_linkflap_fatal";
const NDR: Links = Links::InfiniBandLanes(100.0);
const DAY: Nanoseconds = Nanoseconds::from_secs(24 * 3600);
const UP: Nanoseconds = Nanoseconds::from_secs(125 * 60);

impl Levels {
    pub const fn table(self) -> &'static [Level] {
        const fn row(
            of: LinkValue,
            links: Links,
            warning: Option<f64>,
            error: Option<f64>,
            source: &'static str,
        ) -> Level {
            let after = match (of, error) {
                (LinkValue::PostFecBer | LinkValue::SymbolErrors, _) => UP,
                (LinkValue::LinkDowns, _) => DAY,
                (LinkValue::Outage, Some(seconds)) => Nanoseconds::from_secs(seconds as u64),
                (LinkValue::Outage, None) => Nanoseconds::ZERO,
            };
            Level { of, links, warning, error, after, source }
        }
        match self {
            Self::Nvidia => {
                const {
                    &[
                        row(LinkValue::PostFecBer, NDR, Some(5e-12), Some(1e-11), BRING_UP),
                        row(LinkValue::SymbolErrors, NDR, Some(5e-15), Some(1e-14), BRING_UP),
                        row(LinkValue::LinkDowns, Links::All, Some(2.0), None, BRING_UP),
                        row(LinkValue::Outage, Links::All, None, Some(30.0), HEALTH),
                    ]
                }
            }
        }
    }
}
