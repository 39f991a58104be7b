//! One test: what it did and its results. Each file, except for helpers, is a block of the page; [`blocks`] lists them in order.

mod block;
pub(super) mod cells;
mod listed;
mod spreads;
mod table;
mod words;

use railgauge_analysis::{
    case::CaseResult,
    journal::Journal,
    outliers::{OfTest, Outliers},
    row::Row,
    rows::Maker,
    verdict::Verdicts,
};
use railgauge_model::plan::model::Test;
use railgauge_wire::Metric;
use serde::Serialize;

use crate::{chart::ChartError, error::ReportError};

use block::Data;
pub(super) use block::headline;
pub use block::{Block, Column, Figure, Map, MapCell, Table};
pub(crate) use block::{columns, text_column};
pub(crate) use counters::telling;
pub(super) use map::legend;
use spreads::Variants;
pub(super) use words::sizes;
pub use words::{how, title};

macro_rules! declare {
    ($($module:ident,)*) => {
        $(mod $module;)*

        /// Only blocks with something to show.
        ///
        /// # Errors
        /// A chart cannot be rendered.
        fn blocks(data: &Data<'_>) -> Result<Vec<Block>, ChartError> {
            let all = [$($module::block(data)?.map(|block| Block { name: stringify!($module), ..block }),)*];
            Ok(all.into_iter().flatten().collect())
        }
    };
}

// In the order of the page.
declare! {
    curves,
    costs,
    map,
    tails,
    together,
    beside,
    gpus,
    collisions,
    flapping,
    nics,
    flows,
    overlap,
    ranks,
    counters,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestView {
    pub name: String,
    pub anchor: String,
    pub title: String,
    /// Empty if nothing was measured.
    pub carrier: String,
    pub how: String,
    pub verified: String,
    pub metric: Metric,
    pub unit: String,
    pub table: Table,
    /// A row for each size and setting, for the terminal.
    #[serde(skip)]
    pub brief: Vec<Vec<String>>,
    pub remarks: Vec<String>,
    /// In the order of the page.
    pub blocks: Vec<Block>,
}

impl TestView {
    pub fn block(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name == name)
    }

    /// `None` with too few links.
    pub fn map(&self) -> Option<&Map> {
        self.blocks.iter().find_map(|block| block.map.as_ref())
    }
}

/// All tests, and the charts that several of them share.
///
/// # Errors
/// A chart cannot be rendered.
pub(super) fn tests(
    journal: &Journal,
    results: &[CaseResult<'_>],
    rows: &[Row],
    outliers: &Outliers<'_>,
    verdicts: &Verdicts,
) -> Result<(Vec<TestView>, Vec<Figure>), ReportError> {
    let variants = Variants::new(results);
    let maker = Maker::new(journal, results);
    let view = |(place, (test, out)): (usize, (&Test, &OfTest<'_>))| {
        let of_metric = |metric| {
            let rows = rows.iter().filter(|row| *row.test == test.name && row.metric == metric);
            rows.map(|row| (row.case, row)).collect()
        };
        let results: Vec<&CaseResult<'_>> = results.iter().filter(|result| *result.case.test == *test.name).collect();
        let spreads = spreads::of_test(test, &results, &maker, &variants);
        let data = Data {
            test,
            results,
            totals: of_metric(Metric::TotalBandwidth),
            collisions: verdicts.collisions.iter().find(|found| found.test == test.name),
            costs: verdicts.costs.iter().filter(|cost| cost.test == test.name).collect(),
            beside: verdicts.beside.iter().filter(|one| one.test == test.name).collect(),
            spreads: spreads.iter().collect(),
            variants: &variants,
            groups: &journal.plan.groups,
            out,
            outliers,
        };
        let metric = headline(test);
        let lines = (test.name.clone(), metric, curves::lines(&data, metric));
        Ok((one(place, &data).map_err(ReportError::drawing(format!("test {}", test.name)))?, lines))
    };
    let tests = journal.plan.tests.iter().zip(&outliers.tests).enumerate().map(view);
    let (tests, lines): (Vec<TestView>, Vec<_>) = tests.collect::<Result<Vec<_>, ReportError>>()?.into_iter().unzip();
    Ok((tests, curves::compared(lines).map_err(ReportError::drawing("the curves of all tests"))?))
}

fn one(place: usize, data: &Data<'_>) -> Result<TestView, ChartError> {
    let test = data.test;
    let metric = headline(test);
    Ok(TestView {
        name: test.name.clone(),
        anchor: format!("test-{}", place + 1),
        title: words::title(test),
        carrier: super::carriers::of_test(&data.results),
        how: words::how(test),
        verified: words::verified(test, &data.results),
        metric,
        unit: metric.unit().to_owned(),
        table: table::table(data),
        brief: table::brief(data),
        remarks: table::remarks(data),
        blocks: blocks(data)?,
    })
}
