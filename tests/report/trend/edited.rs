//! Plans that were edited: what can be held against the nights before, and what cannot.

use railgauge_analysis::{
    history::Run,
    row::Untrusted,
    trend::{Options, State, Watched, day},
};
use railgauge_model::plan::model::{Pattern, Subset};

use super::nights::{cluster, night, one_link, run, watch, worse};
use crate::support::Dice;

/// The night on which the plan is edited.
const EDITED: u32 = 40;

/// One link at half rate from the edited night on, or at its level; the edit is done to every run since.
fn edited(seed: u64, nights: u32, low: bool, edit: impl Fn(&mut Run)) -> Vec<Run> {
    let mut runs = one_link(seed, nights, |n| Some(if low && n >= EDITED { 195.0 } else { 390.0 }));
    for run in &mut runs[EDITED as usize..] {
        run.plan_hash = "second".into();
        edit(run);
    }
    runs
}

/// An edit that bears on every value.
fn longer(run: &mut Run) {
    run.plan.tests.iter_mut().for_each(|test| test.warm_up *= 3);
}

#[test]
fn a_regression_on_the_night_the_plan_was_edited_is_found() {
    // A comment, or more repeats, leaves the values comparable.
    let more: fn(&mut Run) = |run| run.plan.tests.iter_mut().for_each(|test| test.repeats += 1);
    let none: fn(&mut Run) = |_| ();
    for (edit, is_named) in [(none, false), (more, true)] {
        let found = watch(edited(1, EDITED + 10, true, edit), &Options::default());
        assert_eq!((found.exit_code, worse(&found).since.clone()), (1, night(EDITED.into())), "{}", found.sentence);
        let beside = &found.changes[0].epochs;
        assert_eq!(beside.iter().any(|what| what.contains("edited")), is_named, "{beside:?}");
        // On the very night: a repeat is asked for.
        let found = watch(edited(1, EDITED + 1, true, edit), &Options::default());
        assert_eq!((found.exit_code, found.repeats, found.too_young), (3, 1, 0), "{}", found.sentence);
        // And without a regression the edit changes nothing.
        let found = watch(edited(2, EDITED + 1, false, edit), &Options::default());
        assert_eq!((found.exit_code, found.too_young), (0, 0), "{}", found.sentence);
        assert!(found.series.iter().all(|series| series.state == Watched::Fully && series.nights == 41));
    }
}

#[test]
fn what_an_edit_makes_incomparable_begins_anew_and_is_no_pass_for_seven_nights() {
    for nights in [1, 6, 7, 20] {
        let found = watch(edited(3, EDITED + nights, true, longer), &Options::default());
        let code = if nights < 7 { 3 } else { 1 };
        // From its first nights on a link is held against its like.
        assert!(found.exit_code == code || found.exit_code == 1, "{nights} nights: {}", found.sentence);
        let found = watch(edited(3, EDITED + nights, false, longer), &Options::default());
        assert_eq!(found.exit_code, if nights < 7 { 3 } else { 0 }, "{nights} nights: {}", found.sentence);
        let retired = found.series.iter().filter(|series| series.state == Watched::Retired).count();
        assert_eq!(retired, if nights > 14 { found.series.len() / 2 } else { 0 }, "{nights} nights");
        let what = &found.epochs[0].what;
        assert!(what.contains("plan ") && what.contains("edited") && what.contains("warm_up"), "{what}");
        assert!(!found.epochs[0].declared);
    }
}

#[test]
fn a_plan_that_is_tried_for_a_night_begins_nothing_anew() {
    let mut runs = edited(4, EDITED + 5, false, |_| ());
    runs[EDITED as usize + 1..].iter_mut().for_each(|run| run.plan_hash = "first".into());
    let found = watch(runs, &Options::default());
    let alive = || found.series.iter().filter(|series| series.alive);
    assert!(alive().all(|series| series.state == Watched::Fully), "{}", found.sentence);
    assert_eq!(found.exit_code, 0, "{}", found.sentence);
}

