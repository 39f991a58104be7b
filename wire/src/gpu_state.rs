//! The state of GPUs during a case: clocks, power, temperatures, reasons for lower clocks, the PCIe link, and errors that the driver
//! counts.
//!
//! A thread of the agent reads NVML or AMD SMI: when a case begins, when it ends, and once a second in between. If the timed pass is
//! shorter than two seconds, it reads twice within it, at most ten times a second. The readings of the timed pass become one [`GpuSeen`]
//! for each GPU. Times are of the agent's CLOCK_MONOTONIC_RAW.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::unit::Nanoseconds;

pub const EVERY: Duration = Duration::from_secs(1);
pub const EVERY_AT_LEAST: Duration = Duration::from_millis(100);
/// How long an agent waits for the last reading of a case before it answers without: a failing driver may block for minutes, and AMD SMI
/// takes a tenth of a second for each GPU.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Most GPUs in one answer: more than any host has.
pub const MOST: usize = 64;
pub const MOST_XIDS: usize = 16;

/// Xids that a program's own error causes (NVIDIA, XID Errors), with a healthy GPU.
const OF_PROGRAMS: [u32; 4] = [13, 31, 43, 45];

pub fn is_of_program(xid: u32) -> bool {
    OF_PROGRAMS.contains(&xid)
}

pub mod counter {
    /// Packets of the PCIe link that were sent again (`NVML_FI_DEV_PCIE_REPLAY_COUNTER`).
    pub const PCIE_REPLAYS: &str = "pcie/replays";
    pub const NVLINK_REPLAYS: &str = "nvlink/replays";
    pub const NVLINK_RECOVERIES: &str = "nvlink/recoveries";
    pub const NVLINK_CRC: &str = "nvlink/crc_errors";
    /// Errors of the GPU's memories since the driver was loaded.
    pub const ECC_CORRECTED: &str = "ecc/corrected";
    pub const ECC_UNCORRECTED: &str = "ecc/uncorrected";
    /// Rows of memory replaced by spare ones, after errors of either kind.
    pub const ROWS_REMAPPED: &str = "rows/remapped";
    /// Queries that AMD's driver answered with an error of xGMI links since the query before.
    pub const XGMI_ERRORS: &str = "xgmi/errors";
    pub const ALL: [&str; 8] = [
        PCIE_REPLAYS,
        NVLINK_REPLAYS,
        NVLINK_RECOVERIES,
        NVLINK_CRC,
        ECC_CORRECTED,
        ECC_UNCORRECTED,
        ROWS_REMAPPED,
        XGMI_ERRORS,
    ];
}

/// What lowers a GPU's clocks (`nvmlClocksEventReasons`; for AMD's GPUs only power limit and heat). Excludes idle GPUs and clocks set by
/// a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    PowerCap,
    /// The hardware halves the clocks, or more, for heat or power.
    HardwareSlowdown,
    SyncBoost,
    HotDriver,
    HotHardware,
    PowerBrake,
}

impl Hold {
    pub const ALL: [Self; 6] =
        [Self::PowerCap, Self::HardwareSlowdown, Self::SyncBoost, Self::HotDriver, Self::HotHardware, Self::PowerBrake];

