//! iWARP between two hosts: siw, the kernel's iWARP in software, whose connections are made by rdma_cm and by nothing else.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    lab::{self, Borrowed, borrow, text},
    railgauge::Scene,
};

/// In place of Soft-RoCE: two devices with one address cannot be told apart by rdma_cm.
const SIW: &str = "lab-module siw && rdma link del rxe0 && rdma link del rxe1 && \
                   rdma link add siw0 type siw netdev eth1 && chmod 666 /dev/infiniband/*";
const SOFT_ROCE: &str = "rdma link del siw0 && rdma link add rxe0 type rxe netdev eth1 && \
                         rdma link add rxe1 type rxe netdev eth2 && chmod 666 /dev/infiniband/*";

/// Waits until more has come to a host than the words in front of a measurement and what is verified before it.
const MOVING: &str = "of=/sys/class/net/eth1/statistics/rx_bytes; was=$(cat $of); for i in $(seq 300); do \
                      [ $(($(cat $of) - was)) -gt 1000000 ] && exit; sleep 0.1; done; exit 1";

/// The lab with siw in both hosts; `None`, reported, where the module could not be built for the guests.
fn with_siw() -> Option<Borrowed> {
    let lab = borrow()?;
    let missing = lab.ssh(1, "cat /lab/later/siw/missing");
    if missing.status.success() {
        // The words that a user gets.
        let said = text(&lab.ssh(1, "lab-module siw").stderr);
        assert!(said.contains(&text(&missing.stdout)), "{said}");
        lab::skipped(&said);
        return None;
    }
    for host in [1, 2] {
        lab.change(host, SIW, SOFT_ROCE);
    }
    Some(lab)
}

/// A plan of these tests, which sleep for completions unless they say otherwise: each host has one processor.
fn plan(lab: &Borrowed, scene: &Scene, deadline: &str, tests: &str) -> PathBuf {
    let text = format!(
        r#"
        name = "iwarp"
        [launch]
        via = "ssh"
        timeout = "60s"
        [launch.ssh]
        config = "{}"
        [hosts]
        names = ["lab[1-2]"]
        devices = ["siw0"]
        [defaults]
        warm_up = "1ms"
        deadline = "{deadline}"
        [defaults.knobs]
        completion = "events"
        [localise]
        waive = ["all"]
        {tests}
        "#,
        lab.ssh_config().display()
    );
    scene.write("plan.toml", &text)
}

/// What a run has in a host: queue pairs of siw that a process owns (`comm` of the kernel's own is in brackets), and agents.
fn there(lab: &Borrowed, host: u32) -> [Vec<String>; 2] {
    // Agents by the name of their file: what `comm` shows is the name of a thread. One connection: hosts that measure are busy.
    let output =
        lab.ssh(host, "rdma resource show qp && echo agents: && { pgrep -f -a /[r]ailgauge/use- || [ $? = 1 ]; }");
    let said = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "lab{host}: {said:?}");
    let (queue_pairs, agents) = said.0.split_once("agents:").unwrap_or((&said.0, ""));
    let lines = |of: &str| of.trim().lines().map(str::to_owned).collect::<Vec<_>>();
    let mut queue_pairs = lines(queue_pairs);
    queue_pairs.retain(|line| line.contains("siw0") && !line.contains("comm ["));
    [queue_pairs, lines(agents)]
}

/// That a run has both in both hosts: what [`nothing_is_left`] looks for is what there is during one.
#[track_caller]
fn a_run_is_there(lab: &Borrowed) {
    for host in [1, 2] {
        let [queue_pairs, agents] = there(lab, host);
        // The measured one and the one for words.
        assert!(queue_pairs.len() >= 2 && !agents.is_empty(), "lab{host}: {queue_pairs:?} {agents:?}");
    }
}

/// That nothing of a run is left in both hosts.
#[track_caller]
fn nothing_is_left(lab: &Borrowed) {
    for host in [1, 2] {
        assert_eq!(there(lab, host), [[""; 0]; 2], "lab{host}");
    }
}

