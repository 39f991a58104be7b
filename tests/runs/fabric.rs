//! What runs say of the switches between their hosts: local agents over TCP, which hang on switches by the word of the plan.

use crate::railgauge::{Scene, program};
use serde_json::{Value, json};

/// Two hosts below each of two leaves, which one spine connects.
fn plan(link_rate: &str, test: &str) -> String {
    format!(
        r#"
name = "fabric"
launch = {{ via = "local" }}
hosts = {{ names = ["a", "b", "c", "d"] }}
localise = {{ confirm = false }}

[topology]
link_rate = "{link_rate}"
cables = [
    ["a", "leaf1:1"], ["b", "leaf1:2"], ["c", "leaf2:1"], ["d", "leaf2:2"],
    ["leaf1:31", "spine1:1"], ["leaf2:31", "spine1:2"],
]

[[test]]
name = "write"
op = "write"
metric = "bandwidth"
transport = "tcp"
sizes = "64KiB"
measure = "2000 iterations"
warm_up = "1ms"
{test}
"#
    )
}

/// The verdict of the only test on how many links were loaded.
fn on_loaded(verdicts: &Value) -> &Value {
    let is_one = |verdict: &&Value| verdict["reasons"][0]["id"] == "links-loaded";
    verdicts["verdicts"].as_array().unwrap().iter().find(is_one).unwrap()
}

#[test]
fn links_that_flows_pass_are_loaded_or_told_by_name() {
    // What loopback reaches is more than a megabit a second, which a link of that rate cannot carry, and less than 80 % of a thousand
    // terabits.
    for (rate, loaded) in [("1 Mb/s", 4), ("1000000 Gb/s", 0)] {
        let scene = Scene::new();
        let plan = scene.write("plan.toml", &plan(rate, "pattern = \"tournament\"\nlinks_covered = 100"));
        let ended = scene.start(&plan).end();
        let results = scene.results();
        let verdicts = results.verdicts();
        let switches = &verdicts["switches"];
        let counts = ["switches", "leaves", "switch_links", "nic_links"].map(|key| switches[key].as_u64().unwrap());
        assert_eq!(counts, [3, 2, 2, 4], "{}", ended.said);
        assert_eq!(switches["unplaced"], json!([]));
        assert_eq!(switches["loaded"][0]["loaded"], json!(loaded), "{switches}");
        let verdict = on_loaded(&verdicts);
        assert_eq!(verdict["status"], "inconclusive", "{verdict}");
        let impossible = switches["loaded"][0]["impossible"].as_array().map_or(0, Vec::len);
        assert_eq!(impossible, loaded, "{switches}");
        if loaded == 0 {
            // Slow is no name: each of the four directions is told.
            let named: Vec<&str> = switches["loaded"][0]["not_loaded"]
                .as_array()
                .unwrap()
                .iter()
                .map(|link| link["link"].as_str().unwrap())
                .collect();
            assert_eq!(named.len(), 4);
            assert!(
                named.contains(&"leaf1 port 31 to spine1 port 1") && named.contains(&"spine1 port 1 to leaf1 port 31"),
                "{named:?}"
            );
        }
        assert!(results.report().contains("id=\"switches\""));
        // The records alone say the same.
        let drawn = program().arg("report").arg(scene.run_directory()).output().unwrap();
        assert_eq!(drawn.status.code(), ended.status.code());
        assert_eq!(scene.results().verdicts()["switches"], verdicts["switches"]);
    }
}

#[test]
fn leaves_are_groups() {
    let scene = Scene::new();
    let path = scene.write("plan.toml", &plan("1 Gb/s", "hosts = \"leaf2\""));
    let shown = program().args(["run", "--dry-run", "--json"]).arg(path).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["tests"][0]["hosts"], json!(["c", "d"]));
}

