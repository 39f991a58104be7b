//! The index over a directory of runs: of made-up runs, whole and not.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use crate::support::{self, Scenario, followed::followed_up};
use railgauge_frame::Parquet;
use railgauge_model::{journal::event::Event, plan::subset::Subset};
use railgauge_report as report;
use serde_json::Value;

fn healthy(day: u32) -> Scenario {
    Scenario { sizes: vec![1 << 20], day, ..Scenario::healthy(4, 1) }
}

/// A run directory with its report, as a run leaves it.
fn run(place: &Path, name: &str, text: &str) -> PathBuf {
    let directory = place.join(name);
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("records.jsonl"), text).unwrap();
    directory
}

fn drawn(place: &Path, name: &str, text: &str) -> PathBuf {
    let directory = run(place, name, text);
    report::write(&directory, &Parquet).unwrap();
    directory
}

fn railgauge(args: &[&str], place: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_railgauge")).args(args).current_dir(place).output().unwrap()
}

fn index(place: &Path) -> Value {
    let output = railgauge(&["runs", "list", "runs", "--html", "runs/index.html", "--json"], place);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn slow() -> String {
    let slow = Scenario { slow: Some(4), sizes: vec![1 << 20], day: 1, ..Scenario::healthy(8, 2) };
    followed_up(&slow, &slow).0
}

#[test]
fn every_run_has_a_row_the_newest_first_whatever_became_of_it() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    fs::create_dir(&runs).unwrap();
    drawn(&runs, "a good", &healthy(0).jsonl());
    drawn(&runs, "b-bad", &slow());
    drawn(&runs, "c-interrupted", &Scenario { interrupted: true, ..healthy(2) }.jsonl());
    // The controller was killed, and nobody drew a report.
    let text = healthy(3).jsonl();
    run(&runs, "d-killed", &text[..text.trim_end().rfind('\n').unwrap() + 1]);
    // A line was changed after it was written, before the report was drawn and after it.
    let damaged = |day: u32| healthy(day).jsonl().replacen("\"repeat\":1", "\"repeat\":2", 1);
    drawn(&runs, "e-damaged", &damaged(4));
    let stale = drawn(&runs, "f-stale", &healthy(5).jsonl());
    fs::write(stale.join("records.jsonl"), damaged(5)).unwrap();
    let forged = drawn(&runs, "g-forged", &Scenario { slow: Some(1), ..healthy(6) }.jsonl());
    let verdicts = fs::read_to_string(forged.join("verdicts.json")).unwrap();
    fs::write(forged.join("verdicts.json"), verdicts.replace("\"sums\"", "\"other\"")).unwrap();
    run(&runs, "h-foreign", "hello\n");
    run(&runs, "i-empty", "");
    let no_journal = drawn(&runs, "j-gone", &healthy(7).jsonl());
    fs::remove_file(no_journal.join("records.jsonl")).unwrap();
    // Not runs.
    fs::create_dir(runs.join("k-other")).unwrap();
    fs::write(runs.join("notes.txt"), "").unwrap();

    let index = index(place.path());
    assert_eq!(index["version"], 2);
    let rows = index["runs"].as_array().unwrap();
    let outcome = |name: &str| {
        let row = rows.iter().find(|row| row["directory"].as_str().unwrap().ends_with(name));
        row.unwrap_or_else(|| panic!("no row of {name}: {index}"))
    };
    assert_eq!(rows.len(), 10, "{index:#}");
    for (name, became) in [
        ("a good", "pass"),
        ("b-bad", "fail"),
        ("c-interrupted", "unfinished"),
        ("d-killed", "unfinished"),
        ("e-damaged", "damaged"),
        ("f-stale", "damaged"),
        ("h-foreign", "unreadable"),
        ("i-empty", "unreadable"),
        ("j-gone", "unreadable"),
    ] {
        assert_eq!(outcome(name)["outcome"], became, "{name}: {:#}", outcome(name));
        let silent = outcome(name)["sentence"].as_str().unwrap().is_empty();
        assert!(!silent, "{name} says nothing");
    }
    assert!(outcome("b-bad")["sentence"].as_str().unwrap().contains("gpu005"), "{:#}", outcome("b-bad"));
    assert!(outcome("b-bad")["failures"].as_u64().unwrap() > 0);
    assert_eq!(outcome("b-bad")["faulty"], serde_json::json!(["host gpu005"]));
    assert_eq!(outcome("a good")["faulty"], serde_json::json!([]));
    // What lies beside the records and does not belong to them is not believed, and that is said.
    for name in ["d-killed", "f-stale", "g-forged"] {
        assert!(!outcome(name)["remarks"].as_array().unwrap().is_empty(), "{name}");
    }
    let known = rows.iter().filter(|row| row["began_is_known"] == true);
    let began: Vec<&str> = known.map(|row| row["began"].as_str().unwrap()).collect();
    assert!(began.len() >= 7 && began.is_sorted_by(|a, b| a >= b), "{began:?}");

    let page = fs::read_to_string(runs.join("index.html")).unwrap().replace("&#x2f;", "/");
    assert!(page.contains("href=\"a%20good/report.html\"") && page.contains("no report"));
    let of_runs = &page[page.find("id=\"runs\"").unwrap()..];
    assert_eq!(of_runs.matches("<tr>").count(), rows.len() + 1);
    // Hosts by nights: the one that is faulty first, and again on no later night.
    let hosts = index["grids"][0]["hosts"].as_array().unwrap();
    assert_eq!((&hosts[0]["host"], &hosts[0]["state"], hosts.len()), (&"gpu005".into(), &"faulty".into(), 8));
    // The text has the same.
    let said = String::from_utf8(railgauge(&["runs", "list", "runs"], place.path()).stdout).unwrap();
    assert!(said.contains(" host gpu005  ") && said.contains("unfinished") && said.contains("damaged"), "{said}");
    // A plan that is named leaves out others, and what may be of any plan stays.
    let other = railgauge(&["runs", "list", "runs", "--plan", "nobody's", "--json"], place.path());
    let other: Value = serde_json::from_slice(&other.stdout).unwrap();
    assert!(other["runs"].as_array().unwrap().iter().all(|row| row["plan"] == ""), "{other:#}");
}