#[test]
fn plans_that_are_run_side_by_side_are_two() {
    let (of, mut dice) = (cluster(4), Dice(5));
    let all = (0..60).map(|night| {
        let mut run = run(&of, night, 0, &mut dice, |_| Some(if night % 2 == 0 { 390.0 } else { 195.0 }));
        if night % 2 == 0 {
            run.plan_hash = "long".into();
            longer(&mut run);
        }
        run
    });
    let found = watch(all.collect::<Vec<Run>>(), &Options::default());
    assert_eq!((found.exit_code, found.changes.len()), (0, 0), "{}", found.sentence);
    assert_eq!(found.series.len(), 2 * of.readings.len());
}

#[test]
fn a_link_without_a_value_since_the_edit_is_missing_and_one_that_is_planned_no_more_is_not() {
    let mut runs = edited(6, EDITED + 3, false, |_| ());
    runs[EDITED as usize..].iter_mut().for_each(|run| run.readings[0].value = Err(Untrusted::NoValue));
    let found = watch(runs, &Options::default());
    assert_eq!((found.exit_code, found.missing.len()), (3, 1), "{}", found.sentence);
    assert_eq!((found.missing[0].last.clone(), found.missing[0].nights), (Some(night(39)), 3));
    // The plan names two hosts less, and their place takes a pair that is new.
    let (of, few, mut dice) = (cluster(4), cluster(2), Dice(8));
    let some = |night| run(if night < EDITED { &of } else { &few }, night, 0, &mut dice, |_| Some(390.0));
    let mut runs: Vec<Run> = (0..EDITED + 3).map(some).collect();
    runs[EDITED as usize..].iter_mut().for_each(|run| run.plan_hash = "second".into());
    let found = watch(runs, &Options::default());
    assert_eq!((found.exit_code, found.missing.len(), found.too_young), (3, 0, 1), "{}", found.sentence);
    assert!(found.changes.is_empty(), "{}", found.sentence);
}

#[test]
fn a_new_version_of_railgauge_accepts_no_regression_that_was_left() {
    let (of, mut dice) = (cluster(2), Dice(8));
    let level = |night, at| if at == 0 && night >= 20 { 195.0 } else { 390.0 };
    let mut runs: Vec<Run> = (0..80).map(|night| run(&of, night, 0, &mut dice, |at| Some(level(night, at)))).collect();
    for run in &mut runs[50..] {
        run.plan_hash = "second".into();
        run.version = "99.1".into();
        longer(run);
    }
    let found = watch(runs.clone(), &Options::default());
    assert_ne!(found.exit_code, 0, "{}", found.sentence);
    assert!(found.changes.iter().any(|change| change.state == State::Left), "{}", found.sentence);
    let epochs = vec![(day(&night(50)).unwrap(), "slower on purpose".to_owned())];
    let found = watch(runs, &Options { epochs, ..Options::default() });
    let stands = |state| matches!(state, State::Open | State::Left);
    assert!(found.changes.iter().all(|change| !stands(change.state)), "{}", found.sentence);
}

#[test]
fn what_an_edit_stops_is_named_and_no_pass_unless_its_host_left_the_plan() {
    let (of, mut dice) = (cluster(4), Dice(9));
    let of_host = |run: &Run, case: u64| {
        let flow = &run.cases[usize::try_from(case).unwrap()].flow;
        flow.hosts().iter().any(|host| &***host == "gpu003")
    };
    for leaves in [true, false] {
        let mut runs: Vec<Run> = (0..EDITED + 8).map(|night| run(&of, night, 0, &mut dice, |_| Some(390.0))).collect();
        let full = runs[0].clone();
        for run in &mut runs[EDITED as usize..] {
            run.plan_hash = "second".into();
            if leaves {
                run.plan.hosts.retain(|host| host.name != *"gpu003");
            }
            // The cases of the host are not planned any more; the others have new numbers.
            let kept: Vec<u64> = (0..full.cases.len() as u64).filter(|&case| !of_host(&full, case)).collect();
            run.readings.retain(|reading| kept.contains(&reading.case));
            for reading in &mut run.readings {
                reading.case = kept.iter().position(|&case| case == reading.case).unwrap() as u64;
            }
            run.cases = kept.iter().map(|&case| full.cases[usize::try_from(case).unwrap()].clone()).collect();
        }
        let found = watch(runs, &Options::default());
        let ended = full.readings.iter().filter(|reading| of_host(&full, reading.case)).count();
        let text = railgauge_report::trend::view(&found).unwrap();
        let watched = found.series.iter().filter(|series| series.state == Watched::Fully).count();
        assert_eq!(watched, full.readings.len() - ended, "{}", found.sentence);
        if leaves {
            assert_eq!((found.exit_code, found.stopped), (0, 0), "{}", found.sentence);
            assert_eq!(found.gone, [("gpu003".to_owned(), ended, night(i64::from(EDITED) - 1))]);
            assert!(text.remarks.iter().any(|remark| remark.contains("gpu003")), "{:?}", text.remarks);
        } else {
            assert_eq!((found.exit_code, found.stopped), (3, ended), "{}", found.sentence);
            assert!(text.doubts.rows.iter().all(|row| row[1].contains("gpu003")), "{:?}", text.doubts.rows);
        }
    }
}

