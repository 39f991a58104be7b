//! Runs whose date cannot be right.

use std::{path::Path, process::Command};

use railgauge_analysis::{
    history::{Run, RunError},
    journal::JournalError,
    trend::{History, Options, Trend, trend},
};
use railgauge_report as report;
use railgauge_report::text::Screen;

use super::nights::one_link;
use crate::support::Scenario;

/// Ten nights that are read under these names, by a controller whose clock says what is given.
fn read(now: &str, runs: impl IntoIterator<Item = (String, Run)>) -> Trend {
    let mut collected = History::until(now.parse().unwrap());
    for (name, mut run) in runs {
        run.path = name.into();
        collected.add(run);
    }
    trend(collected, &Options::default()).unwrap()
}

/// Ten good nights.
fn nights() -> Vec<(String, Run)> {
    (0..).map(|night| format!("runs/nightly-{night:03}")).zip(one_link(1, 10, |_| Some(390.0))).collect()
}

/// What the page and the terminal say beside the verdict.
fn remarks(found: &Trend) -> String {
    let place = tempfile::tempdir().unwrap();
    let view = report::trend::write(found, &place.path().join("trend.html")).unwrap();
    report::trend::text::summary(&view, Path::new("trend.html"), &Screen { verbose: true, ..Screen::PLAIN })
}

const NOW: &str = "2026-12-01T02:00:00Z";

#[test]
fn a_run_of_the_future_or_of_another_age_is_refused_by_name_and_is_no_pass() {
    assert_eq!(read(NOW, nights()).exit_code, 0);
    for wrong in ["2099-01-01T00:00:00Z", "1999-01-01T00:00:00Z", "2026-12-03T00:00:00Z"] {
        let mut runs = nights();
        runs[9].1.started = wrong.parse().unwrap();
        let found = read(NOW, runs);
        assert_eq!((found.exit_code, found.undated, found.span.1.as_str()), (3, true, "2026-11-29"), "{wrong}");
        let text = remarks(&found);
        assert!(text.contains("runs/nightly-009: this run says it began on") && text.contains(&wrong[..10]), "{text}");
        assert!(text.contains("measure again"), "{text}");
    }
}

#[test]
fn a_date_that_its_name_contradicts_puts_the_last_night_in_doubt() {
    // Tonight's run says it was in May.
    let mut runs = nights();
    runs[9].1.started = "2026-05-01T02:00:00Z".parse().unwrap();
    let found = read(NOW, runs);
    assert_eq!((found.exit_code, found.undated, found.disorder.len()), (3, true, 1), "{}", found.sentence);
    let text = remarks(&found);
    assert!(text.contains("runs/nightly-009") && text.contains("2026-05-01"), "{text}");
    // An older one says it was tonight.
    let mut runs = nights();
    runs[3].1.started = "2026-12-01T01:00:00Z".parse().unwrap();
    assert_eq!(read(NOW, runs).exit_code, 3);
    // An older one that says it was even earlier decides nothing, and is named.
    let mut runs = nights();
    runs[3].1.started = "2026-05-01T02:00:00Z".parse().unwrap();
    let found = read(NOW, runs);
    assert_eq!((found.exit_code, found.undated, found.disorder.len()), (0, false, 1), "{}", found.sentence);
    // Names that are no order of time say nothing.
    let reversed = nights().into_iter().rev();
    assert_eq!(read(NOW, reversed).disorder.len(), 0);
}

#[test]
fn a_start_that_is_no_time_names_its_run_and_leaves_the_last_night_unknown() {
    let torn = |name: &str, after: &[(&str, u32)]| {
        let mut collected = History::until(NOW.parse().unwrap());
        nights().into_iter().for_each(|(_, run)| collected.add(Run { path: "runs/nightly-000".into(), ..run }));
        let cause = "`yesterday` is not a time of day".to_owned();
        let path = Path::new(name).join("records.jsonl");
        collected.unreadable(Path::new(name), &RunError::Journal(JournalError::Foreign { path, line: 1, cause }));
        for (name, night) in after {
            let mut run = one_link(2, 10, |_| Some(390.0)).remove(*night as usize);
            (run.path, run.run_id) = (name.into(), (*name).to_owned());
            collected.add(run);
        }
        trend(collected, &Options::default()).unwrap()
    };
    let last = torn("runs/nightly-010", &[]);
    assert!(last.exit_code == 3 && last.torn, "{}", last.sentence);
    let text = remarks(&last);
    assert!(text.contains("runs/nightly-010") && text.contains("yesterday"), "{text}");
    // Another plan's directory, whose name comes later, is no later night of this plan.
    assert!(torn("runs/nightly-010", &[("runs/weekly-001", 9)]).torn);
    assert!(!torn("runs/nightly-010", &[("runs/nightly-011", 9)]).torn);
}

#[test]
fn the_command_refuses_a_run_of_the_future_by_the_clock_of_its_machine() {
    let place = tempfile::tempdir().unwrap();
    let scenario = Scenario { sizes: vec![1 << 20], repeats: 1, day: 27_000, ..Scenario::healthy(2, 1) };
    scenario.write(&place.path().join("runs/night-000"));
    let told = Command::new(env!("CARGO_BIN_EXE_railgauge")).args(["trend", "runs"]).current_dir(place.path()).output();
    let told = told.unwrap();
    let said = String::from_utf8(told.stdout).unwrap();
    assert_eq!(told.status.code(), Some(3), "{said}");
    assert!(said.contains("runs/night-000: this run says it began on 2100-"), "{said}");
}
