use std::{path::Path, time::Duration};

use jiff::{SignedDuration, Timestamp};
use railgauge_model::{
    journal::event::{Case, Event, Outcome},
    plan,
    schedule::{Inventory, Time, schedule},
};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    unit::Bytes,
};

use super::*;
use crate::analysis::made;

/// Two tests among three hosts, so of several rounds each; the second has a number of messages in place of a time.
const PLAN: &str = "name = \"t\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"h[0-2]\"] }\n\
    [[test]]\nname = \"a\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = [\"64KiB\", \"1MiB\"]\nmeasure = \"1s\"\n\
    [[test]]\nname = \"b\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = [\"1MiB\"]\nmeasure = \"100 iterations\"\n";

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// A run that has planned its cases, and those cases.
fn planned(text: &str) -> (Underway, Vec<Case>) {
    let plan = plan::parse("t.toml", text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
    let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
    let mut run = Underway::default();
    let started = Event::Started {
        run_id: "r".into(),
        plan: "t".into(),
        plan_hash: String::new(),
        resolved: Box::new(plan),
        version: String::new(),
        controller: String::new(),
        launcher: String::new(),
    };
    run.event(at(0), started);
    assert_eq!(run.left(at(0)), None);
    run.event(at(1), Event::Planned { cases: cases.clone() });
    (run, cases)
}

/// A round from its beginning on; `fails` says which of its cases have no measurement.
fn round(run: &mut Underway, cases: &[Case], (test, number): (&str, u32), begin: i64, fails: impl Fn(&Case) -> bool) {
    run.event(at(begin), Event::Round { test: test.into(), round: number, repeat: 0 });
    for case in cases.iter().filter(|case| *case.test == *test && case.round == number) {
        let failure = || Failure::new(Stage::Measure, Kind::Deadline, "it broke").at(&case.flow.from.host);
        let result = if fails(case) { Err(failure()) } else { Ok(made::sample(Bytes(1_250_000))) };
        let outcome = Outcome { case: case.id, repeat: 0, started_at: "".into(), link: None, link_line: None, result };
        run.event(at(begin + 1), Event::Outcome(Box::new(outcome)));
    }
}

fn rounds_of(cases: &[Case], test: &str) -> u32 {
    cases.iter().filter(|case| *case.test == *test).map(|case| case.round + 1).max().unwrap()
}

#[test]
fn time_left_comes_from_rounds_that_are_over_or_the_plan_and_is_unknown_without_both() {
    let (mut run, cases) = planned(PLAN);
    let (a, b) = (rounds_of(&cases, "a"), rounds_of(&cases, "b"));
    assert!(a >= 3 && b >= 3, "{a} {b}");
    let left = run.left(at(1)).unwrap();
    let of_a = left.tests[0].unwrap();
    // Two sizes one after the other, each a second and what belongs to it.
    let least = of_a.round.unwrap().at_least;
    assert!(of_a.basis == Basis::Plan && (Duration::from_secs(2)..Duration::from_secs(4)).contains(&least), "{of_a:?}");
    assert_eq!(of_a.rounds, u64::from(a));
    // A number of messages takes nobody knows how long; so nobody knows of the whole.
    assert_eq!((left.tests[1].unwrap().all.at_most, left.all.at_most), (None, None));
    round(&mut run, &cases, ("a", 0), 10, |_| false);
    round(&mut run, &cases, ("a", 1), 20, |_| false);
    // The second round runs for 4 of the 10 seconds that the first took.
    let of_a = run.left(at(24)).unwrap().tests[0].unwrap();
    assert_eq!(of_a.basis, Basis::Rounds(1));
    assert_eq!(of_a.current.unwrap().at_most, Some(Duration::from_secs(6)));
    assert_eq!(of_a.all.at_most, Some(Duration::from_secs(6 + 10 * u64::from(a - 2))));
    // A round that takes longer than others has no negative time.
    assert_eq!(run.left(at(99)).unwrap().tests[0].unwrap().current.unwrap().at_most, Some(Duration::ZERO));
    (2..a).for_each(|number| round(&mut run, &cases, ("a", number), 30, |_| false));
    round(&mut run, &cases, ("b", 0), 40, |_| false);
    round(&mut run, &cases, ("b", 1), 45, |_| false);
    let left = run.left(at(45)).unwrap();
    assert_eq!(left.tests[0], None);
    assert_eq!(left.all.at_most, Some(Duration::from_secs(5 * u64::from(b - 1))));
    assert_eq!(run.tests[0].done(), (u64::from(a), u64::from(a)));
    run.event(at(50), Event::Finished);
    assert_eq!((run.left(at(50)), run.is_over()), (None, true));
}

#[test]
fn rates_are_of_the_largest_size_and_failures_stand_by_cause() {
    let (mut run, cases) = planned(PLAN);
    round(&mut run, &cases, ("a", 0), 10, |case| case.cell.size == Bytes(64 << 10));
    let of_size =
        |size| cases.iter().filter(|case| &*case.test == "a" && case.round == 0 && case.cell.size == size).count();
    assert_eq!(run.rates[0].count(), of_size(Bytes(1 << 20)));
    assert!(run.rates[0].span().unwrap()[1] > 0.0 && run.rates[1].span().is_none());
    let failed = run.failures.by_cause();
    let &[one] = failed.as_slice() else { panic!("{failed:?}") };
    assert_eq!(one.cases, of_size(Bytes(64 << 10)) as u64);
    assert!(!one.cause.contains("h0") && !one.hosts.is_empty());
    assert_eq!(run.tests[0].failed(), one.cases);
}

/// What failed is measured again when the run is taken up; what was measured is not.
#[test]
fn a_run_that_is_taken_up_again_has_the_failed_rounds_before_it() {
    let (mut run, cases) = planned(PLAN);
    round(&mut run, &cases, ("a", 0), 10, |_| false);
    round(&mut run, &cases, ("a", 1), 20, |_| true);
    round(&mut run, &cases, ("a", 2), 30, |_| false);
    run.event(at(40), Event::Interrupted);
    assert!(run.is_over() && run.tests[0].done().0 == 3);
    run.event(at(50), Event::Resumed { unread: Vec::new() });
    assert_eq!((run.is_over(), run.tests[0].done().0, run.failures.cases()), (false, 2, 0));
    round(&mut run, &cases, ("a", 1), 60, |_| false);
    assert_eq!((run.tests[0].done().0, run.tests[0].failed()), (3, 0));
}

#[test]
fn lines_that_make_no_sense_change_nothing() {
    let (mut run, cases) = planned(PLAN);
    let far = Outcome {
        case: u64::MAX,
        repeat: u32::MAX,
        started_at: "x".into(),
        link: None,
        link_line: None,
        result: Ok(made::sample(Bytes(1))),
    };
    run.event(at(2), Event::Outcome(Box::new(far)));
    run.event(at(1), Event::Round { test: "nobody's".into(), round: u32::MAX, repeat: 0 });
    // Clocks go back.
    round(&mut run, &cases, ("a", 0), 100, |_| false);
    run.event(at(3), Event::Round { test: "a".into(), round: 1, repeat: 0 });
    assert!(run.left(at(0)).is_some());
    assert_eq!(run.tests[0].done().0, 1);
}

/// Rounds of further cases are none of the test's, also where a later process goes on with them and asks for none.
#[test]
fn further_rounds_are_told_as_suspects_that_are_measured_again() {
    let (mut run, cases) = planned(PLAN);
    let all = rounds_of(&cases, "a");
    (0..all).for_each(|number| round(&mut run, &cases, ("a", number), 10, |_| false));
    // Groups number theirs from 0, all others behind those of the test.
    let first = cases.iter().find(|case| &*case.test == "a").unwrap();
    let further = |id, round| Case { id: cases.len() as u64 + id, round, ..first.clone() };
    let further = [further(0, 0), further(1, all + 9)];
    // No round took longer than planned.
    run.event(at(10), Event::Confirming { cases: further.to_vec(), links: false });
    let told = |run: &Underway| (run.doing(), run.current.unwrap().further, run.tests[0].done());
    let again = (Doing::Confirming, true, (u64::from(all), u64::from(all)));
    let case = Time::of_case(&run.plan.as_ref().unwrap().tests[0]).at_least;
    assert_eq!(run.left(at(10)).unwrap().all.at_least, 2 * case);
    for (number, left) in [(0, 2), (all + 9, 1)] {
        round(&mut run, &further, ("a", number), 30, |_| number > 0);
        assert_eq!(told(&run), again);
        assert_eq!(run.left(at(30)).unwrap().all.at_least, left * case);
    }
    assert_eq!(run.further, (2, 2));
    run.event(at(40), Event::Interrupted);
    run.event(at(50), Event::Resumed { unread: Vec::new() });
    assert_eq!(run.further, (2, 1), "what failed is tried again");
    for number in [0, all + 9] {
        run.event(at(60), Event::Round { test: "a".into(), round: number, repeat: 0 });
        assert_eq!(told(&run), again);
    }
}

/// Whoever was lost before is told until it answers, and afterwards as one that came back.
#[test]
fn a_host_that_was_lost_is_told_when_the_run_was_taken_up_again() {
    let (mut run, _) = planned(PLAN);
    let gone = Failure::new(Stage::Measure, Kind::Lost, "no answer");
    run.event(at(10), Event::HostLost { host: "h1".into(), failure: gone });
    run.event(at(40), Event::Interrupted);
    run.event(at(50), Event::Resumed { unread: Vec::new() });
    assert_eq!(run.lost.keys().collect::<Vec<_>>(), ["h1"]);
    let up = Event::HostUp { host: "h1".into(), facts: Box::default(), clock: None, wall: None };
    run.event(at(60), up);
    assert!(run.lost.is_empty() && run.came_back.contains("h1"));
}
