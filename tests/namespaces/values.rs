//! What loss and delay cost a flow, as a series of values: network namespaces as hosts, with netem where this kernel has it; else loss
//! is made by a filter, and delay is not shown.

use crate::{
    namespaces::{Spaces, run},
    railgauge::{Ended, Scene},
    skip::skipped,
};
use serde_json::Value;

/// Two hosts with a link between them; they go away with it.
struct Hosts {
    names: [String; 2],
    _spaces: Spaces,
}

impl Hosts {
    /// `None` where no such link can be made.
    fn build(tag: &str) -> Option<Self> {
        let spaces = Spaces::new(&format!("v{tag}"));
        let hosts = Self { names: ["a", "b"].map(|side| spaces.name(side)), _spaces: spaces };
        let [a, b] = &hosts.names;
        let mut good = run(&["ip", "netns", "add", a])
            && run(&["ip", "netns", "add", b])
            && run(&["ip", "-n", a, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b]);
        for (number, space) in [(1, a), (2, b)] {
            good = good
                && run(&["ip", "-n", space, "addr", "add", &format!("10.84.0.{number}/24"), "dev", "eth0"])
                && run(&["ip", "-n", space, "link", "set", "eth0", "gso_max_segs", "1"])
                && run(&["ip", "-n", space, "link", "set", "eth0", "up"]);
        }
        good.then_some(hosts)
    }

    /// Whether a command works in one of them.
    fn can(&self, words: &[&str]) -> bool {
        let mut all = vec!["ip", "netns", "exec", &self.names[0]];
        all.extend(words);
        run(&all)
    }

    fn has_netem(&self) -> bool {
        let can = self.can(&["tc", "qdisc", "add", "dev", "eth0", "root", "netem", "loss", "1%"]);
        can && self.can(&["tc", "qdisc", "del", "dev", "eth0", "root"])
    }

    fn plan(&self, test: &str) -> String {
        let [a, b] = &self.names;
        format!(
            "name = \"values\"\nlaunch = {{ via = \"command\", command = [\"ip\", \"netns\", \"exec\", \"{{host}}\"] }}\n\
             hosts = {{ names = [\"{a}\", \"{b}\"] }}\nlocalise = {{ confirm = false, waive = [\"all\"] }}\n\
             [[test]]\nname = \"series\"\nop = \"write\"\ntransport = \"tcp\"\npattern = \"pairs\"\n\
             pairs = [[\"{a}\", \"{b}\"]]\n{test}"
        )
    }
}

/// The costs in a metric, by value.
fn costs<'v>(verdicts: &'v Value, metric: &str) -> Vec<&'v Value> {
    let all = verdicts["costs"].as_array().unwrap();
    all.iter().filter(|cost| cost["metric"] == metric).collect()
}

