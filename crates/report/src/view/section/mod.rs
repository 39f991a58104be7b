//! One test: what it did and its results. Each file, except for helpers, is a block of the page; [`blocks`] lists them in order.

pub(super) mod cells;
mod listed;
mod spreads;
mod table;
mod words;

use std::collections::{BTreeMap, HashMap};

use railgauge_analysis::{
    case::CaseResult,
    collisions::Collisions,
    costs::ValueCost,
    journal::Journal,
    outliers::{OfTest, Outliers, Part},
    percentile,
    row::Row,
    rows::Maker,
    together::Beside,
    verdict::Verdicts,
    words::size,
};
use railgauge_model::plan::{self, model::Test};
use railgauge_wire::{terms::Metric, unit::Bytes};
use serde::Serialize;

use crate::{ReportError, chart::ChartError};

pub(crate) use counters::telling;
pub(super) use map::legend;
pub use map::{Map, MapCell};
use spreads::{Mark, Spread};
pub use table::{Column, Table};
pub(crate) use table::{number_column, text_column};
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

/// A part of a test under one heading on the page, its members in this order. Empty members are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Block {
    pub name: &'static str,
    pub heading: &'static str,
    pub sentence: String,
    pub map: Option<Map>,
    pub figures: Vec<Figure>,
    pub table: Option<Table>,
    pub method: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    pub title: String,
    pub svg: String,
    pub legend: Vec<(String, String)>,
}

struct Data<'a> {
    test: &'a Test,
    results: Vec<&'a CaseResult<'a>>,
    /// Rows of the sum over a round, by case; empty unless flows run at once.
    totals: HashMap<u64, &'a Row>,
    collisions: Option<&'a Collisions>,
    costs: Vec<&'a ValueCost>,
    beside: Vec<&'a Beside>,
    spreads: Vec<&'a Spread>,
    variants: &'a Variants,
    groups: &'a BTreeMap<String, Vec<String>>,
    out: &'a OfTest<'a>,
    outliers: &'a Outliers<'a>,
}

impl Data<'_> {
    fn variant(&self, result: &CaseResult<'_>) -> u32 {
        self.variants.of(result)
    }

    /// In the order of the cases.
    fn own_variants(&self) -> Vec<u32> {
        let mut own = Vec::new();
        for result in &self.results {
            let variant = self.variant(result);
            if own.last() != Some(&variant) && !own.contains(&variant) {
                own.push(variant);
            }
        }
        own
    }

    /// Empty where the test has only one.
    fn variant_words(&self, variant: u32) -> &str {
        self.variants.labels.get(variant as usize).map_or("", String::as_str)
    }

    fn carried(&self, metric: Metric, (variant, bytes): (u32, Bytes)) -> bool {
        let here =
            self.results.iter().filter(|result| (self.variant(result), result.case.cell.size) == (variant, bytes));
        let trusted = here.filter(|result| result.state.is_trusted());
        trusted.into_iter().all(|result| percentile::carried_by(metric, result))
    }

    /// `64 KiB, 4 queue pairs`.
    fn cell_words(&self, (variant, bytes): (u32, Bytes)) -> String {
        match self.variant_words(variant) {
            "" => size(bytes),
            words => format!("{}, {words}", size(bytes)),
        }
    }
}

struct Variants {
    labels: Vec<String>,
    marks: Vec<Mark>,
}

impl Variants {
    fn new(results: &[CaseResult<'_>]) -> Self {
        let mut known: HashMap<(&str, String), u32> = HashMap::new();
        let mut labels = Vec::new();
        let mut marks = Vec::with_capacity(results.len());
        for result in results {
            let label = result.variant();
            let variant = *known.entry((&*result.case.test, label.clone())).or_insert_with(|| {
                labels.push(label);
                u32::try_from(labels.len() - 1).unwrap_or(u32::MAX)
            });
            marks.push(Mark { variant, trusted: result.state.is_trusted() });
        }
        Self { labels, marks }
    }

    fn of(&self, result: &CaseResult<'_>) -> u32 {
        self.mark(result).variant
    }

    fn mark(&self, result: &CaseResult<'_>) -> Mark {
        let mark = usize::try_from(result.case.id).ok().and_then(|case| self.marks.get(case)).copied();
        mark.unwrap_or(Mark { variant: u32::MAX, trusted: false })
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

/// `host gpu05 (confirmed)`.
fn standing(part: &Part<'_>) -> String {
    format!("{} ({})", part.name, part.state())
}

pub(super) const fn headline(test: &Test) -> Metric {
    plan::headline(test.metric, test.op)
}