/// A plan whose runs stop while those of another go on.
#[test]
fn a_plan_that_is_measured_no_more_beside_another_is_no_pass() {
    let (of, mut dice) = (cluster(2), Dice(9));
    let mut nights = |last: u32, weekly: bool| {
        let mut runs = Vec::new();
        for night in 0..60 {
            runs.push(run(&of, night, 0, &mut dice, |_| Some(390.0)));
            let turn = if weekly { night % 7 == 0 } else { true };
            if night < last && turn {
                let other = run(&of, night, 1, &mut dice, |_| Some(390.0));
                runs.push(Run { plan_hash: "other".into(), ..other });
            }
        }
        watch(runs, &Options::default())
    };
    let whole = nights(60, false);
    assert_eq!((whole.exit_code, whole.missing.len()), (0, 0), "{}", whole.sentence);
    // The other plan may have been measured earlier this night.
    assert_eq!(nights(59, false).exit_code, 0);
    for lost in [2, 7, 13] {
        let found = nights(60 - lost, false);
        assert_eq!(found.exit_code, 3, "{lost}: {}", found.sentence);
        assert_eq!(found.missing.iter().map(|one| one.nights).max(), Some(lost as usize), "{lost}");
    }
    // Once a week it is not late before a week has passed.
    assert_eq!(nights(60, true).missing.len(), 0);
}

/// A list of hosts that was edited, and one afternoon with a part of the plan, begin nothing anew and are no edits.
#[test]
fn which_hosts_a_plan_runs_on_is_not_the_plan() {
    let (four, five, mut dice) = (cluster(4), cluster(5), Dice(9));
    let made = |night: u32| run(if night < EDITED { &four } else { &five }, night, 0, &mut dice, |_| Some(390.0));
    let mut runs: Vec<Run> = (0..EDITED + 10).map(made).collect();
    runs[EDITED as usize..].iter_mut().for_each(|run| run.plan_hash = "five hosts".into());
    // Three hosts have fewer rounds of pairs than the plan wants: all of them.
    for test in runs.iter_mut().flat_map(|run| &mut run.plan.tests) {
        test.pattern = Pattern::Random(3);
    }
    let mut part = run(&cluster(3), EDITED + 3, 12, &mut dice, |_| Some(390.0));
    let hosts = part.plan.hosts.iter().map(|host| host.name.clone()).collect();
    let of_tests = part.plan.tests.iter().map(|test| test.name.clone()).collect();
    part.plan.subset =
        Some(Subset { hosts: Some(hosts), of_hosts: 5, tests: None, of_tests, repeats: None, left_out: Vec::new() });
    runs.push(part);
    let found = watch(runs, &Options::default());
    assert!(found.epochs.is_empty() && found.changes.is_empty() && found.gone.is_empty(), "{:?}", found.epochs);
    let old = found.series.iter().filter(|series| !series.link.contains("gpu005"));
    let whole = |series: &&railgauge_analysis::trend::Series| series.nights == EDITED as usize + 10;
    assert!(old.filter(whole).count() > 5, "{}", found.sentence);
}
