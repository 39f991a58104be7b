//! Dates that cannot be right, and those that do not go with the names of the runs.

use jiff::{Timestamp, civil::date, tz::Offset};

/// Fewest runs of a plan whose names are taken for an order.
const FEWEST: usize = 4;
/// The names of a plan's runs are an order of time if all of them but one of so many follow it.
const FEW: usize = 4;
/// Seconds that a run may seem to have begun before one whose name comes before its own.
const SLACK: i64 = 24 * 3600;

/// Why a run that says it began then is left out, with the next step; `None` if it may be so.
pub(super) fn refused(started: Timestamp, now: Timestamp) -> Option<String> {
    let day = |time: Timestamp| super::date(super::calendar::day_of(time));
    let first = Offset::UTC.to_timestamp(date(2024, 1, 1).at(0, 0, 0, 0)).ok()?;
    let why = if started.duration_since(now) > jiff::SignedDuration::from_hours(24) {
        format!("this run says it began on {}, and this controller's clock says {}", day(started), day(now))
    } else if started < first {
        format!("this run says it began on {}, when there was no railgauge", day(started))
    } else {
        return None;
    };
    Some(format!(
        "{why}: one of the clocks was wrong, so that its night is unknown; set the clock, move this directory elsewhere and \
         measure again"
    ))
}

/// Which of a plan's runs, given by the moments they began in the order of their names, do not go with that order. None
/// where the names are no order of time.
pub(super) fn out_of_order(starts: &[Timestamp]) -> Vec<usize> {
    if starts.len() < FEWEST {
        return Vec::new();
    }
    let seconds: Vec<i64> = starts.iter().map(|start| start.as_second()).collect();
    // The longest chain of runs in order: for each length the smallest end, with the chain behind it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; seconds.len()];
    for (at, second) in seconds.iter().enumerate() {
        let length = ends.partition_point(|&end| seconds[end] <= *second);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut in_order = vec![false; seconds.len()];
    let mut at = ends.last().copied();
    while let Some(run) = at {
        in_order[run] = true;
        at = before[run];
    }
    let near = |run: usize| {
        let earlier =
            (0..run).rev().find(|&other| in_order[other]).is_none_or(|other| seconds[other] - seconds[run] <= SLACK);
        let later = (run + 1..seconds.len()).find(|&other| in_order[other]);
        earlier && later.is_none_or(|other| seconds[run] - seconds[other] <= SLACK)
    };
    let out: Vec<usize> = (0..seconds.len()).filter(|&run| !in_order[run] && !near(run)).collect();
    if out.len() * FEW > seconds.len() { Vec::new() } else { out }
}

/// What the names of runs of one kind have in common: the name without the date or number at its end.
pub(super) fn stem(directory: &str) -> &str {
    directory.trim_end_matches(|c: char| c.is_ascii_digit() || "-_:.TZ".contains(c))
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::*;

    fn days(days: &[i64]) -> Vec<Timestamp> {
        let first: Timestamp = "2026-11-21T02:00:00Z".parse().unwrap();
        days.iter().map(|&day| first + (24 * day).hours()).collect()
    }

    #[test]
    fn dates_of_other_clocks_are_refused_with_the_next_step() {
        let now: Timestamp = "2026-11-21T02:00:00Z".parse().unwrap();
        for (started, wrong) in [
            ("2099-01-01T00:00:00Z", true),
            ("2026-11-23T00:00:00Z", true),
            ("2026-11-22T01:00:00Z", false),
            ("2026-05-01T00:00:00Z", false),
            ("1999-01-01T00:00:00Z", true),
            ("1970-01-01T00:00:00Z", true),
        ] {
            let why = refused(started.parse().unwrap(), now);
            assert_eq!(why.is_some(), wrong, "{started}: {why:?}");
            assert!(why.is_none_or(|why| why.contains(&started[..10]) && why.contains("move this directory")));
        }
    }

    #[test]
    fn runs_that_do_not_go_with_the_order_of_names_are_found() {
        assert_eq!(out_of_order(&days(&[0, 1, 2, 3, 4, 5, 6, -300])), [7]);
        assert_eq!(out_of_order(&days(&[0, 1, 2, 300, 3, 4, 5, 6])), [3]);
        assert_eq!(out_of_order(&days(&[0, 0, 1, 2, 3, 5, 4, 6])), Vec::<usize>::new(), "a day is slack");
        // Names that are no order say nothing.
        assert_eq!(out_of_order(&days(&[7, 6, 5, 4, 3, 2, 1, 0])), Vec::<usize>::new());
        assert_eq!(out_of_order(&days(&[3, 0])), Vec::<usize>::new());
    }

    #[test]
    fn runs_of_one_kind_have_one_stem() {
        assert_eq!(stem("reports/night-041"), "reports/night");
        assert_eq!(stem("reports/before-20261121T030405Z"), "reports/before");
    }
}