/// The pairs of each round, as `railgauge run --dry-run` shows them.
fn rounds(test: &str) -> Vec<Vec<(String, String)>> {
    let scene = Scene::new();
    let path = scene.write("plan.toml", &plan("1 Gb/s", test));
    let output = program().args(["run", "--dry-run", "--json"]).arg(path).output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let end = |end: &Value| end["host"].as_str().unwrap().to_owned();
    let pairs = |round: &Value| {
        round["flows"].as_array().unwrap().iter().map(|link| (end(&link["from"]), end(&link["to"]))).collect()
    };
    shown["tests"][0]["rounds"].as_array().unwrap().iter().map(pairs).collect()
}

fn leaf(host: &str) -> u32 {
    if "ab".contains(host) { 1 } else { 2 }
}

#[test]
fn pairs_are_chosen_by_where_their_ends_are() {
    let same = rounds("pattern = \"same-leaf\"");
    assert_eq!(same.len(), 1);
    assert!(same[0].len() == 2 && same.concat().iter().all(|(a, b)| leaf(a) == leaf(b) && a != b), "{same:?}");
    let cross = rounds("pattern = \"cross-leaf\"");
    assert!(!cross.is_empty() && cross.concat().iter().all(|(a, b)| leaf(a) != leaf(b)), "{cross:?}");
    // One flow each way loads both links in both directions.
    let cover = rounds("pattern = \"cover-links\"\nlinks_loaded = 80");
    assert_eq!(cover.len(), 1, "{cover:?}");
    let mut directions: Vec<(u32, u32)> = cover[0].iter().map(|(a, b)| (leaf(a), leaf(b))).collect();
    directions.sort_unstable();
    directions.dedup();
    assert_eq!(directions, [(1, 2), (2, 1)]);
}

#[test]
fn a_cover_that_is_measured_is_a_verdict() {
    // What loopback carries differs by more than ten times from one run to the next on a busy machine: 0.1 to 100 Gb/s is loaded and possible.
    let scene = Scene::new();
    let plan = scene.write("plan.toml", &plan("100 Gb/s", "pattern = \"cover-links\"\nlinks_loaded = 0.1"));
    let ended = scene.start(&plan).end();
    let verdicts = scene.results().verdicts();
    let covered = on_loaded(&verdicts);
    assert_eq!(
        (&covered["reasons"][0]["loaded"], &covered["reasons"][0]["of"]),
        (&json!(4), &json!(4)),
        "{}",
        ended.said
    );
    assert_eq!(covered["status"], "pass");
}

#[test]
fn patterns_of_switches_need_switches() {
    let scene = Scene::new();
    let text = plan("1 Gb/s", "pattern = \"cross-leaf\"");
    let (before, rest) = text.split_once("[topology]").unwrap();
    let rest = rest.split_once("[[test]]").unwrap().1;
    let path = scene.write("plan.toml", &format!("{before}[[test]]{rest}"));
    let output = program().arg("check").arg(path).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("cross-leaf") && said.contains("[topology]") && said.contains("plan.toml:"), "{said}");
}

/// Four hosts below two leaves with two cables each to a spine, as OpenSM routed them in ibsim; the NICs have the names of local hosts.
fn routed(test: &str) -> (Scene, std::path::PathBuf) {
    let scene = Scene::new();
    for name in ["fabric.txt", "lfts.txt"] {
        let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/fabric").join(name);
        // The slowest links that InfiniBand has: 1 % of their rate flows between local hosts on a busy machine too.
        scene.write(name, &std::fs::read_to_string(from).unwrap().replace("4xHDR", "1xSDR"));
    }
    let plan = scene.write(
        "plan.toml",
        &format!(
            "name = \"routed\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"n[1-4]\"], tcp = [\"lo\"] }}\n\
             localise = {{ confirm = false }}\n[topology]\nibnetdiscover = \"fabric.txt\"\nlfts = \"lfts.txt\"\n{test}"
        ),
    );
    (scene, plan)
}

const COVER: &str = "[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"64KiB\"\n\
                     measure = \"500 iterations\"\nwarm_up = \"1ms\"\npattern = \"cover-links\"\nlinks_loaded = 1\n";

