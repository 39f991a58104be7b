//! Results of the ranks of a collective: the slowest of each batch, the distribution of their times, the state of their GPUs.

use std::collections::BTreeMap;

use railgauge_model::journal::event::GpuDuring;
use railgauge_wire::{CollectiveMeasurement, Latency, Nanoseconds, NanosecondsF64};

pub(super) fn gpus<'a>(ranks: impl Iterator<Item = (&'a str, &'a CollectiveMeasurement)>) -> Vec<GpuDuring> {
    let seen = ranks.filter_map(|(host, account)| Some((host, account.gpu.as_deref()?)));
    seen.map(|(host, seen)| GpuDuring { host: host.to_owned(), seen: seen.clone() }).collect()
}

/// For each batch the time of its slowest rank; `None` without batches, or if they differ between ranks.
pub(super) fn slowest(ranks: &[&[Nanoseconds]]) -> Option<Vec<Nanoseconds>> {
    let first = ranks.first().filter(|times| !times.is_empty())?;
    let same = ranks.iter().all(|times| times.len() == first.len() && times.iter().all(|time| !time.is_zero()));
    same.then(|| (0..first.len()).map(|at| ranks.iter().map(|times| times[at]).max().unwrap_or_default()).collect())
}

/// The distribution of the time of one operation, from the times of batches of `batch` operations. Percentiles by nearest rank: the
/// smallest sample that is not below that share of all samples.
pub(super) fn distribution(times: &[Nanoseconds], batch: u64) -> Latency {
    let batch = batch.max(1);
    let mut sorted: Vec<Nanoseconds> = times.iter().map(|time| (*time + Nanoseconds(batch / 2)) / batch).collect();
    sorted.sort_unstable();
    let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else { return Latency::default() };
    let rank = |part: f64| {
        let at = (part * sorted.len() as f64).ceil() as usize;
        sorted[at.clamp(1, sorted.len()) - 1]
    };
    let count = sorted.len() as f64;
    let mean = sorted.iter().map(|time| time.as_f64()).sum::<f64>() / count;
    let squares = sorted.iter().map(|time| (time.as_f64() - mean).powi(2)).sum::<f64>();
    let mut histogram: BTreeMap<Nanoseconds, u64> = BTreeMap::new();
    for time in &sorted {
        *histogram.entry(edge(*time)).or_default() += 1;
    }
    Latency {
        samples: sorted.len() as u64,
        min,
        p50: rank(0.5),
        p90: rank(0.9),
        p99: rank(0.99),
        p999: rank(0.999),
        max,
        mean: NanosecondsF64(mean),
        stdev: NanosecondsF64(if sorted.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 }),
        timer: Nanoseconds::ZERO,
        histogram: histogram.into_iter().collect(),
    }
}

/// The upper edge of a time's bucket: its first two digits, rounded up.
fn edge(time: Nanoseconds) -> Nanoseconds {
    let step = 10_u64.pow(time.0.max(1).ilog10().saturating_sub(1));
    Nanoseconds(time.0.div_ceil(step) * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_rank_of_each_batch_counts() {
        let times = |ranks: [&[u64]; 2]| {
            let ranks = ranks.map(|times| times.iter().copied().map(Nanoseconds).collect::<Vec<_>>());
            slowest(&[&ranks[0], &ranks[1]])
        };
        assert_eq!(times([&[10, 40], &[30, 20]]), Some([30, 40].map(Nanoseconds).to_vec()));
        assert_eq!(times([&[10, 40], &[30]]), None);
        assert_eq!(times([&[10], &[0]]), None);
        assert_eq!(times([&[], &[]]), None);
    }

    #[test]
    fn percentiles_are_samples() {
        let times: Vec<Nanoseconds> = (1..=100).map(|time| Nanoseconds(time * 20_000)).collect();
        let found = distribution(&times, 20);
        let told = [found.min, found.p50, found.p99, found.max];
        assert_eq!(told, [1_000, 50_000, 99_000, 100_000].map(Nanoseconds));
        assert_eq!(found.histogram.iter().map(|(_, count)| count).sum::<u64>(), 100);
        assert_eq!(distribution(&[], 1).samples, 0);
    }
}
