//! What is handed over: the sign-off of a run, and the proof that a run directory is the one that was signed.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::support::{self, Scenario, followed::followed_up};
use railgauge_model::journal::event::{Event, Line};
use railgauge_wire::failure::{self, Failure, Stage};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn program(words: &[&str], run: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_railgauge")).args(words).arg(run).output().unwrap()
}

fn code(words: &[&str], run: &Path) -> i32 {
    program(words, run).status.code().unwrap()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// A run directory, drawn, with the plan that its records name.
fn drawn(text: &str) -> tempfile::TempDir {
    let run = tempfile::tempdir().unwrap();
    let plan = "name = \"acceptance\"\n";
    let hash = hex::encode(Sha256::digest(plan));
    // The hash of the made-up runs' plan, in a first line whose sum is made anew.
    let (first, rest) = text.split_once('\n').unwrap();
    let first = first.replace("5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8", &hash);
    let body = first.rsplit_once(",\"sum\"").unwrap().0.to_owned() + "}";
    fs::write(run.path().join("records.jsonl"), support::sealed(&body) + rest).unwrap();
    fs::write(run.path().join("plan.toml"), plan).unwrap();
    let path = run.path().join("records.jsonl");
    let journal = railgauge_analysis::journal::read(&path).unwrap();
    let facts: std::collections::BTreeMap<_, _> = journal.hosts.iter().map(|(host, up)| (host, &up.facts)).collect();
    fs::write(run.path().join("facts.json"), serde_json::to_vec(&facts).unwrap()).unwrap();
    program(&["report", "-q"], run.path());
    run
}

fn healthy() -> String {
    Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) }.jsonl()
}

#[test]
fn a_page_that_cannot_be_written_leaves_no_file() {
    let (whole, damaged, place) = (drawn(&healthy()), drawn(&healthy()), tempfile::tempdir().unwrap());
    fs::write(damaged.path().join("records.jsonl"), "not a journal\n").unwrap();
    let pages = |run: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_railgauge"));
        let output = command.arg("signoff").arg(run).current_dir(place.path()).output().unwrap();
        (output.status.success(), fs::read_dir(place.path().join("reports")).unwrap().count())
    };
    assert_eq!(pages(damaged.path()), (false, 0));
    assert_eq!(pages(whole.path()), (true, 1));
}

#[test]
fn a_sign_off_says_every_limit_and_what_was_not_tested() {
    let slow = Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) };
    let troubled = Scenario { sizes: vec![1 << 20], ..Scenario::troubled(8, 2) };
    for (text, status) in [(healthy(), "pass"), (followed_up(&slow, &slow).0, "fail"), (troubled.jsonl(), "fail")] {
        let run = drawn(&text);
        let page = run.path().join("signoff.html");
        let output = program(&["signoff", "--json", "-o", page.to_str().unwrap()], run.path());
        let view = json_of(&output);
        assert_eq!(view["status"], status);
        assert_eq!(output.status.code(), Some(if status == "pass" { 0 } else { 1 }));
        let verdicts: Value = serde_json::from_slice(&fs::read(run.path().join("verdicts.json")).unwrap()).unwrap();
        let all = verdicts["verdicts"].as_array().unwrap();
        assert_eq!(view["limits"].as_array().unwrap().len(), all.len());
        let shown = fs::read_to_string(&page).unwrap();
        // What stands beside the answer as JSON stands there on the page.
        assert_eq!(shown.matches("class=\"caution\"").count(), view["cautions"].as_array().unwrap().len());
        for id in ["limits", "coverage", "untested", "inventory", "records", "signatures"] {
            assert!(shown.contains(&format!("id=\"{id}\"")), "{id}");
        }
        let records = hex::encode(Sha256::digest(fs::read(run.path().join("records.jsonl")).unwrap()));
        assert_eq!(view["hashes"][0], json!({"file": "records.jsonl", "sha256": records}));
        assert!(shown.contains(&records));
        // What is not there is said.
        fs::remove_file(run.path().join("facts.json")).unwrap();
        let view = json_of(&program(&["signoff", "--json", "-o", page.to_str().unwrap()], run.path()));
        assert_eq!(view["hashes"][2], json!({"file": "facts.json", "sha256": null}));
    }
}

