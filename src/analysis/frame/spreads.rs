//! Summaries of the values of all links of a test.

use std::collections::HashMap;

use polars::prelude::{
    ChunkAgg, ChunkQuantile, ChunkedBuilder, Float64Type, PolarsResult, PrimitiveChunkedBuilder, QuantileMethod,
};
use railgauge_wire::{terms::Metric, unit::Bytes};

use super::{FrameError, polars};

#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    pub test: String,
    pub metric: Metric,
    pub size_bytes: Bytes,
    pub variant: u32,
    pub links: u32,
    pub measured: u32,
    /// Smallest, 5th percentile, median, 95th percentile and largest value.
    pub quantiles: Option<[f64; 5]>,
    /// Smallest and largest; `None` if unknown.
    pub ceiling: Option<(f64, f64)>,
    pub share: Option<f64>,
    pub first: u64,
}

/// The input of [`spreads`] for a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub variant: u32,
    /// Whether its value counts: wrong or disturbed ones are excluded.
    pub trusted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Valued {
    pub case: u64,
    pub size_bytes: Bytes,
    pub mark: Mark,
    /// In the metric's unit.
    pub value: Option<f64>,
    /// In the metric's unit.
    pub ceiling: Option<f64>,
}

struct Group {
    first: u64,
    links: u32,
    /// Those that count; a null if there are none. A run may have millions of them.
    values: Values,
    ceilings: Values,
}

type Values = PrimitiveChunkedBuilder<Float64Type>;

impl Group {
    fn begin(first: u64) -> Self {
        let values = |name: &str| Values::new(name.into(), 0);
        Self { first, links: 0, values: values("value"), ceilings: values("ceiling") }
    }

    fn take(&mut self, case: &Valued) {
        self.links = self.links.saturating_add(1);
        self.values.append_option(case.value.filter(|_| case.mark.trusted));
        self.ceilings.append_option(case.ceiling);
    }

    fn spread(self, test: &str, metric: Metric, (size_bytes, variant): (Bytes, u32)) -> PolarsResult<Spread> {
        let (values, ceilings) = (self.values.finish(), self.ceilings.finish());
        let quantile = |part| values.quantile(part, QuantileMethod::Linear);
        let quantiles = [values.min(), quantile(0.05)?, quantile(0.5)?, quantile(0.95)?, values.max()];
        let ceiling = ceilings.min().zip(ceilings.max());
        let share = (&values / &ceilings).median();
        let all: Vec<f64> = quantiles.into_iter().flatten().collect();
        Ok(Spread {
            test: test.to_owned(),
            metric,
            size_bytes,
            variant,
            links: self.links,
            measured: u32::try_from(values.len() - values.null_count()).unwrap_or(u32::MAX),
            quantiles: all.try_into().ok(),
            ceiling,
            share: share.filter(|share| share.is_finite()),
            first: self.first,
        })
    }
}

/// Quantiles over the links of a test in one metric, one per size and variant, in the order of their first cases.
///
/// # Errors
/// polars fails, only for lack of memory.
pub fn spreads(test: &str, metric: Metric, cases: impl Iterator<Item = Valued>) -> Result<Vec<Spread>, FrameError> {
    let mut groups: HashMap<(Bytes, u32), Group> = HashMap::new();
    for case in cases {
        let group = groups.entry((case.size_bytes, case.mark.variant));
        group.or_insert_with(|| Group::begin(case.case)).take(&case);
    }
    // Sequential, because each copies its values to sort them.
    let spreads = groups.into_iter().map(|(key, group)| group.spread(test, metric, key));
    let mut spreads = spreads.collect::<PolarsResult<Vec<_>>>().map_err(polars("summing up the frame"))?;
    spreads.sort_by_key(|spread| spread.first);
    Ok(spreads)
}