#[test]
fn every_operation_of_iwarp() {
    lab::sound(|| {
        let Some(lab) = with_siw() else { return };
        let scene = Scene::new();
        let test = |name: &str, op: &str, metric: &str, more: &str| {
            format!("[[test]]\nname = {name:?}\nop = {op:?}\nmetric = {metric:?}\n{more}\n")
        };
        let (window, count) = ("measure = \"300ms\"", "sizes = 64\nmeasure = \"50 iterations\"");
        let bandwidth = ["write", "read", "send"]
            .map(|op| test(&format!("{op}-bw"), op, "bandwidth", &format!("sizes = [\"4KiB\", \"1MiB\"]\n{window}")));
        let latency = ["read", "send"].map(|op| test(&format!("{op}-lat"), op, "latency", count));
        let other = [
            test("polled", "write", "latency", &format!("{count}\nknobs = {{ completion = \"poll\" }}")),
            test(
                "both-ways",
                "write",
                "bandwidth",
                &format!("sizes = \"16KiB\"\nqps = 4\nbidirectional = true\n{window}"),
            ),
            test("named", "send", "bandwidth", &format!("sizes = 1024\n{window}\nknobs = {{ joining = \"rdma-cm\" }}")),
        ];
        let tests = [bandwidth.concat(), latency.concat(), other.concat()].concat();
        let ended = scene.start(&plan(&lab, &scene, "60s", &tests)).end();
        let results = scene.results();
        let (verdicts, rows) = (results.verdicts(), results.rows());
        // Everything was measured and verified, and what was not sent again is a pass.
        let again = results.sent_again();
        let status = if again.is_empty() { ("pass", 0) } else { ("inconclusive", 3) };
        assert_eq!(verdicts["status"], status.0, "{verdicts:#}");
        assert_eq!(verdicts["troubles"].as_array().unwrap().len(), again.len(), "{verdicts:#}");
        ended.expect(status.1);
        ended.says("Soft-iWARP");
        assert!(!ended.said.contains("not been tested with this driver"), "{}", ended.said);
        assert!(rows.len() >= 11, "{rows:?}");
        for row in &rows {
            assert!(row.value.is_some_and(f64::is_finite), "{row:?}");
            assert_eq!(row.error.is_some(), again.contains(&row.case), "{row:?}");
            assert!(row.verified > 0 && row.wrong == 0, "{row:?}");
            assert_eq!((row.transport.as_str(), row.link_layer.as_str()), ("verbs-rc", "iwarp"), "{row:?}");
            assert_eq!((row.src_device.as_str(), row.dst_device.as_str()), ("siw0", "siw0"), "{row:?}");
            // An emulation has no rate, though its port shows one.
            assert_eq!(row.ceiling, None, "{row:?}");
        }
        for outcome in results.outcomes() {
            let link = &outcome["link"];
            assert_eq!((&link["software"], &link["rate_gbps"]), (&Value::Bool(true), &Value::Null), "{outcome}");
            assert_eq!((&link["settings"]["joining"], &link["settings"]["driver"]), (&"rdma-cm".into(), &"siw".into()));
            // siw counts nothing; what passed the interface below is TCP with all bytes that were measured and their headers.
            let (moved, counters) = (outcome["result"]["Ok"]["initiator"]["moved"].as_u64(), &outcome["result"]["Ok"]);
            let counters = [&counters["from_counters"], &counters["to_counters"]].map(|of| of.as_object().unwrap());
            assert!(counters.iter().all(|of| of.keys().all(|name| !name.starts_with("port/"))), "{outcome}");
            let passed = counters.map(|of| of["netdev/tx_bytes"].as_u64().unwrap());
            assert!(passed.iter().sum::<u64>() >= moved.unwrap_or(0), "{moved:?} bytes of {passed:?}: {outcome}");
        }
        let facts: Value = serde_json::from_str(&lab::read(&results.path("facts.json"))).unwrap();
        for host in ["lab1", "lab2"] {
            let device = &facts[host]["rdma"][0];
            assert_eq!((&device["name"], &device["kind"]), (&"siw0".into(), &"RNIC".into()), "{device}");
            assert_eq!((&device["driver"], &device["software"]), (&"siw".into(), &true.into()), "{device}");
            assert_eq!(
                (&device["ports"][0]["netdev"], &device["ports"][0]["rate_gbps"]),
                (&"eth1".into(), &Value::Null)
            );
        }
        nothing_is_left(&lab);
    });
}

/// A test named `name` of 1 KiB for `measure`.
fn test_for(name: &str, measure: &str, words: &str) -> String {
    format!("[[test]]\nname = {name:?}\nsizes = 1024\nmeasure = {measure:?}\n{words}\n")
}

