//! Ports watched while traffic runs: whether they are up, what they count, and what their optics say.
//!
//! The agent looks at the state of every watched port ten times a second and at its counters once a second, and keeps what it saw
//! until it is asked. It spends at most a hundredth of a processor: where reading takes longer than that allows, it reads less often,
//! and every row says which time it covers.
//!
//! Where a shorter time between two readings is asked for, all counters are read at that pace, drivers' statistics too, for at most a tenth
//! of a processor. Rows then leave out what passes anyway ([`is_volume`](crate::drivers::is_volume)), and those in which nothing rose
//! are joined, so that they stay few.
//!
//! A watch that is replaced or ended takes with it what was not asked for: [`Ask::Watched`](crate::message::Ask::Watched) comes first.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    gather::Gather,
    unit::{GigabitsPerSecond, Nanoseconds},
};

/// Time between two looks at the state of a port, where they cost little.
pub const STATE_EVERY: Duration = Duration::from_millis(100);
/// Time between two readings of the counters of a port, where they cost little.
pub const COUNTERS_EVERY: Duration = Duration::from_secs(1);
/// Largest share of a processor that watching takes.
pub const LARGEST_SHARE: f64 = 0.01;

/// Largest share of a processor that watching takes where a time between two readings is asked for
/// ([`Ask::Watch`](crate::message::Ask::Watch)).
pub const LARGEST_SHARE_ASKED: f64 = 0.1;

/// Time between two questions to an agent for what it saw of its ports.
pub const ASK_EVERY: Duration = Duration::from_secs(5);
/// How long an agent may take to answer such a question.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A time without a look at a port that is longer than this is told by itself ([`PortSeen::gaps`]): agents look ten times a second, and
/// twenty missed looks are no chance.
pub const LONG_GAP: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct WatchedPort {
    pub device: String,
    /// Port of the RDMA device; 1 for an interface.
    pub port: u8,
}

/// What was seen since the watch began, or since it was asked last. Times are of one clock: the agent's CLOCK_MONOTONIC_RAW on the
/// wire; in the journal nanoseconds since 1970 by the controller's clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    pub from: Nanoseconds,
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
    pub device: String,
    /// Port of the RDMA device; 1 for an interface.
    pub port: u8,
    pub looks: u64,
    /// Longest time between two looks, counted from the last look before the span to the first one after its end as far as known. A
    /// break shorter than that may have been missed, unless a counter tells of it.
    pub longest_gap: Nanoseconds,
    /// Every time without a look that was longer than [`LONG_GAP`] and ended in the span or went on at its end, in the order of time. It may
    /// have begun before the span, and one that goes on is there again in the next answer, whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Its state at the first look of the watch, and every change of it in the span, in the order of time. A break that came and went
    /// between two looks, of which the kernel's count of breaks tells, is a change and one back, both between the two. Where there were too many,
    /// the last one is the latest, and `failure` says how many are missing before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<PortState>,
    /// What it counted, in the order of their ends. Rows are of two kinds ([`CounterRow::is_of_statistics`]), whose names differ and
    /// whose spans overlap. Those of one kind follow each other without a gap; one in which nothing was counted is there too. Old
    /// rows that nobody asked for are joined into longer ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<CounterRow>,
    /// Why it could not be looked at, the last time in the span that it could not, and what else is missing here. A look that failed is
    /// none of `looks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A time without a look at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gap {
    /// The last look before it.
    pub from: Nanoseconds,
    /// The first look after it, or the end of the span where it goes on.
    pub until: Nanoseconds,
}

/// The state of a port as of a look.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortState {
    /// The last look that still saw the state before; equal to `at` at the first look of a watch.
    pub after: Nanoseconds,
    /// The look that saw this state first. The change was between the two.
    pub at: Nanoseconds,
    /// Whether traffic can pass: the RDMA port is active and the interface has a carrier, as far as there is one and the other. Of an
    /// InfiniBand port its own state alone counts, as IPoIB may be unused. A port that cannot be read is not up.
    pub up: bool,
    /// Rate of the port; `None` where it is not told, as of a port that is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_gbps: Option<GigabitsPerSecond>,
    /// Lanes, where the rate says them (`4X`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u8>,
    /// What the kernel's files say, as `state 4: ACTIVE, phys_state 5: LinkUp, carrier 1`; or which of them cannot be read, and why.
    pub words: String,
}

/// What a port counted between two readings of its counters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterRow {
    pub from: Nanoseconds,
    pub until: Nanoseconds,
    /// Rises, by the names that [`crate::message::Answer::Counters`] has; what did not rise is left out, and so are counters of single
    /// queues ([`of_one_queue`]) and those that were reset. The first row of either kind has every counter that there is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, u64>,
    /// Largest rise per second of any reading that was joined into this row; empty for a single reading.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peaks: BTreeMap<String, f64>,
    /// Readings that are no counts, with their unit in the name: `module/temperature_c`, `module/rx_power_dbm_lane1`,
    /// `module/bias_ma_lane1`, `module/voltage_v`. The last of the row. `saturated/NAME` is the largest value of a counter that stands
    /// at it and rises no more, told when that is seen; [`STATISTICS`] marks a row of drivers' statistics.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, f64>,
}

/// The gauge that every row of drivers' statistics has: how many statistics were read.
pub const STATISTICS: &str = "ethtool/statistics";

impl CounterRow {
    /// Whether it holds what drivers' statistics (`ethtool/…`) counted; other rows hold what all other counters did. They cost more and
    /// are read less often, so that their spans are longer.
    #[must_use]
    pub fn is_of_statistics(&self) -> bool {
        self.gauges.contains_key(STATISTICS)
    }

    /// This row and the next one of the same kind as one: the sums of their rises, the largest rise per second of either, the later
    /// gauges.
    #[must_use]
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

    /// Rises per second of what has no peak yet. A reading that came early makes no rise faster than it is in a second.
    fn own_peaks(&self) -> BTreeMap<String, f64> {
        let seconds = self.until.saturating_sub(self.from).seconds().max(1.0);
        let rose = self.counted.iter().filter(|(name, rise)| **rise > 0 && !self.peaks.contains_key(*name));
        rose.map(|(name, rise)| (name.clone(), *rise as f64 / seconds)).gathered()
    }
}

/// Whether a counter is a driver's statistic of a single queue or channel, as `ethtool/rx12_packets`: there are hundreds, and their
/// sums have names of their own.
#[must_use]
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
