//! What is wrong with runs: dates that contradict their names, and runs without values.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Order, Past};
use crate::history::{numbers, shape};

/// Fewest runs of one kind whose names are taken for an order.
const FEWEST: usize = 4;
/// Names of a kind are an order of time if less than one in this many runs contradicts it.
const FEW: usize = 3;
/// Seconds by which a run may seem to start before the one with the previous name.
const SLACK: i64 = 24 * 3600;
/// Runs of a kind considered for the share without values.
const RECENT: usize = 28;
/// Fewest runs of a kind whose share without values is judged by itself.
const JUDGED: usize = 7;
/// One in this many runs is a large share.
const SHARE: usize = 4;

/// Runs whose dates contradict the order of their names, each with the contradiction, and whether it leaves the newest
/// run undecided. Runs of plans of one name whose own names only differ in numbers are of one kind; kinds are not
/// compared. `name` gives the name of a run's plan.
pub(super) fn disorder<'a>(order: &'a Order<'_>, name: impl Fn(&Past) -> &'a str) -> (Vec<(String, String)>, bool) {
    let mut kinds: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for (run, past) in order.past.iter().enumerate() {
        kinds.entry((name(past), shape(&past.directory))).or_default().push(run);
    }
    let (mut found, mut doubtful) = (Vec::new(), false);
    for runs in kinds.values_mut() {
        runs.sort_by(|&a, &b| numbers(&order.past[a].directory).cmp(&numbers(&order.past[b].directory)));
        let starts: Vec<Timestamp> = runs.iter().map(|&run| order.past[run].started).collect();
        let Some(Misplaced { far, last }) = misplaced(&starts) else { continue };
        let past = |at: usize| &order.past[runs[at]];
        let words =
            |at: usize| format!("it says it began on {}, which is not where its name puts it", past(at).started);
        found.extend(far.iter().map(|&at| (past(at).directory.clone(), words(at))));
        if let Some(newest) = last {
            doubtful = true;
            let (last, newest) = (past(runs.len() - 1), past(newest));
            let words = format!(
                "its name is the last one, and it says it began on {}, before {} ({}): one of the clocks was wrong, or a name is",
                last.started, newest.directory, newest.started
            );
            found.retain(|(directory, _)| *directory != last.directory);
            found.push((last.directory.clone(), words));
        }
    }
    (found, doubtful)
}

#[derive(Debug, PartialEq, Eq)]
struct Misplaced {
    far: Vec<usize>,
    last: Option<usize>,
}

/// Which runs of a kind, given by their starts in the order of names, contradict that order. `None` if the names are not an order of time.
fn misplaced(starts: &[Timestamp]) -> Option<Misplaced> {
    if starts.len() < FEWEST {
        return None;
    }
    let seconds: Vec<i64> = starts.iter().map(|start| start.as_second()).collect();
    let in_order = longest_in_order(&seconds);
    let out: Vec<usize> = (0..seconds.len()).filter(|&run| !in_order[run]).collect();
    if out.len() * FEW > seconds.len() {
        return None;
    }
    let near = |run: usize| {
        let earlier =
            (0..run).rev().find(|&other| in_order[other]).is_none_or(|other| seconds[other] - seconds[run] <= SLACK);
        let later = (run + 1..seconds.len()).find(|&other| in_order[other]);
        earlier && later.is_none_or(|other| seconds[run] - seconds[other] <= SLACK)
    };
    let newest = (0..starts.len()).max_by_key(|&run| starts[run])?;
    Some(Misplaced {
        far: out.into_iter().filter(|&run| !near(run)).collect(),
        last: Some(newest).filter(|&newest| starts[newest] > starts[starts.len() - 1]),
    })
}

fn longest_in_order(seconds: &[i64]) -> Vec<bool> {
    // For each length the smallest end, with the chain before it.
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
    in_order
}

/// Whether an unreadable run may be the last one: none of its kind has a later name. `torn` are their names, with the
/// number of runs read before each.
pub(super) fn is_last(past: &[Past], torn: &[(usize, String)]) -> bool {
    torn.iter().any(|(before, name)| {
        let kind = shape(name);
        let mut like = past.iter().filter(|run| shape(&run.directory) == kind).peekable();
        if like.peek().is_none() {
            return *before >= past.len();
        }
        like.all(|run| numbers(&run.directory) < numbers(name))
    })
}

/// Runs without a value, if at least a quarter, and the number of runs considered: all, or the last 28 of a kind. Their
/// content cannot be inferred from the others: something bad may be the cause. `refused` are the names of runs that are not in `past`.
pub(super) fn lacking(past: &[Past], refused: &[String]) -> Option<(usize, usize)> {
    let known = past.iter().map(|run| (run.directory.as_str(), run.valued));
    let all: Vec<(&str, bool)> = known.chain(refused.iter().map(|name| (name.as_str(), false))).collect();
    let mut kinds: BTreeMap<String, Vec<(&str, bool)>> = BTreeMap::new();
    for one in &all {
        kinds.entry(shape(one.0)).or_default().push(*one);
    }
    let many = |runs: &[(&str, bool)]| {
        let lost = runs.iter().filter(|(_, valued)| !valued).count();
        (lost > 0 && lost * SHARE >= runs.len()).then_some((lost, runs.len()))
    };
    let of_kind = kinds.values_mut().filter(|runs| runs.len() >= JUDGED).find_map(|runs| {
        runs.sort_by(|a, b| numbers(a.0).cmp(&numbers(b.0)));
        many(&runs[runs.len().saturating_sub(RECENT)..])
    });
    many(&all).or(of_kind)
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::{super::history::refused, *};

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
        let far = |starts: &[i64]| misplaced(&days(starts)).map(|found| found.far);
        assert_eq!(far(&[0, 1, 2, 3, 4, 5, 6, -300]), Some(vec![7]));
        assert_eq!(far(&[0, 1, 2, 300, 3, 4, 5, 6]), Some(vec![3]));
        assert_eq!(far(&[0, 0, 1, 2, 3, 5, 4, 6]), Some(vec![]), "a day is slack");
        // Names without an order prove nothing.
        assert_eq!(far(&[7, 6, 5, 4, 3, 2, 1, 0]), None);
        assert_eq!(far(&[3, 0]), None);
    }

    #[test]
    fn the_last_name_must_be_the_newest_to_the_second() {
        let mut starts = days(&[0, 1, 2, 3, 4, 5, 6]);
        let last = |starts: &[Timestamp]| misplaced(starts).unwrap().last;
        assert_eq!(last(&starts), None);
        starts[6] = starts[5];
        assert_eq!(last(&starts), None, "two of one moment");
        starts[6] = starts[5] - 1.second();
        assert_eq!(last(&starts), Some(5));
    }
}
