use railgauge_stats::compare::{Comparison, Judged, Obstacle, Verdict};

use super::{
    Design, Stray, When, digits,
    table::{Collected, Pair},
};
use crate::words::{brief, count};

pub(super) struct Told<'c> {
    pub collected: &'c Collected,
    pub pair: &'c Pair,
    pub found: &'c Comparison,
    pub judged: Judged,
    pub in_turn: bool,
    pub strays: &'c [Stray],
}

pub(super) fn case(told: &Told<'_>) -> String {
    let Told { collected, pair, found, judged, in_turn, .. } = told;
    let design = collected.comparison.design;
    let (before, after) = (pair.sides[0].len(), pair.sides[1].len());
    let runs = match design {
        Design::Blocks => count(before, "block"),
        Design::Runs if before == after => format!("{} a side", count(before, "run")),
        Design::Runs => format!("{before} before and {} after", count(after, "run")),
    };
    let (strays, missing) = (told.far_off(), told.missing());
    let also = |first: Option<&String>, second: Option<&String>| {
        [first, second].into_iter().flatten().map(|text| format!("; {text}")).collect::<String>()
    };
    let others = also(strays.as_ref(), missing.as_ref());
    let Some(interval) = found.interval95 else {
        return format!("{runs}: no change can be separated from chance below {}{others}", fewest(design));
    };
    let moved = moved(found.effect);
    let between = digits::range(percent(interval.low), percent(interval.high));
    let margin = format!("{} %", digits::margin(percent(-found.margin), percent(found.margin)));
    let seen = format!("{moved} ({between}), {runs}");
    let more = need(found).map_or_else(String::new, |need| {
        let turn = if *in_turn { "" } else { ", in turn," };
        let units = units(design);
        match need {
            // Too many to be practical: less noise is the advice.
            MANY.. => format!("; it would take more than {MANY} {units}, so measure longer or with less noise"),
            _ => format!("; {need} {units}{turn} would probably be enough"),
        }
    });
    match (judged.verdict, judged.obstacle) {
        (Verdict::Improved | Verdict::Regressed, _) => {
            format!("{seen}; changes of {margin} count as none{others}")
        }
        (Verdict::Equivalent | Verdict::Negligible, _) => {
            let change = if judged.verdict == Verdict::Negligible { moved } else { "did not change".to_owned() };
            format!("{change}: {between} lies within {margin}, {runs}{others}")
        }
        (Verdict::TooNoisy, _) => {
            format!("{seen}: the noise is so wide that changes of {margin} would count as none{others}{more}")
        }
        (_, Some(Obstacle::Missing)) => {
            let missing = missing.as_deref().unwrap_or("a run after has no value");
            format!("{seen}: {missing}, and a missing value is not a pass{}", also(strays.as_ref(), None))
        }
        (_, Some(Obstacle::FewRuns)) => {
            format!("{seen}: the absence of a change cannot be shown below {}{others}{more}", fewest(design))
        }
        (_, Some(Obstacle::Strays)) => {
            let strays = strays.as_deref().unwrap_or("single runs lie far off");
            format!("{seen}: no change beyond {margin} by the others, but {strays}{}", also(None, missing.as_ref()))
        }
        (_, Some(Obstacle::Means)) => {
            let mean = found.mean95.unwrap_or(interval);
            let mean = digits::range(percent(mean.low), percent(mean.high));
            format!(
                "{seen}: the {} do not agree, and the interval of their mean, {mean}, is not within {margin}{others}{more}",
                if design == Design::Runs { "runs" } else { "blocks" }
            )
        }
        (_, Some(Obstacle::Order)) => {
            let shown = if found.effect.abs() >= found.margin { "a change" } else { "no change" };
            format!(
                "{seen}: {shown} beyond {margin} if the runs had taken turns, but in this order runs that resemble their \
                 neighbours would look the same; measure in turn{others}"
            )
        }
        (_, Some(Obstacle::ManyCases)) if -found.margin < interval.low && interval.high < found.margin => {
            format!(
                "{seen}: within {margin} if it were alone, but among so many cases chance does as much{others}{more}"
            )
        }
        (_, Some(Obstacle::ManyCases)) => format!(
            "{seen}: among so many cases chance changes one as much (adjusted p {}){others}{more}",
            brief(judged.p_change)
        ),
        (_, Some(Obstacle::Margin)) => {
            format!("{seen}: a change, but neither clearly more nor clearly less than {margin}{others}{more}")
        }
        _ => format!("{seen}: neither a change nor its absence within {margin} is shown{others}{more}"),
    }
}

