//! Flows at once between local agents over TCP, from plan to verdict.
//!
//! Flows of one busy machine do not all get their turn; the plan waives what stands out among them.

use std::collections::BTreeMap;

use crate::railgauge::{Row, Scene};
use serde_json::Value;

const PLAN: &str = r#"
name = "at-once"
launch = { via = "local" }
hosts = { names = ["a", "b", "c", "d"] }
defaults = { transport = "tcp", measure = "1s", warm_up = "100ms", sizes = "64KiB" }
localise = { waive = ["all"] }

[[test]]
name = "incast"
op = "write"
metric = "bandwidth"
pattern = "incast"
to = "a"

[[test.expect]]
metric = "ingress_bandwidth"
at_least = "1 Mb/s"

[[test]]
name = "all-to-all"
op = "read"
metric = "bandwidth"
pattern = "all-to-all"
"#;

fn values<'r>(rows: &'r [Row], test: &str, metric: &str) -> Vec<&'r Row> {
    rows.iter().filter(|row| row.test == test && row.metric == metric).collect()
}

fn sum(rows: &[&Row]) -> f64 {
    rows.iter().map(|row| row.value.unwrap()).sum()
}

#[track_caller]
fn close(value: f64, wanted: f64) {
    assert!((value / wanted - 1.0).abs() < 1e-9, "{value} is not {wanted}");
}

/// The values of a journal's flows, as the analysis must find them: recomputed here from the raw record of one pass.
fn starts(outcomes: &[Value]) -> BTreeMap<u64, Vec<f64>> {
    let mut starts: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for sample in outcomes.iter().map(|outcome| &outcome["result"]["Ok"]) {
        let together = &sample["together"];
        let (at, error) = (together["from"]["at"].as_u64().unwrap(), together["from"]["error"].as_u64().unwrap());
        let late = sample["initiator"]["started"].as_u64().unwrap() as f64 - at as f64;
        // The flows of one machine share a clock, so what is left is what the comparison got wrong, and being late.
        assert!(late > -(error as f64) - 10e6, "{late} ns before the planned start");
        starts.entry(together["start"].as_u64().unwrap()).or_default().push(late);
    }
    starts
}

/// Whether cases are contaminated and nothing else is wrong: an agent that gets no processor for a while counts too seldom.
fn is_disturbed(verdicts: &Value) -> bool {
    let verdicts = verdicts["verdicts"].as_array().unwrap().iter();
    let reasons = verdicts.flat_map(|verdict| verdict["reasons"].as_array().unwrap());
    let mut incomplete = reasons.filter(|reason| reason["id"] == "incomplete").peekable();
    let is_contaminated =
        |reason: &Value| reason["states"].as_array().unwrap().iter().all(|of| of["state"] == "contaminated");
    incomplete.peek().is_some() && incomplete.all(is_contaminated)
}

#[test]
fn flows_share_a_receiver_and_their_sum_is_judged() {
    let run = || {
        let scene = Scene::new();
        let ended = scene.start(&scene.write("plan.toml", PLAN)).end();
        (scene, ended)
    };
    let mut runs = std::iter::repeat_with(run).take(5);
    let (scene, ended) = runs.find(|(scene, _)| !is_disturbed(&scene.results().verdicts())).unwrap();
    ended.expect(0);
    let rows = scene.results().rows();
    assert!(rows.iter().all(|row| row.value.is_some() && row.error.is_none()), "{rows:?}");

    let flows = values(&rows, "incast", "bandwidth");
    assert_eq!(flows.len(), 3);
    assert!(flows.iter().all(|row| row.dst == "a" && row.verified == 2 * 65536), "{flows:?}");
    let ingress = values(&rows, "incast", "ingress_bandwidth");
    let total = values(&rows, "incast", "total_bandwidth");
    assert_eq!((ingress.len(), total.len(), values(&rows, "incast", "egress_bandwidth").len()), (1, 1, 3));
    close(sum(&ingress), sum(&flows));
    close(sum(&total), sum(&flows));

    // Of a read the bytes leave from the responder.
    let flows = values(&rows, "all-to-all", "bandwidth");
    assert_eq!(flows.len(), 12);
    for row in values(&rows, "all-to-all", "ingress_bandwidth") {
        let into: Vec<&Row> = flows.iter().filter(|flow| flow.src == row.src).copied().collect();
        close(row.value.unwrap(), sum(&into));
    }
    assert_eq!(values(&rows, "all-to-all", "egress_bandwidth").len(), 4);
    close(sum(&values(&rows, "all-to-all", "total_bandwidth")), sum(&flows));

    let passes = starts(&scene.results().outcomes());
    assert_eq!(passes.values().map(Vec::len).collect::<Vec<_>>(), [3, 12], "one pass per round and cell");
}

const VICTIM: &str = r#"
name = "victim"
launch = { via = "local" }
hosts = { names = ["a", "b", "c", "d", "e"] }
defaults = { transport = "tcp", measure = "600ms", warm_up = "100ms", sizes = "64KiB" }
localise = { waive = ["all"] }

[[test]]
name = "victim"
op = "write"
metric = "bandwidth"
pattern = "victim"
victim = ["a", "b"]
to = "c"
repeats = 3

[[test.expect]]
metric = "victim_loss"
at_most = "99.9%"
"#;

/// Hosts of one machine share its cores: the loss is real and says nothing of a fabric.
#[test]
fn a_victim_is_measured_alone_and_beside_an_incast() {
    let scene = Scene::new();
    let ended = scene.start(&scene.write("plan.toml", VICTIM)).end();
    let results = scene.results();
    let verdicts = results.verdicts();
    let [victim] = verdicts["beside"].as_array().unwrap().as_slice() else { panic!("{}", ended.said) };
    assert_eq!((&victim["incast"], &victim["incast_flows"]), (&"c".into(), &2.into()));
    let number = |name: &str| victim[name].as_f64().unwrap_or_else(|| panic!("{victim:#}\n{}", ended.said));
    assert!(number("alone_gbps") > 0.0 && number("beside_gbps") > 0.0);
    let rows = results.rows();
    let losses = values(&rows, "victim", "victim_loss");
    let [loss] = losses.as_slice() else { panic!("{losses:?}") };
    assert_eq!((loss.src.as_str(), loss.dst.as_str()), ("a", "b"));
    // How much is lost depends on the machine.
    assert!(loss.value.is_some() && loss.verified > 0 && number("loss_percent").is_finite(), "{loss:?} {victim:#}");
    assert_eq!(victim["counted"]["pause"]["counting"], 0, "loopback has no pauses");
}
