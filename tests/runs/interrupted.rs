//! An interrupt while agents lead a long case by themselves: local agents over TCP.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use crate::railgauge::Scene;

/// A case that is over soon, and one that takes a minute.
const PLAN: &str = r#"
name = "interrupted"
launch = { via = "local" }
hosts = { names = ["a", "b"] }
localise = { confirm = false }

[[test]]
name = "short"
op = "write"
metric = "bandwidth"
transport = "tcp"
sizes = "1KiB"
measure = "10ms"
warm_up = "10ms"

[[test]]
name = "long"
op = "write"
metric = "bandwidth"
transport = "tcp"
sizes = "1KiB"
measure = "60s"
warm_up = "10ms"
"#;

#[test]
fn an_interrupt_in_a_long_window_ends_the_run_and_its_agents_within_seconds() {
    let scene = Scene::new();
    let mut run = scene.start(&scene.write("plan.toml", PLAN));
    run.wait_for_outcomes(1);
    // The long case has begun by then.
    std::thread::sleep(Duration::from_millis(500));
    let listed = Command::new("pgrep").args(["-P", &run.pid().to_string()]).output().unwrap().stdout;
    let agents: Vec<String> = String::from_utf8(listed).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(agents.len(), 2, "{agents:?}");
    assert!(Command::new("kill").args(["-INT", &run.pid().to_string()]).status().unwrap().success());
    let asked = Instant::now();
    run.end().expect(130);
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    for agent in agents {
        assert!(!std::path::Path::new("/proc").join(&agent).exists(), "agent {agent} outlives the run");
    }
    let results = scene.results();
    assert_eq!((results.outcomes().len(), results.measured().len()), (1, 1));
}
