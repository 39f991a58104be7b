//! Trouble that spoils a measurement without stopping it, done to the lab: each is named, with its host, and no verdict
//! takes the numbers for clean. A port with a limited rate, as a part that stands out, is in `parts.rs`.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::{
    lab::{self, Background, Borrowed, borrow, text, tool},
    railgauge::{Row, Scene},
};

fn four_hosts() -> Option<Borrowed> {
    borrow()
}

/// A command on a host that must work.
fn on(lab: &Borrowed, host: u32, command: &str) {
    let output = lab.ssh(host, command);
    assert!(output.status.success(), "lab{host}: {command}: {}", text(&output.stderr));
}

/// Writes of 16 KiB between `hosts`, with `more` at the end of the plan and `launch` saying how agents are started.
fn plan(scene: &Scene, launch: &str, hosts: &str, more: &str) -> PathBuf {
    let text = format!(
        r#"
        name = "truth"
        [launch]
        {launch}
        [hosts]
        names = ["{hosts}"]
        devices = ["rxe0"]
        [localise]
        confirm = false
        [[test]]
        name = "write"
        op = "write"
        metric = "bandwidth"
        sizes = "16KiB"
        measure = "1500ms"
        warm_up = "100ms"
        # Hosts of the lab share a few cores: acknowledgements may be late by a good part of a second.
        knobs = {{ completion = "events", depth = 8, timeout = 18 }}
        {more}
        "#
    );
    scene.write("plan.toml", &text)
}

fn ssh(lab: &Borrowed) -> String {
    format!(
        "via = \"ssh\"\ntimeout = \"60s\"\nkeep_agent = true\nssh = {{ config = \"{}\" }}",
        lab.ssh_config().display()
    )
}

/// What a run came to: the one bandwidth row, the frame's words against it, and everything it said.
struct Judged {
    rows: Vec<Row>,
    said: String,
    page: String,
    status: String,
}

fn run(scene: &Scene, plan: PathBuf, code: i32) -> Judged {
    let ended = scene.start(&plan).end();
    ended.expect(code);
    let results = scene.results();
    let status = results.verdicts()["status"].as_str().unwrap().to_owned();
    let rows = results.rows().into_iter().filter(|row| row.metric == "bandwidth").collect();
    Judged { rows, said: ended.said, page: results.report(), status }
}

/// Demands that every row of the pairs that touch `host` is doubted, with all of `words` in one of its reasons.
#[track_caller]
fn named(judged: &Judged, host: &str, words: &[&str]) {
    let touching: Vec<&Row> = judged.rows.iter().filter(|row| row.touches(host)).collect();
    assert!(!touching.is_empty());
    for row in touching {
        let error = row.error.as_deref().unwrap_or("nothing speaks against it");
        let reasons = error.split(';').any(|reason| words.iter().all(|word| reason.contains(word)));
        assert!(reasons, "{} to {}: none of its reasons has {words:?}: {error}\n{}", row.src, row.dst, judged.said);
    }
    for word in words {
        assert!(judged.page.contains(word), "the report does not say `{word}`");
    }
    assert_ne!(judged.status, "pass");
}

#[test]
fn one_percent_of_loss() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        // At both ends, so that data and answers are lost.
        on(&lab, 1, "tc qdisc add dev eth1 root netem loss 1%");
        on(&lab, 2, "tc qdisc add dev eth1 root netem loss 1%");
        let scene = Scene::new();
        let judged = run(&scene, plan(&scene, &ssh(&lab), "lab[1-2]", ""), 3);
        // Which end counts it depends on the direction of what was lost.
        named(&judged, "lab2", &[" % of about "]);
        let is_contaminated = |row: &Row| row.error.as_deref().is_some_and(|error| error.starts_with("contaminated: "));
        assert!(judged.rows.iter().all(is_contaminated), "{:?}", judged.rows);
    });
}

#[test]
fn one_percent_of_loss_of_acknowledgements_alone() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        // The next acknowledgement stands for one that is lost: hardly anything is sent again.
        on(&lab, 2, "tc qdisc add dev eth1 root netem loss 1%");
        let scene = Scene::new();
        let plan = plan(&scene, &ssh(&lab), "lab[1-2]", "");
        // Some 500 acknowledgements a second here, and fewer on a busy machine: of those of 1.5 s so few are lost that they could be lost
        // by anything.
        let longer = std::fs::read_to_string(&plan).unwrap().replace("\"1500ms\"", "\"8s\"");
        let judged = run(&scene, scene.write("plan.toml", &longer), 3);
        named(&judged, "lab2", &["packets that left it", "did not arrive at lab1"]);
    });
}

