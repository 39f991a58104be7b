//! Watches ports while traffic runs: their state, their counters and their optics.
//!
//! The agent reads the state of every watched port ten times a second and its counters once a second, and keeps the results until it is
//! asked. It uses at most a hundredth of a processor: where reads take longer, it reads less often. Every row has its time span.
//!
//! Replacing or ending a watch discards what was not asked for: ask [`Ask::Watched`](crate::message::Ask::Watched) first.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    gather::Gather,
    unit::{GigabitsPerSecond, Nanoseconds},
};

pub const STATE_EVERY: Duration = Duration::from_millis(100);
pub const COUNTERS_EVERY: Duration = Duration::from_secs(1);
pub const LARGEST_SHARE: f64 = 0.01;

/// Interval at which the controller asks an agent for its results.
pub const ASK_EVERY: Duration = Duration::from_secs(5);
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A longer time without a look is listed in [`PortSeen::gaps`]: agents look ten times a second, and twenty missed looks are not chance.
pub const LONG_GAP: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct WatchedPort {
    pub device: String,
    /// Port of the RDMA device; 1 for an interface.
    pub port: u8,
}

/// What was seen since the watch began, or since the last question. Times are of one clock: the agent's CLOCK_MONOTONIC_RAW on the wire;
/// in the journal nanoseconds since 1970 by the controller's clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    pub from: Nanoseconds,
    pub until: Nanoseconds,
    /// CPU time of the watching thread in the span.
    pub cpu: Nanoseconds,
    pub ports: Vec<PortSeen>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortSeen {
    pub device: String,
    /// Port of the RDMA device; 1 for an interface.
    pub port: u8,
    pub looks: u64,
    /// Longest time between two looks, from the last look before the span to the first one after its end as far as known. A shorter break
    /// may be missed, unless a counter shows it.
    pub longest_gap: Nanoseconds,
    /// Every time without a look that was longer than [`LONG_GAP`] and ended in the span or was open at its end, in order of time. It may
    /// have begun before the span; an open one is in the next answer again, whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// The state at the first look of the watch, and every change in the span, in order of time. A break between two looks that only the
    /// kernel's count of breaks shows is a change and one back, both between the two. If there were too many, the last entry is the
    /// latest, and `failure` has the number missing before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<PortState>,
    /// Counts in order of their ends. Rows are of two kinds ([`CounterRow::is_of_statistics`]) with different names and overlapping
    /// spans. Rows of one kind have no gaps between them; empty rows are included. Old rows that were not asked for are joined into
    /// longer ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<CounterRow>,
    /// Why the last failed look in the span failed, and what else is missing here. `looks` excludes failed looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gap {
    /// The last look before it.
    pub from: Nanoseconds,
    /// The first look after it, or the end of the span if still open.
    pub until: Nanoseconds,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortState {
    /// The last look that still saw the state before; equal to `at` at the first look of a watch.
    pub after: Nanoseconds,
    /// The look that saw this state first. The change was between the two.
    pub at: Nanoseconds,
    /// Whether traffic can pass: the RDMA port is active and the interface has a carrier, as far as either exists. For InfiniBand only
    /// the port's own state counts, as IPoIB may be unused. An unreadable port is not up.
    pub up: bool,
    /// `None` where it is not reported, as for a port that is down.
    pub rate_gbps: Option<GigabitsPerSecond>,
    /// Lanes, where the rate says them (`4X`).
    pub lanes: Option<u8>,
    /// Contents of the kernel's files, as `state 4: ACTIVE, phys_state 5: LinkUp, carrier 1`; or which of them cannot be read, and why.
    pub words: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterRow {
    pub from: Nanoseconds,
    pub until: Nanoseconds,
    /// Rises, by the names of [`crate::message::Answer::Counters`], without counters that did not rise, were reset, or are of single
    /// queues ([`of_one_queue`]). The first row of either kind has every counter.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, u64>,
    /// Largest rise per second of any reading that was joined into this row; empty for a single reading.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peaks: BTreeMap<String, f64>,
    /// Last readings of the row that are not counts, with their unit in the name: `module/temperature_c`, `module/rx_power_dbm_lane1`,
    /// `module/bias_ma_lane1`, `module/voltage_v`. `saturated/NAME` is the largest value of a counter that is stuck there, set when that
    /// is seen; [`STATISTICS`] marks a row of drivers' statistics.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, f64>,
}

/// In every row of drivers' statistics: how many statistics were read.
pub const STATISTICS: &str = "ethtool/statistics";

impl CounterRow {
    /// Whether it holds drivers' statistics (`ethtool/…`). They cost more and are read less often than the other counters, so their spans
    /// are longer.
    pub fn is_of_statistics(&self) -> bool {
        self.gauges.contains_key(STATISTICS)
    }

    /// Joins this row and the next one of the same kind: sums of rises, largest rise per second, later gauges.
    pub fn joined(mut self, next: Self) -> Self {
        let own = self.own_peaks().into_iter().chain(next.own_peaks());
        for (name, peak) in own.chain(next.peaks) {
            let known = self.peaks.entry(name).or_insert(peak);
            *known = known.max(peak);
        }
        for (name, rise) in next.counted {
            let sum = self.counted.entry(name).or_default();
            *sum = sum.saturating_add(rise);
        }
        self.gauges.extend(next.gauges);
        self.until = next.until;
        self
    }

    /// Rises per second of counters without a peak. An early reading counts as a full second, so that it does not inflate the rate.
    fn own_peaks(&self) -> BTreeMap<String, f64> {
        let seconds = self.until.saturating_sub(self.from).seconds().max(1.0);
        let rose = self.counted.iter().filter(|(name, rise)| **rise > 0 && !self.peaks.contains_key(*name));
        rose.map(|(name, rise)| (name.clone(), *rise as f64 / seconds)).gathered()
    }
}

/// A driver's statistic of a single queue or channel, as `ethtool/rx12_packets`: there are hundreds, and their sums have their own names.
pub fn of_one_queue(name: &str) -> bool {
    const QUEUES: [&str; 8] = ["rx", "tx", "ch", "rx_queue_", "tx_queue_", "rx-", "tx-", "queue_"];
    let plain = crate::drivers::of_member(name).map_or(name, |(_, plain)| plain);
    let Some(name) = plain.strip_prefix("ethtool/") else { return false };
    let numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    QUEUES.iter().any(|start| name.strip_prefix(start).is_some_and(numbered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_told_from_priorities() {
        for queue in ["ethtool/rx12_packets", "ethtool/tx_queue_0_bytes", "members/eth1/ethtool/ch3_poll"] {
            assert!(of_one_queue(queue), "{queue}");
        }
        for other in ["ethtool/rx_prio3_pause", "hw_counters/rx0", "members/eth1/netdev/rx_bytes"] {
            assert!(!of_one_queue(other), "{other}");
        }
    }

    #[test]
    fn rows_of_statistics_say_so() {
        let row = CounterRow { gauges: [(STATISTICS.to_owned(), 7.0)].into(), ..CounterRow::default() };
        assert!(row.is_of_statistics() && !CounterRow::default().is_of_statistics());
    }
}
