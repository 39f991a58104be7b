//! System calls behind safe functions, one file per family, independent of railgauge.

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
