/// Most values a side for an exact distribution without ties: C(100, 50) still fits 128 bits.
pub const EXACT: usize = 50;
/// Most values of both sides together for counting arrangements of tied midranks; beyond, a test would take tens of milliseconds.
pub const EXACT_TIED: usize = 50;

/// Distribution on the whole numbers from 0: how many of the equally likely arrangements give each value. Counts are whole numbers, so
/// probabilities have one rounding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Null {
    counts: Vec<u128>,
    total: u128,
}

impl Null {
    fn new(counts: Vec<u128>) -> Self {
        let total = counts.iter().sum();
        Self { counts, total }
    }

    /// Mann–Whitney's U for `m` and `n` values without ties: the coefficients of the Gaussian binomial
    /// Π (1 − qⁿ⁺ⁱ) / (1 − qⁱ), i = 1 … m (Mann & Whitney 1947; Andrews 1976). `None` beyond [`EXACT`].
    pub fn mann_whitney(m: usize, n: usize) -> Option<Self> {
        if m > EXACT || n > EXACT {
            return None;
        }
        let (few, many) = (m.min(n), m.max(n));
        let mut counts = vec![0_u128; m * n + 1];
        counts[0] = 1;
        for i in 1..=few {
            // Multiplied by 1 − q^(many + i), from the top; wrapping, because single steps may dip below zero.
            for at in (many + i..counts.len()).rev() {
                counts[at] = counts[at].wrapping_sub(counts[at - many - i]);
            }
            // Divided by 1 − q^i, from the bottom.
            for at in i..counts.len() {
                counts[at] = counts[at].wrapping_add(counts[at - i]);
            }
        }
        Some(Self::new(counts))
    }

    /// Wilcoxon's sum of positive ranks of `n` differences without ties: the coefficients of Π (1 + qⁱ), i = 1 … n
    /// (Wilcoxon 1945). `None` beyond [`EXACT`].
    pub fn signed_rank(n: usize) -> Option<Self> {
        (n <= EXACT).then(|| Self::subset_sums((1..=n).collect::<Vec<_>>().as_slice()))
    }

    pub(super) fn subset_sums(parts: &[usize]) -> Self {
        let mut counts = vec![0_u128; parts.iter().sum::<usize>() + 1];
        counts[0] = 1;
        let mut top = 0;
        for &part in parts {
            top += part;
            for at in (part..=top).rev() {
                counts[at] += counts[at - part];
            }
        }
        Self::new(counts)
    }

    /// With exactly `size` members; at most [`EXACT_TIED`] parts, so that counts fit 64 bits: C(50, 25) < 2⁴⁷.
    pub(super) fn subset_sums_of(parts: &[usize], size: usize) -> Self {
        let mut largest = parts.to_vec();
        largest.sort_unstable_by(|a, b| b.cmp(a));
        let mut top = 0;
        let mut counts = vec![vec![1_u64]];
        for part in &largest[..size] {
            top += part;
            counts.push(vec![0; top + 1]);
        }
        for (seen, &part) in parts.iter().enumerate() {
            for members in (1..=size.min(seen + 1)).rev() {
                let (fewer, same) = counts.split_at_mut(members);
                // No sum of so many parts is above that of the largest, so that what `zip` leaves out is zero.
                same[0][part..].iter_mut().zip(&fewer[members - 1]).for_each(|(to, from)| *to += from);
            }
        }
        let counts = counts.swap_remove(size);
        Self::new(counts.into_iter().map(u128::from).collect())
    }

    pub(super) fn p_values(&self, value: usize) -> super::PValues {
        super::PValues::new(self.at_most(value), self.at_least(value))
    }

    pub fn at_most(&self, value: usize) -> f64 {
        let end = (value + 1).min(self.counts.len());
        self.counts[..end].iter().sum::<u128>() as f64 / self.total as f64
    }

    pub fn at_least(&self, value: usize) -> f64 {
        let start = value.min(self.counts.len());
        self.counts[start..].iter().sum::<u128>() as f64 / self.total as f64
    }

    /// Smallest value whose cumulative probability is `p` or more.
    pub fn quantile(&self, p: f64) -> usize {
        let mut sum = 0_u128;
        // The tolerance keeps a p that is meant to be equal to a cumulative probability from missing it by rounding.
        for (value, count) in self.counts.iter().enumerate() {
            sum += count;
            if sum as f64 / self.total as f64 >= p * (1.0 - 4.0 * f64::EPSILON) {
                return value;
            }
        }
        self.counts.len() - 1
    }
}
