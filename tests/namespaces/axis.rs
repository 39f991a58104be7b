//! An incast over real queues: network namespaces as hosts at one switch, and what their ports count on the page's time axis.

use std::{fs, path::Path};

use crate::{
    namespaces::{Spaces, run},
    railgauge::{Ended, Scene},
    skip::skipped,
};
use railgauge_analysis::{
    axis::{OfTest, Watch, of_test},
    journal,
    results::results,
    soak::families::Family,
};
use railgauge_wire::drivers::Congestion;

/// A flow and an incast of two take five.
const HOSTS: usize = 5;
/// Mb/s of a host, and of the switch towards a host: two senders fill its queue, one does not.
const RATES: (u32, u32) = (60, 80);

/// Namespaces that go away with it: a switch, and hosts at it.
struct Network {
    spaces: Spaces,
}

impl Network {
    /// `None` where no such network can be made.
    fn build() -> Option<Self> {
        let network = Self { spaces: Spaces::new("x") };
        let switch = network.space("s");
        let mut good = run(&["ip", "netns", "add", &switch])
            && run(&["ip", "-n", &switch, "link", "add", "br0", "type", "bridge"])
            && run(&["ip", "-n", &switch, "link", "set", "br0", "up"]);
        for number in 0..HOSTS {
            let (space, port) = (network.host(number), format!("h{number}"));
            good = good
                && run(&["ip", "netns", "add", &space])
                && run(&[
                    "ip", "-n", &space, "link", "add", "eth0", "type", "veth", "peer", "name", &port, "netns", &switch,
                ])
                && run(&["ip", "-n", &switch, "link", "set", &port, "master", "br0", "up"])
                && run(&["ip", "-n", &space, "addr", "add", &format!("10.84.0.{}/24", number + 1), "dev", "eth0"])
                && run(&["ip", "-n", &space, "link", "set", "eth0", "up"])
                && limit(&space, "eth0", RATES.0, "20ms")
                && limit(&switch, &port, RATES.1, "1ms");
        }
        good.then_some(network)
    }

    fn space(&self, name: &str) -> String {
        self.spaces.name(name)
    }

    fn host(&self, number: usize) -> String {
        self.space(&number.to_string())
    }
}

fn limit(space: &str, device: &str, rate: u32, queue: &str) -> bool {
    let rate = format!("{rate}mbit");
    let inside = ["ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", device];
    let shaped = ["root", "tbf", "rate", &rate, "burst", "10kb", "latency", queue];
    run(&["ip", "-n", space, "link", "set", device, "gso_max_segs", "1"]) && run(&[&inside[..], &shaped].concat())
}

fn plan(network: &Network) -> String {
    let all: Vec<String> = (0..HOSTS).map(|number| network.host(number)).collect();
    let [from, to, into] = [0, 1, 2].map(|number| network.host(number));
    format!(
        "name = \"axis\"\nwatch_every = \"100ms\"\n\
         launch = {{ via = \"command\", command = [\"ip\", \"netns\", \"exec\", \"{{host}}\"] }}\n\
         hosts = {{ names = {all:?} }}\nlocalise = {{ confirm = false, waive = [\"all\"] }}\n\
         defaults = {{ transport = \"tcp\", sizes = \"64KiB\", measure = \"2s\", warm_up = \"500ms\" }}\n\
         [[test]]\nname = \"victim\"\nop = \"write\"\nmetric = \"bandwidth\"\npattern = \"victim\"\nvictim = [{from:?}, {to:?}]\n\
         to = {into:?}\nrepeats = 3\n"
    )
}

/// What the report has of a run.
fn found(directory: &Path) -> OfTest {
    let journal = journal::read(&directory.join("records.jsonl")).unwrap();
    let results = results(&journal).unwrap();
    of_test(&Watch::of(&journal).unwrap(), &results.iter().collect::<Vec<_>>()).unwrap()
}

/// A run; `None` where there can be none. The network goes away with it.
fn measured() -> Option<(Network, Scene, Ended)> {
    let Some(network) = Network::build() else {
        skipped("a switch between network namespaces: it cannot be made here (root, iproute2, sch_tbf?)");
        return None;
    };
    let scene = Scene::new();
    let ended = scene.start(&scene.write("plan.toml", &plan(&network))).end();
    Some((network, scene, ended))
}

#[test]
fn a_full_queue_shows_at_its_senders_while_they_send() {
    let Some((network, scene, ended)) = measured() else { return };
    let directory = scene.run_directory();
    let page = fs::read_to_string(directory.join("report.html")).unwrap_or_else(|_| panic!("{}", ended.said));
    if let Some(place) = std::env::var_os("RAILGAUGE_SAMPLES") {
        fs::create_dir_all(&place).unwrap();
        for name in ["report.html", "records.jsonl"] {
            fs::copy(directory.join(name), Path::new(&place).join(format!("axis-{name}"))).unwrap();
        }
    }
    let found = found(&directory);
    assert_eq!((found.placed, found.unplaced, found.unwatched), (6, 0, 0), "{}", ended.said);
    // None of a veth counts pauses.
    assert_eq!((found.ports, found.with[&Congestion::Pause], found.with[&Congestion::Cnp]), (HOSTS, 0, 0));
    let incasts: Vec<_> = found.passes.iter().filter(|pass| pass.round == 1).collect();
    assert_eq!(incasts.len(), 3, "each incast lost packets: {:#?}", found.passes);
    for pass in &incasts {
        let lost: Vec<&str> = pass
            .ports
            .iter()
            .filter(|(_, lines)| lines.iter().any(|line| line.family == Family::Retransmissions))
            .map(|(port, _)| port.host.as_str())
            .collect();
        let senders = [3, 4].map(|number| network.host(number));
        assert!(senders.iter().any(|host| lost.contains(&host.as_str())), "{lost:?}");
    }
    // Readings do not follow each other sooner than the plan wants.
    let pace = pace(&scene.run_directory());
    assert!(pace >= 90.0, "{pace} ms");
    assert!(page.contains("retransmissions, out of sequence"));
}

/// Mean milliseconds between readings that counted something.
fn pace(directory: &Path) -> f64 {
    let journal = journal::read(&directory.join("records.jsonl")).unwrap();
    let rows = journal.watched.iter().flat_map(|seen| &seen.seen.ports).flat_map(|port| &port.rows);
    let rose = rows.filter(|row| row.counted.values().any(|rise| *rise > 0));
    let lengths: Vec<f64> = rose.map(|row| row.until.saturating_sub(row.from).milliseconds()).collect();
    lengths.iter().sum::<f64>() / lengths.len() as f64
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn readings_follow_each_other_as_the_plan_wants_and_cost_little() {
    let Some((_network, scene, _)) = measured() else { return };
    let pace = pace(&scene.run_directory());
    assert!((90.0..300.0).contains(&pace), "{pace} ms");
    let journal = journal::read(&scene.run_directory().join("records.jsonl")).unwrap();
    let seen = || journal.watched.iter().map(|one| &one.seen);
    let time: f64 = seen().map(|seen| (seen.until - seen.from).as_f64()).sum();
    let share = seen().map(|seen| seen.cpu.as_f64()).sum::<f64>() / time;
    println!("a reading every {pace:.0} ms; watching took {:.2} % of a processor", share * 100.0);
    assert!(share < 0.1, "{share}");
}
