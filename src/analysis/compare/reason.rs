//! Verdicts in sentences that a person on call understands.

use railgauge_stats::compare::{Comparison, LEVEL, Verdict};

use super::{Change, Counts, Design, judge::percent};
use crate::analysis::words::{self, count, number};

/// Why a cell has its verdict.
pub(super) fn cell(
    design: Design,
    found: &Comparison,
    verdict: Verdict,
    p_adjusted: f64,
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
    let margin = words::percent(percent(found.margin));
    match verdict {
        Verdict::Improved | Verdict::Regressed => {
            format!("{moved} ({between}), {runs}; changes up to ±{margin} % count as none")
        }
        Verdict::Equivalent | Verdict::Negligible => {
            let change = if verdict == Verdict::Negligible { moved } else { "did not change".to_owned() };
            let shown = found.interval90.unwrap_or(interval);
            format!("{change}: {} lies within ±{margin} %, {runs}", range(shown.low, shown.high))
        }
        Verdict::Inconclusive => {
            let more =
                found.need.map_or_else(String::new, |need| format!("; {need} {} would probably tell", units(design)));
            let seen = format!("{moved} ({between}), {runs}");
            if interval.holds(0.0) {
                return format!("{seen}: neither a change nor its absence within ±{margin} % is shown{more}");
            }
            if p_adjusted > LEVEL {
                let adjusted = number(p_adjusted);
                return format!(
                    "{seen}: among so many cells chance does as much somewhere (adjusted p {adjusted}){more}"
                );
            }
            let least = words::percent(percent(found.least));
            format!("{seen}: a change, but not by clearly more than ±{margin} % ({least} % would be){more}")
        }
    }
}

/// The comparison in a sentence.
pub(super) fn sentence(design: Design, counts: &Counts, headline: Option<&Change>, one_sided: usize) -> String {
    if counts.all() == 0 {
        return format!(
            "Nothing could be compared: {} on one side only.",
            have(one_sided, "has values", "have values")
        );
    }
    let Counts { regressed, improved, equivalent, not_enough_data } = counts;
    let mut text = format!(
        "Of {} compared {regressed} regressed, {improved} improved, {equivalent} {} equivalent, {not_enough_data} {} \
         not enough data.",
        count(counts.all(), "cell"),
        if *equivalent == 1 { "is" } else { "are" },
        if *not_enough_data == 1 { "has" } else { "have" },
    );
    if one_sided > 0 {
        text += &format!(" {} on one side only.", have(one_sided, "has values", "have values"));
    }
    if let Some(Change { percent, interval }) = headline {
        let direction = if *percent < 0.0 { "lower" } else { "higher" };
        let interval = interval.map_or_else(
            || format!("no interval below 4 {}", units(design)),
            |(low, high)| format!("{} to {} %", words::signed(low), words::signed(high)),
        );
        text += &format!(" Over all, performance is {} % {direction} ({interval}).", words::percent(percent.abs()));
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
    format!("{} %", words::percent(percent(difference).abs()))
}

fn range(low: f64, high: f64) -> String {
    format!("{} to {} %", words::signed(percent(low)), words::signed(percent(high)))
}
