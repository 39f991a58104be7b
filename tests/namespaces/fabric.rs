//! A slow cable between two switches, found on real ones: network namespaces as hosts, bridges as switches, TCP over them.

use crate::{
    namespaces::{Spaces, run},
    railgauge::Scene,
    skip::skipped,
};

/// Leaves, and hosts below each.
const LEAVES: usize = 3;
const EACH: usize = 3;

/// Namespaces that go away with it: one for the switches, one for each host.
struct Network {
    spaces: Spaces,
}

impl Network {
    /// Three leaves below a spine. NICs send at most 200 Mb/s; what leaf 2 sends to the spine is held to half of that. `None` where
    /// no such network can be made.
    fn build() -> Option<Self> {
        let network = Self { spaces: Spaces::new("f") };
        let switches = network.space("sw");
        let limit = |space: &str, device: &str, rate: &str| {
            let words =
                ["tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "64kb", "latency", "2s"];
            run(&[&["ip", "netns", "exec", space][..], &words].concat())
        };
        let bridge = |name: &str| {
            run(&["ip", "-n", &switches, "link", "add", name, "type", "bridge"])
                && run(&["ip", "-n", &switches, "link", "set", name, "up"])
        };
        let plugged =
            |device: &str, into: &str| run(&["ip", "-n", &switches, "link", "set", device, "master", into, "up"]);
        let mut good = run(&["ip", "netns", "add", &switches]) && bridge("spine");
        for leaf in 1..=LEAVES {
            let (name, up, down) = (format!("leaf{leaf}"), format!("up{leaf}"), format!("down{leaf}"));
            good = good
                && bridge(&name)
                && run(&["ip", "-n", &switches, "link", "add", &up, "type", "veth", "peer", "name", &down])
                && plugged(&up, &name)
                && plugged(&down, "spine");
        }
        for host in 0..LEAVES * EACH {
            let (space, port, leaf) =
                (network.space(&host.to_string()), format!("p{host}"), format!("leaf{}", 1 + host / EACH));
            let address = format!("10.79.0.{}/24", host + 1);
            good = good
                && run(&["ip", "netns", "add", &space])
                && run(&[
                    "ip", "-n", &space, "link", "add", "eth0", "type", "veth", "peer", "name", &port, "netns",
                    &switches,
                ])
                && plugged(&port, &leaf)
                && run(&["ip", "-n", &space, "addr", "add", &address, "dev", "eth0"])
                && run(&["ip", "-n", &space, "link", "set", "eth0", "up"])
                && limit(&space, "eth0", "200mbit");
        }
        (good && limit(&switches, "up2", "100mbit")).then_some(network)
    }

    fn space(&self, name: &str) -> String {
        self.spaces.name(name)
    }

    fn hosts(&self) -> Vec<String> {
        (0..LEAVES * EACH).map(|host| self.space(&host.to_string())).collect()
    }
}

fn plan(network: &Network) -> String {
    let hosts = network.hosts();
    let leaf = |host: usize| format!("[\"{}\", \"leaf{}:{}\"]", hosts[host], 1 + host / EACH, 1 + host % EACH);
    let trunk = |leaf: usize| format!("[\"leaf{leaf}:31\", \"spine:{leaf}\"]");
    let cables: Vec<String> = (0..hosts.len()).map(leaf).chain((1..=LEAVES).map(trunk)).collect();
    format!(
        r#"
name = "namespaces"
launch = {{ via = "command", command = ["ip", "netns", "exec", "{{host}}"] }}
hosts = {{ names = {hosts:?} }}

[topology]
link_rate = "1 Gb/s"
cables = [{}]

[localise]
at_most = "8s"

[[test]]
name = "write"
op = "write"
metric = "bandwidth"
transport = "tcp"
sizes = "64KiB"
measure = "300ms"
warm_up = "100ms"
"#,
        cables.join(", ")
    )
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn a_slow_cable_between_switches_is_named_with_its_ports() {
    let Some(network) = Network::build() else {
        skipped("a fabric of network namespaces: it cannot be made here (root, iproute2, sch_tbf?)");
        return;
    };
    let scene = Scene::new();
    let ended = scene.start(&scene.write("plan.toml", &plan(&network))).end();
    let verdicts = scene.results().verdicts();
    let links = &verdicts["switches"]["links"][0];
    let suspects = links["suspects"].as_array().unwrap();
    let between: Vec<_> = suspects.iter().filter(|suspect| suspect["between_switches"] == true).collect();
    let [suspect] = between.as_slice() else { panic!("{links:#}\n{}", ended.said) };
    // The cable may be named whole or by its slow direction; no other fits.
    let name = suspect["name"].as_str().unwrap();
    let names = ["leaf2 port 31 to spine port 2", "leaf2 port 31, cable to spine port 2"];
    let others = suspect.get("alternatives").and_then(|list| list.as_array()).cloned().unwrap_or_default();
    assert!(
        names.contains(&name) && others.iter().all(|other| names.contains(&other.as_str().unwrap())),
        "{suspect:#}"
    );
    let change = suspect["change_percent"].as_f64().unwrap();
    assert!((-80.0..=-30.0).contains(&change), "{suspect:#}");
    assert!(ended.said.contains("leaf2 port 31"), "{}", ended.said);
    assert_ne!(ended.status.code(), Some(0));
}