/// The journal keeps no forwarding tables, so a report cannot make the pairs again.
#[test]
fn a_cover_by_forwarding_tables_is_judged_from_the_records_alone() {
    let (scene, plan) = routed(COVER);
    let ended = scene.start(&plan).end();
    let verdicts = scene.results().verdicts();
    let kinds: Vec<&str> =
        verdicts["verdicts"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert!(!kinds.contains(&"records") && !kinds.contains(&"run"), "{}", ended.said);
    assert_eq!(verdicts["switches"]["loaded"][0]["loaded"], json!(8), "{}", verdicts["switches"]);
    std::fs::remove_file(scene.path("fabric.txt")).unwrap();
    let drawn = program().arg("report").arg(scene.run_directory()).output().unwrap();
    assert_eq!(drawn.status.code(), ended.status.code());
    assert_eq!(scene.results().verdicts(), verdicts);
}

/// What is left out of a plan stays a host: its cables do not become links between switches.
#[test]
fn hosts_that_take_no_part_are_no_switches() {
    let scene = Scene::new();
    let text = plan("1 Mb/s", "links_covered = 1");
    for (text, words) in [
        (text.clone(), &["--hosts", "a,c"][..]),
        (
            text.replace(
                "names = [\"a\", \"b\", \"c\", \"d\"]",
                "names = [\"a\", \"b\", \"c\", \"d\"], exclude = \"d\"",
            ),
            &[],
        ),
    ] {
        let path = scene.write("plan.toml", &text);
        let mut command = program();
        command.args(["run", "-o"]).arg(scene.run_directory()).args(words).arg(path);
        let ended = scene.spawn(command, "part").end();
        let switches = scene.results().verdicts()["switches"].clone();
        let counts = ["switches", "leaves", "switch_links", "nic_links"].map(|key| switches[key].as_u64().unwrap());
        assert_eq!(counts, [3, 2, 2, 4], "{}", ended.said);
        std::fs::remove_dir_all(scene.run_directory()).unwrap();
    }
}

/// One test that finds no pairs is no reason to measure nothing.
#[test]
fn a_test_without_pairs_leaves_the_others() {
    let scene = Scene::new();
    let second = "[[test]]\nname = \"none\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"1KiB\"\n\
                  measure = \"10 iterations\"\npattern = \"cross-leaf\"\nhosts = [\"a\", \"b\"]\n";
    let path = scene.write("plan.toml", &(plan("1 Mb/s", "") + second));
    let ended = scene.start(&path).end();
    let results = scene.results();
    assert_eq!(results.measured().len(), 6, "{}", ended.said);
    let verdicts = results.verdicts();
    let of_none = verdicts["verdicts"].as_array().unwrap().iter().find(|one| one["test"] == "none").unwrap();
    assert_ne!(of_none["status"], "pass");
    assert_ne!(ended.status.code(), Some(0));
}

/// What `links_covered` cannot count is known from the topology, and is said by `run --dry-run`.
#[test]
fn links_that_count_as_not_loaded_are_told_before_a_run() {
    let scene = Scene::new();
    let said = |name: &str, text: &str| {
        let path = scene.write(name, text);
        let output = program().args(["run", "--dry-run"]).arg(path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let both = [output.stdout, output.stderr].concat();
        String::from_utf8(both).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let whole = plan("1 Gb/s", "pattern = \"cover-links\"\nlinks_loaded = 80");
    assert!(!said("whole.toml", &whole).contains("count as not loaded"));
    let without = whole.replace("link_rate = \"1 Gb/s\"\n", "");
    assert_ne!(without, whole);
    let told = said("rate.toml", &without);
    assert!(told.contains("4 directions of links") && told.contains("`link_rate`"), "{told}");
    let without = whole.replace(
        "[\"leaf1:31\", \"spine1:1\"], [\"leaf2:31\", \"spine1:2\"]",
        "[\"leaf1\", \"spine1\"], [\"leaf2\", \"spine1\"]",
    );
    assert_ne!(without, whole);
    let told = said("ports.toml", &without);
    assert!(told.contains("4 directions of links") && told.contains("without a known port"), "{told}");
}
