//! A command of the plan beside a flow: run by the agents, known to run while the flow is measured, and nothing of it left. Local agents
//! over TCP.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::railgauge::Scene;

/// A plan of one flow, alone and beside a script that says MARK somewhere, three times.
fn plan(scene: &Scene, script: &str, on: &str) -> std::path::PathBuf {
    let script = script.replace("MARK", &mark(scene)).replace('\\', "\\\\").replace('"', "\\\"");
    scene.write(
        "plan.toml",
        &format!(
            "name = \"beside\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a\", \"b\"] }}\n\
             localise = {{ confirm = false }}\n[[test]]\nname = \"storage\"\nop = \"write\"\ntransport = \"tcp\"\n\
             metric = \"bandwidth\"\nsizes = \"64KiB\"\nmeasure = \"500ms\"\nwarm_up = \"50ms\"\nrepeats = 3\n\
             [test.beside]\ncommand = [\"sh\", \"-c\", \"{script}\", \"{{name}}\"]\n{on}\n"
        ),
    )
}

/// What no other process has in its command line.
fn mark(scene: &Scene) -> String {
    scene.path("written").display().to_string()
}

/// Processes that have the scene's mark in their command lines.
fn left(scene: &Scene) -> Vec<String> {
    let mark = mark(scene);
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(&mark).then(|| format!("{} {line}", entry.file_name().display()))
    })
    .collect()
}

#[test]
fn a_flow_is_measured_alone_and_beside_the_command() {
    let scene = Scene::new();
    let writing =
        "echo $0 >> MARK.hosts; while :; do dd if=/dev/zero of=MARK.$0 bs=64k count=16 conv=fsync 2>/dev/null; done";
    let ended = scene.start(&plan(&scene, writing, "")).end();
    ended.expect(0);
    assert_eq!(left(&scene), [""; 0], "processes are left");
    let results = scene.results();
    let rows = results.rows();
    let of = |metric: &str| rows.iter().filter(|row| row.metric == metric).collect::<Vec<_>>();
    let envs: Vec<&str> = of("bandwidth").iter().map(|row| row.env.as_str()).collect();
    assert_eq!(envs, ["", "beside=command beside_on=both"]);
    assert!(rows.iter().all(|row| row.value.is_some()), "{rows:?}");
    assert_eq!((of("beside_loss").len(), of("beside_bandwidth").len()), (1, 0), "nobody knows what a command moves");
    // On both hosts, once for each of three repeats.
    let mut hosts: Vec<String> =
        fs::read_to_string(scene.path("written.hosts")).unwrap().lines().map(str::to_owned).collect();
    hosts.sort();
    assert_eq!(hosts, ["a", "a", "a", "b", "b", "b"]);
    let told = results.verdicts()["beside"][0].clone();
    assert_eq!(told["command"]["on"], "both", "{told:#}");
    assert!(told["loss_percent"].is_number() && told["neighbours_gbps"].is_null(), "{told:#}");
    assert!(results.report().contains("Flows alongside other traffic"), "{}", ended.said);
}

#[test]
fn a_command_that_ends_early_makes_no_number() {
    let scene = Scene::new();
    let full = "test $0 = a && sleep 60; echo first >&2; echo no space left on MARK >&2; exit 3";
    scene.start(&plan(&scene, full, "")).end().expect(3);
    let rows = scene.results().rows();
    for row in rows.iter().filter(|row| row.metric == "bandwidth") {
        match row.env.as_str() {
            "" => assert!(row.value.is_some(), "{row:?}"),
            _ => {
                let error = row.error.as_deref().unwrap();
                assert!(row.value.is_none() && error.contains("b: "), "{error}");
                assert!(error.contains("ended by itself") && error.contains("exit status: 3"), "{error}");
                assert!(error.contains("no space left on"), "{error}");
            }
        }
    }
    assert_eq!(left(&scene), [""; 0], "processes are left");
}

