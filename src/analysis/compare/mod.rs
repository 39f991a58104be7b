//! Two sets of runs: improved, regressed, equivalent, or not enough data, for every cell that both have.
//!
//! | file | does |
//! | --- | --- |
//! | `blocks` | the same of two tests that were measured in turn |
//! | `causes` | what changes have in common |
//! | `configuration` | what else is not the same on both sides |
//! | `table` | collects the values of both sides, cell by cell, and what stands in the place of a value |
//! | `judge` | noise floor, margin, effect and verdict |
//! | `order` | what the order of the runs costs, and how to measure instead |
//! | `parts` | links whose ends have other parts on the two sides |
//! | `reason` | verdicts of cells in sentences |
//! | `sentence` | the whole in a sentence |
//! | `digits` | changes with as many digits as they deserve |
//!
//! The unit is a run: a cell has one value from each run, whatever the run measured it from. The arithmetic is
//! [`railgauge_stats::compare`]; `docs/compare.md` says when to trust it.

mod blocks;
mod causes;
mod configuration;
pub mod digits;
mod judge;
mod order;
mod parts;
mod reason;
mod sentence;
mod table;

use railgauge_stats::Refusal;
use railgauge_wire::terms::{Better, Metric};
use serde::Serialize;

use super::verdict::Status;

pub use blocks::{Interleaved, interleaved};
pub use causes::{Cause, Part};
pub use configuration::{Configuration, Setting};
pub use order::{Order, Turns};
pub use parts::OtherPart;
use table::Collected;
pub use table::{Table, When};

const VERSION: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// One of each run; the runs of one side are independent of those of the other.
    Runs,
    /// Two of each block, one of either test, measured in turn: only their difference counts.
    Blocks,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Options {
    /// Largest change in percent that counts as none; the larger of 1 % and twice the noise floor if `None`.
    pub margin_percent: Option<f64>,
}

/// What a cell's runs show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Changed for the worse, by more than the margin.
    Regressed,
    NotEnoughData,
    /// No change is shown, and the noise is so wide that its absence would say nothing.
    TooNoisy,
    /// Changed for the better, by more than the margin.
    Improved,
    /// Shown to have changed by less than the margin, or not at all.
    Equivalent,
}

impl Word {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Regressed => "regressed",
            Self::NotEnoughData => "not enough data",
            Self::TooNoisy => "too noisy to tell",
            Self::Improved => "improved",
            Self::Equivalent => "equivalent",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// Runs after have no value: what failed there is not known to be as good.
    Missing,
    /// Too few runs for any interval.
    FewRuns,
    /// Its absence by the other runs, but single runs lie far off.
    Strays,
    /// Its absence by estimates that single runs hardly move, but not by means: the runs of a side do not agree.
    Means,
    /// A change, or its absence, if the runs had taken turns; but in this order runs that resemble their neighbours would
    /// look the same.
    Order,
    /// A change, or its absence, if this cell were alone, but among so many chance does as much somewhere.
    ManyCells,
    /// A change, but not clearly more or less than the margin.
    Margin,
    Spread,
    Noise,
}

impl From<railgauge_stats::compare::Obstacle> for Obstacle {
    fn from(of: railgauge_stats::compare::Obstacle) -> Self {
        use railgauge_stats::compare::Obstacle as Found;
        match of {
            Found::Missing => Self::Missing,
            Found::Few => Self::FewRuns,
            Found::Strays => Self::Strays,
            Found::Means => Self::Means,
            Found::Order => Self::Order,
            Found::Chance => Self::ManyCells,
            Found::Margin => Self::Margin,
            Found::Spread => Self::Spread,
            Found::Noise => Self::Noise,
        }
    }
}

/// A change in percent of the value before, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    pub percent: f64,
    /// Interval; `None` where the runs are too few for one.
    pub interval: Option<(f64, f64)>,
}

