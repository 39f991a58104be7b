//! What was measured so far, at the largest size of a test. Nothing of it is judged or left out yet.

use railgauge_model::{
    journal::event::Sample,
    plan::{headline, model::Test},
    schedule::Cell,
};
use railgauge_stats::robust::median;
use railgauge_wire::terms::{Better, Metric};

use crate::analysis::value::{self, Direction};

/// Values of one test, of the cases with its largest size and most queue pairs.
#[derive(Debug, Clone)]
pub struct Rates {
    /// What is measured.
    pub metric: Metric,
    bidirectional: bool,
    values: Vec<f64>,
}

impl Rates {
    pub(super) fn of(test: &Test) -> Self {
        Self { metric: headline(test.metric, test.op), bidirectional: test.bidirectional, values: Vec::new() }
    }

    /// Takes a sample. What has no value of the metric, or none that makes sense, is left out; of flows at once the whole window of
    /// each counts, since what they had in common is known only at the end of their round.
    pub(super) fn take(&mut self, sample: &Sample, cell: &Cell, ranks: u32) {
        let value = match (&cell.manner, self.bidirectional) {
            (Some(_), _) => value::of_group(self.metric, sample, cell, ranks),
            (None, true) => value::of(self.metric, sample, Direction::Both(sample.offset.as_deref().copied())),
            (None, false) => value::of(self.metric, sample, Direction::One),
        };
        self.values.extend(value.ok().flatten());
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Worst, median and best, in the metric's unit; `None` without a value.
    pub fn span(&self) -> Option<[f64; 3]> {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        let middle = median(&values).ok()?;
        let (first, last) = (*values.first()?, *values.last()?);
        Some(match self.metric.better() {
            Better::Lower => [last, middle, first],
            Better::Higher => [first, middle, last],
        })
    }
}
