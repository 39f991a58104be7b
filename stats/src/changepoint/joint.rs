//! Nights on which several series of one label are low at once: chance may explain each, but not all.

use super::{Mark, intermittent::at_least, is_over};

pub const WINDOW: usize = 40;
/// Chance that a night of a healthy series is low, and its maximum for series that were low more often.
const HEALTHY: (f64, f64) = (0.02, 0.1);
const SEVERAL: usize = 2;
/// Nights counted per spell: a lasting cause makes consecutive nights low.
const SPELL: usize = 2;
/// Fewest and most nights that are judged together.
const NIGHTS: (usize, usize) = (3, 10);
/// Chance of so many such nights in healthy series, over all tries: weak and sure evidence.
const CHANCE: (f64, f64) = (1e-3, 1e-5);
const SPELLS: (usize, usize) = (2, 3);
/// Lower bound of a night's chance for sure evidence: healthy series are low together now and then.
const LEAST: f64 = 1e-3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Several {
    pub of: usize,
    pub low: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Joint {
    pub nights: Vec<usize>,
    /// Chance of so many in independently low series, times the tries.
    pub chance: f64,
    /// Whether it would hardly ever occur by chance; otherwise it is only suspicious.
    pub sure: bool,
    pub strength: f64,
}

/// Judges the last 40 nights of a label's series. The chance of a night is that of so many low series or more, binomial at the share of
/// low nights that all have on the other nights (2 % at least, 10 % at most). That is a bound also for unequal series (Hoeffding 1956).
/// The chance of the r smallest of n such chances is that of r or more of n below the largest of them (Wilkinson 1951); the best r of 3
/// to 10 counts, times 8, times `tried`, the number of labels. A spell counts for two nights. `None` above a chance of 0.001, with fewer
/// than two spells, or where it is over ([`is_over`]).
pub fn joint(nights: &[Several], tried: usize) -> Option<Joint> {
    let start = nights.len().saturating_sub(WINDOW);
    let shown = &nights[start..];
    let (of, low) = shown.iter().fold((0, 0), |(of, low), night| (of + night.of, low + night.low));
    if low < NIGHTS.0 * SEVERAL {
        return None;
    }
    let chance = |night: &Several| {
        let share = (low - night.low) as f64 / (of - night.of).max(1) as f64;
        if night.low < SEVERAL { 1.0 } else { at_least(night.low, night.of, share.clamp(HEALTHY.0, HEALTHY.1)) }
    };
    let mut least: Vec<f64> = Vec::new();
    let mut spell = 0;
    for night in shown.iter().filter(|night| night.of >= SEVERAL) {
        spell = if night.low >= SEVERAL { spell + 1 } else { 0 };
        if spell <= SPELL {
            least.push(chance(night));
        }
    }
    let n = least.len();
    least.sort_by(f64::total_cmp);
    let factor = (NIGHTS.1 - NIGHTS.0 + 1) as f64 * tried.max(1) as f64;
    let of_so_many = |r: usize, most: f64| (factor * at_least(r, n, most)).min(1.0);
    let ranks = || (NIGHTS.0..=NIGHTS.1.min(n)).map(|r| (r, least[r - 1]));
    let best = ranks().map(|(r, most)| (most, of_so_many(r, most))).min_by(|a, b| a.1.total_cmp(&b.1));
    let (most, all_chance) = best.filter(|(_, chance)| *chance <= CHANCE.0)?;
    let marks: Vec<Mark> =
        nights.iter().map(|night| if chance(night) <= most { Mark::Low } else { Mark::Good }).collect();
    let all: Vec<usize> = (start..nights.len()).filter(|&at| marks[at] == Mark::Low).collect();
    let spells = all.iter().filter(|&&at| at == start || marks[at - 1] != Mark::Low).count();
    if spells < SPELLS.0 || is_over(&marks, *all.first()?) {
        return None;
    }
    let sure = ranks().map(|(r, most)| of_so_many(r, most.max(LEAST))).fold(1.0, f64::min);
    let needed = (NIGHTS.0..=NIGHTS.1).find(|&r| of_so_many(r, LEAST) <= CHANCE.1).unwrap_or(NIGHTS.1);
    Some(Joint {
        sure: sure <= CHANCE.1 && spells >= SPELLS.1,
        strength: all.len() as f64 / needed as f64,
        nights: all,
        chance: all_chance,
    })
}