impl Told<'_> {
    /// `2 of 10 runs after lie far off (−52.0 to −48.1 %)`; `None` without any.
    fn far_off(&self) -> Option<String> {
        let of = |side: Option<When>| {
            let far: Vec<f64> = self.strays.iter().filter(|stray| stray.side == side).map(|one| one.percent).collect();
            let least = far.iter().copied().fold(f64::INFINITY, f64::min);
            let most = far.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let all = self.pair.sides[side.map_or(0, |side| side as usize)].len();
            let of = parts(far.len(), all, side);
            let lie = if far.len() == 1 { "lies" } else { "lie" };
            (!far.is_empty()).then(|| format!("{of} {lie} far off ({})", digits::range(least, most)))
        };
        join([None, Some(When::Before), Some(When::After)].into_iter().filter_map(of))
    }

    /// `3 of 10 runs after have no value (gpu004: no route to host)`; `None` where all have.
    fn missing(&self) -> Option<String> {
        let of = |side: When| {
            let lack = &self.pair.lack[side as usize];
            let all = match self.collected.comparison.design {
                Design::Runs => lack.runs + self.pair.sides[side as usize].len(),
                Design::Blocks => self.collected.runs[0],
            };
            let why = if lack.why.is_empty() { String::new() } else { format!(" ({})", lack.why) };
            let have = if lack.runs == 1 { "has" } else { "have" };
            let of = match self.collected.comparison.design {
                Design::Runs => parts(lack.runs, all, Some(side)),
                Design::Blocks => format!("{} {}", parts(lack.runs, all, None), side.word()),
            };
            (lack.runs > 0).then(|| format!("{of} {have} no value{why}"))
        };
        let unplanned = |side: When| {
            let n = self.pair.lack[side as usize].unplanned;
            let of = parts(n, self.collected.runs[side as usize], Some(side));
            (n > 0).then(|| format!("{of} {} not plan it", if n == 1 { "does" } else { "do" }))
        };
        let both = [When::Before, When::After];
        join(both.into_iter().filter_map(of).chain(both.into_iter().filter_map(unplanned)))
    }
}

fn join(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn parts(n: usize, all: usize, side: Option<When>) -> String {
    match side {
        Some(side) => format!("{n} of {} {}", count(all, "run"), side.word()),
        None => format!("{n} of {}", count(all, "block")),
    }
}

/// Number of runs a side, or blocks, from which on it is not advice.
const MANY: usize = 100;

pub(super) const fn unit(design: Design) -> &'static str {
    match design {
        Design::Runs => "run",
        Design::Blocks => "block",
    }
}

pub(super) const fn units(design: Design) -> &'static str {
    match design {
        Design::Runs => "runs a side",
        Design::Blocks => "blocks",
    }
}

pub(super) const fn fewest(design: Design) -> &'static str {
    match design {
        Design::Runs => "4 runs a side",
        Design::Blocks => "6 blocks",
    }
}

/// `fell by 3.10 %`; `did not move` if all its digits would be 0.
fn moved(effect: f64) -> String {
    match digits::share(percent(effect)) {
        None => "did not move".to_owned(),
        Some(share) if effect < 0.0 => format!("fell by {share}"),
        Some(share) => format!("rose by {share}"),
    }
}

/// How many runs would be enough; `None` if more would not help, because runs are far off or have no value.
pub(super) fn need(found: &Comparison) -> Option<usize> {
    found.need.filter(|_| found.strays == [0, 0] && found.missing[1] == 0)
}

/// From a difference of logarithms.
pub(super) fn percent(difference: f64) -> f64 {
    100.0 * difference.exp_m1()
}
