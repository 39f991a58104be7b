//! The values of all links of a test, summed up.

use polars::prelude::{Column, DataFrame, IntoLazy, QuantileMethod, col, lit};
use railgauge_wire::{terms::Metric, unit::Bytes};

use super::{FrameError, polars};

/// The values of all links at one size of one test.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Name of the test.
    pub test: String,
    /// Metric.
    pub metric: Metric,
    /// Message size in bytes.
    pub size_bytes: Bytes,
    /// The cases' [`Mark::variant`].
    pub variant: u32,
    /// Links, measured or not.
    pub links: u32,
    /// Links with a value.
    pub measured: u32,
    /// Smallest, 5th percentile, median, 95th percentile and largest value; `None` without any.
    pub quantiles: Option<[f64; 5]>,
    /// Smallest and largest ceiling; `None` where none is known.
    pub ceiling: Option<(f64, f64)>,
    /// Median over the links of the value in parts of the link's own ceiling.
    pub share: Option<f64>,
    /// Its first case.
    pub first: u64,
}

/// What a case is to [`spreads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Cases of one test, metric, size and variant are summed up together.
    pub variant: u32,
    /// Whether its value counts: one that is wrong or was disturbed must not be averaged with others.
    pub trusted: bool,
}

/// A case as it is summed up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Valued {
    /// Number of the case.
    pub case: u64,
    /// Message size in bytes.
    pub size_bytes: Bytes,
    /// What it is to the sum.
    pub mark: Mark,
    /// Its value in the metric's unit.
    pub value: Option<f64>,
    /// Its ceiling in the same unit.
    pub ceiling: Option<f64>,
}

/// Quantiles over the links of a test in one metric, one per size and variant, in the order of their first cases.
///
/// # Errors
/// polars refuses, which it does only for want of memory.
pub fn spreads<'v>(
    test: &str,
    metric: Metric,
    cases: impl Iterator<Item = &'v Valued> + Clone,
) -> Result<Vec<Spread>, FrameError> {
    let fail = || polars("summing up the frame");
    let quantile = |q: f64| col("value").quantile(lit(q), QuantileMethod::Linear);
    macro_rules! column {
        ($name:literal, |$case:ident| $value:expr) => {
            Column::new($name.into(), cases.clone().map(|$case| $value).collect::<Vec<_>>())
        };
    }
    let columns = vec![
        column!("case", |case| case.case),
        column!("size_bytes", |case| case.size_bytes.0),
        column!("variant", |case| case.mark.variant),
        column!("value", |case| case.value.filter(|_| case.mark.trusted)),
        column!("ceiling", |case| case.ceiling),
    ];
    let table = DataFrame::new(cases.clone().count(), columns)
        .map_err(fail())?
        .lazy()
        .group_by_stable([col("size_bytes"), col("variant")])
        .agg([
            col("case").first().alias("first"),
            col("size_bytes").count().alias("links"),
            col("value").count().alias("measured"),
            col("value").min().alias("q0"),
            quantile(0.05).alias("q5"),
            quantile(0.5).alias("q50"),
            quantile(0.95).alias("q95"),
            col("value").max().alias("q100"),
            col("ceiling").min().alias("floor"),
            col("ceiling").max().alias("top"),
            (col("value") / col("ceiling")).median().alias("share"),
        ])
        .collect()
        .map_err(fail())?;
    macro_rules! values {
        ($name:literal, $kind:ident) => {
            table.column($name).and_then(|c| c.as_materialized_series().$kind()).map_err(fail())?
        };
    }
    let (size, variant, first) = (values!("size_bytes", u64), values!("variant", u32), values!("first", u64));
    let (links, measured) = (values!("links", idx), values!("measured", idx));
    let quantiles =
        [values!("q0", f64), values!("q5", f64), values!("q50", f64), values!("q95", f64), values!("q100", f64)];
    let (floor, top, share) = (values!("floor", f64), values!("top", f64), values!("share", f64));
    Ok((0..table.height())
        .filter_map(|row| {
            let all: Vec<f64> = quantiles.iter().filter_map(|column| column.get(row)).collect();
            Some(Spread {
                test: test.to_owned(),
                metric,
                size_bytes: Bytes(size.get(row)?),
                variant: variant.get(row)?,
                links: links.get(row)?,
                measured: measured.get(row)?,
                quantiles: all.try_into().ok(),
                ceiling: floor.get(row).zip(top.get(row)),
                share: share.get(row).filter(|share| share.is_finite()),
                first: first.get(row)?,
            })
        })
        .collect())
}
