//! How hosts, switches and cables are connected, as far as known.
//!
//! | module | holds |
//! | --- | --- |
//! | [`told`] | the content of one source |
//! | [`unread`] | why a source cannot be used |
//! | [`slurm`], [`ibnetdiscover`], [`lldp`], [`nvlink`] | the sources, from text to [`told::Told`] |
//! | `join` | precedence of sources |
//! | [`cabling`] | miscabling, found before any traffic |
//! | [`fabric`] | all of it as a graph, with the paths between NIC ports |
//! | [`attach`] | the place of a host's rail |

pub mod attach;
pub mod cabling;
pub mod fabric;
pub mod ibnetdiscover;
mod join;
pub mod lldp;
pub mod nvlink;
pub mod slurm;
pub mod told;
pub mod unread;

pub use fabric::Fabric;
pub use unread::Unread;

pub(crate) use fabric::{Hop, Route};
pub(crate) use told::{Cable, Device, Nic, Plug, Switch, Told};
pub(crate) use unread::{MOST_CABLES, Remarks};

/// Whether two names are one host's: sources write `gpu031` or `gpu031.cluster.example`, in either case.
pub fn same_host(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || short(one) == short(other) && (one.contains('.') != other.contains('.'))
}

fn short(name: &str) -> String {
    name.split('.').next().unwrap_or_default().to_ascii_lowercase()
}