#[test]
fn a_run_of_a_part_of_its_plan_is_told_as_one_beside_its_verdict() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    fs::create_dir(&runs).unwrap();
    drawn(&runs, "whole", &healthy(0).jsonl());
    let mut lines = healthy(1).lines();
    let Some(Event::Started { resolved, .. }) = lines.first_mut().map(|line| &mut line.event) else { panic!() };
    let tests = Some(vec!["bw".to_owned()]);
    let all = ["bw", "lat", "sum"].map(String::from).into();
    resolved.subset =
        Some(Subset { hosts: None, of_hosts: 4, tests, of_tests: all, repeats: None, left_out: Vec::new() });
    drawn(&runs, "part", &support::text(&lines));
    let rows = index(place.path());
    let is_part: Vec<_> =
        rows["runs"].as_array().unwrap().iter().map(|row| (&row["outcome"], &row["is_part"])).collect();
    assert_eq!(is_part, [(&"pass".into(), &true.into()), (&"pass".into(), &false.into())]);
    assert!(rows["runs"][0]["sentence"].as_str().unwrap().contains("1 of 3 tests (bw)"), "{rows:#}");
    let page = fs::read_to_string(runs.join("index.html")).unwrap();
    assert_eq!(page.matches("pass</span> of a part of the plan</td>").count(), 1, "{page}");
    let said = String::from_utf8(railgauge(&["runs", "list", "runs"], place.path()).stdout).unwrap();
    assert_eq!(said.matches("pass (part of the plan)").count(), 1, "{said}");
}

#[test]
fn what_is_not_ours_is_not_replaced_and_no_runs_are_a_mistake() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    fs::create_dir(&runs).unwrap();
    assert_eq!(railgauge(&["runs", "list", "runs"], place.path()).status.code(), Some(2));
    assert_eq!(railgauge(&["runs", "list", "nothing"], place.path()).status.code(), Some(2));
    drawn(&runs, "a", &healthy(0).jsonl());
    fs::write(runs.join("index.html"), "<!doctype html>\nmine").unwrap();
    let here = ["runs", "list", "runs", "--html", "runs/index.html"];
    assert_eq!(railgauge(&here, place.path()).status.code(), Some(2));
    assert_eq!(fs::read_to_string(runs.join("index.html")).unwrap(), "<!doctype html>\nmine");
    let output = railgauge(&["runs", "list", "runs", "--html", "pages/all.html"], place.path());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(place.path().join("pages/all.html")).unwrap().replace("&#x2f;", "/");
    assert!(page.contains("href=\"../runs/a/report.html\""));
    // A page of ours is replaced.
    assert_eq!(railgauge(&["runs", "list", "runs", "--html", "pages/all.html"], place.path()).status.code(), Some(0));
}

/// A thousand runs below `runs` of a place.
fn a_thousand(place: &Path) -> PathBuf {
    let runs = place.join("runs");
    fs::create_dir(&runs).unwrap();
    let first = drawn(&runs, "run-0", &healthy(0).jsonl());
    for n in 1..1000 {
        let copy = runs.join(format!("run-{n}"));
        fs::create_dir(&copy).unwrap();
        for name in ["records.jsonl", "verdicts.json", "report.html"] {
            fs::hard_link(first.join(name), copy.join(name)).unwrap();
        }
    }
    runs
}

#[test]
fn a_thousand_runs_are_listed_in_a_short_text() {
    let place = tempfile::tempdir().unwrap();
    let runs = a_thousand(place.path());
    assert_eq!(index(place.path())["runs"].as_array().unwrap().len(), 1000);
    let page = fs::metadata(runs.join("index.html")).unwrap().len();
    assert!(page < 2 << 20, "{page} bytes");
    // The text stays short.
    let said = String::from_utf8(railgauge(&["runs", "list", "runs"], place.path()).stdout).unwrap();
    assert!(said.lines().count() < 50, "{} lines", said.lines().count());
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn a_thousand_runs_are_listed_quickly() {
    let place = tempfile::tempdir().unwrap();
    a_thousand(place.path());
    let begun = Instant::now();
    index(place.path());
    // A build for tests is ten times as slow as what users have.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}
