//! How often a number came.

use hdrhistogram::Histogram;

/// Counts of whole numbers, exact to three significant digits.
#[derive(Debug)]
pub struct Counts(Histogram<u64>);

impl Counts {
    /// Counts of the numbers from 1 to `most`; all the memory they will ever need is there.
    pub fn new(most: u64) -> Self {
        #[expect(clippy::expect_used, reason = "constant bounds that the crate accepts: 2 * low <= high, digits <= 5")]
        let mut histogram = Histogram::new_with_bounds(1, most.max(2), 3).expect("constant bounds");
        // Writes to all of its memory: the kernel finds pages now and not between two samples.
        histogram.reset();
        Self(histogram)
    }

    /// Counts one.
    pub fn record(&mut self, number: u64) {
        self.0.saturating_record(number);
    }

    /// All counts.
    pub const fn all(&self) -> &Histogram<u64> {
        &self.0
    }
}
