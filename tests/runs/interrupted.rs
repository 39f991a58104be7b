//! An interrupt while agents lead a long case by themselves: local agents over TCP.

use crate::railgauge::Scene;

/// A case that is over soon, and one that takes an hour.
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
measure = "10 iterations"
warm_up = "10ms"

[[test]]
name = "long"
op = "write"
metric = "bandwidth"
transport = "tcp"
sizes = "1KiB"
measure = "1h"
warm_up = "10ms"
"#;

#[test]
fn an_interrupt_in_a_long_window_ends_the_run_and_its_agents() {
    let scene = Scene::new();
    let mut run = scene.start(&scene.write("plan.toml", PLAN));
    run.wait_for_outcomes(1);
    run.wait_for_round("long");
    let agents = run.children();
    assert_eq!(agents.len(), 2, "{agents:?}");
    run.send("-INT");
    // Long before the hour is over.
    run.end().expect(130);
    for agent in agents {
        assert!(!std::path::Path::new("/proc").join(agent.to_string()).exists(), "agent {agent} outlives the run");
    }
    let results = scene.results();
    assert_eq!((results.outcomes().len(), results.measured().len()), (1, 1));
}
