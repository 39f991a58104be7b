//! Two tests measured in turn by local agents over TCP, from plan to report.

use crate::railgauge::Scene;
use serde_json::Value;

const PLAN: &str = r#"
name = "in-turn"
launch = { via = "local" }
hosts = { names = ["a", "b"] }
defaults = { transport = "tcp", measure = "200ms", warm_up = "10ms", metric = "bandwidth" }

[[test]]
name = "small"
op = "write"
sizes = "64KiB"

[[test]]
name = "small-in-dram"
op = "write"
sizes = "64KiB"
knobs = { footprint = "dram" }

[[interleave]]
a = "small"
b = "small-in-dram"
blocks = 6
"#;

#[test]
fn blocks_are_run_in_turn_and_compared_in_the_report() {
    let scene = Scene::new();
    scene.start(&scene.write("plan.toml", PLAN)).end().expect(0);
    let results = scene.results();
    let rounds: Vec<(String, u64)> = results
        .journal()
        .iter()
        .filter_map(|line| line["event"].get("Round").cloned())
        .map(|round: Value| (round["test"].as_str().unwrap().to_owned(), round["repeat"].as_u64().unwrap()))
        .collect();
    assert_eq!(rounds.len(), 24);
    for (block, four) in rounds.chunks(4).enumerate() {
        assert!(four[0].0 == four[3].0 && four[1].0 == four[2].0 && four[0].0 != four[1].0, "{four:?}");
        assert!(four.iter().all(|(_, repeat)| *repeat as usize / 2 == block), "{four:?}");
    }
    let verdicts = results.verdicts();
    let comparison = &verdicts["interleaved"][0]["comparison"];
    assert_eq!(comparison["design"], "blocks");
    let cases = comparison["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 1, "{comparison}");
    assert_eq!(cases[0]["n"], serde_json::json!([6, 6]));
    assert!(cases[0]["change"]["interval"].is_array(), "{}", cases[0]);
    let page = results.report();
    assert!(page.contains("id=\"in-turn\"") && page.contains("small → small-in-dram, 6 blocks"));
}