#[test]
fn a_command_that_cannot_be_started_is_named() {
    let scene = Scene::new();
    let path = plan(&scene, "", "on = \"source\"");
    let text = fs::read_to_string(&path).unwrap().replace("command = [\"sh\"", "command = [\"/no/such/program\"");
    fs::write(&path, text).unwrap();
    scene.start(&path).end().expect(3);
    let rows = scene.results().rows();
    let failed: Vec<_> = rows.iter().filter(|row| row.metric == "bandwidth" && row.value.is_none()).collect();
    let error = failed[0].error.as_deref().unwrap();
    assert!(failed.len() == 1 && error.contains("a: ") && error.contains("/no/such/program"), "{error}");
}

/// An all-reduce of local agents over TCP, alone and alongside a script.
fn beside_all_reduce(scene: &Scene, script: &str) -> std::path::PathBuf {
    scene.write(
        "plan.toml",
        &format!(
            "name = \"beside\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a\", \"b\"] }}\n[[test]]\n\
             op = \"all_reduce\"\ntransport = \"tcp\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\nmeasure = \"200ms\"\n\
             warm_up = \"20ms\"\n[test.beside]\ncommand = [\"sh\", \"-c\", \"{script}\", \"{{name}}\"]\n"
        ),
    )
}

#[test]
fn a_collective_is_measured_alone_and_beside_the_command() {
    let scene = Scene::new();
    let script = format!("echo $0 >> {}.hosts; while :; do sleep 1; done", mark(&scene));
    scene.start(&beside_all_reduce(&scene, &script)).end().expect(0);
    let hosts = fs::read_to_string(scene.path("written.hosts")).unwrap();
    assert!(hosts.lines().count() == 2 && hosts.contains('a') && hosts.contains('b'), "{hosts}");
    let rows = scene.results().rows();
    assert!(rows.iter().any(|row| row.metric == "overlap_loss" && row.value.is_some()), "{rows:?}");
    assert!(rows.iter().all(|row| row.metric != "overlap_loss_other"), "{rows:?}");
    assert_eq!(left(&scene), [""; 0], "processes are left");

    let scene = Scene::new();
    scene.start(&beside_all_reduce(&scene, "exit 3")).end().expect(3);
    let rows = scene.results().rows();
    assert!(rows.iter().all(|row| row.value.is_none() && row.error.is_some()), "{rows:?}");
}

/// It ignores being asked to end, and a process of it is in a session of its own.
const STUBBORN: &str =
    "trap '' TERM; setsid sh -c 'while :; do sleep 1; done' MARK.aside & while :; do sleep 1; done; : MARK";

#[test]
fn a_command_that_does_not_want_to_end_is_ended() {
    let scene = Scene::new();
    scene.start(&plan(&scene, STUBBORN, "on = \"destination\"")).end().expect(0);
    assert_eq!(left(&scene), [""; 0], "processes are left");
}

#[test]
fn nothing_is_left_by_a_controller_or_agents_that_were_killed() {
    for kills_agents in [false, true] {
        let scene = Scene::new();
        let run = scene.start(&plan(&scene, STUBBORN, ""));
        let begun = Instant::now();
        while left(&scene).iter().filter(|line| line.contains(".aside")).count() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the command never ran");
            std::thread::sleep(Duration::from_millis(10));
        }
        if kills_agents {
            // Agents of this run are children of its controller.
            let agents = run.children();
            assert!(agents.len() >= 2, "no agents to kill: {agents:?}");
            for agent in agents {
                let killed = std::process::Command::new("kill").args(["-KILL", &agent.to_string()]).status();
                assert!(killed.unwrap().success());
            }
        }
        run.kill();
        let killed = Instant::now();
        while !left(&scene).is_empty() {
            assert!(killed.elapsed() < Duration::from_secs(60), "{kills_agents}: left: {:?}", left(&scene));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
