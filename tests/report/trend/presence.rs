//! Values that are missing, plans that were edited, hardware that was replaced, days that are none.

use std::process::Command;

use railgauge_analysis::{
    history::Run,
    row::Untrusted,
    trend::{Options, State, day},
};

use super::nights::{cluster, night, one_link, rotating, run, watch, worse};
use crate::support::Dice;

#[test]
fn a_value_missing_in_the_newest_run_of_the_night_is_missing() {
    // One in an earlier run is told another way.
    for (lacks, missing, code) in [(2, 1, 3), (0, 0, 3)] {
        let (of, mut dice) = (cluster(4), Dice(70));
        let all = (0..20).flat_map(|night| (0..3).map(move |again| (night, again)));
        let value = |night, again, at| ((night, again, at) != (19, lacks, 0)).then_some(390.0);
        let all = all.map(|(night, again)| run(&of, night, again, &mut dice, |at| value(night, again, at)));
        let found = watch(all.collect::<Vec<Run>>(), &Options::default());
        assert_eq!((found.missing.len(), found.exit_code), (missing, code), "{}", found.sentence);
    }
}

#[test]
fn a_pair_of_a_plan_that_rotates_without_a_value_is_missing() {
    let runs = || rotating(40, 1, |_, _| false);
    // In the last night alone.
    let mut last = runs();
    last[39].readings[0].value = Err(Untrusted::NoValue);
    let found = watch(last, &Options::default());
    assert_eq!((found.missing.len(), found.exit_code), (1, 3), "{}", found.sentence);
    // Whenever its turn came.
    let mut never = runs();
    let name = |run: &Run, at: usize| run.cases[usize::try_from(run.readings[at].case).unwrap()].flow.name();
    let pair = name(&never[39], 0);
    for run in &mut never {
        let of: Vec<usize> = (0..run.readings.len()).filter(|&at| name(run, at) == pair).collect();
        of.into_iter().for_each(|at| run.readings[at].value = Err(Untrusted::NoValue));
    }
    let found = watch(never, &Options::default());
    assert_eq!((found.missing.len(), found.exit_code), (1, 3), "{}", found.sentence);
    assert_eq!((found.missing[0].link.as_str(), found.missing[0].last.as_deref()), (pair.as_str(), None));
}

/// One link of two hosts at half rate from night 40 on; from night 50 on something else is so.
fn regressed(edit: impl Fn(&mut Run)) -> Vec<Run> {
    let (of, mut dice) = (cluster(2), Dice(80));
    let level = |night, at| if at == 0 && night >= 40 { 195.0 } else { 390.0 };
    let mut runs: Vec<Run> = (0..80).map(|night| run(&of, night, 0, &mut dice, |at| Some(level(night, at)))).collect();
    runs[50..].iter_mut().for_each(edit);
    runs
}

#[test]
fn an_edited_plan_ends_no_regression_and_an_epoch_does() {
    // Values that stay comparable go on; others begin anew, and the regression is left.
    for (comparable, code, state) in [(true, 1, State::Open), (false, 3, State::Left)] {
        let runs = regressed(|run| {
            run.plan_hash = "second".into();
            run.plan.tests.iter_mut().filter(|_| !comparable).for_each(|test| test.warm_up *= 3);
        });
        let found = watch(runs.clone(), &Options::default());
        assert_eq!((found.exit_code, worse(&found).state), (code, state), "{}", found.sentence);
        // An epoch before the change accepts nothing.
        for (declared, code) in [(30, code), (60, 0)] {
            let epochs = vec![(day(&night(declared)).unwrap(), "accepted".to_owned())];
            let found = watch(runs.clone(), &Options { epochs, ..Options::default() });
            assert_eq!(found.exit_code, code, "epoch of night {declared}: {}", found.sentence);
        }
    }
}

#[test]
fn a_regression_of_hardware_that_was_replaced_is_over_if_it_is_gone() {
    for (cured, code, state) in [(true, 0, State::Ended), (false, 3, State::Left)] {
        let mut runs = regressed(|run| {
            let devices = run.hosts.values_mut().flat_map(|facts| &mut facts.rdma);
            devices.for_each(|device| device.guid = Some("another NIC".into()));
        });
        for run in runs[50..].iter_mut().filter(|_| cured) {
            let value = run.readings[0].value.as_mut().unwrap();
            *value *= 2.0;
        }
        let found = watch(runs, &Options::default());
        assert_eq!((found.exit_code, worse(&found).state), (code, state), "{}", found.sentence);
    }
    // The same hardware at half rate fails.
    assert_eq!(watch(regressed(|_| ()), &Options::default()).exit_code, 1);
    assert_eq!(watch(one_link(81, 80, |_| Some(390.0)), &Options::default()).exit_code, 0);
}

#[test]
fn a_day_with_a_time_is_no_epoch() {
    let place = tempfile::tempdir().unwrap();
    let railgauge = |epoch: &str| {
        let command = Command::new(env!("CARGO_BIN_EXE_railgauge"))
            .args(["trend", ".", "--epoch", epoch])
            .current_dir(place.path())
            .output()
            .unwrap();
        (command.status.code(), String::from_utf8(command.stderr).unwrap())
    };
    for epoch in ["2026-11-21T02:00:00Z", "2026-11-21T02:00 new switches", "2026-11-211"] {
        let (code, said) = railgauge(epoch);
        assert!(code == Some(2) && said.contains("write it as 2026-11-21"), "{epoch}: {said}");
    }
    let (code, said) = railgauge("2026-11-21 new switches at 02:00");
    assert!(code == Some(2) && !said.contains("write it as"), "{said}");
}