#[test]
fn hosts_and_cases_without_a_result_are_not_tested() {
    let run = drawn(&Scenario { sizes: vec![1 << 20], ..Scenario::troubled(8, 2) }.jsonl());
    let page = run.path().join("s.html");
    let view = json_of(&program(&["signoff", "--json", "-o", page.to_str().unwrap()], run.path()));
    let untested: Vec<&str> = view["untested"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    // Its last host never answered, a case was disturbed, one brought wrong bytes.
    for words in ["gpu008", "disturbed", "wrong bytes", "not run"] {
        assert!(untested.iter().any(|line| line.contains(words)), "{words}: {untested:#?}");
    }
    let unlabelled = view["unlabelled"].as_array().unwrap();
    assert!(unlabelled.contains(&json!("gpu008")), "{unlabelled:?}");
}

/// A host that was lost and came back answered, and what it missed is no secret; one that stayed away did not stay to the end.
#[test]
fn hosts_that_were_lost_are_told() {
    let scenario = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) };
    let mut lines = scenario.lines();
    let place = lines.iter().position(|line| matches!(line.event, Event::Outcome(_))).unwrap();
    let is_up = |line: &&Line| matches!(&line.event, Event::HostUp { host, .. } if *host == scenario.name(1));
    let up = lines.iter().find(is_up).unwrap().event.clone();
    let at = lines[place].at.clone();
    let line = |event| Line { at: at.clone(), event };
    let failure = || Failure::new(Stage::Measure, failure::Kind::Lost, "its agent is gone");
    let lost = |host: usize| line(Event::HostLost { host: scenario.name(host), failure: failure() });
    lines.splice(place..place, [lost(1), line(up), lost(2)]);
    let run = drawn(&support::text(&lines));
    let page = run.path().join("s.html");
    let view = json_of(&program(&["signoff", "--json", "-o", page.to_str().unwrap()], run.path()));
    assert_eq!(view["coverage"]["rows"][0][1], "4 of 4, 1 was lost", "{:#}", view["coverage"]);
    let untested: Vec<&str> = view["untested"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    for host in [1, 2] {
        let is_loss = |line: &&&str| line.contains(&scenario.name(host)) && line.contains("agent is gone");
        let told = untested.iter().filter(is_loss).count();
        assert_eq!(told, 1, "{untested:#?}");
    }
}

#[test]
fn what_was_changed_after_the_run_is_found() {
    let run = drawn(&healthy());
    let at = |name: &str| run.path().join(name);
    assert_eq!(code(&["signoff", "--verify"], run.path()), 0);
    let records = fs::read(at("records.jsonl")).unwrap();
    let noted = hex::encode(Sha256::digest(&records));
    assert_eq!(code(&["signoff", "--verify", "--records", &noted], run.path()), 0);
    assert_eq!(code(&["signoff", "--verify", "--records", &noted.replace(&noted[..1], "g")], run.path()), 2);
    let other = format!("{:064x}", 7);
    assert_eq!(code(&["signoff", "--verify", "--records", &other], run.path()), 1);
    for name in ["verdicts.json", "report.html", "junit.xml", "records.parquet", "plan.toml", "facts.json"] {
        let whole = fs::read(at(name)).unwrap();
        let mut changed = whole.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        fs::write(at(name), &changed).unwrap();
        let output = program(&["signoff", "--verify", "--json"], run.path());
        assert_eq!(output.status.code(), Some(1), "{name}");
        let differs = json!({"file": name, "state": "differs"});
        let found = json_of(&output)["files"]
            .as_array()
            .unwrap()
            .iter()
            .any(|file| file["file"] == differs["file"] && file["state"] == differs["state"]);
        assert!(found, "{name}");
        // What is missing is neither proven nor refuted.
        fs::remove_file(at(name)).unwrap();
        assert_eq!(code(&["signoff", "--verify"], run.path()), 3, "{name}");
        fs::write(at(name), &whole).unwrap();
    }
    // A value that was changed together with the sum of its line, as a forger would: only the noted hash tells.
    let text = String::from_utf8(records).unwrap();
    let line = text.lines().find(|line| line.contains("Outcome")).unwrap();
    let body = line.rsplit_once(",\"sum\"").unwrap().0.to_owned() + "}";
    let forged =
        support::sealed_within(&support::run_of(&text), &body.replacen("\"operations\":", "\"operations\":1", 1));
    assert_ne!(forged.trim_end(), line);
    fs::write(at("records.jsonl"), text.replacen(&format!("{line}\n"), &forged, 1)).unwrap();
    program(&["report", "-q"], run.path());
    assert_eq!(code(&["signoff", "--verify", "--records", &noted], run.path()), 1);
    // And one that was changed without.
    fs::write(at("records.jsonl"), text.replacen(line, &line.replacen("\"operations\":", "\"operations\":1", 1), 1))
        .unwrap();
    assert_eq!(code(&["signoff", "--verify"], run.path()), 1);
    // Nothing can be drawn from what is no journal: the hash is an answer all the same.
    fs::write(at("records.jsonl"), "no journal\n").unwrap();
    let output = program(&["signoff", "--verify", "--json", "--records", &noted], run.path());
    assert_eq!((output.status.code(), &json_of(&output)["as_noted"]), (Some(1), &json!(false)));
    assert_eq!(code(&["signoff", "--verify"], &run.path().join("nothing")), 2);
}

#[test]
fn the_sample_in_reports_is_what_its_records_make() {
    // `railgauge report reports/sample-lab` writes it again after a change of the outputs.
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/sample-lab");
    assert_eq!(code(&["signoff", "--verify"], &sample), 0);
}
