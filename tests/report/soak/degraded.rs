//! Ports that ran at less than their best while a soak lasted.

use std::time::Duration;

use railgauge_analysis::{status::Status, verdict::Verdicts};
use railgauge_model::plan::model::Degraded;

use super::made::{Made, at, judged, status};

#[test]
fn a_port_that_lost_lanes_for_longer_than_allowed_fails_and_is_named() {
    let narrow = |longest: u64, written: bool| {
        let mut made = Made { narrow: vec![(2, 1, 100_000, 130_000)], ..Made::healthy() };
        made.soak.longest_degraded = Some(Degraded { longest: Duration::from_millis(longest), written });
        made.found()
    };
    let (found, all) = narrow(0, false);
    let (failed, reason) = status(&all, "longest_degraded");
    assert_eq!(failed, Status::Fail, "{reason}");
    for fact in ["gpu003 mlx5_1", "2 lanes", "4 lanes", "30"] {
        assert!(reason.contains(fact), "{fact}: {reason}");
    }
    assert_eq!((found.counts.lower, found.counts.without_speed), (1, 0));
    assert_eq!(status(&narrow(60_000, true).1, "longest_degraded").0, Status::Pass);
    // Rate and lanes are looked at once a second: whether 30 s are longer than that is not known.
    assert_eq!(status(&narrow(30_000, true).1, "longest_degraded").0, Status::Inconclusive);
    assert_eq!(status(&narrow(20_000, true).1, "longest_degraded").0, Status::Fail);
    let (_, all) = Made::healthy().found();
    assert_eq!(status(&all, "longest_degraded").0, Status::Pass);
}

/// Nobody saw the end of it.
#[test]
fn a_port_that_is_still_slow_at_the_end_of_the_watch_is_no_pass() {
    let judged_at = |longest: u64, from: u64| {
        let mut made = Made { narrow: vec![(2, 1, from, 700_000)], ..Made::healthy() };
        made.soak.longest_degraded = Some(Degraded { longest: Duration::from_millis(longest), written: true });
        let (found, all) = made.found();
        assert!(found.lower[0].lower.open);
        status(&all, "longest_degraded")
    };
    let (open, reason) = judged_at(30_000, 580_000);
    assert_eq!(open, Status::Inconclusive, "{reason}");
    assert!(reason.contains("at least 19.9"), "{reason}");
    let (failed, reason) = judged_at(30_000, 560_000);
    assert_eq!(failed, Status::Fail, "{reason}");
    assert!(reason.contains("at least 39.9"), "{reason}");
}

#[test]
fn a_port_that_is_slow_at_both_edges_of_a_hole_is_no_pass() {
    let mut made = Made { narrow: vec![(2, 1, 100_000, 200_000)], ..Made::healthy() };
    made.soak.longest_degraded = Some(Degraded { longest: Duration::from_secs(30), written: true });
    let mut journal = made.journal();
    journal.watched.retain(|seen| seen.host != "gpu003" || seen.seen.from != at(120_000));
    let (found, all) = judged(&journal);
    let spans: Vec<_> =
        found.lower.iter().map(|one| (one.lower.span.length().seconds().round(), one.lower.open)).collect();
    assert_eq!(spans, [(20.0, true), (20.0, true)], "{:?}", found.lower);
    let verdict = all.verdicts.iter().find(|one| one.key.as_deref() == Some("longest_degraded")).unwrap();
    assert_eq!((verdict.tally.doubtful, verdict.status), (2, Status::Inconclusive), "{}", verdict.reason);
}

#[test]
fn ports_whose_rate_nobody_knows_are_no_pass_where_the_plan_asks_for_it() {
    let found = |degraded: Option<Degraded>, all_silent: bool| {
        let mut made = Made::healthy();
        made.soak.longest_degraded = degraded;
        let mut journal = made.journal();
        let silent = journal.watched.iter_mut().filter(|seen| all_silent || seen.host == "gpu002");
        for state in silent.flat_map(|seen| &mut seen.seen.ports).flat_map(|port| &mut port.states) {
            (state.rate_gbps, state.lanes) = (None, None);
        }
        judged(&journal)
    };
    let degraded = |written| Some(Degraded { longest: Duration::ZERO, written });
    let (soaking, all) = found(degraded(true), false);
    assert_eq!(soaking.counts.without_speed, 2);
    assert_eq!(status(&all, "longest_degraded").0, Status::Inconclusive);
    let has = |all: &Verdicts| all.verdicts.iter().any(|one| one.key.as_deref() == Some("longest_degraded"));
    let (_, all) = found(degraded(false), false);
    let (passed, reason) = status(&all, "longest_degraded");
    assert!(passed == Status::Pass && reason.contains("2 "), "{reason}");
    // Nothing is demanded of what nobody can know, unless the plan does.
    assert!(!has(&found(degraded(false), true).1));
    assert_eq!(status(&found(degraded(true), true).1, "longest_degraded").0, Status::Inconclusive);
    // Journals of versions that did not judge it.
    assert!(!has(&found(None, false).1));
}
