//! A flow beside TCP of its own hosts, over a link with a known rate: network namespaces as hosts.

use crate::{
    namespaces::{Spaces, run},
    railgauge::{Ended, Row, Scene},
    skip::skipped,
};
use serde_json::Value;

/// Mb/s of the link, each way.
const RATE: u32 = 100;

/// Two hosts with a link between them; they go away with it.
struct Hosts {
    names: [String; 2],
    _spaces: Spaces,
}

impl Hosts {
    /// `None` where no such link can be made.
    fn build() -> Option<Self> {
        let spaces = Spaces::new("b");
        let hosts = Self { names: ["a", "b"].map(|side| spaces.name(side)), _spaces: spaces };
        let [a, b] = &hosts.names;
        let mut good = run(&["ip", "netns", "add", a])
            && run(&["ip", "netns", "add", b])
            && run(&["ip", "-n", a, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b]);
        for (number, space) in [(1, a), (2, b)] {
            let rate = format!("{RATE}mbit");
            good = good
                && run(&["ip", "-n", space, "addr", "add", &format!("10.83.0.{number}/24"), "dev", "eth0"])
                && run(&["ip", "-n", space, "link", "set", "eth0", "gso_max_segs", "1"])
                && run(&["ip", "-n", space, "link", "set", "eth0", "up"])
                && run(&[
                    "ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", &rate,
                    "burst", "10kb", "latency", "20ms",
                ]);
        }
        good.then_some(hosts)
    }
}

/// Greedy neighbours, neighbours that are held back, and greedy ones that go the other way; how long each is measured.
fn plan(hosts: &Hosts, times: &str) -> String {
    let [a, b] = &hosts.names;
    let test = |name: &str, beside: &str| {
        format!(
            "[[test]]\nname = \"{name}\"\nop = \"write\"\nmetric = \"bandwidth\"\npattern = \"pairs\"\n\
             pairs = [[\"{a}\", \"{b}\"]]\nrepeats = 3\nbeside = {{ {beside} }}\n"
        )
    };
    let limit = "[[test.expect]]\nmetric = \"beside_loss\"\nat_most = \"20%\"\n";
    format!(
        "name = \"beside\"\nlaunch = {{ via = \"command\", command = [\"ip\", \"netns\", \"exec\", \"{{host}}\"] }}\n\
         hosts = {{ names = [\"{a}\", \"{b}\"] }}\nlocalise = {{ confirm = false, waive = [\"all\"] }}\n\
         defaults = {{ transport = \"tcp\", sizes = \"64KiB\", {times} }}\n{}{limit}{}{limit}",
        test("greedy", "flows = [1, 8]"),
        test("held", "flows = 2, rate = \"2 Mb/s\", direction = \"both\""),
    )
}

fn values<'r>(rows: &'r [Row], test: &str, metric: &str) -> Vec<&'r Row> {
    rows.iter().filter(|row| row.test == test && row.metric == metric).collect()
}

/// A run with these times; `None` where there can be none.
fn run_for(times: &str) -> Option<(Scene, Ended)> {
    let Some(hosts) = Hosts::build() else {
        skipped("a link between network namespaces: it cannot be made here (root, iproute2, sch_tbf?)");
        return None;
    };
    let scene = Scene::new();
    let ended = scene.start(&scene.write("plan.toml", &plan(&hosts, times))).end();
    Some((scene, ended))
}

/// What verdicts.json has of a test beside so many neighbours.
fn told<'v>(verdicts: &'v Value, test: &str, neighbours: u64) -> &'v Value {
    let all = verdicts["beside"].as_array().unwrap();
    let wanted = |one: &&Value| one["test"] == test && one["neighbours"] == neighbours;
    all.iter().find(wanted).unwrap_or_else(|| panic!("{test} {neighbours}: {all:#?}"))
}

#[test]
fn a_flow_and_its_neighbours_take_turns_and_what_they_cost_is_told() {
    let Some((scene, ended)) = run_for("measure = \"500ms\", warm_up = \"50ms\"") else { return };
    let results = scene.results();
    let verdicts = results.verdicts();
    for (test, neighbours) in [("greedy", 1), ("greedy", 8), ("held", 2)] {
        let one = told(&verdicts, test, neighbours);
        // A busy machine may leave it unknown what they cost, or not carry them at all: then it says so.
        let is_known = ["neighbours_gbps", "beside_gbps", "loss_percent"].iter().all(|number| one[number].is_number());
        assert!(is_known || (one["answer"] == "unknown" && one["why_unknown"].is_string()), "{one:#}\n{}", ended.said);
    }
    let rows = results.rows();
    let losses = values(&rows, "greedy", "beside_loss");
    assert_eq!(losses.len(), 2, "none for the flow alone: {losses:?}");
    let rates = values(&rows, "greedy", "beside_bandwidth");
    assert_eq!((rates.len(), values(&rows, "greedy", "bandwidth").len()), (2, 3), "{rates:?}");
    assert!(results.report().contains("Flows alongside other traffic"));
    // Interleaved: the flow alone and beside each number, in every repeat.
    let order: Vec<(u64, u64)> = results
        .outcomes()
        .iter()
        .map(|outcome| (outcome["repeat"].as_u64().unwrap(), outcome["case"].as_u64().unwrap()))
        .filter(|(_, case)| *case < 3)
        .collect();
    assert_eq!(order, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]);
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn greedy_neighbours_cost_and_those_that_are_held_back_cost_little() {
    let Some((scene, ended)) = run_for("measure = \"1s\", warm_up = \"700ms\"") else { return };
    let verdicts = scene.results().verdicts();
    println!("{:#}\n{}", verdicts["beside"], ended.said);
    let number =
        |one: &Value, name: &str| one[name].as_f64().unwrap_or_else(|| panic!("{name}: {one:#}\n{}", ended.said));
    let of = |test: &str, neighbours: u64| told(&verdicts, test, neighbours);
    let (one, eight, held) = (of("greedy", 1), of("greedy", 8), of("held", 2));
    let loss = |of: &Value| number(of, "loss_percent");
    // Of a link that nine streams share one keeps a small part; what is held to a fiftieth of the rate takes about that.
    assert!(loss(eight) > 40.0, "{eight:#}");
    assert!(loss(eight) > loss(one) && loss(one) > loss(held), "{one:#} {eight:#} {held:#}");
    assert!(loss(held) < 20.0, "{held:#}");
    // What they moved meanwhile is known.
    assert!(number(eight, "neighbours_gbps") > number(eight, "beside_gbps"), "{eight:#}");
    assert!(number(held, "neighbours_gbps") < 0.01, "{held:#}");
    assert!(number(held, "neighbours_gbps") > 0.001, "{held:#}");
    let of_expectations: Vec<(&Value, &Value)> = verdicts["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|verdict| verdict["kind"] == "expectation")
        .map(|verdict| (&verdict["test"], &verdict["status"]))
        .collect();
    assert!(of_expectations.iter().any(|(test, status)| *test == "greedy" && *status == "fail"), "{of_expectations:?}");
    assert!(of_expectations.iter().all(|(test, status)| *test != "held" || *status != "fail"), "{of_expectations:?}");
}
