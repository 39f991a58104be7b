//! The lines of a run for the OCP Test & Validation specification: their shape, and that nothing of the run is missing.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use railgauge_analysis::{
    journal::{Journal, parse},
    verdict::{ANSWERS, Component, Judged, Measured, Verdicts},
};
use railgauge_model::plan::{
    model::{Source, Statistic},
    subset::Subset,
};
use railgauge_report::{draw, frame_rows, ocp::Run};
use serde_json::Value;

use crate::{
    skip::skipped,
    support::{self, Scenario},
};

/// Keys that an object must have, and those that it may have (`json_spec/README.md` of ocp-diag-core, version 2.0). In
/// objects of other names any key may be.
const SHAPES: &[(&str, &[&str], &[&str])] = &[
    ("schemaVersion", &["major", "minor"], &[]),
    ("testRunStart", &["name", "version", "commandLine", "parameters", "dutInfo"], &["metadata"]),
    ("dutInfo", &["dutInfoId"], &["name", "platformInfos", "softwareInfos", "hardwareInfos", "metadata"]),
    (
        "hardwareInfos",
        &["hardwareInfoId", "name"],
        &[
            "computerSystem",
            "location",
            "manager",
            "manufacturer",
            "manufacturerPartNumber",
            "odataId",
            "partNumber",
            "partType",
            "revision",
            "serialNumber",
            "version",
        ],
    ),
    ("testRunEnd", &["status", "result"], &[]),
    ("log", &["severity", "message"], &["sourceLocation"]),
    ("error", &["symptom"], &["message", "softwareInfoIds", "sourceLocation"]),
    ("testStepStart", &["name"], &[]),
    ("testStepEnd", &["status"], &[]),
    ("measurement", &["name", "value"], &["unit", "validators", "hardwareInfoId", "subcomponent", "metadata"]),
    ("validators", &["type", "value"], &["name", "metadata"]),
    ("diagnosis", &["verdict", "type"], &["message", "hardwareInfoId", "subcomponent", "sourceLocation"]),
    ("subcomponent", &["name"], &["type", "location", "version", "revision"]),
];
const RUN: &[&str] = &["testRunStart", "testRunEnd", "log", "error"];
const STEP: &[&str] = &["testStepStart", "testStepEnd", "measurement", "error", "diagnosis"];
/// Values by the path's last two keys.
const WORDS: &[(&str, &[&str])] = &[
    ("testRunEnd.status", &["COMPLETE", "ERROR", "SKIP"]),
    ("testRunEnd.result", &["NOT_APPLICABLE", "PASS", "FAIL"]),
    ("testStepEnd.status", &["COMPLETE", "ERROR", "SKIP"]),
    ("log.severity", &["INFO", "DEBUG", "WARNING", "ERROR", "FATAL"]),
    ("validators.type", &["LESS_THAN_OR_EQUAL", "GREATER_THAN_OR_EQUAL"]),
    ("diagnosis.type", &["PASS", "FAIL", "UNKNOWN"]),
];

fn has_shape(name: &str, value: &Value) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| has_shape(name, one)),
        Value::Object(object) => {
            if let Some((_, required, optional)) = SHAPES.iter().find(|(known, ..)| *known == name) {
                assert!(required.iter().all(|key| object.contains_key(*key)), "{name}: {value}");
                let known = |key: &String| required.contains(&key.as_str()) || optional.contains(&key.as_str());
                assert!(object.keys().all(known), "{name}: {value}");
                assert!(object.values().all(|value| !value.is_null()), "{name}: {value}");
            }
            for (key, value) in object {
                if let Some((_, words)) = WORDS.iter().find(|(path, _)| *path == format!("{name}.{key}")) {
                    assert!(value.as_str().is_some_and(|word| words.contains(&word)), "{name}.{key}: {value}");
                }
                has_shape(key, value);
            }
        }
        _ => {}
    }
}

