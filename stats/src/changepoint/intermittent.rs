use statrs::distribution::{Binomial, DiscreteCDF};

const WINDOW: usize = 40;
/// Share of low nights that a healthy series may have: what dips now and then is not intermittent.
const HEALTHY: f64 = 0.02;
/// Maximum expected share of a series whose earlier nights were low more often.
const MOST: f64 = 0.1;
/// Weight, in nights, of the prior share [`HEALTHY`].
const PRIOR: f64 = 50.0;
/// Nights counted per spell: a longer one is a change of level, which other rules judge.
const SPELL: usize = 3;
/// Chance of so many low nights in a healthy series: below the first the evidence is weak, below the second it is sure.
const CHANCE: (f64, f64) = (1e-3, 1e-5);
/// Fewest spells for weak and sure evidence. One spell is a change that went away.
const SPELLS: (usize, usize) = (2, 3);
const FEWEST: usize = 3;
/// It is over when the nights since are this much less likely with the share of low nights before than in a healthy series.
const OVER: f64 = 0.004;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Low,
    /// More than half as far below: a spell of low nights is not over.
    Between,
    Good,
}

impl Mark {
    /// Low below `-depth`.
    pub fn of(difference: f64, depth: f64) -> Self {
        if difference < -depth {
            Self::Low
        } else if difference < -depth / 2.0 {
            Self::Between
        } else {
            Self::Good
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intermittent {
    pub since: usize,
    /// Low nights, of all nights from the first low one on.
    pub nights: (usize, usize),
    /// Whether a healthy series would hardly ever do that; otherwise it is only suspicious.
    pub sure: bool,
    pub strength: f64,
}

/// Judges the last 40 nights from the low night whose successors chance explains least, by the binomial distribution. A night is low in a
/// healthy series with a chance of 2 %, or as often as the nights before were, 10 % at most (with a prior of 50 nights of 2 %). A spell
/// of low nights, which ends with the next good night, counts for three nights at most. Evidence is weak below a chance of 0.001 with two
/// spells or more, sure below 0.00001 with three or more. `None` for neither, or if it is over ([`is_over`]).
pub fn intermittent(marks: &[Mark]) -> Option<Intermittent> {
    let start = marks.len().saturating_sub(WINDOW);
    let low = |mark: &Mark| *mark == Mark::Low;
    let lows: Vec<usize> = (start..marks.len()).filter(|&at| low(&marks[at])).collect();
    if lows.len() < FEWEST {
        return None;
    }
    let judged = |&since: &usize| {
        let (spells, counted, nights) = spells(&marks[since..]);
        let earlier = marks[..since].iter().filter(|mark| low(mark)).count();
        let usual = ((earlier as f64 + HEALTHY * PRIOR) / (since as f64 + PRIOR)).clamp(HEALTHY, MOST);
        let chance = at_least(counted, nights, usual);
        (since, spells, counted, nights, usual, chance)
    };
    let most = lows.iter().map(judged).filter(|found| found.1 >= SPELLS.0).min_by(|a, b| a.5.total_cmp(&b.5));
    let (since, spells, counted, nights, usual, chance) = most.filter(|found| found.5 <= CHANCE.0)?;
    if is_over(marks, since) {
        return None;
    }
    let needed = (1..=nights).find(|&k| at_least(k, nights, usual) <= CHANCE.1).unwrap_or(nights);
    let total = lows.iter().filter(|at| **at >= since).count();
    Some(Intermittent {
        since,
        nights: (total, marks.len() - since),
        sure: chance <= CHANCE.1 && spells >= SPELLS.1,
        strength: counted as f64 / needed as f64,
    })
}

/// The nights from `since`, the first low one, are divided after the low night that makes them most likely: before it nights are low with
/// the observed share (and one good night more), after it with that of a healthy series. It is over when the nights after are 250 times
/// less likely with the share before than in a healthy series. A dip delays the end and restarts nothing.
pub fn is_over(marks: &[Mark], since: usize) -> bool {
    let shown = &marks[since..];
    let count = |wanted: Mark| shown.iter().filter(|mark| **mark == wanted).count() as f64;
    let (low, good) = (count(Mark::Low), count(Mark::Good));
    if low == 0.0 {
        return true;
    }
    let likely = |low: f64, good: f64, share: f64| low * share.ln() + good * (1.0 - share).ln();
    let (mut low_before, mut good_before) = (0.0, 0.0);
    // Log likelihood of everything, and the ratio for the nights after.
    let mut best = (f64::NEG_INFINITY, 0.0);
    for (at, mark) in shown.iter().enumerate() {
        match mark {
            Mark::Good => good_before += 1.0,
            Mark::Between => {}
            Mark::Low => {
                low_before += 1.0;
                let share = low_before / (at + 2) as f64;
                let (low_after, good_after) = (low - low_before, good - good_before);
                let healthy = likely(low_after, good_after, HEALTHY);
                let all = likely(low_before, good_before, share) + healthy;
                if low_before >= low.min(FEWEST as f64) && all > best.0 {
                    best = (all, likely(low_after, good_after, share) - healthy);
                }
            }
        }
    }
    best.1 < OVER.ln()
}

pub(super) fn at_least(k: usize, n: usize, chance: f64) -> f64 {
    match (k, Binomial::new(chance, n as u64)) {
        (0, _) | (_, Err(_)) => 1.0,
        (k, Ok(binomial)) => binomial.sf(k as u64 - 1),
    }
}

fn spells(marks: &[Mark]) -> (usize, usize, usize) {
    let (mut spells, mut counted, mut nights) = (0, 0, 0);
    let mut spell: Option<usize> = None;
    for mark in marks {
        let known = match (mark, spell) {
            (Mark::Good, _) | (Mark::Between, None) => {
                spell = None;
                0
            }
            (_, Some(known)) => known,
            (Mark::Low, None) => {
                spells += 1;
                0
            }
        };
        if *mark == Mark::Low || spell.is_some() {
            spell = Some(known + 1);
        }
        if known < SPELL {
            nights += 1;
            counted += usize::from(*mark == Mark::Low);
        }
    }
    (spells, counted, nights)
}
