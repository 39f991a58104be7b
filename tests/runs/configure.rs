//! Commands of a plan that change the cluster for a test: run in order, taken back whatever happens. Local agents over TCP;
//! what the commands change is a file in which they write down that they ran.

use std::process::Command;

use crate::railgauge::Scene;

/// A plan of two tests, the second of which is configured by commands that write into the scene's file `done`.
fn plan(scene: &Scene, apply: &str, undo: &str, rest: &str) -> std::path::PathBuf {
    let done = scene.path("done").display().to_string();
    let command = |what: &str| format!("[\"sh\", \"-c\", \"{}\"]", what.replace("DONE", &done));
    scene.write(
        "plan.toml",
        &format!(
            "name = \"configured\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a\", \"b\"] }}\n\
             localise = {{ confirm = false }}\n\
             [defaults]\ntransport = \"tcp\"\nmetric = \"bandwidth\"\nsizes = [\"4KiB\", \"64KiB\"]\n\
             measure = \"200ms\"\nwarm_up = \"10ms\"\n\
             [[test]]\nname = \"plain\"\nop = \"write\"\n\
             [[test]]\nname = \"changed\"\nop = \"write\"\n\
             [test.configure]\napply = {}\nundo = {}\n{rest}",
            command(apply),
            command(undo),
        ),
    )
}