#[test]
fn a_port_with_a_limited_rate() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        lab.expect(&["rate", "3", "2mbit"]);
        let scene = Scene::new();
        let more = "[[test.expect]]\nmetric = \"bandwidth\"\nwithin_percent_of_peers = 60";
        let judged = run(&scene, plan(&scene, &ssh(&lab), "lab[1-4]", more), 1);
        assert_eq!(judged.status, "fail");
        assert!(judged.page.contains("lab3") && judged.said.contains("lab3"), "{}", judged.said);
    });
}

#[test]
fn an_mtu_too_small_on_one_host() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        on(&lab, 2, "ip link set eth1 mtu 1500");
        let scene = Scene::new();
        let judged = run(&scene, plan(&scene, &ssh(&lab), "lab[1-2]", ""), 3);
        named(&judged, "lab2", &["lab2: the path MTU of rxe0 is 1024", "4096"]);
    });
}

/// Somebody else, who writes from lab1 to lab3 until this is dropped.
struct SecondFlow<'a> {
    lab: &'a Borrowed,
    _ends: [Background; 2],
}

impl<'a> SecondFlow<'a> {
    /// Returns once the flow is seen on lab1. It has no end of its own and is begun again when it fails: how long a run
    /// takes depends on how busy this machine is.
    fn start(lab: &'a Borrowed) -> Self {
        let end = |host: &str, server: &str| {
            let command = format!(
                "echo $$ >/run/second-flow; while :; do ib_write_bw -F -d rxe0 -x 1 -D 600 -u 18 {server}; sleep 0.2; done"
            );
            Background::start(&mut tool(&["ssh", host, &command]))
        };
        let flow = Self { lab, _ends: [end("3", ""), end("1", "10.79.0.3")] };
        let sent = || -> u64 {
            let said = lab.ssh(1, "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts");
            text(&said.stdout).parse().unwrap()
        };
        let (begun, before) = (Instant::now(), sent());
        while sent() < before + 500 {
            assert!(begun.elapsed() < Duration::from_secs(120), "LAB FAILURE: lab1 sends nothing to lab3");
            std::thread::sleep(Duration::from_millis(500));
        }
        flow
    }
}

impl Drop for SecondFlow<'_> {
    fn drop(&mut self) {
        for host in [1, 3] {
            self.lab.ssh(host, "kill $(cat /run/second-flow); pkill ib_write_bw");
        }
    }
}

#[test]
fn a_second_flow_on_the_same_nic() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let _flow = SecondFlow::start(&lab);
        let scene = Scene::new();
        let judged = run(&scene, plan(&scene, &ssh(&lab), "lab[1-2]", ""), 3);
        named(&judged, "lab1", &["lab1: rxe0 was busy before the run sent anything"]);
        named(&judged, "lab1", &["lab1: its NIC", "foreign traffic"]);
    });
}

#[test]
fn a_gid_of_the_wrong_type() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let scene = Scene::new();
        // Soft-RoCE has no RoCE v1: the agent of lab2 is told to take its GIDs for such.
        let script = format!(
            "host=$1; shift\n[ $host = lab2 ] && set -- env RAILGAUGE_FAULT=roce-v1 \"$@\"\n\
             exec ssh -F {} $host \"$(printf '%q ' \"$@\")\"\n",
            lab.ssh_config().display()
        );
        let wrapper = scene.write("start", &script);
        let launch = format!("via = \"command\"\ncommand = \"bash {} {{host}}\"", wrapper.display());
        let judged = run(&scene, plan(&scene, &launch, "lab[1-3]", ""), 3);
        assert_eq!(judged.status, "inconclusive");
        for row in &judged.rows {
            let error = row.error.as_deref().unwrap_or_default();
            let differ = error.contains("GID types differ") && error.contains("IB/RoCE v1") && error.contains("lab2");
            assert_eq!((row.touches("lab2"), differ), (row.value.is_none(), row.value.is_none()), "{row:?}");
        }
        assert!(judged.page.contains("GID types differ"));
    });
}

#[test]
fn one_flipped_bit() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let scene = Scene::new();
        let launch = format!("{}\nenv = {{ RAILGAUGE_FAULT = \"flip-bit\" }}", ssh(&lab));
        let judged = run(&scene, plan(&scene, &launch, "lab[1-2]", ""), 1);
        assert_eq!(judged.status, "fail");
        for row in &judged.rows {
            assert!(
                row.wrong > 0 && row.error.as_deref().is_some_and(|error| error.contains("not what was sent")),
                "{row:?}"
            );
        }
        assert!(judged.page.contains("wrong bytes"));
    });
}
