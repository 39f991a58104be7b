//! Grounds of the verdicts on what `[preflight]` wants.

use std::fmt;

use serde::Serialize;

use crate::{analysis::words::count, preflight::Departures};

/// How hosts stand to a value that the plan wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OfPreflight {
    /// Hosts or devices have another value.
    Unmet {
        /// How many of them.
        times: usize,
        /// How many hosts and devices it is about.
        of: usize,
        /// The values, with who has them.
        departures: Departures,
    },
    /// The value of hosts or devices could not be read.
    Unread {
        /// How many of them.
        times: usize,
        /// How many hosts and devices it is about.
        of: usize,
        /// Why, with who it is about.
        departures: Departures,
    },
    /// No host has anything that it is about.
    NobodyHasIt,
    /// Every host has the value.
    Met {
        /// Hosts that it is about.
        hosts: usize,
    },
}

impl fmt::Display for OfPreflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, times, of, departures) = match self {
            Self::Unmet { times, of, departures } => ("not met", times, of, departures),
            Self::Unread { times, of, departures } => ("not read", times, of, departures),
            Self::NobodyHasIt => return f.write_str("no host has anything that it is about"),
            Self::Met { hosts } => return write!(f, "met on {}", count(*hosts, "host")),
        };
        write!(f, "{words} {times} of {}: {}", count(*of, "time"), departures)
    }
}
