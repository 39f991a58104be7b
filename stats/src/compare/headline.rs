use super::{
    Order,
    means::{Means, mean},
};
use crate::{
    refusal::{Refusal, demand},
    shift::Interval,
};

/// Fewest blocks, or runs a side, that give an interval.
const FEWEST: usize = 4;

/// Mean effect over all cells. The exponential of effect and interval is the geometric mean of the cells' ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headline {
    /// Mean over blocks or runs of the mean over cells.
    pub effect: f64,
    /// Student's interval, a single point where the values do not differ at all; `None` below four blocks, or runs a side.
    pub interval: Option<Interval>,
}

/// From each block's mean difference over all cells: all cells of a block stay together, because they share its luck. The random order of
/// blocks makes the noise of their differences symmetric, so Student's t holds its level also for as few as six.
///
/// # Errors
/// No block, or a value that is not finite.
pub fn paired_headline(blocks: &[f64]) -> Result<Headline, Refusal> {
    demand(blocks, 1)?;
    let means = Means::of_differences(blocks);
    Ok(Headline { effect: means.difference, interval: (blocks.len() >= FEWEST).then(|| means.interval()) })
}

/// From each run's mean over all cells, before and after. The interval is Welch's for the most harmful correlation of neighbours in the
/// order of these runs.
///
/// # Errors
/// No run on a side, or a value that is not finite.
pub fn unpaired_headline(before: &[f64], after: &[f64], order: Option<&Order>) -> Result<Headline, Refusal> {
    demand(before, 1)?;
    demand(after, 1)?;
    let order = order.filter(|_| before.len().min(after.len()) >= FEWEST);
    let interval = order.map(|order| Means::new(before, after, order).interval());
    Ok(Headline { effect: mean(after) - mean(before), interval })
}
