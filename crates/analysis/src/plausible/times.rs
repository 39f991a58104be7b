//! Distributions of times that no samples can have.

use railgauge_wire::{Latency, Nanoseconds};

use super::outside::outside;
use crate::case::Contradiction;

/// Longest time that percentiles and histogram surely distinguish from longer ones: agents merge all operations of more
/// than a minute, and halve round trips.
const DISTINGUISHED: Nanoseconds = Nanoseconds::from_secs(25);
/// Nanoseconds of rounding: halves of round trips are rounded down.
const ROUNDING: f64 = 1.0;

pub(super) fn distribution(latency: &Latency) -> Vec<Contradiction> {
    let Latency { samples, min, p50, p90, p99, p999, max, mean, stdev, histogram, .. } = latency;
    let ns = |time: &Nanoseconds| (time.as_f64(), "ns");
    let mut found = Vec::from_iter(outside("minimum", ns(min), "an operation takes", (1.0, f64::INFINITY)));
    let steps = [("minimum", min), ("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("maximum", max)];
    for pair in steps.windows(2) {
        found.extend(outside(pair[1].0, ns(pair[1].1), "what is below it has", (pair[0].1.as_f64(), f64::INFINITY)));
    }
    found.extend(outside("mean", (mean.0, "ns"), "the extremes are", (min.as_f64(), max.as_f64() + ROUNDING)));
    // No sample is farther from the mean than the range is wide, and different values have a deviation.
    let least = if min < max { f64::MIN_POSITIVE } else { 0.0 };
    let range = (least, max.saturating_sub(*min).as_f64() + ROUNDING);
    found.extend(outside("standard deviation", (stdev.0, "ns"), "values of this range have", range));
    let counted = histogram.iter().map(|(_, count)| u128::from(*count)).sum::<u128>() as f64;
    found.extend(outside("samples", (*samples as f64, ""), "the histogram has", (counted, counted)));
    let falls = histogram.windows(2).filter(|pair| pair[0].0 >= pair[1].0).count() as f64;
    found.extend(outside("edges that do not rise", (falls, ""), "a histogram has", (0.0, 0.0)));
    // The histogram is only compared with consistent numbers.
    if found.is_empty() {
        found.extend(against_histogram(latency));
    }
    found
}

struct Bucket {
    low: Nanoseconds,
    high: Nanoseconds,
    count: u64,
    reached: u64,
}

fn buckets(latency: &Latency) -> Vec<Bucket> {
    let (mut low, mut reached) = (latency.min, 0);
    let mut found = Vec::with_capacity(latency.histogram.len());
    for (edge, count) in &latency.histogram {
        reached += count;
        found.push(Bucket { low, high: *edge, count: *count, reached });
        low = *edge;
    }
    if let Some(last) = found.last_mut().filter(|last| last.high >= DISTINGUISHED) {
        last.high = last.high.max(latency.max);
    }
    found
}

fn against_histogram(latency: &Latency) -> Vec<Contradiction> {
    let buckets = buckets(latency);
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return Vec::new() };
    let mut found = Vec::new();
    let ns = |time: Nanoseconds| (time.as_f64(), "ns");
    // No bucket is as wide as an octave.
    let range = ((first.high.as_f64() - 1.0) / 2.0, first.high.as_f64());
    found.extend(outside("minimum", ns(latency.min), "the first bucket has", range));
    let range = (last.low.as_f64(), last.high.as_f64());
    found.extend(outside("maximum", ns(latency.max), "the last bucket has", range));
    let quantiles = [(0.5, "p50", latency.p50), (0.9, "p90", latency.p90), (0.99, "p99", latency.p99)];
    for (part, name, value) in quantiles.into_iter().chain([(0.999, "p99.9", latency.p999)]) {
        // The definition of the percentile decides between two neighbours.
        let rank = (part * latency.samples as f64).ceil() as u64;
        let of = |rank: u64| buckets.iter().find(|bucket| bucket.reached >= rank).unwrap_or(last);
        let range = (of(rank.saturating_sub(1)).low.as_f64(), of(rank.saturating_add(1)).high.as_f64());
        found.extend(outside(name, ns(value), "the histogram has", range));
    }
    found.extend(moments(latency, &buckets));
    found
}

/// A mean and a standard deviation that samples in these buckets cannot have.
fn moments(latency: &Latency, buckets: &[Bucket]) -> Vec<Contradiction> {
    let (mean, stdev, samples) = (latency.mean.0, latency.stdev.0, latency.samples as f64);
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        buckets.iter().map(|b| b.count as f64 * of(b.low.as_f64(), b.high.as_f64() + ROUNDING)).sum()
    };
    let slack = 1e-9 * mean + ROUNDING;
    let (low, high) = (sum(&|low, _| low) / samples - slack, sum(&|_, high| high) / samples + slack);
    let of_mean = outside("mean", (mean, "ns"), "the histogram has", (low, high));
    // The least and greatest distance of each sample from the mean.
    let near = sum(&|low, high| (low - mean).max(mean - high).max(0.0).powi(2)) / samples;
    let far = sum(&|low, high| (mean - low).abs().max((high - mean).abs()).powi(2)) / (samples - 1.0).max(1.0);
    let (low, high) = (near.sqrt() * (1.0 - 1e-6) - ROUNDING, far.sqrt() * (1.0 + 1e-6) + ROUNDING);
    let of_stdev = outside("standard deviation", (stdev, "ns"), "the histogram has", (low, high));
    of_mean.into_iter().chain(of_stdev).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use railgauge_wire::NanosecondsF64;

    /// As an agent reports it: moments exact, the other times divided by `trips` and rounded down, buckets of at most a thousandth.
    fn reported(mut times: Vec<u64>, trips: u64) -> Latency {
        times.sort_unstable();
        let count = times.len() as f64;
        let mean = times.iter().sum::<u64>() as f64 / count;
        let stdev = (times.iter().map(|time| (*time as f64 - mean).powi(2)).sum::<f64>() / count).sqrt();
        let rank = |part: f64| times[((part * count).ceil() as usize).max(1) - 1];
        let (min, max) = (times[0], times[times.len() - 1]);
        let edge = |time: u64| Nanoseconds((time + (time >> 11)).clamp(min, max) / trips);
        let mut histogram = std::collections::BTreeMap::new();
        times.iter().for_each(|time| *histogram.entry(edge(*time)).or_default() += 1);
        Latency {
            samples: times.len() as u64,
            min: Nanoseconds(min / trips),
            p50: edge(rank(0.5)),
            p90: edge(rank(0.9)),
            p99: edge(rank(0.99)),
            p999: edge(rank(0.999)),
            max: Nanoseconds(max / trips),
            mean: NanosecondsF64(mean / trips as f64),
            stdev: NanosecondsF64(stdev / trips as f64),
            timer: Nanoseconds(22),
            histogram: histogram.into_iter().collect(),
        }
    }

    proptest! {
        #[test]
        fn what_was_measured_is_never_refused(times in prop::collection::vec(2..20_000_000_000u64, 1..300), trips in 1..=2u64) {
            prop_assert_eq!(distribution(&reported(times, trips)), Vec::new());
        }

        #[test]
        fn nor_is_what_hardly_varies(times in prop::collection::vec(1_000..1_010u64, 1..300), trips in 1..=2u64) {
            prop_assert_eq!(distribution(&reported(times, trips)), Vec::new());
        }

        #[test]
        fn nor_are_one_or_two_round_trips(times in prop::collection::vec(1_000..1_003u64, 1..3)) {
            prop_assert_eq!(distribution(&reported(times, 2)), Vec::new());
        }
    }
}
