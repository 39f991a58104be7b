//! Compares a series with its peers, to find those that were bad from the first night on.

use super::Mark;
use crate::{
    rank::normal_quantile,
    refusal::Refusal,
    robust::{MAD_TO_SIGMA, median_in_place, quantile},
};

pub const OTHERS: usize = 4;
/// Number of levels from which a level counts among the others.
const MANY: usize = 200;
/// Required distance below the others' median in standard deviations.
const CUT: f64 = 6.0;
/// The same as a difference of logarithms, 10 %: links of one kind may differ by a few percent for ever.
const LEAST: f64 = 0.105;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Out {
    /// Difference of logarithms from the median of the others, negative.
    pub effect: f64,
    pub excess: f64,
}

/// Judges one night of links of a kind by their median: low beyond 6 standard deviations of the night's values (1.4826 · MAD, `least` at
/// least), beyond 6 of the link's own ([`upper_spread`]), and beyond 10 %. `night` holds logarithms, higher is better, each with the
/// link's own deviation. Empty with fewer than five links.
pub fn low_among(night: &[(f64, f64)], least: f64) -> Option<Vec<(Mark, f64)>> {
    if night.len() <= OTHERS {
        return None;
    }
    let (centre, scale) = spread(night.iter().map(|(value, _)| *value).collect(), least);
    let mark =
        |&(value, own): &(f64, f64)| (Mark::of(value - centre, (CUT * scale.max(own)).max(LEAST)), value - centre);
    Some(night.iter().map(mark).collect())
}

/// Standard deviation of a link's better nights: the distance from its 60 % to its 90 % quantile over that of a normal variable. Low
/// nights do not widen it while they are fewer than 60 %.
///
/// # Errors
/// No value.
pub fn upper_spread(values: &[f64]) -> Result<f64, Refusal> {
    Ok((quantile(values, 0.9)? - quantile(values, 0.6)?) / (normal_quantile(0.9) - normal_quantile(0.6)))
}

fn spread(mut levels: Vec<f64>, least: f64) -> (f64, f64) {
    let centre = median_in_place(&mut levels);
    levels.iter_mut().for_each(|level| *level = (*level - centre).abs());
    (centre, (MAD_TO_SIGMA * median_in_place(&mut levels)).max(least))
}

/// Levels (logarithms, higher is better) below the median of all others by more than 6 of their standard deviations (1.4826 · MAD,
/// `least` at least) and by more than 10 %. Empty with fewer than four others; where half of them differ, the deviation is so large that
/// nothing stands out.
pub fn stand_out(levels: &[f64], least: f64) -> Vec<Option<Out>> {
    // One of many hardly moves the median.
    let all = (levels.len() > MANY).then(|| spread(levels.to_vec(), least));
    let out = |at: usize| {
        let others = || levels[..at].iter().chain(&levels[at + 1..]).copied().collect();
        let (centre, scale) = all.unwrap_or_else(|| spread(others(), least));
        let effect = levels[at] - centre;
        let excess = -effect / (CUT * scale).max(LEAST);
        (excess > 1.0).then_some(Out { effect, excess })
    };
    (0..levels.len()).map(|at| if levels.len() > OTHERS { out(at) } else { None }).collect()
}