fn done(scene: &Scene) -> Vec<String> {
    std::fs::read_to_string(scene.path("done")).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_change_stands_for_its_own_rounds_only() {
    let scene = Scene::new();
    let turns = "[[interleave]]\na = \"plain\"\nb = \"changed\"\nblocks = 6\n";
    let plan = plan(&scene, "echo apply >> DONE", "echo undo {name} >> DONE", turns);
    scene.start(&plan).end().expect(0);
    // As the journal has it: every case of the changed test lies between a change and its end, no other does.
    let (mut standing, mut changes, mut outcomes) = (false, 0, 0);
    let journal = scene.results().journal();
    let planned = scene.results().planned_cases();
    for line in &journal {
        let event = &line["event"];
        if let Some(configured) = event.get("Configured") {
            assert!(configured["failure"].is_null(), "{configured}");
            standing = configured["undo"] == false;
            changes += u32::from(standing);
        }
        if let Some(outcome) = event.get("Outcome") {
            let case = &planned[&outcome["case"].as_u64().unwrap()];
            assert_eq!(case["test"] == "changed", standing, "{case}");
            outcomes += 1;
        }
    }
    assert_eq!(outcomes, 2 * 2 * 12, "two tests of two sizes, twelve times");
    assert!(!standing, "the last change was not taken back");
    // A command without a place runs once; one that names hosts runs for each of them.
    let done = done(&scene);
    let count = |words: &str| done.iter().filter(|line| *line == words).count() as u32;
    assert!((6..=12).contains(&changes), "{changes}");
    assert_eq!([count("apply"), count("undo a"), count("undo b")], [changes; 3], "{done:?}");
    assert!(scene.results().report().contains("configured by"));
}

#[test]
fn what_cannot_be_configured_is_not_measured() {
    let scene = Scene::new();
    let plan = plan(&scene, "echo no such knob >&2; test {name} = a", "echo undo >> DONE", "");
    scene.start(&plan).end().expect(3);
    let rows = scene.results().rows();
    let of = |test: &str| rows.iter().filter(|row| row.test == test && row.metric == "bandwidth").collect::<Vec<_>>();
    assert!(of("plain").iter().all(|row| row.value.is_some()) && of("plain").len() == 2);
    assert_eq!(of("changed").len(), 2);
    for row in of("changed") {
        let error = row.error.as_deref().unwrap();
        assert!(row.value.is_none() && error.contains("b: configure: `apply` of the test failed"), "{error}");
        assert!(error.contains("no such knob"), "{error}");
    }
    assert_eq!(done(&scene), ["undo"], "a change that may be half done is taken back");
}

#[test]
fn a_change_that_cannot_be_taken_back_is_told() {
    let scene = Scene::new();
    let undo = r"printf '\\033[31mred' >&2; exit 7";
    let plan = plan(&scene, "echo apply >> DONE", undo, "timeout = \"5s\"\n");
    let ended = scene.start(&plan).end();
    ended.expect(1);
    ended.says("exit status: 7");
    assert!(!ended.said.contains('\u{1b}'), "what a command says reaches the terminal as it is");
    let verdicts = scene.results().verdicts();
    let own: Vec<_> =
        verdicts["verdicts"].as_array().unwrap().iter().filter(|one| one["kind"] == "configure").collect();
    assert_eq!((own.len(), &own[0]["status"]), (1, &"fail".into()), "{verdicts:#}");
    assert!(scene.results().report().contains("the cluster is still configured for `changed`"));
}

#[test]
fn interrupted_or_killed_it_is_taken_back() {
    let scene = Scene::new();
    // What the command leaves running, like ssh's ControlPersist, is not waited for.
    let plan = plan(&scene, "sleep 5 & echo apply >> DONE", "echo undo >> DONE", "timeout = \"3s\"\n");
    let mut run = scene.start(&plan);
    run.wait_for_outcomes(3);
    assert!(Command::new("kill").args(["-INT", &run.pid().to_string()]).status().unwrap().success());
    run.end().expect(130);
    assert_eq!(done(&scene), ["apply", "undo"]);

    let mut again = scene.resume();
    again.wait_for_outcomes(3);
    again.end().expect(0);
    assert_eq!(done(&scene), ["apply", "undo", "apply", "undo"]);
}

#[test]
fn what_a_killed_run_left_is_taken_back_first() {
    let scene = Scene::new();
    let plan = plan(&scene, "echo apply >> DONE", "echo undo >> DONE", "");
    let mut run = scene.start(&plan);
    run.wait_for_outcomes(3);
    run.kill();
    assert_eq!(done(&scene), ["apply"]);
    scene.resume().end().expect(0);
    assert_eq!(done(&scene), ["apply", "undo", "apply", "undo"]);
}

/// A plan of one test at three values, whose commands write into the scene's file `done`.
fn series(scene: &Scene, apply: &str, repeats: u32) -> std::path::PathBuf {
    let done = scene.path("done").display().to_string();
    let command = |what: &str| format!("[\"sh\", \"-c\", \"{}\", \"sh\", \"{{value}}\"]", what.replace("DONE", &done));
    scene.write(
        "plan.toml",
        &format!(
            "name = \"series\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a\", \"b\"] }}\n\
             localise = {{ confirm = false }}\n[[test]]\nname = \"series\"\nop = \"write\"\ntransport = \"tcp\"\n\
             metric = \"bandwidth\"\nsizes = [\"4KiB\", \"64KiB\"]\nmeasure = \"200ms\"\nwarm_up = \"10ms\"\nrepeats = {repeats}\n\
             [test.configure]\napply = {}\nundo = {}\nvalues = [\"0%\", \"a b; $(c)\", \"1%\"]\n",
            command(apply),
            // What a shell is given as an argument it does not read as a command.
            command("printf 'undo %s\\\\n' \\\"$1\\\" >> DONE"),
        ),
    )
}

const APPLY: &str = "printf 'apply %s\\\\n' \\\"$1\\\" >> DONE";

#[test]
fn every_repeat_measures_all_values_in_turn() {
    let scene = Scene::new();
    scene.start(&series(&scene, APPLY, 4)).end().expect(0);
    let journal = scene.results().journal();
    let planned = scene.results().planned_cases();
    assert_eq!(planned.len(), 6, "two sizes at three values");
    // As the journal has it: every case is measured while its own value stands.
    let (mut standing, mut orders) = (serde_json::Value::Null, vec![Vec::new(); 4]);
    for line in &journal {
        if let Some(configured) = line["event"].get("Configured") {
            assert!(configured["failure"].is_null(), "{configured}");
            standing = if configured["undo"] == false { configured["value"].clone() } else { serde_json::Value::Null };
        }
        if let Some(outcome) = line["event"].get("Outcome") {
            let value = &planned[&outcome["case"].as_u64().unwrap()]["cell"]["applied"];
            assert_eq!(*value, standing);
            let order: &mut Vec<String> = &mut orders[outcome["repeat"].as_u64().unwrap() as usize];
            let value = value.as_str().unwrap();
            if order.last().is_none_or(|last| last != value) {
                order.push(value.to_owned());
            }
        }
    }
    assert!(standing.is_null(), "the last value was not taken back");
    assert!(orders.iter().all(|order| order.len() == 3), "{orders:?}");
    for two in orders.chunks(2) {
        assert!(two[0].iter().eq(two[1].iter().rev()), "an even drift would look like an effect: {orders:?}");
    }
    // The value came as one word, and no shell read it. What stands twice in a row was not made twice.
    let done = done(&scene);
    for words in done.chunks(2) {
        let (apply, undo) = (words[0].strip_prefix("apply ").unwrap(), words[1].strip_prefix("undo ").unwrap());
        assert!(apply == undo && ["0%", "a b; $(c)", "1%"].contains(&apply), "{done:?}");
    }
    assert!((10..=12).contains(&(done.len() / 2)), "{done:?}");
    let results = scene.results();
    let envs: std::collections::BTreeSet<String> = results.rows().iter().map(|row| row.env.clone()).collect();
    assert_eq!(envs.into_iter().collect::<Vec<_>>(), ["value=0%", "value=1%", "value=a b; $(c)"]);
    let costs = results.verdicts()["costs"].as_array().unwrap().clone();
    let bandwidth = costs.iter().filter(|cost| cost["metric"] == "bandwidth");
    assert_eq!(bandwidth.clone().count(), 6);
    assert!(bandwidth.clone().all(|cost| cost["answer"] != "unknown"), "{costs:#?}");
    assert!(results.report().contains("Settings compared"));
}

#[test]
fn a_value_that_cannot_be_applied_has_failures_and_no_values() {
    let scene = Scene::new();
    let apply = "test \\\"$1\\\" != 1% || { echo no such qdisc >&2; exit 2; }";
    scene.start(&series(&scene, apply, 3)).end().expect(3);
    let rows = scene.results().rows();
    for row in rows.iter().filter(|row| row.metric == "bandwidth") {
        let error = row.error.as_deref().unwrap_or_default();
        match row.env.as_str() {
            "value=1%" => {
                assert!(row.value.is_none() && error.contains("at `1%`") && error.contains("no such qdisc"), "{error}");
            }
            _ => assert!(row.value.is_some(), "{}: {error}", row.env),
        }
    }
    // A change that may be half done is taken back, for each of the three repeats.
    assert_eq!(done(&scene).iter().filter(|line| *line == "undo 1%").count(), 3);
}

#[test]
fn the_value_that_a_killed_run_left_is_taken_back_first() {
    let scene = Scene::new();
    let mut run = scene.start(&series(&scene, APPLY, 3));
    run.wait_for_outcomes(3);
    run.kill();
    let before = done(&scene);
    let left = before.last().unwrap().strip_prefix("apply ").unwrap_or_else(|| panic!("{before:?}")).to_owned();
    scene.resume().end().expect(0);
    let after = done(&scene);
    assert_eq!(after[before.len()], format!("undo {left}"), "{after:?}");
    assert_eq!(after.iter().filter(|line| line.starts_with("undo ")).count(), after.len() / 2, "{after:?}");
}
