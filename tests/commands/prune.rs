//! Deleting old runs: what goes, and everything that must stay.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::{self, Scenario};
use railgauge_frame::Parquet;
use railgauge_report as report;
use serde_json::Value;

fn healthy(day: u32) -> Scenario {
    Scenario { sizes: vec![1 << 20], day, seed: u64::from(day), ..Scenario::healthy(4, 1) }
}

/// A run directory as a run leaves it.
fn run(runs: &Path, name: &str, text: &str) -> PathBuf {
    let directory = runs.join(name);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("records.jsonl"), text).unwrap();
    for name in ["plan.toml", "facts.json", "log.txt"] {
        fs::write(directory.join(name), "").unwrap();
    }
    report::write(&directory, &Parquet).unwrap();
    directory
}

fn prune(runs: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_railgauge")).args(["runs", "prune"]).arg(runs).args(words).output().unwrap()
}

fn names(runs: &Path) -> BTreeSet<String> {
    fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn chosen(runs: &Path, words: &[&str]) -> Vec<Value> {
    let output = prune(runs, &[words, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["version"], 1);
    document["runs"].as_array().unwrap().clone()
}

/// Names of the directories that would go.
fn goes(runs: &Path, words: &[&str]) -> BTreeSet<String> {
    let all = chosen(runs, words).into_iter().filter(|run| run["kept"].is_null());
    all.map(|run| run["directory"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_newest_stay_and_nothing_goes_without_yes() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path();
    for day in 0..4 {
        run(runs, &format!("n{day}"), &healthy(day).jsonl());
    }
    // What did not come to its end is none of the newest, and stays.
    run(runs, "n5-interrupted", &Scenario { interrupted: true, ..healthy(5) }.jsonl());
    let before = names(runs);
    assert_eq!(goes(runs, &["--keep-last", "2"]), set(&["n0", "n1"]));
    assert_eq!(names(runs), before, "something went without --yes");
    assert_eq!(goes(runs, &["--keep-days", "100000"]), set(&[]));
    assert_eq!(goes(runs, &["--keep-last", "0"]), set(&["n0", "n1", "n2", "n3"]));
    // Nothing is said of what to keep.
    assert_eq!(prune(runs, &["--yes"]).status.code(), Some(2));
    assert_eq!(prune(&runs.join("nothing"), &["--keep-last", "1", "--yes"]).status.code(), Some(2));
    assert_eq!(names(runs), before);
    let output = prune(runs, &["--keep-last", "2", "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(names(runs), set(&["n2", "n3", "n5-interrupted"]));
    assert_eq!(goes(runs, &["--keep-last", "2"]), set(&[]));
}

#[test]
fn a_file_that_names_no_run_is_told_and_quiet_says_nothing_more() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    fs::create_dir(&runs).unwrap();
    for day in 0..3 {
        run(&runs, &format!("n{day}"), &healthy(day).jsonl());
    }
    let id = chosen(&runs, &["--keep-last", "1"])[2]["run_id"].as_str().unwrap().to_owned();
    let [of_one, of_none] = [("one", id.as_str()), ("none", "another run")].map(|(name, text)| {
        let file = place.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    });
    let output = prune(&runs, &["--keep-last", "1", "--named-in", &of_one, "--named-in", &of_none, "--yes", "-q"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(&of_none) && !said.contains(&of_one), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    assert_eq!(names(&runs), set(&["n0", "n2"]));
}

#[test]
fn failed_runs_and_those_that_something_rests_on_stay() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path();
    let slow = |day| Scenario { slow: Some(1), wrong: true, ..healthy(day) };
    run(runs, "bad", &slow(0).jsonl());
    for day in 1..5 {
        run(runs, &format!("n{day}"), &healthy(day).jsonl());
    }
    let keep = ["--keep-last", "1"];
    assert_eq!(goes(runs, &keep), set(&["bad", "n1", "n2", "n3"]));
    assert_eq!(goes(runs, &["--keep-last", "1", "--keep-failed"]), set(&["n1", "n2", "n3"]));
    let id =
        |name: &str| chosen(runs, &keep).into_iter().find(|run| run["directory"].as_str().unwrap().ends_with(name));
    let id = |name: &str| id(name).unwrap()["run_id"].as_str().unwrap().to_owned();
    let railgauge = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_railgauge")).args(words).current_dir(runs).output().unwrap();
        assert!(output.status.code() != Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    };
    // A baseline that lies beside the runs names those it was learned from; a sign-off names its run.
    railgauge(&["runs", "baseline", "n1", "-o", "known.json"]);
    railgauge(&["signoff", "n2", "-o", "handed-over.html"]);
    assert!(runs.join("known.json").exists() && runs.join("handed-over.html").exists());
    assert_eq!(goes(runs, &keep), set(&["bad", "n3"]));
    // Whatever they are called, and whatever wrote the baseline.
    let known = fs::read_to_string(runs.join("known.json")).unwrap();
    fs::remove_file(runs.join("known.json")).unwrap();
    fs::write(runs.join("known"), known.replacen("\"version\": ", "\"version\": 99", 1)).unwrap();
    fs::rename(runs.join("handed-over.html"), runs.join("handed-over.htm")).unwrap();
    assert_eq!(goes(runs, &keep), set(&["bad", "n3"]));
    // A copy is no further night.
    fs::create_dir(runs.join("n4-again")).unwrap();
    for file in fs::read_dir(runs.join("n4")).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), runs.join("n4-again").join(file.file_name())).unwrap();
    }
    assert_eq!(goes(runs, &["--keep-last", "2"]), set(&["bad"]));
    assert_eq!(goes(runs, &["--keep-last", "1"]), set(&["bad", "n3"]));
    fs::remove_dir_all(runs.join("n4-again")).unwrap();
    // An index and a comparison name runs and rest on none.
    railgauge(&["runs", "list", ".", "--html", "index.html"]);
    // Neither a sign-off nor a run is a place for an index.
    let index = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_railgauge"))
            .args(["runs", "list"])
            .args(words)
            .current_dir(runs)
            .output()
            .unwrap()
    };
    let signed = fs::read(runs.join("handed-over.htm")).unwrap();
    assert_eq!(index(&[".", "--html", "handed-over.htm"]).status.code(), Some(2));
    assert_eq!(fs::read(runs.join("handed-over.htm")).unwrap(), signed);
    let alone = index(&["n4"]);
    assert!(alone.status.success() && !runs.join("n4/index.html").exists(), "{alone:?}");
    railgauge(&["compare", "n3", "n4", "-o", "compared.html"]);
    assert_eq!(goes(runs, &keep), set(&["bad", "n3"]));
    let list = place.path().join("list.txt");
    fs::write(&list, format!("keep {}\n", id("bad"))).unwrap();
    let more = ["--keep-last", "1", "--named-in", list.to_str().unwrap()];
    assert_eq!(goes(runs, &more), set(&["n3"]));
    // What cannot be read may name any.
    let missing = prune(runs, &["--keep-last", "1", "--named-in", "/nowhere/list.txt", "--yes"]);
    assert_eq!(missing.status.code(), Some(4));
    assert!(runs.join("n3").exists());
}

/// A run of a part of the plan may be what shows that a host was mended.
#[test]
fn a_part_of_a_plan_stays_as_long_as_the_nights_beside_it() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path();
    let part = |day: u32| {
        let text = healthy(day).jsonl();
        let (first, rest) = text.split_once('\n').unwrap();
        let subset = "\"resolved\":{\"subset\":{\"hosts\":[\"gpu001\"],\"of_hosts\":4,\"of_tests\":[]},";
        let first = first.replacen("\"resolved\":{", subset, 1);
        let body = first.rsplit_once(",\"sum\"").unwrap().0.to_owned() + "}";
        run(runs, &format!("part{day}"), &(support::sealed(&body) + rest));
    };
    for day in [0, 2, 4] {
        run(runs, &format!("night{day}"), &healthy(day).jsonl());
        part(day + 1);
    }
    assert_eq!(goes(runs, &["--keep-last", "1"]), set(&["night2", "part3", "night0", "part1"]));
    assert_eq!(goes(runs, &["--keep-last", "60"]), set(&[]));
    assert_eq!(goes(runs, &["--keep-last", "0"]).len(), 6);
}

#[test]
fn what_is_not_certainly_an_old_run_stays() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let elsewhere = place.path().join("elsewhere");
    let text = healthy(0).jsonl();
    // Files of somebody else, and a folder, in a run's directory.
    fs::write(run(&runs, "noted", &text).join("notes.txt"), "mine").unwrap();
    fs::create_dir(run(&runs, "deeper", &text).join("raw")).unwrap();
    // A link to a run, and a run with a link in it.
    let target = run(&elsewhere, "real", &text);
    std::os::unix::fs::symlink(&target, runs.join("linked")).unwrap();
    let inside = run(&runs, "link-inside", &text);
    fs::remove_file(inside.join("log.txt")).unwrap();
    fs::write(place.path().join("precious"), "precious").unwrap();
    std::os::unix::fs::symlink(place.path().join("precious"), inside.join("log.txt")).unwrap();
    // Damaged, foreign and empty records; something else altogether.
    let damaged = text.replacen("\"repeat\":1", "\"repeat\":2", 1);
    run(&runs, "damaged", &damaged);
    for (name, text) in [("foreign", "hello\n"), ("empty", "")] {
        fs::create_dir(runs.join(name)).unwrap();
        fs::write(runs.join(name).join("records.jsonl"), text).unwrap();
    }
    fs::create_dir(runs.join("other")).unwrap();
    // One that a process is writing to.
    let written = run(&runs, "written", &text);
    let lock = File::options().append(true).open(written.join("records.jsonl")).unwrap();
    lock.lock().unwrap();
    run(&runs, "old", &text);
    let before = names(&runs);

    let output = prune(&runs, &["--keep-last", "0", "--yes"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // The one that is written to could not be deleted, and that is said.
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("written") && said.contains("notes.txt") && said.contains("link"), "{said}");
    let mut left = before.clone();
    left.remove("old");
    assert_eq!(names(&runs), left, "{said}");
    assert_eq!(fs::read_to_string(place.path().join("precious")).unwrap(), "precious");
    assert!(target.join("records.jsonl").exists());
    for name in ["noted", "deeper", "link-inside", "written", "damaged"] {
        assert!(runs.join(name).join("report.html").exists(), "{name} was touched");
    }
    // A single run is no directory of runs.
    prune(&target, &["--keep-last", "0", "--yes"]);
    assert!(target.join("records.jsonl").exists());
}

#[test]
fn an_index_that_lists_what_was_deleted_is_told_with_the_command_that_writes_it() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path();
    for day in 0..3 {
        run(runs, &format!("run-{day}"), &healthy(day).jsonl());
    }
    let said = |words: &[&str]| {
        let output = prune(runs, words);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    let index = || {
        let index = Command::new(env!("CARGO_BIN_EXE_railgauge"))
            .args(["runs", "list"])
            .arg(runs)
            .arg("--html")
            .arg(runs.join("index.html"))
            .output()
            .unwrap();
        assert_eq!(index.status.code(), Some(0), "{}", String::from_utf8_lossy(&index.stderr));
        fs::read_to_string(runs.join("index.html")).unwrap()
    };
    assert!(index().contains("run-0"));
    // Nothing was deleted yet.
    assert_eq!(said(&["--keep-last", "2"]), "");
    let note = said(&["--keep-last", "2", "--yes"]);
    assert!(
        note.contains("index.html") && note.contains(&format!("`railgauge runs list {} --html ", runs.display())),
        "{note}"
    );
    assert!(!index().contains("run-0"));
    // What somebody else wrote is none of ours.
    fs::write(runs.join("index.html"), "<!doctype html>\nmine").unwrap();
    assert_eq!(said(&["--keep-last", "1", "--yes"]), "");
    assert_eq!(names(runs), set(&["index.html", "run-2"]));
}
