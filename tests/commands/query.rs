//! `railgauge runs query`: rows of many runs, as the binary writes them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{skip, support::Scenario};
use railgauge_frame as frame;
use serde_json::Value;

/// Two runs of ours, of which one has no frame yet, and an imported one.
struct Runs {
    place: tempfile::TempDir,
}

impl Runs {
    fn made() -> Self {
        let place = tempfile::tempdir().unwrap();
        for (name, rails) in [("a", 1), ("b", 2)] {
            let run = place.path().join(name);
            fs::create_dir(&run).unwrap();
            let scenario = Scenario { sizes: vec![65_536], day: rails, ..Scenario::healthy(4, rails) };
            fs::write(run.join("records.jsonl"), scenario.jsonl()).unwrap();
        }
        let made = Self { place };
        made.ok(&["report", "a"]);
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports/perftest-6.29-write-bw-cuda.txt");
        made.ok(&["runs", "import", file.to_str().unwrap(), "-o", "imported", "--from", "gpu001", "--to", "gpu002"]);
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn program(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_railgauge")).args(words).current_dir(self.place.path()).output().unwrap()
    }

    fn ok(&self, words: &[&str]) -> String {
        let ended = self.program(words);
        let status = ended.status.code();
        assert!(matches!(status, Some(0 | 3)), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    }

    fn document(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[&["runs", "query"], words, &["--json"]].concat())).unwrap()
    }
}

