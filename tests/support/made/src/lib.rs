//! Numbers of made-up measurements: every case of latency draws fifty thousand of them, and tests make thousands of cases.

use std::collections::BTreeMap;

/// SplitMix64: the same numbers on every machine.
pub struct Dice(
    /// The state: what it begins with decides all numbers.
    pub u64,
);

impl Dice {
    /// Uniform in 0..1.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal with centre 0 and standard deviation 1: the sum of twelve uniforms.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Times of single operations, in nanoseconds.
pub struct Times {
    /// All of them, the shortest first.
    pub sorted: Vec<u64>,
    /// How many there are up to each edge; edges are one sixteenth of an octave apart, as an HDR histogram has them.
    pub histogram: BTreeMap<u64, u64>,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub stdev: f64,
}

impl Times {
    /// So many times of which the fastest take `base` nanoseconds, with a tail up to nine times as long.
    pub fn drawn(dice: &mut Dice, count: usize, base: f64) -> Self {
        let mut histogram = BTreeMap::new();
        let mut sorted = Vec::with_capacity(count);
        for _ in 0..count {
            let tail = if dice.uniform() < 0.004 { 3.0 + 6.0 * dice.uniform() } else { 1.0 };
            let time = (base * (1.0 + (0.05 * dice.normal()).abs()) * tail) as u64;
            sorted.push(time);
            let edge = 2f64.powf(((time as f64).log2() * 16.0).ceil() / 16.0) as u64;
            *histogram.entry(edge).or_default() += 1;
        }
        sorted.sort_unstable();
        let mean = sorted.iter().sum::<u64>() as f64 / count as f64;
        let variance = sorted.iter().map(|time| (*time as f64 - mean).powi(2)).sum::<f64>() / count as f64;
        Self { sorted, histogram, mean, stdev: variance.sqrt() }
    }

    /// The time that so large a share of them does not exceed.
    pub fn at(&self, share: f64) -> u64 {
        self.sorted[((self.sorted.len() as f64 * share) as usize).min(self.sorted.len() - 1)]
    }
}
