//! What was read of a GPU, and what of it a case is told.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::{
    gpu_state::{GpuReading, GpuSeen, Hold, PcieSeen, Range, SERIES},
    unit::Nanoseconds,
};

/// Most readings that are kept of a GPU. Where there are more, each two neighbours become one.
const KEPT: usize = 4096;

/// Readings of a GPU in the order of time.
#[derive(Debug, Clone, Default)]
pub(super) struct History(Vec<GpuReading>);

impl History {
    pub(super) fn push(&mut self, reading: GpuReading) {
        self.0.push(reading);
        if self.0.len() > KEPT {
            self.0 = joined(std::mem::take(&mut self.0), 2);
        }
    }

    /// Forgets what was read before a moment, but for the last of it.
    pub(super) fn forget(&mut self, before: Nanoseconds) {
        let old = self.0.partition_point(|reading| reading.at < before);
        self.0.drain(..old.saturating_sub(1));
    }

    /// What was read from a moment on, with the last reading before it.
    pub(super) fn since(&self, from: Nanoseconds) -> Vec<GpuReading> {
        let first = self.0.partition_point(|reading| reading.at <= from).saturating_sub(1);
        self.0[first..].to_vec()
    }
}

fn joined(readings: Vec<GpuReading>, each: usize) -> Vec<GpuReading> {
    let mut left = readings.into_iter();
    let mut next = || left.by_ref().take(each.max(1)).reduce(GpuReading::joined);
    std::iter::from_fn(&mut next).collect()
}

/// What is told of these readings: of those in the pass, with the last one before it and the first one after it.
pub(super) fn seen(
    pci: &str,
    readings: &[GpuReading],
    pass: (Nanoseconds, Nanoseconds),
    best_pcie: Option<(u32, u32)>,
) -> GpuSeen {
    let from = readings.partition_point(|reading| reading.at < pass.0);
    let until = readings.partition_point(|reading| reading.at <= pass.1).max(from);
    let during = &readings[from..until];
    let range = |value: fn(&GpuReading) -> Option<f64>| Range::of(during.iter().filter_map(value));
    let series = joined(during.to_vec(), during.len().div_ceil(SERIES));
    let (before, after) = (readings[..from].last(), readings.get(until));
    GpuSeen {
        pci: pci.to_owned(),
        pass,
        readings: during.len() as u64,
        sm_mhz: range(|reading| reading.sm_mhz.map(f64::from)),
        memory_mhz: range(|reading| reading.memory_mhz.map(f64::from)),
        watts: range(|reading| reading.watts),
        celsius: range(|reading| reading.celsius.map(f64::from)),
        memory_celsius: range(|reading| reading.memory_celsius.map(f64::from)),
        held: held(during),
        pcie: pcie(during, best_pcie),
        others: during.iter().filter_map(|reading| reading.others).max(),
        series: before.cloned().into_iter().chain(series).chain(after.cloned()).collect(),
        ..GpuSeen::default()
    }
}

/// In how many readings what held clocks down; `None` where none tells.
fn held(during: &[GpuReading]) -> Option<BTreeMap<Hold, u64>> {
    let told: Vec<&BTreeSet<Hold>> = during.iter().filter_map(|reading| reading.held.as_ref()).collect();
    let mut times = BTreeMap::new();
    told.iter().copied().flatten().for_each(|hold| *times.entry(*hold).or_default() += 1);
    (!told.is_empty()).then_some(times)
}

fn pcie(during: &[GpuReading], best: Option<(u32, u32)>) -> Option<PcieSeen> {
    let links = || during.iter().filter_map(|reading| reading.pcie);
    let span = |of: fn((u32, u32)) -> u32| Some((links().map(of).min()?, links().map(of).max()?));
    Some(PcieSeen { generation: span(|link| link.0)?, width: span(|link| link.1)?, best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(second: u64, sm: u32, held: &[Hold]) -> GpuReading {
        GpuReading {
            at: Nanoseconds::from_secs(second),
            sm_mhz: Some(sm),
            held: Some(held.iter().copied().collect()),
            pcie: Some((if sm > 1000 { 5 } else { 1 }, 16)),
            ..GpuReading::default()
        }
    }

    fn between(from: u64, until: u64) -> (Nanoseconds, Nanoseconds) {
        (Nanoseconds::from_secs(from), Nanoseconds::from_secs(until))
    }

    #[test]
    fn values_are_of_the_pass_and_the_neighbours_are_in_the_series() {
        let readings = [
            reading(1, 300, &[]),
            reading(2, 1980, &[Hold::PowerCap]),
            reading(3, 1500, &[Hold::PowerCap, Hold::HotHardware]),
            reading(4, 1700, &[]),
            reading(5, 310, &[]),
            reading(6, 305, &[]),
        ];
        let seen = seen("0000:1b:00.0", &readings, between(2, 4), Some((5, 16)));
        assert_eq!((seen.readings, seen.sm_mhz.unwrap()), (3, Range { min: 1500.0, median: 1700.0, max: 1980.0 }));
        assert_eq!(seen.held.unwrap(), [(Hold::PowerCap, 2), (Hold::HotHardware, 1)].into());
        assert_eq!(seen.pcie.unwrap(), PcieSeen { generation: (5, 5), width: (16, 16), best: Some((5, 16)) });
        let moments: Vec<u64> = seen.series.iter().map(|reading| reading.at.0 / 1_000_000_000).collect();
        assert_eq!(moments, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_pass_without_a_reading_says_so() {
        let seen = seen("0000:1b:00.0", &[reading(1, 300, &[]), reading(9, 310, &[])], between(3, 4), None);
        assert_eq!((seen.readings, seen.sm_mhz, seen.held, seen.pcie, seen.series.len()), (0, None, None, None, 2));
    }

    #[test]
    fn a_long_pass_is_told_in_few_readings_that_lose_no_hold() {
        let mut history = History::default();
        for second in 0..3 * KEPT as u64 {
            history.push(reading(second, 1980, if second == 777 { &[Hold::PowerBrake] } else { &[] }));
        }
        let kept = history.since(Nanoseconds::ZERO);
        assert!(kept.len() <= KEPT);
        let seen = seen("0000:1b:00.0", &kept, between(0, 1 << 20), None);
        assert_eq!(seen.held.unwrap(), [(Hold::PowerBrake, 1)].into());
        assert!(seen.series.len() <= SERIES);
        assert_eq!(seen.series.iter().filter(|one| one.held.as_ref().is_some_and(|held| !held.is_empty())).count(), 1);
    }

    #[test]
    fn what_is_forgotten_leaves_the_last_reading_before() {
        let mut history = History::default();
        (0..10).for_each(|second| history.push(reading(second, 1980, &[])));
        history.forget(Nanoseconds::from_secs(5));
        assert_eq!(history.since(Nanoseconds::ZERO)[0].at, Nanoseconds::from_secs(4));
        assert_eq!(history.since(Nanoseconds::from_secs(7)).len(), 3);
    }
}
