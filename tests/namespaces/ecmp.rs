//! Collision or damage on real paths: network namespaces as hosts and routers, four equal paths with the kernel's hash of ports.

use crate::{
    namespaces::{Spaces, run},
    railgauge::Scene,
    skip::skipped,
};
use serde_json::Value;

/// Hosts behind each of the two routers, and paths between these.
const EACH: usize = 4;
const PATHS: usize = 4;

/// Every repeat is a draw of the kernel's hash: fewer tell nothing.
const REPEATS: u32 = 24;

/// Mb/s of a host and of a good path.
const RATE: u32 = 80;

/// Namespaces that go away with it: two routers, and the hosts of either.
struct Network {
    spaces: Spaces,
}

impl Network {
    /// Two routers with four paths between them, the first of which is held to `slow` Mb/s in both directions. `None` where no such
    /// network can be made.
    fn build(name: &str, slow: u32) -> Option<Self> {
        let network = Self { spaces: Spaces::new(&format!("e{name}")) };
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
                    && shared(router, &device, rate, side);
            }
        }
        for (side, router) in [(1, &left), (2, &right)] {
            for number in 0..EACH {
                let (space, port) = (network.host(side, number), format!("h{number}"));
                let net = 10 * side + number;
                good = good
                    && run(&["ip", "netns", "add", &space])
                    && run(&["ip", "netns", "exec", &space, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"])
                    // What is under way fits into the queues: nothing is lost, as in a network with flow control.
                    && run(&["ip", "netns", "exec", &space, "sysctl", "-qw", "net.ipv4.tcp_wmem=4096 16384 32768"])
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
        self.spaces.name(name)
    }

    fn host(&self, side: usize, number: usize) -> String {
        self.space(&format!("{side}{number}"))
    }

    fn hosts(&self, side: usize) -> Vec<String> {
        (0..EACH).map(|number| self.host(side, number)).collect()
    }
}

fn limit(space: &str, device: &str, rate: u32) -> bool {
    let rate = format!("{rate}mbit");
    let inside = ["ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", device];
    let shaped = ["root", "tbf", "rate", &rate, "burst", "10kb", "latency", "1s"];
    // Single packets: a queue serves all that wait alike.
    run(&["ip", "-n", space, "link", "set", device, "gso_max_segs", "1"]) && run(&[&inside[..], &shaped].concat())
}

/// A path that serves the hosts of its side alike, as congestion control of RDMA networks does over seconds. TCP flows in one queue do
/// not come to equal parts: a fifth and three quarters of a path were seen over two seconds.
fn shared(router: &str, device: &str, rate: u32, side: usize) -> bool {
    let tc = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        run(&[&["ip", "netns", "exec", router, "tc"], &words[..]].concat())
    };
    let kbit = 1000 * rate;
    let mut good = run(&["ip", "-n", router, "link", "set", device, "gso_max_segs", "1"])
        && tc(&format!("qdisc add dev {device} root handle 1: htb default 10"))
        && tc(&format!("class add dev {device} parent 1: classid 1:1 htb rate {kbit}kbit burst 10kb cburst 10kb"))
        // Acknowledgements first: behind data they would make flows unlike.
        && tc(&format!("class add dev {device} parent 1:1 classid 1:9 htb rate {}kbit ceil {kbit}kbit prio 0", kbit / 10))
        && tc(&format!("filter add dev {device} parent 1: protocol ip prio 1 u32 match u16 0 0xff80 at 2 flowid 1:9"));
    for number in 0..EACH {
        let (class, host, part) = (10 + number, 10 * side + number, (9 * kbit / 10) as usize / EACH);
        let limits = format!("rate {part}kbit ceil {kbit}kbit burst 5kb cburst 5kb quantum 1514 prio 1");
        let of_host = format!("u32 match ip src 10.82.{host}.2/32 flowid 1:{class}");
        good = good
            && tc(&format!("class add dev {device} parent 1:1 classid 1:{class} htb {limits}"))
            && tc(&format!("qdisc add dev {device} parent 1:{class} handle {class}: pfifo limit 4000"))
            && tc(&format!("filter add dev {device} parent 1: protocol ip prio 2 {of_host}"));
    }
    good
}

fn plan(network: &Network) -> String {
    let [left, right] = [1, 2].map(|side| network.hosts(side));
    let all: Vec<&String> = left.iter().chain(&right).collect();
    format!(
        "name = \"paths\"\nlaunch = {{ via = \"command\", command = [\"ip\", \"netns\", \"exec\", \"{{host}}\"] }}\n\
         hosts = {{ names = {all:?}, groups = {{ left = {left:?}, right = {right:?} }} }}\nlocalise = {{ confirm = false }}\n\
         defaults = {{ transport = \"tcp\", sizes = \"8KiB\", measure = \"2s\", warm_up = \"1s\" }}\n\
         [[test]]\nname = \"paths\"\nop = \"write\"\nmetric = \"bandwidth\"\npattern = \"bisection\"\n\
         between = [\"left\", \"right\"]\nqps = [1, 32]\nrepeats = {REPEATS}\n"
    )
}

/// What `verdicts.json` says of the collisions; `None` after a note that there is no such network here.
fn measured(name: &str, slow: u32) -> Option<Value> {
    let Some(network) = Network::build(name, slow) else {
        skipped(
            "paths between network namespaces: they cannot be made here (root, iproute2, sch_tbf, multipath routes?)",
        );
        return None;
    };
    let scene = Scene::new();
    let ended = scene.start(&scene.write("plan.toml", &plan(&network))).end();
    let results = scene.results();
    let found = results.verdicts()["collisions"].as_array().cloned().unwrap_or_default();
    println!("{}", ended.said);
    let [told] = found.as_slice() else { panic!("{}", ended.said) };
    println!("{told:#}");
    Some(told.clone())
}

fn sum(told: &Value) -> u64 {
    told["not_told"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum()
}

/// Rates of flows that share a path are about equal on a machine that does nothing else: `bench/equal-paths` runs it by itself.
#[test]
#[ignore = "rate: its flows need a machine that does nothing else, as in bench/equal-paths"]
fn flows_that_collide_on_equal_paths_are_told_from_a_slow_one() {
    let Some(told) = measured("a", RATE) else { return };
    let number = |told: &Value, key: &str| told[key].as_u64().unwrap();
    // Four flows on four equal paths in either direction: chance puts some together nearly always, and 32 streams spread them.
    assert_eq!(number(&told, "passes"), u64::from(REPEATS));
    assert!(told["suspects"].as_array().unwrap().is_empty(), "{told:#}");
    assert!(number(&told, "colliding") > 0, "{told:#}");

    // A path at half: with one stream the flows on it are low, with 32 all of them lose an eighth. The draws show it, and nobody
    // is told to collide.
    let Some(told) = measured("b", RATE / 2) else { return };
    assert_eq!(number(&told, "colliding"), 0, "a slow path was cleared: {told:#}");
    assert!(sum(&told) > 0, "a slow path was cleared: {told:#}");
}
