//! Two sets of runs: improved, regressed, equivalent or undecided, for every case that both have.
//!
//! The unit is a run: a case has one value from each run, whatever the run measured it from. The arithmetic is in
//! [`railgauge_stats::compare`]; `docs/compare.md` says when to trust it.

mod blocks;
mod causes;
mod configuration;
pub mod digits;
mod judge;
mod order;
mod reason;
mod sentence;
mod table;

use railgauge_wire::{Better, Bytes, Metric};
use serde::Serialize;

use crate::{status::Status, words::texts};

pub use blocks::{Interleaved, interleaved};
pub use configuration::{Configuration, Setting};
pub use railgauge_stats::compare::{Obstacle, Turns};
pub use sentence::compare;
pub use table::Table;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    #[default]
    Runs,
    /// Two values per block, one of each test, measured in turn: only their difference counts.
    Blocks,
}

railgauge_wire::words! {
    When {
        Before = "before",
        After = "after",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Options {
    /// Largest change in percent that counts as none; `None`: the larger of 1 % and twice the noise floor.
    pub margin_percent: Option<f64>,
}

texts! { Word {
    Regressed: "regressed",
    Undecided: "undecided",
    /// No change shown, and the noise is too wide for that to mean anything.
    TooNoisy: "too noisy to judge",
    Improved: "improved",
    Equivalent: "equivalent",
} }

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    pub percent: f64,
    /// `None` with too few runs.
    pub interval: Option<(f64, f64)>,
}

impl Change {
    /// Whether the interval lies inside a margin in percent; where `better` gives a direction, only the worse edge
    /// counts. False without an interval.
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
    pub runs: Vec<RunSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    pub directory: String,
    pub run_id: String,
    /// UTC, to the second.
    pub started: String,
    pub plan: String,
    /// SHA-256 of the plan file.
    pub plan_hash: String,
    pub version: String,
    pub hosts: usize,
    pub values: usize,
    pub imported: bool,
    pub left_out: usize,
    /// Cases in which this run is far from the others of its side, beyond the margin.
    pub strays: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    pub regressed: usize,
    pub improved: usize,
    pub equivalent: usize,
    pub undecided: usize,
    pub too_noisy: usize,
}

impl Counts {
    pub(super) fn add(&mut self, word: Word) {
        *match word {
            Word::Regressed => &mut self.regressed,
            Word::Improved => &mut self.improved,
            Word::Equivalent => &mut self.equivalent,
            Word::Undecided => &mut self.undecided,
            Word::TooNoisy => &mut self.too_noisy,
        } += 1;
    }

    pub fn all(&self) -> usize {
        self.regressed + self.improved + self.equivalent + self.undecided + self.too_noisy
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    pub name: String,
    pub metric: Metric,
    pub better: Better,
    /// The worst verdict of its cases. Equivalent only if the interval of `change` lies inside the margin, improved
    /// only if it stays above the worse edge.
    pub verdict: Word,
    pub counts: Counts,
    pub change: Option<Change>,
    /// 95 % of apparent changes between equal, uncorrelated runs stay below this, in percent; `None` below two runs a side.
    pub noise_floor_percent: Option<f64>,
    /// Rises in percent up to this count as none.
    pub margin_percent: f64,
    /// Falls in percent down to this (negative) count as none. Closer to zero than the rise, because the margin is a factor.
    pub margin_low_percent: f64,
    pub margin_raised: bool,
    /// Whether the noise widens the margin beyond −20 to +25 %, where nothing is called equivalent.
    pub too_noisy: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    pub group: usize,
    pub link: String,
    pub verdict: Word,
    pub before: f64,
    pub after: f64,
    /// Difference of Huber's estimates; for blocks, the Hodges–Lehmann estimate with the interval of the rank test.
    pub change: Change,
    /// Confidence level of the interval at least; `None` without one.
    pub level: Option<f64>,
    /// 95 % interval of the difference of means in percent, which single bad runs widen: must also lie inside the
    /// margin of an equivalent case. Allows for correlation of neighbours up to 0.6.
    pub mean_interval: Option<(f64, f64)>,
    pub n: (usize, usize),
    /// Runs (or blocks) before and after without the value they should have: they plan it, or a smaller share of this
    /// side's runs plans it than of the other's, and no plan rotates.
    pub missing: (usize, usize),
    /// Runs that lie far from the others of their side, and by more than the margin.
    pub strays: Vec<Stray>,
    /// p of no change, for the order of the runs and correlation of neighbours up to 0.6.
    pub p: f64,
    pub p_if_independent: f64,
    /// `p`, adjusted for all cases (Benjamini & Hochberg).
    pub p_adjusted: f64,
    /// Why there is no verdict; `None` where there is one.
    pub obstacle: Option<Obstacle>,
    /// Runs a side, or blocks, that would probably settle it; `None` if settled or unknown.
    pub need: Option<usize>,
    pub method: &'static str,
    pub reason: String,
}

/// A run so far from the others of its side in one case that normal noise does it in one case of a thousand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stray {
    /// `None` for a block.
    pub side: Option<When>,
    /// Identity of the run, or the number of the block, from 1.
    pub run: String,
    /// Distance from the median of the others in percent.
    pub percent: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneSided {
    pub name: String,
    /// The side with values; `None` if neither has a trusted one.
    pub only: Option<When>,
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
pub struct Order {
    pub turns: Turns,
    /// In order of time: `A` is a run before, `B` one after.
    pub sequence: String,
    /// Share of independent runs that these are worth if neighbours are correlated by 0.6, at most 1.
    pub worth: f64,
    /// Cases with a change, or its absence, that would be shown if the runs had alternated.
    pub held_back: usize,
    /// The cost of this order, if any.
    pub costs: Option<String>,
    /// How to measure instead, unless the order is good.
    pub hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    pub verdict: Word,
    /// For example `host gpu07`; with metric and sizes if it only holds for these.
    pub name: String,
    pub cases: (usize, usize),
    pub parts: Vec<Part>,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    pub test: String,
    pub metric: Metric,
    pub sizes: Vec<Bytes>,
    pub of_sizes: usize,
    pub cases: usize,
    /// Smallest and largest change in percent of the value before.
    pub percent: (f64, f64),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    pub version: u32,
    pub design: Design,
    /// Fail: something regressed. Inconclusive: nothing did, but something could not be judged. Pass: neither.
    pub status: Status,
    pub exit_code: u8,
    pub sentence: String,
    pub before: Side,
    pub after: Side,
    /// Whether runs of both sides alternate in time; otherwise the difference includes whatever else changed.
    pub alternating: bool,
    /// Cost of the order of the runs; `None` for blocks and below three runs.
    pub order: Option<Order>,
    /// Test, before, after: what carried the bytes, where the sides differ.
    pub carriers: Vec<(String, String, String)>,
    pub configuration: Configuration,
    pub counts: Counts,
    pub headline: Option<Change>,
    /// Fall and rise in percent within which the headline counts as no change: the mean over the margins of its cases.
    pub headline_margin: Option<(f64, f64)>,
    pub groups: Vec<Group>,
    /// Common factors of changes: those for the worse first.
    pub causes: Vec<Cause>,
    /// Every case, worst verdict first, in it the largest change.
    pub cases: Vec<Case>,
    pub one_sided: Vec<OneSided>,
    /// Values that were left out, the most frequent reason first.
    pub left_out: Vec<LeftOut>,
}

impl Comparison {
    /// Whether the headline's interval stays inside its margin; above it is fine where something improved.
    pub fn headline_kept(&self) -> bool {
        let Some((headline, margin)) = self.headline.zip(self.headline_margin) else { return true };
        headline.lies_within(margin, (self.counts.improved > 0).then_some(Better::Higher))
    }
}
