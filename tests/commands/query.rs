//! `railgauge query`: rows of many runs, as the binary writes them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{skip, support::Scenario};
use polars::prelude::{DataType, ParquetReader, SerReader};
use railgauge::analysis::frame;
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
        made.ok(&["import", file.to_str().unwrap(), "-o", "imported", "--from", "gpu001", "--to", "gpu002"]);
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
        serde_json::from_str(&self.ok(&[&["query"], words, &["--json"]].concat())).unwrap()
    }
}

#[test]
fn rows_of_several_runs_are_filtered_ordered_and_cut() {
    let runs = Runs::made();
    let all = runs.document(&["a", "b", "imported"]);
    assert_eq!((&all["version"], all["runs"].as_array().unwrap().len()), (&1.into(), 3));
    assert_eq!(all["columns"].as_array().unwrap().len(), frame::COLUMNS.len());
    let rows = all["rows"].as_array().unwrap();
    let of_ours = rows.iter().filter(|row| row["phase"] == "test").count();
    assert_eq!(rows.len(), of_ours + 2);
    // What another tool measured is marked in its rows, and beside them.
    let imported: Vec<&Value> = rows.iter().filter(|row| row["phase"] == "imported").collect();
    assert!(imported.iter().all(|row| row["tool"] == "perftest"));
    assert_eq!(all["runs"][2]["imported"], "perftest");
    let some = runs.document(&[
        "*",
        "--where",
        "metric = 'bandwidth' and memory = 'host' and src_host like 'gpu00%' and value < 0.99 * ceiling",
        "--select",
        "value,src_host,started_at",
        "--sort",
        "value desc",
        "--limit",
        "5",
    ]);
    let values: Vec<f64> = some["rows"].as_array().unwrap().iter().map(|row| row["value"].as_f64().unwrap()).collect();
    assert!(values.len() == 5 && values.is_sorted_by(|one, next| one >= next), "{values:?}");
    assert!(some["found"].as_u64().unwrap() > 5);
    let row = some["rows"][0].as_object().unwrap();
    assert_eq!(row.len(), 3);
    assert!(row["started_at"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
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
    let lines = runs.ok(&["query", "a", "--format", "jsonl"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(&lines, rows);
    runs.ok(&["query", "a", "--format", "parquet", "-o", "all.parquet"]);
    let parquet = ParquetReader::new(fs::File::open(runs.path("all.parquet")).unwrap()).finish().unwrap();
    assert_eq!(parquet.height(), rows.len());
    assert!(matches!(parquet.column("started_at").unwrap().dtype(), DataType::Datetime(_, Some(_))));
    // With all columns it is a frame.
    assert_eq!(frame::rows(&frame::read_parquet(&runs.path("all.parquet")).unwrap()).unwrap().len(), rows.len());
    let csv = runs.ok(&["query", "a", "--format", "csv"]);
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(names, frame::COLUMNS.map(|(name, _)| name));
    assert_eq!(csv.lines().count(), rows.len() + 1);
    let table = runs.ok(&["query", "a"]);
    assert!(table.lines().count() == rows.len() + 1 && table.starts_with("run_id"));
    // Nothing is replaced unasked: a file of another program may begin like one of these. Those of runs never are.
    fs::write(runs.path("rows.csv"), "run_id,value\nmine,1\n").unwrap();
    let write = |more: &[&str], file| {
        runs.program(&[&["query", "a", "--format", "csv", "-o", file], more].concat()).status.code()
    };
    assert_eq!(write(&[], "rows.csv"), Some(2));
    assert!(fs::read_to_string(runs.path("rows.csv")).unwrap().contains("mine"));
    assert_eq!(write(&["--replace"], "rows.csv"), Some(0));
    assert_eq!(fs::read_to_string(runs.path("rows.csv")).unwrap(), csv);
    for file in ["a/records.parquet", "a/records.jsonl", "a"] {
        assert_eq!((write(&[], file), write(&["--replace"], file)), (Some(2), Some(2)), "{file}");
    }
}

#[test]
fn spreadsheets_and_scripts_read_the_csv_alike() {
    let runs = Runs::made();
    // A host of another tool's output may have any name.
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports/perftest-6.23-write-lat.txt");
    let words =
        ["import", file.to_str().unwrap(), "-o", "odd", "--from", "=cmd|' /C calc'!A0", "--to", "say \"hi\", b"];
    runs.ok(&words);
    let csv =
        runs.ok(&["query", "odd", "--format", "csv", "--select", "src_host,dst_host,value,error", "--limit", "1"]);
    assert_eq!(csv, "src_host,dst_host,value,error\n'=cmd|' /C calc'!A0,\"say \"\"hi\"\", b\",1.01,\n");
    // The recipe of docs/query.md, as it stands there.
    let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/query.md")).unwrap();
    let script = docs.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    runs.ok(&["query", "a", "b", "--format", "csv", "-o", "rows.csv"]);
    let ran = Command::new("python3").args(["-c", script]).current_dir(runs.place.path()).output();
    let Ok(ran) = ran else {
        skip::left_out("python3 is not installed: the recipe of docs/query.md was not run");
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
    for (words, told) in [
        (&["a", "--where", "valeu < 3"][..], "did you mean `value`?"),
        (&["a", "--where", "value <"], "--where"),
        (&["a", "--select", "case"], "did you mean `case_id`?"),
        (&["a", "--sort", "value down"], "`value down` is no order"),
        (&["a", "--format", "parquet"], "-o"),
        (&["nowhere"], "nowhere"),
        (&["a", "--json", "--format", "csv"], "--format"),
    ] {
        let ended = runs.program(&[&["query"], words].concat());
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(told), "{words:?}: {said}");
        assert!(ended.stdout.is_empty());
    }
    // A copy is named: its rows would count twice.
    fs::create_dir(runs.path("copy")).unwrap();
    fs::copy(runs.path("a/records.jsonl"), runs.path("copy/records.jsonl")).unwrap();
    let ended = runs.program(&["query", "a", "copy", "--format", "csv"]);
    assert!(String::from_utf8_lossy(&ended.stderr).contains("copy and a are both run "), "{ended:?}");
    // No row is an answer.
    let none = runs.program(&["query", "a", "--where", "value < 0"]);
    assert_eq!((none.status.code(), none.stdout.iter().filter(|byte| **byte == b'\n').count()), (Some(0), 1));
    // A run that cannot be read is named, and the others are there.
    fs::create_dir(runs.path("broken")).unwrap();
    fs::write(runs.path("broken/records.jsonl"), "nothing\n").unwrap();
    let ended = runs.program(&["query", "a", "broken", "--format", "csv"]);
    assert_eq!(ended.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("broken/records.jsonl"), "{ended:?}");
    assert!(ended.stdout.iter().filter(|byte| **byte == b'\n').count() > 1);
    assert_eq!(runs.program(&["query", "broken"]).status.code(), Some(4));
}

#[test]
fn rows_of_a_frame_of_version_1_lack_what_is_younger() {
    let runs = Runs::made();
    let path = runs.path("a/records.parquet");
    let mut old = ParquetReader::new(fs::File::open(&path).unwrap()).finish().unwrap();
    for younger in ["value_min", "value_max"] {
        let _ = old.drop_in_place(younger).unwrap();
    }
    old.rename("case_id", "case".into()).unwrap();
    let times = frame_times(&old);
    old.replace("started_at", polars::prelude::Column::new("started_at".into(), times)).unwrap();
    frame::write_parquet(&mut old, &fs::File::create(&path).unwrap(), &path).unwrap();
    // The sums are those of the files as they lie there.
    let verdicts = runs.path("a/verdicts.json");
    let mut document: Value = serde_json::from_slice(&fs::read(&verdicts).unwrap()).unwrap();
    document["sums"]["frame"] = railgauge::analysis::verdict::Sums::of_file(&path).unwrap().into();
    fs::write(&verdicts, document.to_string()).unwrap();
    let ended = runs.program(&["query", "a", "b", "--json", "--select", "run_id,case_id,value,value_min,started_at"]);
    assert!(String::from_utf8_lossy(&ended.stderr).contains("version 1"), "{ended:?}");
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&told["runs"][0]["frame"], &told["runs"][1]["frame"]), (&1.into(), &2.into()));
    let rows = told["rows"].as_array().unwrap();
    let (of_a, of_b) = rows.split_at(usize::try_from(told["runs"][0]["rows"].as_u64().unwrap()).unwrap());
    assert!(of_a.iter().all(|row| row["value_min"].is_null() && row["case_id"].is_u64()));
    assert!(of_b.iter().any(|row| row["value_min"].is_f64()));
    assert!(of_a.iter().all(|row| row["started_at"].as_str().unwrap().ends_with('Z')));
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
        (&["plan", plan, "--json"], 2),
        (&["init", "--list", "--json"], 1),
        (&["import", file, "-o", "iperf3", "--json"], 1),
        (&["report", "imported", "--json"], 1),
        (&["report", "a", "--json"], 1),
        (&["query", "a", "--json"], 1),
        (&["compare", "a", "b", "--json", "-o", "c.html"], 2),
        (&["trend", ".", "--json", "-o", "t.html"], 3),
        (&["baseline", "a", "b"], 1),
        (&["status", "a", "--json"], 1),
        (&["drain", "a", "--json"], 1),
        (&["verify", "a", "--json"], 1),
        (&["signoff", "a", "--json", "-o", "s.html"], 1),
    ] {
        let ended = runs.program(words);
        let told: Value = serde_json::from_slice(&ended.stdout).unwrap_or_else(|_| panic!("{words:?}: {ended:?}"));
        assert_eq!(told["version"], version, "{words:?}");
    }
    let schema: Value = serde_json::from_str(&runs.ok(&["schema"])).unwrap();
    assert_eq!(schema["$id"], "urn:railgauge:schema:plan");
}

/// The times of a frame as text, as version 1 had them.
fn frame_times(frame: &polars::prelude::DataFrame) -> Vec<Option<String>> {
    let micros = frame.column("started_at").unwrap().as_materialized_series().datetime().unwrap().physical().clone();
    micros.iter().map(|time| Some(jiff::Timestamp::from_microsecond(time?).unwrap().to_string())).collect()
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
    let made = whole(&runs.document(&["a", "cut", "imported", "--limit", "1"]));
    assert_eq!(made, [("a".into(), true), ("cut".into(), false), ("imported".into(), true)]);
    // The same where its frame was written.
    runs.program(&["report", "cut"]);
    assert!(cut.join("records.parquet").exists());
    assert_eq!(whole(&runs.document(&["cut", "a"])), [("cut".into(), false), ("a".into(), true)]);
    let said = runs.program(&["query", "cut", "--limit", "1"]).stderr;
    assert!(String::from_utf8_lossy(&said).contains("not at its end"));
}