#[test]
fn rows_of_several_runs_fit_every_option() {
    let runs = Runs::made();
    let all = runs.document(&["a", "b", "imported"]);
    assert_eq!((&all["version"], all["runs"].as_array().unwrap().len()), (&2.into(), 3));
    assert_eq!(all["columns"], Value::from(frame::COLUMNS.map(|(name, _)| name).to_vec()));
    let rows = all["rows"].as_array().unwrap();
    let of_ours = rows.iter().filter(|row| row["phase"] == "test").count();
    assert_eq!(rows.len(), of_ours + 2);
    // What another tool measured is marked in its rows, and in the list of runs.
    let imported: Vec<&Value> = rows.iter().filter(|row| row["phase"] == "imported").collect();
    assert!(imported.iter().all(|row| row["tool"] == "perftest"));
    assert_eq!(all["runs"][2]["imported"], "perftest");
    let test = rows[0]["test"].as_str().unwrap();
    let words = ["*", "--test", test, "--metric", "bandwidth", "--metric", "busbw", "--host", "gpu[001-002]"];
    let some = runs.document(&[&words[..], &["--since", "2026-01-01"]].concat());
    let fits = |row: &&Value| {
        row["test"] == test
            && row["metric"] == "bandwidth"
            && ["src_host", "dst_host"].iter().any(|end| row[end] == "gpu001" || row[end] == "gpu002")
            && row["started_at"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok()
    };
    let fitting: Vec<&Value> = rows.iter().filter(fits).collect();
    assert!(!fitting.is_empty() && fitting.len() < rows.len());
    assert_eq!(some["rows"].as_array().unwrap().iter().collect::<Vec<_>>(), fitting);
    let counted: u64 = some["runs"].as_array().unwrap().iter().map(|run| run["rows"].as_u64().unwrap()).sum();
    assert_eq!(counted, fitting.len() as u64);
}

#[test]
fn failed_cases_are_found_also_where_none_began() {
    let runs = Runs::made();
    let lost = runs.path("lost");
    fs::create_dir(&lost).unwrap();
    fs::write(lost.join("records.jsonl"), Scenario::troubled(4, 2).jsonl()).unwrap();
    let document = runs.document(&["lost"]);
    let failed: Vec<&Value> =
        document["rows"].as_array().unwrap().iter().filter(|row| !row["error"].is_null()).collect();
    assert!(
        failed.iter().any(|row| row["started_at"].is_null())
            && failed.len() < document["rows"].as_array().unwrap().len()
    );
    let found = runs.document(&["a", "lost", "--failed", "--since", "2026-01-01T00:00:00Z"]);
    assert_eq!(found["rows"].as_array().unwrap().iter().collect::<Vec<_>>(), failed);
    assert_eq!(found["runs"][0]["rows"], 0);
    assert!(runs.document(&["lost", "--since", "2100-01-01"])["rows"].as_array().unwrap().is_empty());
}

#[test]
fn a_run_without_a_frame_gives_the_rows_that_its_report_would() {
    let runs = Runs::made();
    let before = runs.document(&["b"]);
    runs.ok(&["report", "b"]);
    let after = runs.document(&["b"]);
    assert_eq!(before["rows"], after["rows"]);
    assert!(!before["rows"].as_array().unwrap().is_empty());
}

#[test]
fn runs_stand_in_the_order_in_which_they_were_given() {
    let runs = Runs::made();
    let named = |words: &[&str]| -> Vec<String> {
        let document = runs.document(words);
        let name = |run: &Value| run["directory"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        document["runs"].as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(named(&["b", "a", "b"]), ["b", "a"]);
}

#[test]
fn every_format_has_the_same_rows() {
    let runs = Runs::made();
    let document = runs.document(&["a"]);
    let rows = document["rows"].as_array().unwrap();
    let csv = runs.ok(&["runs", "query", "a", "--format", "csv"]);
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(names, frame::COLUMNS.map(|(name, _)| name));
    assert_eq!(csv.lines().count(), rows.len() + 1);
    let table = runs.ok(&["runs", "query", "a"]);
    assert_eq!(table.lines().count(), rows.len() + 1);
}

#[test]
fn spreadsheets_and_scripts_read_the_csv_alike() {
    let runs = Runs::made();
    // A host of another tool's output may have any name.
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports/perftest-6.23-write-lat.txt");
    let words = [
        "runs",
        "import",
        file.to_str().unwrap(),
        "-o",
        "odd",
        "--from",
        "=cmd|' /C calc'!A0",
        "--to",
        "say \"hi\", b",
    ];
    runs.ok(&words);
    let csv = runs.ok(&["runs", "query", "odd", "--format", "csv"]);
    assert!(csv.contains(",'=cmd|' /C calc'!A0,"), "{csv}");
    assert!(csv.contains(",\"say \"\"hi\"\", b\","), "{csv}");
    // The recipe of docs/formats.md, as it stands there.
    let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats.md")).unwrap();
    let script = docs.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    fs::write(runs.path("rows.csv"), runs.ok(&["runs", "query", "a", "b", "--format", "csv"])).unwrap();
    let ran = Command::new("python3").args(["-c", script]).current_dir(runs.place.path()).output();
    let Ok(ran) = ran else {
        skip::left_out("python3 is not installed: the recipe of docs/formats.md was not run");
        return;
    };
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let first = told.lines().next().unwrap();
    assert!(first.contains("gpu0") && first.contains("Gb/s"), "{told}");
}

#[test]
fn what_is_wrong_is_said_and_what_is_missing_too() {
    let runs = Runs::made();
    for words in [
        &["a", "--test", "write_bw"][..],
        &["a", "--host", "gpu001,gpu009"],
        &["a", "--host", "gpu[001"],
        &["a", "--metric", "bandwith"],
        &["a", "--since", "yesterday"],
        &["a", "--json", "--format", "csv"],
        &["nowhere"],
    ] {
        let ended = runs.program(&[&["runs", "query"], words].concat());
        assert_eq!(ended.status.code(), Some(2), "{words:?}: {ended:?}");
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{words:?}: {ended:?}");
    }
    // A copy is named: its rows would count twice.
    fs::create_dir(runs.path("copy")).unwrap();
    fs::copy(runs.path("a/records.jsonl"), runs.path("copy/records.jsonl")).unwrap();
    let ended = runs.program(&["runs", "query", "a", "copy", "--format", "csv"]);
    assert!(String::from_utf8_lossy(&ended.stderr).contains("copy and a are both run "), "{ended:?}");
    // No row is an answer.
    let none = runs.program(&["runs", "query", "a", "--failed"]);
    assert_eq!((none.status.code(), none.stdout.iter().filter(|byte| **byte == b'\n').count()), (Some(0), 1));
    // A run that cannot be read is named, and the others are there.
    fs::create_dir(runs.path("broken")).unwrap();
    fs::write(runs.path("broken/records.jsonl"), "nothing\n").unwrap();
    let ended = runs.program(&["runs", "query", "a", "broken", "--format", "csv"]);
    assert_eq!(ended.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("broken/records.jsonl"), "{ended:?}");
    assert!(ended.stdout.iter().filter(|byte| **byte == b'\n').count() > 1);
    assert_eq!(runs.program(&["runs", "query", "broken"]).status.code(), Some(4));
}

/// Documents of commands that need no host but this one, each with its own version.
#[test]
fn every_document_of_a_command_has_a_version() {
    let runs = Runs::made();
    runs.ok(&["report", "b"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [plan, file] = ["plans/quickstart.toml", "tests/imports/iperf3.json"].map(|file| root.join(file));
    let [plan, file] = [&plan, &file].map(|path| path.to_str().unwrap());
    for (words, version) in [
        (&["check", plan, "--json"][..], 1),
        (&["check", "a/report.html", "--json"], 1),
        (&["run", plan, "--dry-run", "--json"], 3),
        (&["runs", "import", file, "-o", "iperf3", "--json"], 1),
        (&["report", "imported", "--json"], 1),
        (&["report", "a", "--json"], 2),
        (&["runs", "query", "a", "--json"], 2),
        (&["compare", "a", "b", "--json", "-o", "c.html"], 3),
        (&["trend", ".", "--json", "-o", "t.html"], 5),
        (&["runs", "baseline", "a", "b"], 1),
        (&["status", "a", "--json"], 2),
        (&["drain", "a", "--json"], 2),
        (&["signoff", "a", "--verify", "--json"], 1),
        (&["signoff", "a", "--json", "-o", "s.html"], 1),
    ] {
        let ended = runs.program(words);
        let told: Value = serde_json::from_slice(&ended.stdout).unwrap_or_else(|_| panic!("{words:?}: {ended:?}"));
        assert_eq!(told["version"], version, "{words:?}");
    }
    let schema: Value = serde_json::from_str(&runs.ok(&["schema"])).unwrap();
    assert_eq!(schema["$id"], "urn:railgauge:schema:plan");
}

#[test]
fn a_run_that_did_not_come_to_its_end_is_marked() {
    let runs = Runs::made();
    let cut = runs.path("cut");
    fs::create_dir(&cut).unwrap();
    let text = Scenario { interrupted: true, day: 7, ..Scenario::healthy(4, 1) }.jsonl();
    fs::write(cut.join("records.jsonl"), &text).unwrap();
    let whole = |found: &Value| {
        let runs = found["runs"].as_array().unwrap().iter();
        runs.map(|run| (run["directory"].as_str().unwrap().to_owned(), run["whole"].as_bool().unwrap()))
            .collect::<Vec<_>>()
    };
    let made = whole(&runs.document(&["a", "cut", "imported"]));
    assert_eq!(made, [("a".into(), true), ("cut".into(), false), ("imported".into(), true)]);
    // The same where its frame was written.
    runs.program(&["report", "cut"]);
    assert!(cut.join("records.parquet").exists());
    assert_eq!(whole(&runs.document(&["cut", "a"])), [("cut".into(), false), ("a".into(), true)]);
    let said = runs.program(&["runs", "query", "cut"]).stderr;
    assert!(String::from_utf8_lossy(&said).contains("not at its end"));
}
