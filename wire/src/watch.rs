//! Ports watched while traffic runs: whether they are up, what they count, and what their optics say.
//!
//! The agent looks at the state of every watched port ten times a second and at its counters once a second, and keeps what it saw
//! until it is asked. It spends at most a hundredth of a processor: where reading takes longer than that allows, it reads less often,
//! and every row says which time it covers.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::unit::{GigabitsPerSecond, Nanoseconds};

/// Time between two looks at the state of a port, where they cost little.
pub const STATE_EVERY: Duration = Duration::from_millis(100);
/// Time between two readings of the counters of a port, where they cost little.
pub const COUNTERS_EVERY: Duration = Duration::from_secs(1);
/// Largest share of a processor that watching takes.
pub const LARGEST_SHARE: f64 = 0.01;

/// A port to watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WatchedPort {
    /// RDMA device or network interface.
    pub device: String,
    /// Port of the RDMA device; 1 for an interface.
    pub port: u8,
}

/// What was seen since the watch began, or since it was asked last. Times are of one clock: the agent's CLOCK_MONOTONIC_RAW on the
/// wire; in the journal nanoseconds since 1970 by the controller's clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    /// Begin of the span.
    pub from: Nanoseconds,
    /// Its end: when the answer was made.
    pub until: Nanoseconds,
    /// CPU time of the watching thread in the span.
    pub cpu: Nanoseconds,
    /// The ports, in the order in which they were asked for.
    pub ports: Vec<PortSeen>,
}

/// What was seen of one port in the span.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortSeen {
    /// RDMA device or network interface.
    pub device: String,
    /// Port of the RDMA device; 1 for an interface.
    pub port: u8,
    /// How often its state was looked at.
    pub looks: u64,
    /// Longest time between two looks, counted from the last look before the span to the first one after its end as far as known. A
    /// break shorter than that may have been missed, unless a counter tells of it.
    pub longest_gap: Nanoseconds,
    /// Its state at the first look of the watch, and every change of it in the span, in the order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<PortState>,
    /// What it counted, in the order of time. Rows follow each other without a gap; one in which nothing was counted is there too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<CounterRow>,
    /// Why it could not be looked at, the last time that it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The state of a port as of a look.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortState {
    /// The last look that still saw the state before; equal to `at` at the first look of a watch.
    pub after: Nanoseconds,
    /// The look that saw this state first. The change was between the two.
    pub at: Nanoseconds,
    /// Whether traffic can pass: the RDMA port is active and the interface has a carrier, as far as there is one and the other.
    pub up: bool,
    /// Rate of the port; `None` where it is not told, as of a port that is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_gbps: Option<GigabitsPerSecond>,
    /// Lanes, where the rate says them (`4X`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u8>,
    /// What the kernel's files say, as `state 4: ACTIVE, phys_state 5: LinkUp, carrier 1`.
    pub words: String,
}

/// What a port counted between two readings of its counters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterRow {
    /// The reading before.
    pub from: Nanoseconds,
    /// This reading.
    pub until: Nanoseconds,
    /// Rises, by the names that [`crate::message::Answer::Counters`] has; what did not rise is left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, u64>,
    /// Largest rise per second of any reading that was joined into this row; empty for a single reading.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peaks: BTreeMap<String, f64>,
    /// Readings that are no counts, with their unit in the name: `module/temperature_c`, `module/rx_power_dbm_lane1`,
    /// `module/bias_ma_lane1`, `module/voltage_v`. The last of the row.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, f64>,
}