/// A series of losses, with so many repeats of such windows: the hosts, the values, and what the run left. `None` where it cannot be made
/// here.
fn losses(times: &str) -> Option<(Hosts, [&'static str; 3], Scene, Ended)> {
    let Some(hosts) = Hosts::build("l") else {
        skipped("a link between network namespaces: it cannot be made here (root, iproute2?)");
        return None;
    };
    let (values, configure) = if hosts.has_netem() {
        let apply = "ip netns exec {host} tc qdisc replace dev eth0 root netem rate 100mbit loss {value}";
        (
            ["0%", "0.0001%", "15%"],
            format!("apply = \"{apply}\"\nundo = \"ip netns exec {{host}} tc qdisc del dev eth0 root\"\n"),
        )
    } else {
        let shaped = hosts.names.iter().all(|space| {
            let shape = ["rate", "100mbit", "burst", "10kb", "latency", "20ms"];
            let mut words = vec!["ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf"];
            words.extend(shape);
            run(&words)
        });
        if !shaped || !hosts.can(&["iptables", "-L"]) {
            skipped("loss between network namespaces: neither netem nor tbf with iptables works here");
            return None;
        }
        // Only packets with payload are lost: else a connection may take longer to be made than a join may last.
        let apply = "ip netns exec {host} iptables -A INPUT -m length --length 1000: -m statistic --mode random \
                     --probability {value} -j DROP";
        (
            ["0", "0.000001", "0.15"],
            format!("apply = \"{apply}\"\nundo = \"ip netns exec {{host}} iptables -F INPUT\"\n"),
        )
    };
    let list = values.map(|value| format!("\"{value}\"")).join(", ");
    let test =
        format!("metric = \"bandwidth\"\nsizes = \"64KiB\"\n{times}\n[test.configure]\n{configure}values = [{list}]\n");
    let scene = Scene::new();
    let ended = scene.start(&scene.write("plan.toml", &hosts.plan(&test))).end();
    println!("{}\n{:#}", ended.said, scene.results().verdicts()["costs"]);
    Some((hosts, values, scene, ended))
}

#[test]
fn each_value_is_set_measured_and_taken_back() {
    // One of two repeats may break: a packet that is lost six times in a row ends its connection.
    let times = "measure = \"300ms\"\nwarm_up = \"50ms\"\nrepeats = 2";
    let Some((hosts, values, scene, ended)) = losses(times) else { return };
    let results = scene.results();
    let verdicts = results.verdicts();
    let all = costs(&verdicts, "bandwidth");
    assert_eq!(all.iter().map(|cost| cost["value"].as_str().unwrap()).collect::<Vec<_>>(), values, "{}", ended.said);
    assert_eq!(all[0]["answer"], "reference", "{}", ended.said);
    let page = results.report();
    assert!(page.contains("Settings compared"));
    if let Some(folder) = std::env::var_os("RAILGAUGE_SAMPLES") {
        std::fs::write(std::path::Path::new(&folder).join("values-loss.html"), &page).unwrap();
    }
    let clean = "! iptables -S INPUT | grep -q statistic && ! tc qdisc show dev eth0 | grep -q netem";
    for space in &hosts.names {
        assert!(run(&["ip", "netns", "exec", space, "sh", "-c", clean]), "{space} is not as it was");
    }
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn loss_costs_bandwidth_and_next_to_none_costs_nothing() {
    // At most one of five repeats may break.
    let times = "measure = \"1s\"\nwarm_up = \"200ms\"\nrepeats = 5";
    let Some((_hosts, values, scene, ended)) = losses(times) else { return };
    let verdicts = scene.results().verdicts();
    let [none, little, much] = costs(&verdicts, "bandwidth")[..] else { panic!("{}", ended.said) };
    assert_eq!((&none["answer"], &much["answer"]), (&"reference".into(), &"costs".into()), "{}", ended.said);
    assert!(much["cost_percent"].as_f64().unwrap() > 50.0, "{much:#}");
    // A link that is held to a rate scatters so little that even a thousandth may stand out.
    let cost = little["cost_percent"].as_f64().unwrap();
    assert!(little["answer"] == "no-difference" || cost.abs() < 2.0, "{little:#}");
    // The report names the value.
    ended.says(&format!("{} costs", values[2]));
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn delay_and_jitter_cost_latency() {
    let Some(hosts) = Hosts::build("d") else {
        skipped("a link between network namespaces: it cannot be made here (root, iproute2?)");
        return;
    };
    if !hosts.has_netem() {
        skipped("delay between network namespaces: this kernel has no netem");
        return;
    }
    // Two words for tc: the shell that is asked for splits them.
    let test = "metric = \"latency\"\nsizes = \"8\"\nmeasure = \"500ms\"\nwarm_up = \"50ms\"\nrepeats = 4\n[test.configure]\n\
                apply = [\"sh\", \"-c\", \"ip netns exec {host} tc qdisc replace dev eth0 root netem delay $1\", \"sh\", \"{value}\"]\n\
                undo = \"ip netns exec {host} tc qdisc del dev eth0 root\"\nvalues = [\"0us\", \"500us 100us\", \"2ms\"]\n";
    let scene = Scene::new();
    let ended = scene.start(&scene.write("plan.toml", &hosts.plan(test))).end();
    let verdicts = scene.results().verdicts();
    let all = costs(&verdicts, "latency_p50");
    let [none, jitter, delay] = all[..] else { panic!("{}", ended.said) };
    assert_eq!(none["answer"], "reference");
    for (cost, least) in [(jitter, 300.0), (delay, 1500.0)] {
        assert_eq!(cost["answer"], "costs", "{cost:#}");
        // Half round trips.
        assert!(cost["median"].as_f64().unwrap() > least, "{cost:#}");
    }
}
