//! Collision or damage on real paths: network namespaces as hosts and routers, four equal paths with the kernel's hash of ports.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "support/railgauge.rs"]
mod railgauge;

use std::{io::Write, process::Command};

use railgauge::Scene;
use serde_json::Value;

/// Hosts behind each of the two routers, and paths between these.
const EACH: usize = 4;
const PATHS: usize = 4;

const TESTS: [&str; 2] = ["first", "again"];

/// Mb/s of a host and of a good path.
const RATE: u32 = 80;

/// Namespaces that go away with it: two routers, and the hosts of either.
struct Network {
    prefix: String,
}

impl Network {
    /// Two routers with four paths between them, the first of which is held to `slow` Mb/s in both directions. `None` where no such
    /// network can be made.
    fn build(name: &str, slow: u32) -> Option<Self> {
        let network = Self { prefix: format!("rge{name}{}", std::process::id()) };
        let [left, right] = ["l", "r"].map(|side| network.space(side));
        let mut good = run(&["ip", "netns", "add", &left]) && run(&["ip", "netns", "add", &right]);
        for router in [&left, &right] {
            for setting in
                ["ip_forward=1", "fib_multipath_hash_policy=1", "conf.all.rp_filter=0", "conf.default.rp_filter=0"]
            {
                good = good && run(&["ip", "netns", "exec", router, "sysctl", "-qw", &format!("net.ipv4.{setting}")]);
            }
        }
        for path in 0..PATHS {
            let device = format!("path{path}");
            good = good
                && run(&[
                    "ip", "-n", &left, "link", "add", &device, "type", "veth", "peer", "name", &device, "netns", &right,
                ]);
            let rate = if path == 0 { slow } else { RATE };
            for (side, router) in [(1, &left), (2, &right)] {
                good = good
                    && run(&["ip", "-n", router, "addr", "add", &format!("10.81.{path}.{side}/24"), "dev", &device])
                    && run(&["ip", "-n", router, "link", "set", &device, "up"])
                    && limit(router, &device, rate);
            }
        }
        for (side, router) in [(1, &left), (2, &right)] {
            for number in 0..EACH {
                let (space, port) = (network.host(side, number), format!("h{number}"));
                let net = 10 * side + number;
                good = good
                    && run(&["ip", "netns", "add", &space])
                    && run(&["ip", "netns", "exec", &space, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"])
                    && run(&[
                        "ip", "-n", &space, "link", "add", "eth0", "type", "veth", "peer", "name", &port, "netns",
                        router,
                    ])
                    && run(&["ip", "-n", router, "addr", "add", &format!("10.82.{net}.1/24"), "dev", &port])
                    && run(&["ip", "-n", router, "link", "set", &port, "up"])
                    && run(&["ip", "-n", &space, "addr", "add", &format!("10.82.{net}.2/24"), "dev", "eth0"])
                    && run(&["ip", "-n", &space, "link", "set", "eth0", "up"])
                    && run(&["ip", "-n", &space, "route", "add", "default", "via", &format!("10.82.{net}.1")])
                    && limit(&space, "eth0", RATE);
            }
        }
        for (router, other, far) in [(&left, 2, 2), (&right, 1, 1)] {
            for number in 0..EACH {
                let mut words: Vec<String> =
                    ["ip", "-n", router, "route", "add", &format!("10.82.{}.0/24", 10 * far + number)]
                        .map(String::from)
                        .to_vec();
                for path in 0..PATHS {
                    words.extend(
                        ["nexthop", "via", &format!("10.81.{path}.{other}"), "dev", &format!("path{path}")]
                            .map(String::from),
                    );
                }
                good = good && run(&words.iter().map(String::as_str).collect::<Vec<_>>());
            }
        }
        good.then_some(network)
    }

    fn space(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn host(&self, side: usize, number: usize) -> String {
        self.space(&format!("{side}{number}"))
    }

    fn hosts(&self, side: usize) -> Vec<String> {
        (0..EACH).map(|number| self.host(side, number)).collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let routers = ["l", "r"].map(|side| self.space(side));
        for space in self.hosts(1).into_iter().chain(self.hosts(2)).chain(routers) {
            let _ = Command::new("ip").args(["netns", "del", &space]).output();
        }
    }
}

fn limit(space: &str, device: &str, rate: u32) -> bool {
    let rate = format!("{rate}mbit");
    let inside = ["ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", device];
    let shaped = ["root", "tbf", "rate", &rate, "burst", "10kb", "latency", "20ms"];
    // Single packets and a short queue: streams that share it come to about equal parts within a second.
    run(&["ip", "-n", space, "link", "set", device, "gso_max_segs", "1"]) && run(&[&inside[..], &shaped].concat())
}

fn run(words: &[&str]) -> bool {
    Command::new(words[0]).args(&words[1..]).output().is_ok_and(|output| output.status.success())
}

/// The same flows twice: the second time their streams share paths more evenly, being older.
fn plan(network: &Network) -> String {
    let [left, right] = [1, 2].map(|side| network.hosts(side));
    let all: Vec<&String> = left.iter().chain(&right).collect();
    let test = |name: &&str| {
        format!(
            "[[test]]\nname = \"{name}\"\nop = \"write\"\nmetric = \"bandwidth\"\npattern = \"bisection\"\n\
             between = [\"left\", \"right\"]\nqps = [1, 8]\n"
        )
    };
    format!(
        "name = \"paths\"\nlaunch = {{ via = \"command\", command = [\"ip\", \"netns\", \"exec\", \"{{host}}\"] }}\n\
         hosts = {{ names = {all:?}, groups = {{ left = {left:?}, right = {right:?} }} }}\nlocalise = {{ confirm = false }}\n\
         defaults = {{ transport = \"tcp\", sizes = \"64KiB\", measure = \"2s\", warm_up = \"1500ms\" }}\n{}",
        TESTS.iter().map(test).collect::<String>()
    )
}

/// What `verdicts.json` says of a test, and the rates of its flows with one stream.
type Told = (Value, Vec<(String, f64)>);

/// What is said of both tests; `None` after a note that there is no such network here.
fn measured(name: &str, slow: u32) -> Option<Vec<Told>> {
    let Some(network) = Network::build(name, slow) else {
        let reason =
            "paths between network namespaces: they cannot be made here (root, iproute2, sch_tbf, multipath routes?)";
        println!("SKIPPED: {reason}");
        if let Some(file) = std::env::var_os("RAILGAUGE_SKIPPED") {
            let mut notes = std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
            writeln!(notes, "{reason}").unwrap();
        }
        return None;
    };
    let scene = Scene::new();
    let ended = scene.start(&scene.write("plan.toml", &plan(&network))).end();
    let results = scene.results();
    let rows = results.rows();
    let found = results.verdicts()["collisions"].as_array().cloned().unwrap_or_default();
    assert_eq!(found.len(), TESTS.len(), "{}", ended.said);
    println!("{}", ended.said);
    let with_rates = |told: Value| {
        println!("{told:#}");
        let rates = rows
            .iter()
            .filter(|row| row.test == told["test"].as_str().unwrap() && row.metric == "bandwidth" && row.qps == 1)
            .map(|row| (format!("{}:0 → {}:0", row.src, row.dst), row.value.unwrap()))
            .collect();
        (told, rates)
    };
    Some(found.into_iter().map(with_rates).collect())
}

fn sum(told: &Value) -> u64 {
    told["not_told"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum()
}

/// Rates of flows that share a path are about equal on a machine that does nothing else: `bench/equal-paths` runs it by itself.
#[test]
#[ignore = "its flows need a machine that does nothing else: bench/equal-paths"]
fn flows_that_collide_on_equal_paths_are_told_from_a_slow_one() {
    let Some(draws) = measured("a", RATE) else { return };
    // Four flows on four equal paths in either direction: chance puts some together nearly always, and eight streams spread them.
    let mut colliding = 0;
    let mut low = 0;
    for (told, rates) in &draws {
        let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        low += rates.iter().filter(|(_, rate)| *rate < 0.8 * best).count();
        colliding += told["colliding"].as_u64().unwrap();
        assert!(told["suspects"].as_array().unwrap().is_empty(), "{told:#}");
    }
    assert!(colliding > 0 || low == 0, "{draws:?}");

    // A path at a sixth: with one stream the flows on it are low, with eight all of them lose a fifth.
    let Some(draws) = measured("b", RATE / 6) else { return };
    for (told, rates) in &draws {
        let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let named = |list: &str| {
            let flows = told[list].as_array().unwrap().iter().map(|low| low["flow"].as_str().unwrap().to_owned());
            flows.collect::<Vec<_>>()
        };
        let not_cleared = [named("open"), named("suspects")].concat();
        // Four flows at most share a good path: none has less than a quarter there.
        for (flow, rate) in rates.iter().filter(|(_, rate)| *rate < 0.2 * best) {
            assert!(not_cleared.contains(flow), "{flow} at {rate} of {best}: {told:#}");
        }
        assert!(sum(told) > 0 || !not_cleared.is_empty(), "a slow path was cleared: {told:#}");
    }
}
