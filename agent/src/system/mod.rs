//! The kernel's calls, each behind a safe function; one file per family. Nothing here knows what railgauge is.
//!
//! | file | calls |
//! | --- | --- |
//! | [`affinity`] | sched_getaffinity, sched_setaffinity |
//! | [`log`] | none: lines on stderr |
//! | [`process`] | process groups, ending, standard streams, limits |
//! | [`program`] | none: programs of the host, within bounds |
//! | [`time`] | clock_gettime |
//! | [`wait`] | poll, eventfd, timer_create, sigaction |
//! | [`interfaces`] | getifaddrs |
//! | [`ethtool`] | SIOCETHTOOL |
//! | [`netlink`] | netlink: data centre bridging, memory of modules |
//! | [`library`] | dlopen |
//! | [`tree`] | sysfs and procfs, below a root that tests choose |
//! | [`socket`] | send, recv |

pub(crate) mod affinity;
pub(crate) mod ethtool;
pub(crate) mod interfaces;
pub(crate) mod library;
pub(crate) mod log;
pub(crate) mod netlink;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod socket;
pub(crate) mod time;
pub(crate) mod tree;
pub(crate) mod wait;

pub(crate) use log::log;
