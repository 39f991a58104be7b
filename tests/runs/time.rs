//! The time of a run: what `run --dry-run` counts is what a run does, and what does not fit `at_most` is not run.

use std::collections::BTreeSet;

use railgauge_model::schedule::{LEAD, OVERHEAD};
use serde_json::Value;

use crate::railgauge::{Scene, program};

/// What `railgauge run --dry-run` says of a plan.
fn preview(scene: &Scene, plan: &std::path::Path) -> Value {
    let output = program().args(["run", "--dry-run", "--json"]).arg(plan).current_dir(scene.path("")).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn head(keys: &str) -> String {
    format!(
        "name = \"timed\"\n{keys}\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = \"h[1-3]\" }}\n\
         localise = {{ confirm = false, waive = [\"all\"] }}\n\
         [defaults]\ntransport = \"tcp\"\nmeasure = \"200ms\"\nwarm_up = \"10ms\"\n"
    )
}

/// Test, round, repeat and cell of every outcome: what follows one another, where flows run side by side.
fn passes(scene: &Scene, test: &str) -> (usize, usize) {
    let cases = scene.results().planned_cases();
    let of_test = |outcome: &Value| {
        let case = &cases[&outcome["case"].as_u64().unwrap()];
        (case["test"] == test).then(|| format!("{} {} {}", case["round"], outcome["repeat"], case["cell"]))
    };
    let all: Vec<String> = scene.results().outcomes().iter().filter_map(of_test).collect();
    (all.len(), all.iter().collect::<BTreeSet<_>>().len())
}

#[test]
fn the_estimate_counts_what_the_run_does() {
    let scene = Scene::new();
    let tests = "[[test]]\nname = \"sweep\"\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = [\"4KiB\", \"64KiB\"]\nqps = [1, 2]\nrepeats = 2\n\
                 [[test]]\nname = \"latency\"\nop = \"send\"\nmetric = \"latency\"\nsizes = 64\n\
                 [[test]]\nname = \"incast\"\nop = \"write\"\nmetric = \"bandwidth\"\npattern = \"incast\"\nsizes = \"64KiB\"\nmeasure = \"500ms\"\n";
    let plan = scene.write("plan.toml", &(head("") + tests));
    let preview = preview(&scene, &plan);
    scene.start(&plan).end();
    let measure = [("sweep", 0.2, 0.0), ("latency", 0.2, 0.0), ("incast", 0.5, LEAD.as_secs_f64())];
    for ((name, window, lead), of) in measure.iter().zip(preview["tests"].as_array().unwrap()) {
        let (outcomes, passes) = passes(&scene, name);
        assert_eq!(of["measurements"], outcomes, "{name}");
        let each = window + lead + 0.01 + OVERHEAD.as_secs_f64();
        let counted = of["seconds"]["at_least"].as_f64().unwrap();
        assert!((counted - each * passes as f64).abs() < 1e-6, "{name}: {counted} for {passes} of {each}");
    }
}

#[test]
fn what_does_not_fit_is_not_run() {
    let scene = Scene::new();
    let tests = "[[test]]\nname = \"first\"\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = [\"4KiB\", \"64KiB\"]\n\
                 [[test]]\nname = \"last\"\nop = \"send\"\nmetric = \"bandwidth\"\nsizes = [\"4KiB\", \"64KiB\"]\nmeasure = \"41s\"\n\
                 [[test]]\nname = \"short\"\nop = \"send\"\nmetric = \"bandwidth\"\nsizes = \"4KiB\"\n";
    let plan = scene.write("plan.toml", &(head("at_most = \"40s\"") + tests));
    let left_out = |of: &Value| of["left_out"].as_u64().unwrap();
    let expected: Vec<u64> = preview(&scene, &plan)["tests"].as_array().unwrap().iter().map(left_out).collect();
    assert_eq!(expected, [0, 6, 3]);
    scene.start(&plan).end().expect(3);
    let outcomes = ["first", "last", "short"].map(|test| passes(&scene, test).0);
    assert_eq!(outcomes, [6, 0, 0]);
    let verdicts = scene.results().verdicts();
    let cut: Vec<(&Value, &Value)> = verdicts["untested"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["kind"] == "time")
        .map(|one| (&one["tests"][0], &one["count"]))
        .collect();
    assert_eq!(cut, [(&Value::from("last"), &Value::from(6)), (&Value::from("short"), &Value::from(3))]);
    for verdict in verdicts["verdicts"].as_array().unwrap().iter().filter(|one| one["test"] != "first") {
        assert!(verdict["status"] != "pass" || verdict["test"] == "", "{verdict}");
    }
    let junit = std::fs::read_to_string(scene.results().path("junit.xml")).unwrap();
    assert!(junit.contains("skipped"), "{junit}");
}

/// A repeat that does not fit leaves a case without a pass.
#[test]
fn the_last_repeats_are_left_out_first() {
    let scene = Scene::new();
    let test = "[[test]]\nname = \"often\"\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"4KiB\"\nmeasure = \"1s\"\nrepeats = 6\n";
    let plan = scene.write("plan.toml", &(head("at_most = \"9s\"") + test));
    scene.start(&plan).end().expect(3);
    let repeats: Vec<u64> = scene.results().outcomes().iter().map(|one| one["repeat"].as_u64().unwrap()).collect();
    assert!(repeats.is_sorted() && (3..18).contains(&repeats.len()), "{repeats:?}");
    let verdicts = scene.results().verdicts();
    assert!(verdicts["untested"].as_array().unwrap().iter().any(|one| one["kind"] == "time"), "{verdicts}");
}

/// Hosts that do not come up take no more time than the plan has.
#[test]
fn a_run_ends_with_its_time_whatever_it_waits_for() {
    let scene = Scene::new();
    let text = head("at_most = \"2s\"").replace(
        "launch = { via = \"local\" }",
        "launch = { via = \"command\", command = \"sh -c 'sleep 600' {host}\", timeout = \"10min\" }",
    );
    let test = "[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"4KiB\"\n";
    scene.start(&scene.write("plan.toml", &(text + test))).end().expect(4);
    assert!(scene.results().outcomes().is_empty());
}

/// The plan has one smallest effect for the parts of a run and for its nights.
#[test]
fn the_smallest_change_of_a_trend_is_the_one_of_the_plan() {
    let scene = Scene::new();
    let text = head("").replace("confirm = false", "confirm = false, least_effect = 4");
    let test = "[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"4KiB\"\n";
    scene.start(&scene.write("plan.toml", &(text + test))).end();
    for (asked, least) in [(&[][..], 4.0), (&["--least", "2"], 2.0)] {
        let mut trend = program();
        trend.args(["trend", "--json", "-o"]).arg(scene.path("trend.html")).args(asked).arg(scene.run_directory());
        let json: Value = serde_json::from_slice(&trend.output().unwrap().stdout).unwrap();
        assert_eq!(json["least_percent"], least);
    }
}
