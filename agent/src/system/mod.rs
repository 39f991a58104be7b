//! The kernel's calls, each behind a safe function; one file per family. Nothing here knows what railgauge is.
//!
//! | file | calls |
//! | --- | --- |
//! | [`affinity`] | sched_getaffinity, sched_setaffinity |
//! | [`limits`] | getrlimit, setrlimit |
//! | [`process`] | process groups, ending, standard streams |
//! | [`time`] | clock_gettime |
//! | [`wait`] | poll, eventfd |
//! | [`alarm`] | timer_create, sigaction |
//! | [`interfaces`] | getifaddrs |
//! | [`ethtool`] | SIOCETHTOOL |
//! | [`netlink`], [`dcb`] | netlink: data centre bridging |
//! | [`library`] | dlopen |
//! | [`tree`] | sysfs and procfs, below a root that tests choose |
//! | [`socket`] | send, recv |

pub mod affinity;
pub mod alarm;
pub mod dcb;
pub mod ethtool;
pub mod interfaces;
pub mod library;
pub mod limits;
pub mod netlink;
pub mod process;
pub mod socket;
pub mod time;
pub mod tree;
pub mod wait;