impl Change {
    /// Whether the interval lies inside a margin in percent; not beyond its edge for the worse is enough where `better` says
    /// in which direction something improved. Without an interval nothing is known.
    pub fn lies_within(&self, (lowest, highest): (f64, f64), better: Option<Better>) -> bool {
        self.interval.is_some_and(|(low, high)| match better {
            None => lowest < low && high < highest,
            Some(Better::Higher) => lowest < low,
            Some(Better::Lower) => high < highest,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Side {
    /// Its runs, the first first.
    pub runs: Vec<RunSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    pub directory: String,
    pub run_id: String,
    /// When it started, UTC, to the second.
    pub started: String,
    pub plan: String,
    /// SHA-256 of the plan file.
    pub plan_hash: String,
    pub version: String,
    pub hosts: usize,
    pub values: usize,
    /// Whether another tool measured it, and its outputs were imported.
    pub imported: bool,
    pub left_out: usize,
    /// Cells in which this run lies far from the others of its side, and by more than the margin.
    pub strays: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// See [`Word::Regressed`].
    pub regressed: usize,
    /// See [`Word::Improved`].
    pub improved: usize,
    /// See [`Word::Equivalent`].
    pub equivalent: usize,
    /// See [`Word::NotEnoughData`].
    pub not_enough_data: usize,
    /// See [`Word::TooNoisy`].
    pub too_noisy: usize,
}

impl Counts {
    fn add(&mut self, word: Word) {
        *match word {
            Word::Regressed => &mut self.regressed,
            Word::Improved => &mut self.improved,
            Word::Equivalent => &mut self.equivalent,
            Word::NotEnoughData => &mut self.not_enough_data,
            Word::TooNoisy => &mut self.too_noisy,
        } += 1;
    }

    pub fn all(&self) -> usize {
        self.regressed + self.improved + self.equivalent + self.not_enough_data + self.too_noisy
    }
}

/// All links of one test, metric, size and variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    pub name: String,
    pub metric: Metric,
    pub better: Better,
    /// What its cells come to: the worst of their verdicts. Equivalent only if the interval of `change` lies inside the margin
    /// too, improved only if it does not leave the margin for the worse.
    pub verdict: Word,
    pub counts: Counts,
    pub change: Option<Change>,
    /// How large a change looks in percent when nothing changed and runs do not resemble their neighbours (95 % of them
    /// stay below); `None` below two runs a side.
    pub noise_floor_percent: Option<f64>,
    /// Rises in percent up to this count as none.
    pub margin_percent: f64,
    /// Falls in percent down to this, which is negative, count as none. The margin is a factor up or down, so that this is
    /// closer to zero.
    pub margin_low_percent: f64,
    /// Whether less was asked for, which the noise does not allow.
    pub margin_raised: bool,
    /// Whether the noise makes the margin wider than −20 to +25 %, within which nothing is called equivalent.
    pub too_noisy: bool,
}

/// One cell: one metric of one link at one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    pub group: usize,
    pub link: String,
    /// What its runs show.
    pub verdict: Word,
    /// Median of the runs before, in the metric's unit.
    pub before: f64,
    /// Median of the runs after.
    pub after: f64,
    /// Difference of Huber's estimates; of blocks, the Hodges–Lehmann estimate with the interval of the rank test.
    pub change: Change,
    /// Level that the interval achieves at least; `None` without one.
    pub level: Option<f64>,
    /// 95 % interval of the difference of means in percent, which single bad runs widen: inside the margin too where the cell
    /// is equivalent. For runs made for the worst correlation of neighbours up to 0.6.
    pub mean_interval: Option<(f64, f64)>,
    /// Runs with a value, before and after; or blocks.
    pub n: (usize, usize),
    /// Runs before and after that should have a value and have none: they plan it, or a smaller share of this side's runs plans it
    /// than of the other's, and no plan rotates. Or blocks.
    pub missing: (usize, usize),
    /// Runs that lie far from the others of their side, and by more than the margin.
    pub strays: Vec<Stray>,
    /// p of no change, in the order of the runs and with neighbours correlated by up to 0.6.
    pub p: f64,
    /// p of no change if runs did not resemble their neighbours.
    pub p_if_independent: f64,
    /// `p`, adjusted for all cells that were looked at (Benjamini & Hochberg).
    pub p_adjusted: f64,
    /// What stands against a verdict; `None` where there is one.
    pub obstacle: Option<Obstacle>,
    /// Runs a side, or blocks, that would probably settle it; `None` where it is settled or nobody can tell.
    pub need: Option<usize>,
    pub method: &'static str,
    /// Parts of its ends that are others after than before: the values of the two sides are not those of the same parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<OtherPart>,
    /// How many more there are that are not listed.
    #[serde(skip_serializing_if = "is_none")]
    pub parts_more: usize,
    pub reason: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_none(number: &usize) -> bool {
    *number == 0
}

/// A run that lies far from the others of its side in one cell: so far that normal noise of the others' spread does it in
/// one cell of a thousand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stray {
    /// Its side; `None` for a block.
    pub side: Option<When>,
    /// Identity of the run, or the number of the block, counted from 1.
    pub run: String,
    /// Distance from the median of the others in percent.
    pub percent: f64,
}

/// A cell that was not compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneSided {
    pub name: String,
    /// The side that has values; `None` if neither has one that may be trusted.
    pub only: Option<When>,
    /// Why the other has none.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    pub side: When,
    pub reason: String,
    pub values: usize,
    pub example: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub version: u32,
    pub design: Design,
    /// fail: something regressed. inconclusive: nothing did, but something could not be judged. pass: neither.
    pub status: Status,
    pub exit_code: u8,
    pub sentence: String,
    /// The runs before.
    pub before: Side,
    /// The runs after.
    pub after: Side,
    /// Whether runs of both sides alternate in time. Where they do not, whatever else changed in between is in the
    /// difference.
    pub alternating: bool,
    /// The order of the runs and what it costs; `None` for blocks, and without three runs.
    pub order: Option<Order>,
    /// What carried the bytes of a test, where that is not the same on both sides: test, before, after.
    pub carriers: Vec<(String, String, String)>,
    /// Differences in configuration, to be read beside those of the numbers.
    pub configuration: Configuration,
    pub counts: Counts,
    /// Over the main metric of every test; positive if performance rose.
    pub headline: Option<Change>,
    /// From which fall to which rise in percent the headline counts as no change: the mean over the margins of its cells.
    pub headline_margin: Option<(f64, f64)>,
    /// Groups of cells, in the order of the plan.
    pub groups: Vec<Group>,
    /// What changes have in common: those for the worse, then those for the better.
    pub causes: Vec<Cause>,
    /// Every cell, worst verdict first, in it the largest change.
    pub cells: Vec<Cell>,
    /// Cells that were not compared.
    pub one_sided: Vec<OneSided>,
    /// Values that were left out, the most frequent reason first.
    pub left_out: Vec<LeftOut>,
}

/// Compares what was collected.
///
/// # Errors
/// A statistic refuses values that the table took, which is a mistake of ours.
pub fn compare(table: Table, options: &Options) -> Result<Comparison, Refusal> {
    tell(table.finish(), options)
}

fn tell(collected: Collected, options: &Options) -> Result<Comparison, Refusal> {
    let judged = judge::judge(&collected, options)?;
    let mut counts = Counts::default();
    judged.cells.iter().for_each(|cell| counts.add(cell.cell.verdict));
    let causes = causes::causes(&collected, &judged.cells);
    let mut cells: Vec<Cell> = judged.cells.into_iter().map(|judged| judged.cell).collect();
    let size = |cell: &Cell| cell.change.percent.abs();
    cells.sort_by(|a, b| a.verdict.cmp(&b.verdict).then(size(b).total_cmp(&size(a))));
    let mut comparison = Comparison {
        version: VERSION,
        design: collected.design,
        status: Status::Inconclusive,
        exit_code: 0,
        sentence: String::new(),
        alternating: collected.alternating,
        order: judged.order,
        carriers: collected.carriers,
        configuration: collected.configuration,
        before: collected.before,
        after: collected.after,
        counts,
        headline: judged.headline,
        headline_margin: judged.headline_margin,
        groups: judged.groups,
        causes,
        cells,
        one_sided: collected.one_sided,
        left_out: collected.left_out,
    };
    let of_run = |(side, number): (When, usize), comparison: &mut Comparison| {
        let side = if side == When::Before { &mut comparison.before } else { &mut comparison.after };
        side.runs[number].strays += 1;
    };
    judged.strays.into_iter().for_each(|run| of_run(run, &mut comparison));
    comparison.status = comparison.comes_to();
    comparison.exit_code = comparison.status.exit_code();
    comparison.sentence = sentence::sentence(&comparison);
    Ok(comparison)
}

impl Comparison {
    /// A pass needs a verdict of every cell and of every row, no cell of one side only, and a headline that does not leave its
    /// margin.
    fn comes_to(&self) -> Status {
        let settled = |group: &Group| matches!(group.verdict, Word::Improved | Word::Equivalent);
        if self.counts.regressed > 0 {
            Status::Fail
        } else if !self.cells.is_empty()
            && self.one_sided.is_empty()
            && self.groups.iter().all(settled)
            && self.headline_kept()
        {
            Status::Pass
        } else {
            Status::Inconclusive
        }
    }

    /// Whether the headline's interval lies inside its margin; above it is no harm where something improved.
    pub fn headline_kept(&self) -> bool {
        let Some((headline, margin)) = self.headline.zip(self.headline_margin) else { return true };
        headline.lies_within(margin, (self.counts.improved > 0).then_some(Better::Higher))
    }
}