#[test]
fn what_iwarp_lacks_fails_in_words() {
    lab::sound(|| {
        let Some(lab) = with_siw() else { return };
        let scene = Scene::new();
        let test = |name: &str, words: &str| test_for(name, "1s", words);
        let tests = [
            test("ud", "op = \"send\"\nservice = \"ud\"\nmetric = \"bandwidth\""),
            test("uc", "op = \"write\"\nservice = \"uc\"\nmetric = \"bandwidth\""),
            test("exchange", "op = \"write\"\nmetric = \"bandwidth\"\nknobs = { joining = \"exchange\" }"),
            test("group", "op = \"all_reduce\"\ntransport = \"verbs\"\nmetric = \"bandwidth\""),
            "[[test]]\nname = \"atomic\"\nop = \"atomic_fadd\"\nmetric = \"latency\"\nmeasure = \"20 iterations\"\n"
                .into(),
            test("immediate", "op = \"write_imm\"\nmetric = \"latency\""),
            test("told", "op = \"write\"\nmetric = \"latency\"\nknobs = { write_latency = \"immediate\" }"),
            test("both-ways", "op = \"send\"\nmetric = \"bandwidth\"\nbidirectional = true"),
            test("whole", "op = \"write\"\nmetric = \"bandwidth\""),
        ];
        let ended = scene.start(&plan(&lab, &scene, "20s", &tests.concat())).end();
        assert_ne!(ended.status.code(), Some(0), "{}", ended.said);
        ended.says("iWARP, which has no datagrams, unreliable connections or atomics: ud, uc, atomic");
        ended.says("joined by rdma_cm only: exchange, group");
        let rows = scene.results().rows();
        for (name, words) in [
            ("ud", "iWARP has reliable connections only"),
            ("uc", "iWARP has reliable connections only"),
            ("exchange", "iWARP joins queue pairs by rdma_cm only"),
            ("group", "iWARP: its queue pairs are connected by rdma_cm only, and those of collectives are not"),
            ("atomic", "no atomics"),
            ("immediate", "siw has no writes with immediate data"),
            ("told", "siw has no writes with immediate data, by which the latency of write would be taken"),
            ("both-ways", "not measured in both directions at once"),
        ] {
            let rows: Vec<_> = rows.iter().filter(|row| row.test == name).collect();
            assert!(!rows.is_empty(), "{name}");
            for row in rows {
                assert!(row.value.is_none() && row.error.as_ref().is_some_and(|said| said.contains(words)), "{row:?}");
            }
        }
        assert!(rows.iter().any(|row| row.test == "whole" && row.value.is_some()), "{rows:?}");
        nothing_is_left(&lab);
    });
}

#[test]
#[ignore = "slow: TCP goes on until the time of its case is over"]
fn a_cut_link_ends_a_case_of_iwarp() {
    lab::sound(|| {
        let Some(lab) = with_siw() else { return };
        let scene = Scene::new();
        let words = "op = \"read\"\nmetric = \"bandwidth\"";
        let tests = [test_for("whole", "1s", words), test_for("cut", "30s", words)];
        let mut running = scene.start(&plan(&lab, &scene, "20s", &tests.concat()));
        running.wait_for_outcomes(1);
        // Messages are under way: TCP would try for a quarter of an hour.
        let moving = lab.ssh(1, MOVING);
        assert!(moving.status.success(), "nothing moves: {}", text(&moving.stderr));
        a_run_is_there(&lab);
        lab.expect(&["link", "2", "down"]);
        let ended = running.end();
        assert_ne!(ended.status.code(), Some(0), "{}", ended.said);
        // Whatever was under way when the link was cut: TCP goes on trying, so it is time that runs out.
        let (planned, outcomes) = (scene.results().planned_cases(), scene.results().outcomes());
        let is_cut = |outcome: &&Value| planned[&outcome["case"].as_u64().unwrap()]["test"] == "cut";
        let cut: Vec<_> = outcomes.iter().filter(is_cut).collect();
        assert!(!cut.is_empty(), "{outcomes:?}");
        assert!(cut.iter().all(|outcome| outcome["result"]["Err"]["kind"] == "deadline"), "{cut:?}");
        nothing_is_left(&lab);
    });
}
