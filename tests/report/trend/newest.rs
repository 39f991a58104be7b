//! Which run is the newest, what it comes to, and runs that measured nothing.

use std::{fs, path::Path, process::Command};

use railgauge_analysis::{
    history::{Run, RunError},
    trend::{History, Options, Trend, day, trend},
};
use railgauge_model::journal::event::{Event, Line};

use super::nights::{cluster, night, one_link, run, watch};
use crate::support::{Dice, Scenario, text};

/// Runs under the names of consecutive nights.
fn named(runs: Vec<Run>) -> Trend {
    let mut collected = History::default();
    for (night, run) in runs.into_iter().enumerate() {
        collected.add(Run { path: format!("runs/nightly-{}", night + 1).into(), ..run });
    }
    trend(collected, &Options::default()).unwrap()
}

#[test]
fn half_the_rate_in_the_run_of_the_last_name_never_passes_however_far_its_clock_is_behind() {
    for hours in [1, 11, 13, 23, 25, 30, 35, 37, 42, 47, 48, 49, 54, 60, 72, 96, 24 * 20, 24 * 29 + 12] {
        let mut runs = one_link(1, 30, |n| Some(if n == 29 { 195.0 } else { 390.0 }));
        runs[29].started -= jiff::SignedDuration::from_hours(hours);
        let found = named(runs);
        assert_ne!(found.exit_code, 0, "{hours} hours behind: {}", found.sentence);
        // From the night before on, the order of time is another one.
        if hours > 24 {
            assert!(found.undated, "{hours} hours behind: {}", found.sentence);
            assert!(
                found
                    .disorder
                    .iter()
                    .any(|(directory, why)| directory.ends_with("nightly-30") && why.contains("nightly-29")),
                "{hours} hours behind: {:?}",
                found.disorder
            );
        }
    }
    assert_eq!(named(one_link(1, 30, |_| Some(390.0))).exit_code, 0);
}

#[test]
fn an_edited_plan_hides_no_wrong_clock() {
    let mut runs = one_link(2, 30, |_| Some(390.0));
    runs[29].started -= jiff::SignedDuration::from_hours(30);
    runs[29].plan_hash = "second".into();
    let found = named(runs);
    assert!(found.undated && found.exit_code == 3, "{}", found.sentence);
}

/// A folder of nightly runs of four hosts, whose reports pass.
fn folder(nights: u32) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for day in 0..nights {
        let seed = 1000 + u64::from(day);
        let of = Scenario { sizes: vec![1 << 20], day: 10 + day, seed, ..Scenario::healthy(4, 1) };
        let mut lines = of.lines();
        lines.iter_mut().for_each(earlier);
        let directory = directory(place.path(), day);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("records.jsonl"), text(&lines)).unwrap();
    }
    place
}

/// From 1 October on: no machine's clock is before that.
fn earlier(line: &mut Line) {
    let earlier = |time: &str| time.replace("2026-12-", "2026-10-");
    line.at = earlier(&line.at);
    if let Event::Outcome(outcome) = &mut line.event {
        outcome.started_at = earlier(&outcome.started_at.to_string()).into();
    }
}

fn directory(place: &Path, night: u32) -> std::path::PathBuf {
    place.join(format!("runs/night-{night:03}"))
}