fn lines(journal: &Journal) -> Vec<Value> {
    let run = Run::of(journal, Path::new("records.jsonl")).unwrap();
    let mut text = Vec::new();
    run.write(&mut text).unwrap();
    let lines: Vec<Value> =
        String::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (at, line) in lines.iter().enumerate() {
        assert_eq!(line["sequenceNumber"], at);
        assert!(line["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{line}");
        let object = line.as_object().unwrap();
        let artifacts = ["schemaVersion", "testRunArtifact", "testStepArtifact"];
        let [artifact] = object.keys().filter(|key| artifacts.contains(&key.as_str())).collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        assert_eq!(object.len(), 3, "{line}");
        has_shape(artifact, &line[artifact]);
        let kinds = match artifact.as_str() {
            "testRunArtifact" => RUN,
            "testStepArtifact" => STEP,
            _ => continue,
        };
        let named: Vec<&String> =
            line[artifact].as_object().unwrap().keys().filter(|key| *key != "testStepId").collect();
        assert!(matches!(&named[..], [kind] if kinds.contains(&kind.as_str())), "{line}");
        assert_eq!(line[artifact]["testStepId"].is_string(), artifact == "testStepArtifact", "{line}");
    }
    lines
}

/// The lines of a step with this key, by the step's name.
fn of_steps<'l>(lines: &'l [Value], kind: &str) -> Vec<(&'l str, &'l Value)> {
    let steps = lines.iter().map(|line| &line["testStepArtifact"]);
    let names: BTreeMap<&str, &str> = steps
        .clone()
        .filter_map(|step| Some((step["testStepId"].as_str()?, step["testStepStart"]["name"].as_str()?)))
        .collect();
    steps
        .filter(|step| !step[kind].is_null())
        .map(|step| (names[step["testStepId"].as_str().unwrap()], &step[kind]))
        .collect()
}

fn journal(text: &str) -> Journal {
    parse(text.as_bytes(), Path::new("records.jsonl")).unwrap()
}

/// serde_json reads reals to the last bit only with a feature.
fn near(a: Option<f64>, b: Option<f64>) -> bool {
    a.zip(b).is_some_and(|(a, b)| (a - b).abs() <= 1e-12 * b.abs())
}

fn verdicts(journal: &Journal) -> Verdicts {
    draw(journal, Path::new("records.jsonl")).unwrap().verdicts
}

fn ending(lines: &[Value]) -> (&str, &str) {
    let end = &lines.last().unwrap()["testRunArtifact"]["testRunEnd"];
    (end["status"].as_str().unwrap(), end["result"].as_str().unwrap())
}

fn scenarios() -> [Scenario; 4] {
    let small = |hosts, rails| Scenario { sizes: vec![65_536, 1 << 20], ..Scenario::healthy(hosts, rails) };
    [
        small(4, 1),
        Scenario { slow: Some(4), ..small(8, 2) },
        Scenario::troubled(4, 2),
        Scenario { contaminated: true, ..small(4, 1) },
    ]
}

#[test]
fn every_value_verdict_component_and_failed_case_of_a_run_is_there() {
    for scenario in scenarios() {
        let journal = journal(&scenario.jsonl());
        let (lines, found) = (lines(&journal), verdicts(&journal));
        let rows = frame_rows(&journal, Path::new("records.jsonl")).unwrap();
        let measured: BTreeSet<(u64, String)> =
            rows.iter().filter(|row| row.value.is_some()).map(|row| (row.case, row.metric.to_string())).collect();
        let measurements = of_steps(&lines, "measurement");
        assert_eq!(measurements.len(), measured.len());
        for (step, one) in &measurements {
            let case = one["metadata"]["case_id"].as_u64().unwrap();
            let row = rows.iter().find(|row| row.case == case && row.metric.word() == one["name"]).unwrap();
            assert!(near(one["value"].as_f64(), row.value) && one["unit"] == row.unit(), "{one}");
            assert_eq!(*step, &*row.test);
        }
        let diagnoses = of_steps(&lines, "diagnosis");
        for verdict in &found.verdicts {
            let message = format!("{}: {}", verdict.demanded(), verdict.reason);
            let of_step = diagnoses.iter().filter(|(_, one)| one["message"] == message.as_str());
            assert!(of_step.count() > 0, "{message}");
        }
        let components = found.components.iter().flat_map(|of| of.components.iter().map(move |one| (of, one)));
        let is_answer = |(of, one): &(&Measured, &Component)| of.test == ANSWERS && one.state == Some(Judged::Good);
        let components = components.filter(|one| !is_answer(one)).count();
        let wrong = found.cases.wrong;
        assert_eq!(diagnoses.len(), found.verdicts.len() + components + wrong);
        let lacking = found.cases.failed + found.cases.not_run + found.cases.no_value;
        assert_eq!(of_steps(&lines, "error").len(), lacking, "{:?}", found.cases);
        let ids: HashSet<&Value> = lines[1]["testRunArtifact"]["testRunStart"]["dutInfo"]["hardwareInfos"]
            .as_array()
            .unwrap()
            .iter()
            .map(|info| &info["hardwareInfoId"])
            .collect();
        let named = measurements.iter().chain(&diagnoses).map(|(_, one)| &one["hardwareInfoId"]);
        assert!(named.filter(|id| !id.is_null()).all(|id| ids.contains(id)));
    }
}

