//! What the blocks of a test are made of: the data, and what a block can hold.

use std::collections::{BTreeMap, HashMap};

use railgauge_analysis::{
    case::CaseResult,
    collisions::Collisions,
    costs::ValueCost,
    outliers::{Look, OfTest, Outliers, Part},
    percentile,
    row::Row,
    together::Beside,
    words::{number, size},
};
use railgauge_model::plan::{self, model::Test};
use railgauge_wire::{Bytes, Metric};
use serde::Serialize;

use super::spreads::{Spread, Variants};

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

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    pub name: String,
    pub unit: String,
    pub number: bool,
}

impl Table {
    /// `heads` as for [`columns`].
    pub(crate) fn new(heads: &str, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        Self { columns: columns(heads), rows: rows.into_iter().collect() }
    }

    /// `None` without rows.
    pub(super) fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }
}

impl Column {
    pub(crate) fn head(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} {}", self.name, self.unit) }
    }
}

/// Separated by ` | `: `link` for a text, `#change [%]` for a number with its unit.
pub(crate) fn columns(names: &str) -> Vec<Column> {
    let column = |name: &str| match name.strip_prefix('#') {
        None => text_column(name),
        Some(name) => {
            let (name, unit) = name.split_once(" [").unwrap_or((name, ""));
            number_column(name, unit.trim_end_matches(']'))
        }
    };
    names.split(" | ").map(column).collect()
}

pub(crate) fn number_column(name: &str, unit: &str) -> Column {
    Column { name: name.to_owned(), unit: unit.to_owned(), number: true }
}

pub(crate) fn text_column(name: &str) -> Column {
    Column { name: name.to_owned(), unit: String::new(), number: false }
}

pub(super) fn told(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), number)
}

pub(super) fn interval(ends: Option<(f64, f64)>) -> String {
    ends.map_or_else(|| "–".to_owned(), |(low, high)| format!("{} to {}", number(low), number(high)))
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Map {
    pub large: Vec<Figure>,
    /// Summaries of folded large matrices; empty if each fits a screen, so that none is folded.
    pub folded: Vec<String>,
    pub open: usize,
    /// Names of rows and of columns for the page's script, a line each; `None` where it has no cell values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<(String, String)>,
    pub unit: String,
    /// Of every cell: its repeats and the plan's limits.
    pub of_cells: String,
    /// Whether every pair was measured one way only, and has one cell.
    pub half: bool,
    /// Class and meaning of every colour, shared by all matrices.
    pub legend: Vec<(String, String)>,
    pub sentence: String,
    pub links: Option<Table>,
    pub links_more: usize,
    #[serde(skip)]
    pub cells: Vec<MapCell>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MapCell {
    pub case: u64,
    pub look: Look,
    pub outlined: bool,
}

pub(super) struct Data<'a> {
    pub test: &'a Test,
    pub results: Vec<&'a CaseResult<'a>>,
    /// Rows of the sum over a round, by case; empty unless flows run at once.
    pub totals: HashMap<u64, &'a Row>,
    pub collisions: Option<&'a Collisions>,
    pub costs: Vec<&'a ValueCost>,
    pub beside: Vec<&'a Beside>,
    pub spreads: Vec<&'a Spread>,
    pub variants: &'a Variants,
    pub groups: &'a BTreeMap<String, Vec<String>>,
    pub out: &'a OfTest<'a>,
    pub outliers: &'a Outliers<'a>,
}

impl<'a> Data<'a> {
    pub(super) fn variant(&self, result: &CaseResult<'_>) -> u32 {
        self.variants.of(result)
    }

    /// In the order of the cases.
    pub(super) fn own_variants(&self) -> Vec<u32> {
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
    pub(super) fn variant_words(&self, variant: u32) -> &str {
        self.variants.labels.get(variant as usize).map_or("", String::as_str)
    }

    pub(super) fn trusted_at(&self, cell: (u32, Bytes)) -> impl Iterator<Item = &'a CaseResult<'a>> {
        let is_here = move |result: &&CaseResult<'_>| {
            (self.variant(result), result.case.cell.size) == cell && result.state.is_trusted()
        };
        self.results.iter().copied().filter(is_here)
    }

    pub(super) fn carried(&self, metric: Metric, cell: (u32, Bytes)) -> bool {
        self.trusted_at(cell).all(|result| percentile::carried_by(metric, result))
    }

    /// `64 KiB, 4 queue pairs`.
    pub(super) fn cell_words(&self, (variant, bytes): (u32, Bytes)) -> String {
        match self.variant_words(variant) {
            "" => size(bytes),
            words => format!("{}, {words}", size(bytes)),
        }
    }
}

/// `host gpu05 (confirmed)`.
pub(super) fn standing(part: &Part<'_>) -> String {
    format!("{} ({})", part.name, part.state())
}

pub(in crate::view) const fn headline(test: &Test) -> Metric {
    plan::headline(test.metric, test.op)
}