/// Cuts a journal off before the first line that says this.
fn cut(place: &Path, night: u32, before: &str) {
    let path = directory(place, night).join("records.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().take_while(|line| !line.contains(before)).collect();
    assert!(!lines.is_empty() && lines.len() < text.lines().count(), "{before} in {}", path.display());
    fs::write(&path, lines.join("\n") + "\n").unwrap();
}

/// Exit code and text of `railgauge trend runs`, with these arguments beside.
fn told(place: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_railgauge"));
    let told = command.args(["trend", "runs"]).args(more).current_dir(place).output().unwrap();
    (told.status.code(), String::from_utf8_lossy(&told.stdout).into_owned() + &String::from_utf8_lossy(&told.stderr))
}

#[test]
fn a_newest_run_that_measured_nothing_or_cannot_be_read_is_named_and_no_pass() {
    let place = folder(10);
    let (code, text) = told(place.path(), &[]);
    assert_eq!(code, Some(0), "{text}");
    let named = |text: &str| text.contains("night-009");
    cut(place.path(), 9, "\"Planned\"");
    let (code, text) = told(place.path(), &[]);
    assert!(code == Some(3) && named(&text), "hosts came up and nothing was planned: {text}");
    assert!(text.contains("9 nights with 9 runs"), "{text}");
    let journal = directory(place.path(), 9).join("records.jsonl");
    fs::write(directory(place.path(), 9).join("plan.toml"), "name = \"nightly\"\n").unwrap();
    fs::remove_file(&journal).unwrap();
    let (code, text) = told(place.path(), &[]);
    assert!(code == Some(3) && named(&text), "only a plan: {text}");
    fs::remove_file(directory(place.path(), 9).join("plan.toml")).unwrap();
    let (code, text) = told(place.path(), &[]);
    assert!(code == Some(3) && named(&text), "an empty directory among runs: {text}");
}

#[test]
fn wrong_bytes_of_an_earlier_night_are_told_with_its_name() {
    let place = folder(9);
    let (code, told_of_none) = told(place.path(), &[]);
    assert_eq!(code, Some(0), "{told_of_none}");
    let journal = directory(place.path(), 5).join("records.jsonl");
    let mut lines =
        Scenario { sizes: vec![1 << 20], day: 15, seed: 1005, wrong: true, ..Scenario::healthy(4, 1) }.lines();
    lines.iter_mut().for_each(earlier);
    fs::write(journal, text(&lines)).unwrap();
    let (_, told) = told(place.path(), &[]);
    assert!(told.contains("night-005") && !told_of_none.contains("night-005"), "{told}");
}

#[test]
fn a_newest_run_that_fails_where_no_series_got_worse_is_not_told_as_worse() {
    let place = folder(10);
    let journal = directory(place.path(), 9).join("records.jsonl");
    let of = Scenario { sizes: vec![1 << 20], day: 19, seed: 1009, wrong: true, ..Scenario::healthy(4, 1) };
    let mut lines = of.lines();
    lines.iter_mut().for_each(earlier);
    fs::write(journal, text(&lines)).unwrap();
    let (code, told) = told(place.path(), &["-o", "trend.html"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("0 open regressions"), "{told}");
    let page = fs::read_to_string(place.path().join("trend.html")).unwrap().to_lowercase();
    assert!(page.contains("the last run failed") && !page.contains(">worse<"), "{told}");
}

#[test]
fn a_large_share_of_runs_without_a_value_is_no_pass_and_a_small_one_is_said() {
    let lost = |all: u32, lost: &dyn Fn(u32) -> bool| {
        let (of, mut dice) = (cluster(2), Dice(7));
        let mut collected = History::default();
        for number in 0..all {
            let run = run(&of, number, 0, &mut dice, |_| Some(390.0));
            let run = Run { path: format!("runs/night-{number}").into(), ..run };
            if lost(number) {
                let why = RunError::Unplanned { path: run.path.join("records.jsonl"), run: Box::new(run.clone()) };
                collected.unreadable(&run.path, &why);
            } else {
                collected.add(run);
            }
        }
        trend(collected, &Options::default()).unwrap()
    };
    // Ten nights of bring-up alone, then a good one.
    let found = lost(41, &|n| (30..40).contains(&n));
    assert_eq!((found.exit_code, found.runs.0), (3, 31), "{}", found.sentence);
    // Every second run.
    assert_ne!(lost(60, &|n| n % 2 == 1 && n < 59).exit_code, 0);
    // Three in a year, and ten a year ago.
    let found = lost(80, &|n| [20, 21, 22].contains(&n));
    assert_eq!((found.exit_code, found.unreadable.len()), (0, 3), "{}", found.sentence);
    let found = lost(80, &|n| (10..20).contains(&n));
    assert_eq!(found.exit_code, 0, "{}", found.sentence);
}

#[test]
fn nights_without_a_run_are_said() {
    let mut runs = one_link(3, 40, |_| Some(390.0));
    runs.drain(20..22);
    let found = watch(runs, &Options::default());
    let remarks = railgauge_report::trend::view(&found).unwrap().remarks.join("\n");
    assert!(remarks.contains(&night(20)) && remarks.contains(&night(21)), "{remarks}");
}

#[test]
fn a_trend_is_no_better_than_the_report_of_its_last_run() {
    let place = folder(10);
    cut(place.path(), 9, "\"Finished\"");
    let report = Command::new(env!("CARGO_BIN_EXE_railgauge"))
        .args(["report", "runs/night-009"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert_eq!(report.status.code(), Some(3));
    let (code, text) = told(place.path(), &[]);
    assert!(code == Some(3) && text.contains("night-009"), "{text}");
    // One of an earlier night is of that night.
    let place = folder(10);
    cut(place.path(), 5, "\"Finished\"");
    let (code, text) = told(place.path(), &[]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn no_file_but_a_page_is_replaced() {
    let place = folder(2);
    let plan = place.path().join("n.toml");
    fs::write(&plan, "name = \"nightly\"\n").unwrap();
    let (code, text) = told(place.path(), &["-o", "n.toml"]);
    assert!(code == Some(2) && text.contains("n.toml"), "{text}");
    assert_eq!(fs::read_to_string(&plan).unwrap(), "name = \"nightly\"\n");
    for _ in 0..2 {
        let (code, text) = told(place.path(), &["-o", "page.html"]);
        assert_eq!(code, Some(3), "{text}");
    }
    fs::write(place.path().join("empty.html"), "").unwrap();
    assert_eq!(told(place.path(), &["-o", "empty.html"]).0, Some(3));
}

#[test]
fn an_epoch_that_accepts_nothing_is_said_and_its_reason_steers_no_terminal() {
    let place = folder(8);
    let (code, text) = told(place.path(), &["--epoch", "2099-01-01 new\u{1b}[2J switches"]);
    assert!(code == Some(2) && text.contains("2099-01-01") && !text.contains('\u{1b}'), "{text}");
    let runs = |epoch: &str| {
        let epochs = vec![(day(epoch).unwrap(), "new switches".to_owned())];
        let found = watch(one_link(4, 30, |_| Some(390.0)), &Options { epochs, ..Options::default() });
        railgauge_report::trend::view(&found).unwrap().remarks.join("\n")
    };
    for epoch in ["1999-01-01", &night(30)] {
        let remarks = runs(epoch);
        assert!(remarks.contains(epoch) && remarks.contains("new switches"), "{epoch}: {remarks}");
    }
    for epoch in [night(1), night(29)] {
        assert!(!runs(&epoch).contains(&epoch));
    }
    let (code, text) = told(place.path(), &["--epoch", "2026-10-05 new\u{1b}[2J switches"]);
    assert!(code.is_some() && text.contains("switches") && !text.contains('\u{1b}'), "{text}");
}

/// A plan that was corrected and measured again in the same night is one plan.
#[test]
fn the_report_of_a_plan_that_was_edited_since_does_not_count() {
    let place = folder(10);
    let again = directory(place.path(), 9);
    let later = again.with_file_name("night-009-again");
    fs::create_dir_all(&later).unwrap();
    let of = |wrong: bool| Scenario { sizes: vec![1 << 20], day: 19, seed: 1009, wrong, ..Scenario::healthy(4, 1) };
    let hours = |hours: i64| {
        let shift = jiff::SignedDuration::from_hours(hours);
        let mut lines = of(hours == 0).lines();
        lines.iter_mut().for_each(|line| {
            earlier(line);
            let move_on = |time: &str| (time.parse::<jiff::Timestamp>().unwrap() + shift).to_string();
            line.at = move_on(&line.at);
            match &mut line.event {
                Event::Outcome(outcome) => outcome.started_at = move_on(&outcome.started_at.to_string()).into(),
                Event::Started { plan_hash, run_id, .. } if hours > 0 => {
                    plan_hash.replace_range(..4, "ffff");
                    run_id.push_str("-again");
                }
                _ => {}
            }
        });
        lines
    };
    let reported = || {
        let (_, said) = told(place.path(), &["--json"]);
        let document: serde_json::Value = serde_json::from_str(&said[said.find('{').unwrap()..]).unwrap();
        let rows = document["reported"].as_array().unwrap().iter();
        rows.map(|row| (row["directory"].to_string(), row["status"].to_string())).collect::<Vec<_>>()
    };
    fs::write(again.join("records.jsonl"), text(&hours(0))).unwrap();
    let rows = reported();
    assert!(rows.len() == 1 && rows[0].1.contains("fail"), "{rows:?}");
    fs::write(later.join("records.jsonl"), text(&hours(1))).unwrap();
    let rows = reported();
    assert!(rows.len() == 1 && rows[0].0.contains("again"), "{rows:?}");
}

/// The last night was lost, and its directory holds the night before.
#[test]
fn a_copy_in_the_place_of_the_last_night_is_no_pass() {
    let place = folder(10);
    let last = directory(place.path(), 9).join("records.jsonl");
    fs::copy(directory(place.path(), 8).join("records.jsonl"), &last).unwrap();
    let (code, said) = told(place.path(), &[]);
    assert!(code == Some(3) && said.contains("night-009"), "{said}");
    // Under a name of another kind it is somebody's copy.
    fs::rename(directory(place.path(), 9), place.path().join("runs/kept")).unwrap();
    assert_eq!(told(place.path(), &[]).0, Some(0));
}
