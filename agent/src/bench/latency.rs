//! The distribution of per-operation times: every sample counts.

use hdrhistogram::Histogram;
use railgauge_wire::{Latency, Nanoseconds, NanosecondsF64};

use super::clock;

const BUCKETS: usize = 200;

/// Longer times are not distinguished in percentiles: one minute.
const LONGEST: Nanoseconds = Nanoseconds::from_secs(60);

/// Percentiles are exact to three significant digits (HDR histogram); extremes, mean and standard deviation are exact: their sums are
/// integers.
#[derive(Debug)]
pub struct Recorder {
    histogram: Histogram<u64>,
    pub samples: u64,
    min: Nanoseconds,
    max: Nanoseconds,
    sum: u128,
    squares: u128,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// Allocates all memory in advance.
    pub fn new() -> Self {
        #[expect(clippy::expect_used, reason = "constant bounds that the crate accepts: 2 * low <= high, digits <= 5")]
        let mut histogram = Histogram::new_with_bounds(1, LONGEST.0, 3).expect("constant bounds");
        // Touches all memory: the kernel finds pages now and not between two samples.
        histogram.reset();
        Self { histogram, samples: 0, min: Nanoseconds::MAX, max: Nanoseconds::ZERO, sum: 0, squares: 0 }
    }

    #[inline]
    pub fn record(&mut self, time: Nanoseconds) {
        self.histogram.saturating_record(time.0);
        self.samples += 1;
        self.min = self.min.min(time);
        self.max = self.max.max(time);
        self.sum += u128::from(time.0);
        self.squares += u128::from(time.0) * u128::from(time.0);
    }

    /// Divides times by `trips`: 2 for half round trips.
    pub fn finish(self, trips: u64) -> Latency {
        let timer = clock::overhead();
        if self.samples == 0 {
            return Latency { timer, ..Latency::default() };
        }
        let (n, divisor) = (self.samples as f64, trips as f64);
        // n·Σx² − (Σx)² in integers: no rounding, so no cancellation, whatever the mean.
        let spread = (u128::from(self.samples) * self.squares).saturating_sub(self.sum * self.sum);
        let quantile = |q| Nanoseconds(self.histogram.value_at_quantile(q)).clamp(self.min, self.max) / trips;
        Latency {
            samples: self.samples,
            min: self.min / trips,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: self.max / trips,
            mean: NanosecondsF64(self.sum as f64 / n / divisor),
            stdev: NanosecondsF64((spread as f64).sqrt() / n / divisor),
            timer,
            histogram: self.drawn(trips),
        }
    }

    /// Non-empty buckets as (upper edge, samples), joined along a logarithmic grid if too many.
    fn drawn(&self, trips: u64) -> Vec<(Nanoseconds, u64)> {
        let grid = |value: Nanoseconds| {
            let (low, high) = (self.min.as_f64().max(1.0).ln(), self.max.as_f64().max(2.0).ln());
            let place = (value.as_f64().max(1.0).ln() - low) / (high - low).max(f64::MIN_POSITIVE);
            (place.clamp(0.0, 1.0) * (BUCKETS - 1) as f64) as usize
        };
        let few = self.histogram.iter_recorded().take(BUCKETS + 1).count() <= BUCKETS;
        let mut buckets: Vec<(Nanoseconds, u64)> = Vec::with_capacity(BUCKETS);
        let mut last = None;
        for bucket in self.histogram.iter_recorded() {
            let value = Nanoseconds(bucket.value_iterated_to());
            let edge = value.clamp(self.min, self.max) / trips;
            let cell = grid(value);
            match buckets.last_mut() {
                Some(open) if open.0 == edge || (!few && last == Some(cell)) => {
                    *open = (edge, open.1 + bucket.count_at_value());
                }
                _ => buckets.push((edge, bucket.count_at_value())),
            }
            last = Some(cell);
        }
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(samples: &[u64], trips: u64) -> Latency {
        let mut recorder = Recorder::new();
        samples.iter().for_each(|sample| recorder.record(Nanoseconds(*sample)));
        recorder.finish(trips)
    }

    #[test]
    fn jitter_below_a_microsecond_is_seen() {
        let latency = recorded(&[1_000, 1_200, 1_400], 1);
        assert!((latency.stdev.0 - 163.299).abs() < 0.001, "{}", latency.stdev.0);
        assert_eq!([latency.min, latency.p50, latency.max], [1_000, 1_200, 1_400].map(Nanoseconds));
    }

    #[test]
    fn half_round_trips_halve_everything() {
        let latency = recorded(&[2_000, 2_400], 2);
        assert_eq!((latency.min, latency.max), (Nanoseconds(1_000), Nanoseconds(1_200)));
        assert_eq!((latency.mean, latency.stdev), (NanosecondsF64(1_100.0), NanosecondsF64(100.0)));
        assert_eq!(latency.histogram, [(Nanoseconds(1_000), 1), (Nanoseconds(1_200), 1)]);
    }

    #[test]
    fn no_samples_are_no_numbers() {
        assert_eq!(recorded(&[], 2).samples, 0);
    }

    proptest! {
        #[test]
        fn against_the_sorted_samples(samples in prop::collection::vec(0..10_000_000_000u64, 1..500)) {
            let latency = recorded(&samples, 1);
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let mean = samples.iter().map(|s| *s as f64).sum::<f64>() / samples.len() as f64;
            let stdev = (samples.iter().map(|s| (*s as f64 - mean).powi(2)).sum::<f64>() / samples.len() as f64).sqrt();
            let rank = |q: f64| sorted[((samples.len() as f64 * q).ceil() as usize).max(1) - 1] as f64;
            for (q, value) in [(0.5, latency.p50), (0.9, latency.p90), (0.99, latency.p99), (0.999, latency.p999)] {
                prop_assert!((value.as_f64() - rank(q)).abs() <= rank(q) * 1e-3 + 1.0, "{q}: {value} {}", rank(q));
            }
            prop_assert_eq!((latency.min.0, latency.max.0), (sorted[0], sorted[sorted.len() - 1]));
            prop_assert!((latency.mean.0 - mean).abs() <= mean * 1e-9 + 1e-6);
            prop_assert!((latency.stdev.0 - stdev).abs() <= stdev * 1e-6 + 1e-3);
        }

        #[test]
        fn the_drawn_distribution_is_small_rising_and_whole(
            samples in prop::collection::vec(0..10_000_000_000u64, 1..2_000), trips in 1..=2u64,
        ) {
            let latency = recorded(&samples, trips);
            prop_assert!(latency.histogram.len() <= BUCKETS);
            prop_assert!(latency.histogram.windows(2).all(|pair| pair[0].0 < pair[1].0));
            prop_assert_eq!(latency.histogram.iter().map(|bucket| bucket.1).sum::<u64>(), samples.len() as u64);
            prop_assert_eq!(latency.histogram.last().unwrap().0, latency.max);
        }
    }
}
