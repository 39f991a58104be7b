//! Order statistics of all sums a + b without writing all of them down.

use std::ops::Range;

/// Up to this many sums are written down, because that is faster.
const WRITTEN: usize = 20_000;

/// All sums `a[i] + b[j]` with j from `first(i)` on; `b` is sorted.
pub(super) struct Sums {
    a: Vec<f64>,
    b: Vec<f64>,
    /// Whether row i starts at column i and not at column 0.
    triangle: bool,
}

impl Sums {
    pub(super) fn differences(before: &[f64], after: &[f64]) -> Self {
        Self { a: after.to_vec(), b: sorted(before.iter().map(|v| -v).collect()), triangle: false }
    }

    /// All sums of two of the values, each also with itself, every pair once.
    pub(super) fn pairs(values: &[f64]) -> Self {
        let values = sorted(values.to_vec());
        Self { a: values.clone(), b: values, triangle: true }
    }

    pub(super) fn count(&self) -> usize {
        let n = self.a.len();
        if self.triangle { n * (n + 1) / 2 } else { n * self.b.len() }
    }

    fn row(&self, i: usize) -> Range<usize> {
        if self.triangle { i..self.b.len() } else { 0..self.b.len() }
    }

    fn write(&self, rows: &[Range<usize>]) -> Vec<f64> {
        rows.iter().zip(&self.a).flat_map(|(row, a)| self.b[row.clone()].iter().map(move |b| a + b)).collect()
    }

    /// The sums at `places` in rising order, counted from 0.
    pub(super) fn select(&self, places: &[usize]) -> Vec<f64> {
        let rows: Vec<Range<usize>> = (0..self.a.len()).map(|i| self.row(i)).collect();
        if self.count() > WRITTEN {
            return places.iter().map(|&place| self.narrow(rows.clone(), place)).collect();
        }
        let mut all = self.write(&rows);
        places.iter().map(|&place| *all.select_nth_unstable_by(place, f64::total_cmp).1).collect()
    }

    /// Johnson & Mizoguchi 1978: the weighted median of the rows' middles splits what is left so that at least a quarter
    /// of it can be dropped in each step.
    fn narrow(&self, mut rows: Vec<Range<usize>>, place: usize) -> f64 {
        let mut dropped_below = 0;
        loop {
            let left: usize = rows.iter().map(ExactSizeIterator::len).sum();
            if left <= WRITTEN.max(4 * rows.len()) {
                return *self.write(&rows).select_nth_unstable_by(place - dropped_below, f64::total_cmp).1;
            }
            let pivot = self.weighted_middle(&rows, left);
            let split = |i: usize, below: &dyn Fn(f64) -> bool| {
                let row = rows[i].clone();
                row.start + self.b[row].partition_point(|b| below(self.a[i] + b))
            };
            let less: Vec<usize> = (0..rows.len()).map(|i| split(i, &|sum| sum < pivot)).collect();
            let not_more: Vec<usize> = (0..rows.len()).map(|i| split(i, &|sum| sum <= pivot)).collect();
            let below = |ends: &[usize]| rows.iter().zip(ends).map(|(row, end)| end - row.start).sum::<usize>();
            let (strictly, weakly) = (dropped_below + below(&less), dropped_below + below(&not_more));
            if place < strictly {
                rows.iter_mut().zip(less).for_each(|(row, end)| row.end = end);
            } else if place >= weakly {
                rows.iter_mut().zip(not_more).for_each(|(row, start)| row.start = start);
                dropped_below = weakly;
            } else {
                return pivot;
            }
        }
    }

    /// Weighted median of the middle sums of the rows, each weighing as much as its row is long.
    fn weighted_middle(&self, rows: &[Range<usize>], left: usize) -> f64 {
        let mut middles: Vec<(f64, usize)> = rows
            .iter()
            .zip(&self.a)
            .filter(|(row, _)| !row.is_empty())
            .map(|(row, a)| (a + self.b[row.start + row.len() / 2], row.len()))
            .collect();
        middles.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
        let mut weight = 0;
        for &(middle, length) in &middles {
            weight += length;
            if 2 * weight >= left {
                return middle;
            }
        }
        middles[middles.len() - 1].0
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}