#[test]
fn limits_of_the_plan_are_validators_that_agree_with_the_verdict() {
    use railgauge_model::plan::model::{Expectation, Limit};
    use railgauge_wire::terms::Metric;
    let wanted = |metric, limit| Expectation {
        metric,
        limit,
        written: None,
        source: None,
        sizes: None,
        rails: Vec::new(),
        group: None,
        line: 1,
    };
    let expect = vec![
        wanted(Metric::Bandwidth, Limit::PercentOfCeiling(80.0)),
        wanted(Metric::Bandwidth, Limit::WithinPercentOfPeers(5.0)),
    ];
    let scenario = Scenario { slow: Some(1), sizes: vec![1 << 20], ..Scenario::healthy(6, 1) };
    let mut journal = journal(&scenario.jsonl());
    let test = journal.plan.tests.iter_mut().find(|test| test.name == "write-bw").unwrap();
    test.expect = expect;
    let lines = lines(&journal);
    let judged = |(step, one): &(&str, &Value)| *step == "write-bw" && one["name"] == "bandwidth";
    let bandwidths: Vec<&Value> =
        of_steps(&lines, "measurement").into_iter().filter(judged).map(|(_, one)| one).collect();
    let mut broken = [0, 0];
    for one in &bandwidths {
        let validators = one["validators"].as_array().unwrap();
        assert_eq!(validators.len(), 2, "{one}");
        for (validator, broken) in validators.iter().zip(&mut broken) {
            assert_eq!(validator["type"], "GREATER_THAN_OR_EQUAL");
            *broken += usize::from(one["value"].as_f64() < validator["value"].as_f64());
        }
        let ceiling = one["metadata"]["ceiling"].as_f64().unwrap();
        assert!(near(validators[0]["value"].as_f64(), Some(ceiling * 80.0 / 100.0)), "{one}");
    }
    let found = verdicts(&journal);
    let violating: Vec<usize> = found
        .verdicts
        .iter()
        .filter(|one| one.test == "write-bw" && one.line.is_some())
        .map(|one| one.tally.violating)
        .collect();
    assert!(violating.iter().any(|n| *n > 0));
    assert_eq!(broken.to_vec(), violating);
    // Metrics without a limit have none.
    assert!(of_steps(&lines, "measurement").iter().any(|(_, one)| one.get("validators").is_none()));
}

#[test]
fn a_faulty_host_fails_with_its_id_and_the_run_with_it() {
    let slow = Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) };
    let journal = journal(&support::followed::followed_up(&slow, &slow).0);
    let lines = lines(&journal);
    let faulty: Vec<&Value> = of_steps(&lines, "diagnosis")
        .into_iter()
        .filter(|(_, one)| one["verdict"] == "host-faulty")
        .map(|(_, one)| one)
        .collect();
    assert!(!faulty.is_empty());
    assert!(faulty.iter().all(|one| one["type"] == "FAIL" && one["hardwareInfoId"] == "gpu005"), "{faulty:?}");
    assert_eq!(ending(&lines), ("COMPLETE", "FAIL"));
    // What was measured again to confirm it is marked.
    let phases: BTreeSet<&str> =
        of_steps(&lines, "measurement").iter().filter_map(|(_, one)| one["metadata"]["phase"].as_str()).collect();
    assert_eq!(phases, ["confirmation", "test"].into());
}