    pub const fn words(self) -> &'static str {
        match self {
            Self::PowerCap => crate::facts::POWER_CAP,
            Self::HardwareSlowdown => "hardware slowdown",
            Self::SyncBoost => "sync boost",
            Self::HotDriver => "too hot (driver)",
            Self::HotHardware => "too hot (hardware)",
            Self::PowerBrake => "power brake",
        }
    }

    /// Whether heat or the power supply causes it: a healthy host has neither.
    pub const fn is_bad(self) -> bool {
        !matches!(self, Self::PowerCap | Self::SyncBoost)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Range {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Range {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        Some(Self { min, median, max })
    }
}

/// Both joined, or the one that is known.
fn either<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

fn merged<K: Ord>(mut all: BTreeMap<K, u64>, more: BTreeMap<K, u64>, join: fn(u64, u64) -> u64) -> BTreeMap<K, u64> {
    for (key, count) in more {
        let own = all.entry(key).or_default();
        *own = join(*own, count);
    }
    all
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct GpuReading {
    pub at: Nanoseconds,
    pub sm_mhz: Option<u32>,
    pub memory_mhz: Option<u32>,
    pub watts: Option<f64>,
    pub celsius: Option<u32>,
    pub memory_celsius: Option<u32>,
    pub held: Option<BTreeSet<Hold>>,
    pub pcie: Option<(u32, u32)>,
    /// Programs with a context on it, without the agent and what it started; for joined readings, the most. `None` where NVML does not
    /// list the agent itself, as between two PID namespaces and while the agent has no context.
    pub others: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PcieSeen {
    /// Lowest and highest. An idle GPU lowers the generation, and raises it when bytes pass.
    pub generation: (u32, u32),
    pub width: (u32, u32),
    /// Best generation and width of the GPU in this slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<(u32, u32)>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuSeen {
    pub pci: String,
    /// NVML's index.
    pub index: Option<u32>,
    /// The timed pass, or the whole case if it has none.
    pub pass: (Nanoseconds, Nanoseconds),
    /// Readings in the pass. The fields below are of these alone, except counts.
    pub readings: u64,
    pub sm_mhz: Option<Range>,
    pub memory_mhz: Option<Range>,
    /// Highest clock of the multiprocessors and of the memory in MHz.
    pub best_mhz: Option<(u32, u32)>,
    pub watts: Option<Range>,
    pub limit_watts: Option<f64>,
    pub celsius: Option<Range>,
    pub memory_celsius: Option<Range>,
    pub held: Option<BTreeMap<Hold, u64>>,
    pub pcie: Option<PcieSeen>,
    /// Most other programs with a context on it, as [`GpuReading::others`].
    pub others: Option<u32>,
    /// Counts from the last reading before the pass to the first one after it, by [`counter`]. A missing name means that this GPU does
    /// not count it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, u64>,
    /// AMD's driver has no Xids.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_amd: bool,
    /// Xids of it from start to end of the case; `None` where the driver sends none to this process.
    pub xids: Option<Vec<u32>>,
    /// Whether NVML lost it meanwhile: it fell off the bus, or its driver gave it up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    pub failure: Option<String>,
}

impl GpuReading {
    /// Joins two readings: the later values, and all reasons of either.
    pub fn joined(self, next: Self) -> Self {
        let held = either(self.held, next.held, |before, after| before.into_iter().chain(after).collect());
        Self { held, others: self.others.max(next.others), ..next }
    }
}

impl GpuSeen {
    /// Joins two windows. Medians are means of both, weighted by readings. Counts are the largest rise in one window: what a healthy GPU
    /// does now and then must not add up over many.
    pub fn joined(mut self, mut next: Self) -> Self {
        if self == Self::default() {
            return next;
        }
        let (n, m) = (self.readings.max(1) as f64, next.readings.max(1) as f64);
        let range = |a: Range, b: Range| {
            let median = a.median + (b.median - a.median) * (m / (n + m));
            Range { min: a.min.min(b.min), median, max: a.max.max(b.max) }
        };
        for (own, of_next) in self.ranges().into_iter().zip(next.ranges()) {
            *of_next = either(*own, *of_next, range);
        }
        let hull = |a: (u32, u32), b: (u32, u32)| (a.0.min(b.0), a.1.max(b.1));
        let pcie = |a: PcieSeen, b: PcieSeen| PcieSeen {
            generation: hull(a.generation, b.generation),
            width: hull(a.width, b.width),
            best: b.best.or(a.best),
        };
        Self {
            index: next.index.or(self.index),
            pass: (self.pass.0.min(next.pass.0), self.pass.1.max(next.pass.1)),
            readings: added(self.readings, next.readings),
            best_mhz: next.best_mhz.or(self.best_mhz),
            limit_watts: next.limit_watts.or(self.limit_watts),
            held: either(self.held, next.held, |all, more| merged(all, more, added)),
            pcie: either(self.pcie, next.pcie, pcie),
            others: self.others.max(next.others),
            counted: merged(self.counted, next.counted, u64::max),
            xids: either(self.xids, next.xids, all_xids),
            is_amd: self.is_amd || next.is_amd,
            lost: self.lost || next.lost,
            failure: next.failure.or(self.failure),
            ..next
        }
    }

    const fn ranges(&mut self) -> [&mut Option<Range>; 5] {
        [&mut self.sm_mhz, &mut self.memory_mhz, &mut self.watts, &mut self.celsius, &mut self.memory_celsius]
    }
}

/// Limited to what a journal's reader accepts.
fn added(one: u64, other: u64) -> u64 {
    one.saturating_add(other).min(1 << 60)
}

/// Xids of both without duplicates; those of a bad GPU first, so that those of programs do not crowd them out.
fn all_xids(mut all: Vec<u32>, more: Vec<u32>) -> Vec<u32> {
    all.extend(more);
    all.sort_unstable_by_key(|xid| (is_of_program(*xid), *xid));
    all.dedup();
    all.truncate(MOST_XIDS);
    all
}

/// Joins the views of several flows of a host, some concurrent: readings are those of the flow that has most.
pub fn beside(seen: impl IntoIterator<Item = GpuSeen>) -> GpuSeen {
    seen.into_iter().fold(GpuSeen::default(), |one, other| {
        let readings = one.readings.max(other.readings);
        let held = either(one.held.clone(), other.held.clone(), |all, more| merged(all, more, u64::max));
        GpuSeen { readings, held, ..one.joined(other) }
    })
}

/// Limits untrusted data of an agent to possible values and to the sizes of our own agents.
pub fn bounded(mut gpus: Vec<GpuSeen>) -> Vec<GpuSeen> {
    gpus.truncate(MOST);
    for seen in &mut gpus {
        seen.counted.retain(|name, _| counter::ALL.contains(&name.as_str()));
        seen.pass.1 = seen.pass.1.max(seen.pass.0);
        if let Some(xids) = &mut seen.xids {
            xids.truncate(MOST_XIDS);
        }
        // A reason cannot hold in more readings than there were.
        let readings = seen.readings;
        if let Some(held) = &mut seen.held {
            held.values_mut().for_each(|times| *times = (*times).min(readings));
        }
        for value in seen.ranges() {
            *value = value.filter(|range| range.min <= range.median && range.median <= range.max);
        }
    }
    gpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_of_numbers_alone() {
        let range = Range::of([3.0, f64::NAN, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!((range.min, range.median, range.max), (1.0, 2.5, 10.0));
        assert_eq!(Range::of([f64::INFINITY]), None);
    }

    #[test]
    fn what_held_clocks_down_is_not_lost_where_readings_become_one() {
        let reading = |at, held: &[Hold]| GpuReading {
            at: Nanoseconds(at),
            held: Some(held.iter().copied().collect()),
            ..GpuReading::default()
        };
        let joined = reading(1, &[Hold::HotHardware]).joined(reading(2, &[Hold::PowerCap]));
        assert_eq!(joined, reading(2, &[Hold::PowerCap, Hold::HotHardware]));
        let unknown = GpuReading { at: Nanoseconds(3), ..GpuReading::default() };
        assert_eq!(joined.joined(unknown).held.unwrap().len(), 2);
    }

    #[test]
    fn an_agent_tells_no_more_than_one_of_ours() {
        let seen = GpuSeen {
            readings: 3,
            pass: (Nanoseconds(9), Nanoseconds(2)),
            held: Some([(Hold::PowerBrake, 400)].into()),
            counted: [("made/up".to_owned(), 3), (counter::PCIE_REPLAYS.to_owned(), 5)].into(),
            watts: Some(Range { min: 5.0, median: 1.0, max: 9.0 }),
            xids: Some(vec![79; 400]),
            ..GpuSeen::default()
        };
        let gpus = bounded(vec![seen; 1000]);
        assert_eq!(gpus.len(), MOST);
        let seen = &gpus[0];
        assert_eq!(seen.xids.as_ref().unwrap().len(), MOST_XIDS);
        assert_eq!(seen.held.as_ref().unwrap()[&Hold::PowerBrake], 3);
        assert!(seen.counted.len() == 1 && seen.watts.is_none() && seen.pass.0 == seen.pass.1);
    }

    #[test]
    fn holds_have_the_words_of_the_facts() {
        let words: BTreeSet<&str> = Hold::ALL.iter().map(|hold| hold.words()).collect();
        assert!(words.len() == Hold::ALL.len() && words.contains(crate::facts::POWER_CAP));
        assert!(!Hold::PowerCap.is_bad() && Hold::HotDriver.is_bad());
    }

    #[test]
    fn two_windows_are_told_as_one() {
        let range = |min: f64, median: f64, max: f64| Some(Range { min, median, max });
        let one = GpuSeen {
            pci: "0000:1b:00.0".into(),
            index: Some(3),
            pass: (Nanoseconds(5), Nanoseconds(9)),
            readings: 3,
            watts: range(300.0, 400.0, 500.0),
            held: Some([(Hold::PowerCap, 3)].into()),
            counted: [(counter::PCIE_REPLAYS.to_owned(), 2)].into(),
            xids: Some(vec![31]),
            ..GpuSeen::default()
        };
        let next = GpuSeen {
            pass: (Nanoseconds(10), Nanoseconds(20)),
            readings: 1,
            watts: range(350.0, 440.0, 600.0),
            held: Some([(Hold::PowerCap, 1), (Hold::HotDriver, 1)].into()),
            xids: Some(vec![79]),
            lost: true,
            ..one.clone()
        };
        let both = one.clone().joined(next);
        assert_eq!((both.pass, both.readings, both.index), ((Nanoseconds(5), Nanoseconds(20)), 4, Some(3)));
        assert_eq!(both.watts, range(300.0, 410.0, 600.0));
        assert_eq!(both.held, Some([(Hold::PowerCap, 4), (Hold::HotDriver, 1)].into()));
        assert_eq!((both.counted[counter::PCIE_REPLAYS], both.xids), (2, Some(vec![79, 31])));
        assert!(both.lost);
        // A value missing in one window is that of the other.
        let silent = GpuSeen { failure: Some("NVML is not there".into()), ..GpuSeen::default() };
        let told = silent.joined(one);
        assert_eq!((told.watts, told.failure.as_deref()), (range(300.0, 400.0, 500.0), Some("NVML is not there")));
    }

    #[test]
    fn what_two_flows_saw_of_a_gpu_at_once_happened_once() {
        let one = GpuSeen {
            readings: 2,
            counted: [(counter::PCIE_REPLAYS.to_owned(), 2)].into(),
            xids: Some(vec![79]),
            ..GpuSeen::default()
        };
        let other = GpuSeen {
            counted: [(counter::PCIE_REPLAYS.to_owned(), 3)].into(),
            xids: Some(vec![31, 79]),
            ..one.clone()
        };
        let both = beside([one, other]);
        assert_eq!((both.counted[counter::PCIE_REPLAYS], both.xids, both.readings), (3, Some(vec![79, 31]), 2));
        // Sixteen errors of programs do not hide an ill GPU.
        let program = GpuSeen { xids: Some(vec![31; MOST_XIDS]), ..GpuSeen::default() };
        let ill = GpuSeen { xids: Some(vec![79]), ..GpuSeen::default() };
        assert_eq!(program.joined(ill).xids, Some(vec![79, 31]));
    }
}
