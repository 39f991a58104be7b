//! Verdicts in sentences that a person on call understands.

use railgauge_stats::compare::{Comparison, Judged, Obstacle, Verdict};

use super::{Change, Counts, Design, Order, digits, judge::percent};
use crate::analysis::words::{count, number};

/// Why a cell has its verdict.
pub(super) fn cell(
    design: Design,
    found: &Comparison,
    judged: Judged,
    in_turn: bool,
    (before, after): (usize, usize),
) -> String {
    let runs = match design {
        Design::Blocks => count(before, "block"),
        Design::Runs if before == after => format!("{} a side", count(before, "run")),
        Design::Runs => format!("{before} before and {} after", count(after, "run")),
    };
    let Some(interval) = found.interval95 else {
        return format!("{runs}: nothing can be told from chance below {}", fewest(design));
    };
    let moved = format!("{} by {}", if found.effect < 0.0 { "fell" } else { "rose" }, share(found.effect));
    let between = range(interval.low, interval.high);
    let margin = format!("{} %", digits::margin(percent(-found.margin), percent(found.margin)));
    let seen = format!("{moved} ({between}), {runs}");
    let more = found.need.map_or_else(String::new, |need| {
        let turn = if in_turn { "" } else { ", in turn," };
        format!("; {need} {}{turn} would probably tell", units(design))
    });
    match (judged.verdict, judged.obstacle) {
        (Verdict::Improved | Verdict::Regressed, _) => format!("{seen}; changes of {margin} count as none"),
        (Verdict::Equivalent | Verdict::Negligible, _) => {
            let change = if judged.verdict == Verdict::Negligible { moved } else { "did not change".to_owned() };
            let shown = found.interval90.unwrap_or(interval);
            format!("{change}: {} lies within {margin}, {runs}", range(shown.low, shown.high))
        }
        (Verdict::TooNoisy, _) => {
            format!("{seen}: the noise is so wide that changes of {margin} would count as none{more}")
        }
        (_, Some(Obstacle::Order)) => {
            let shown = if found.effect.abs() >= found.margin { "a change" } else { "no change" };
            format!(
                "{seen}: {shown} beyond {margin} if the runs had taken turns, but in this order runs that resemble their \
                 neighbours would look the same; measure in turn"
            )
        }
        (_, Some(Obstacle::Chance)) => format!(
            "{seen}: among so many cells chance does as much somewhere (adjusted p {}){more}",
            number(judged.p_change)
        ),
        (_, Some(Obstacle::Margin)) => {
            format!("{seen}: a change, but neither clearly more nor clearly less than {margin}{more}")
        }
        _ => format!("{seen}: neither a change nor its absence within {margin} is shown{more}"),
    }
}

/// The comparison in a sentence.
pub(super) fn sentence(
    design: Design,
    counts: &Counts,
    headline: Option<&Change>,
    one_sided: usize,
    order: Option<&Order>,
) -> String {
    if counts.all() == 0 {
        return format!(
            "Nothing could be compared: {} on one side only.",
            have(one_sided, "has values", "have values")
        );
    }
    let Counts { regressed, improved, equivalent, not_enough_data, too_noisy } = counts;
    let mut text = format!(
        "Of {} compared {regressed} regressed, {improved} improved, {equivalent} {} equivalent, {not_enough_data} {} \
         not enough data.",
        count(counts.all(), "cell"),
        if *equivalent == 1 { "is" } else { "are" },
        if *not_enough_data == 1 { "has" } else { "have" },
    );
    if *too_noisy > 0 {
        text += &format!(" {} too noisy to tell.", have(*too_noisy, "is", "are"));
    }
    if let Some(held) = order.map(|order| order.held_back).filter(|held| *held > 0) {
        text += &format!(" In {} the order of the runs cannot carry what shows: measure in turn.", count(held, "cell"));
    }
    if one_sided > 0 {
        text += &format!(" {} on one side only.", have(one_sided, "has values", "have values"));
    }
    if let Some(Change { percent, interval, .. }) = headline {
        let direction = if *percent < 0.0 { "lower" } else { "higher" };
        let interval = interval.map_or_else(
            || format!("no interval below 4 {}", units(design)),
            |(low, high)| format!("{} to {} %", digits::signed(low), digits::signed(high)),
        );
        text += &format!(" Over all, performance is {} % {direction} ({interval}).", digits::percent(percent.abs()));
    }
    text
}

const fn units(design: Design) -> &'static str {
    match design {
        Design::Runs => "runs a side",
        Design::Blocks => "blocks",
    }
}

const fn fewest(design: Design) -> &'static str {
    match design {
        Design::Runs => "4 runs a side",
        Design::Blocks => "6 blocks",
    }
}

fn have(n: usize, one: &str, more: &str) -> String {
    format!("{} {}", count(n, "cell"), if n == 1 { one } else { more })
}

fn share(difference: f64) -> String {
    format!("{} %", digits::percent(percent(difference).abs()))
}

fn range(low: f64, high: f64) -> String {
    format!("{} to {} %", digits::signed(percent(low)), digits::signed(percent(high)))
}