#[test]
fn only_a_finished_run_has_a_result() {
    let healthy = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) };
    assert_eq!(ending(&lines(&journal(&healthy.jsonl()))), ("COMPLETE", "PASS"));
    let interrupted = Scenario { interrupted: true, ..healthy.clone() };
    assert_eq!(ending(&lines(&journal(&interrupted.jsonl()))), ("SKIP", "NOT_APPLICABLE"));
    let all = healthy.lines();
    let killed = journal(&support::text(&all[..all.len() - 1]));
    assert_eq!(ending(&lines(&killed)), ("ERROR", "NOT_APPLICABLE"));
    // A case that could not be judged: no result, and no pass.
    let doubtful = Scenario { contaminated: true, sizes: vec![1 << 20], ..Scenario::healthy(4, 1) };
    assert_eq!(ending(&lines(&journal(&doubtful.jsonl()))), ("ERROR", "NOT_APPLICABLE"));
}

/// Its hosts answered, and nothing of it was measured.
#[test]
fn an_answer_is_no_diagnosis_of_a_good_host() {
    let mut journal = journal(&Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) }.jsonl());
    journal.tries.clear();
    let lines = lines(&journal);
    let passed = of_steps(&lines, "diagnosis").into_iter().filter(|(_, one)| one["type"] == "PASS");
    assert_eq!(passed.collect::<Vec<_>>(), []);
}

#[test]
fn a_mean_over_sizes_is_no_validator_of_a_value() {
    let mut journal = journal(&Scenario { sizes: vec![65_536, 1 << 20], ..Scenario::healthy(4, 1) }.jsonl());
    let test = &mut journal.plan.tests[0];
    let (sizes, system, url) = (test.sizes.clone(), "a system".to_owned(), "a page".to_owned());
    test.expect.truncate(1);
    for (statistic, are_there) in [(Statistic::Mean, true), (Statistic::MeanOfSizes, false)] {
        let sizes = sizes.clone();
        journal.plan.tests[0].expect[0].source =
            Some(Source { system: system.clone(), url: url.clone(), hosts: 2, gpus: None, sizes, statistic });
        let lines = lines(&journal);
        let of_test = of_steps(&lines, "measurement").into_iter().filter(|(step, _)| *step == "write-bw");
        assert_eq!(of_test.filter(|(_, one)| one.get("validators").is_some()).count() > 0, are_there, "{statistic}");
    }
}

#[test]
fn a_test_that_was_not_selected_is_a_skipped_step() {
    let mut journal = journal(&Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) }.jsonl());
    let (of_tests, of_hosts) = (journal.plan.tests.iter().map(|test| test.name.clone()).collect(), 4);
    journal.plan.tests.pop();
    let tests = Some(journal.plan.tests.iter().map(|test| test.name.clone()).collect());
    let part = Subset { hosts: None, of_hosts, tests, of_tests, repeats: None, left_out: Vec::new() };
    journal.plan.subset = Some(part);
    journal.cases.retain(|case| &*case.test != "tcp-baseline");
    let last = journal.cases.len() as u64;
    journal.tries.retain(|tried| tried.case < last);
    let lines = lines(&journal);
    let skipped = of_steps(&lines, "testStepEnd").into_iter().filter(|(_, end)| end["status"] == "SKIP");
    assert_eq!(skipped.map(|(step, _)| step).collect::<Vec<_>>(), ["tcp-baseline"]);
}

/// The schemas are not in this repository: `RAILGAUGE_OCP_SCHEMAS` names `json_spec/output` of a checkout of
/// ocp-diag-core.
#[test]
fn the_public_schemas_accept_the_lines() {
    let Some(schemas) = std::env::var_os("RAILGAUGE_OCP_SCHEMAS") else {
        skipped("RAILGAUGE_OCP_SCHEMAS names no directory with the schemas");
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("check.py");
    fs::write(&program, include_str!("ocp_schemas.py")).unwrap();
    for scenario in scenarios() {
        let journal = journal(&scenario.jsonl());
        let mut text = Vec::new();
        Run::of(&journal, Path::new("records.jsonl")).unwrap().write(&mut text).unwrap();
        let mut command = Command::new("python3");
        let mut check = command.arg(&program).arg(&schemas).stdin(Stdio::piped()).spawn().unwrap();
        check.stdin.take().unwrap().write_all(&text).unwrap();
        assert!(check.wait().unwrap().success());
    }
}
