//! Whole hosts judged: the documents in tests/hosts, which the agent's tests make from texts (agent/tests/hosts).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Instant,
};

use railgauge::{
    preflight::{CHECKS, Cluster, Finding, Severity, drift, judge},
    report::write,
};
use railgauge_model::{
    journal::{
        event::{Event, Line},
        line,
    },
    plan::{self, Plan},
};
use railgauge_wire::{
    facts::HostFacts,
    unit::{Nanoseconds, NanosecondsI64},
};

fn host(name: &str) -> HostFacts {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/hosts/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A plan on `hosts` hosts `n1`, `n2`, …, with these tests.
fn planned(hosts: usize, tests: &str) -> Plan {
    let text =
        format!("name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"n[1-{hosts}]\"] }}\n{tests}");
    plan::parse("t.toml", &text, Path::new(".")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0
}

const WRITE: &str = "[[test]]\nname = \"write\"\nop = \"write\"\nmetric = \"bandwidth\"\n";
const LATENCY: &str = "[[test]]\nname = \"latency\"\nop = \"write\"\nmetric = \"latency\"\n";
const ATOMIC: &str = "[[test]]\nname = \"atomic\"\nop = \"atomic_fadd\"\nmetric = \"latency\"\n";
const NCCL: &str = "[[test]]\nname = \"nccl\"\nop = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\nmemory = \
                    \"cuda\"\nranks_per_host = 8\n";

/// A cluster of these hosts, each with addresses of its own as real ones have.
fn cluster(hosts: Vec<HostFacts>) -> Cluster {
    let facts: BTreeMap<String, HostFacts> = (1..).map(|i| format!("n{i}")).zip(hosts).collect();
    let clocks = facts.keys().map(|host| (host.clone(), NanosecondsI64(1_000_000))).collect();
    Cluster { facts, clocks }
}

fn four(name: &str) -> Cluster {
    cluster(vec![host(name); 4])
}

fn serious(found: &[Finding]) -> Vec<&Finding> {
    found.iter().filter(|finding| finding.severity > Severity::Notice).collect()
}

#[test]
fn healthy_clusters_give_no_alarm() {
    for (name, tests) in [
        ("roce8", [WRITE, LATENCY, NCCL].concat()),
        ("infiniband", [WRITE, LATENCY, ATOMIC].concat()),
        ("erdma", [WRITE, LATENCY].concat()),
        ("softroce", [WRITE, LATENCY, ATOMIC].concat()),
    ] {
        let cluster = four(name);
        let found = judge(&planned(4, &tests), &cluster);
        assert!(serious(&found).is_empty(), "{name}: {:#?}", serious(&found));
        assert_eq!(drift(&cluster.facts), [], "{name}");
    }
    // The best of them has nothing to be told at all.
    assert_eq!(judge(&planned(4, &[WRITE, LATENCY, NCCL].concat()), &four("roce8")), []);
}

#[test]
fn every_fault_of_a_broken_host_is_found_and_named() {
    let mut cluster = cluster(vec![host("roce8"), host("roce8"), host("broken"), host("roce8")]);
    cluster.clocks.insert("n3".into(), NanosecondsI64(-3_000_000_000));
    let plan =
        planned(4, &[WRITE, LATENCY, NCCL, "[defaults.knobs]\nhuge_pages = true\ntraffic_class = 104\n"].concat());
    let found = judge(&plan, &cluster);
    let names: BTreeSet<&str> = found.iter().map(|finding| finding.check.as_str()).collect();
    let expected = [
        "acs",
        "clock",
        "dscp-map",
        "ecn",
        "firmware",
        "gid",
        "gid-table",
        "governor",
        "gpu-busy",
        "gpu-clocks",
        "gpu-count",
        "gpu-memory",
        "gpu-nvlink",
        "gpu-pcie",
        "gpu-persistence",
        "gpu-xid",
        "huge-pages",
        "iommu",
        "link-rate",
        "locked-memory",
        "max-read-request",
        "mtu",
        "pause-frames",
        "pcie-errors",
        "pcie-link",
        "pfc",
        "port-state",
        "qos-trust",
    ];
    assert_eq!(names, expected.into());
    for finding in &found {
        assert_eq!(finding.hosts, ["n3"], "{finding:#?}");
        for text in [&finding.what, &finding.meaning, &finding.remedy.text(), &finding.source] {
            assert!(!text.is_empty(), "{finding:#?}");
        }
    }
    let what = |check: &str| found.iter().find(|finding| finding.check == check).unwrap().what.as_str();
    assert_eq!(what("mtu"), "mlx5_1: MTU of rail1 is 1500 (RDMA MTU 1024), others have 9000");
    assert_eq!(what("gpu-count"), "7 GPUs, others have 8");
    assert_eq!(what("pfc"), "mlx5_3: PFC is on for priority 4, others have priority 3");
    assert_eq!(what("firmware"), "mlx5_1: firmware 28.39.1002, others have 28.43.1014");
    let text = "GPU 7: Xid 79, 1 times since boot: pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
    assert_eq!(what("gpu-xid").replace("PCI 0000:da:00", "GPU 7"), text);
}

#[test]
fn devices_that_cannot_run_a_test_are_named() {
    let found = judge(&planned(4, &[WRITE, ATOMIC].concat()), &four("erdma"));
    let [finding] = serious(&found)[..] else { panic!("{found:#?}") };
    assert_eq!((finding.check.as_str(), finding.severity, finding.hosts.len()), ("iwarp", Severity::Failure, 4));
    assert!(finding.what.ends_with("or atomics: atomic"), "{}", finding.what);
}

#[test]
fn a_fabric_without_subnet_manager_and_another_partition() {
    let mut hosts = vec![host("infiniband"); 4];
    hosts[1].rdma[0].ports[0].subnet_manager = Some(0);
    hosts[2].rdma[1].ports[0].partitions = vec!["0x7fff".into()];
    hosts[3].rdma[2].ports[0].mtu = Some(2048);
    let found = judge(&planned(4, WRITE), &cluster(hosts));
    let names: Vec<(&str, &[String])> =
        serious(&found).iter().map(|finding| (finding.check.as_str(), finding.hosts.as_slice())).collect();
    let at = |host: &str| vec![host.to_owned()];
    let (two, three, four) = (at("n2"), at("n3"), at("n4"));
    assert_eq!(names, [("subnet-manager", &*two), ("mtu", &*four), ("partition", &*three)]);
}

#[test]
fn nics_that_cannot_reach_gpu_memory() {
    let mut hosts = vec![host("roce8"); 4];
    for host in &mut hosts {
        host.modules.remove("nvidia_peermem");
        host.modules.insert("nvidia".into(), "580.95.05".into());
        host.gpu_distances.retain(|row| row.device != "mlx5_0");
    }
    let plan = planned(4, NCCL);
    let found = judge(&plan, &cluster(hosts));
    let what: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
    assert_eq!(
        what,
        [
            "nvidia_peermem is not loaded, and the driver is not the open one, which supports dma-buf",
            "GPU 0: the nearest NIC of the plan is mlx5_1 (NODE)",
        ]
    );
}

/// docs/preflight.md lists every check as the code has it; with `UPDATE_DOCS=1` its table is written.
#[test]
fn the_document_lists_every_check() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/preflight.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (open, close) = ("<!-- checks -->\n", "<!-- end of checks -->");
    let (before, rest) = text.split_once(open).unwrap();
    let (table, after) = rest.split_once(close).unwrap();
    let mut wanted = "| check | reads | means | source |\n| --- | --- | --- | --- |\n".to_owned();
    for check in CHECKS {
        let cells = [check.rule.reads, check.rule.meaning, check.rule.source]
            .map(|cell| cell.replace('|', "\\|").replace('*', "\\*"));
        wanted += &format!("| `{}` | {} |\n", check.name, cells.join(" | "));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{open}{wanted}{close}{after}")).unwrap();
    } else {
        assert_eq!(table, wanted, "run the tests with UPDATE_DOCS=1");
    }
}

/// With `UPDATE_DOCS=1` the number is written.
#[test]
fn the_readme_counts_the_checks() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, after) = text.split_once(" checks |").unwrap();
    let words = before.trim_end_matches(|c: char| c.is_ascii_digit());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{words}{} checks |{after}", CHECKS.len())).unwrap();
    } else {
        assert_eq!(before[words.len()..], CHECKS.len().to_string(), "run the tests with UPDATE_DOCS=1");
    }
}

/// The journal of a run that ended behind its preflight.
fn journal(plan: &Plan, cluster: &Cluster) -> String {
    let started = Event::Started {
        run_id: "r".into(),
        plan: plan.name.clone(),
        plan_hash: String::new(),
        resolved: Box::new(plan.clone()),
        version: "0.1.0".into(),
        controller: String::new(),
        launcher: "local".into(),
    };
    let up = |(host, facts): (&String, &HostFacts)| Event::HostUp {
        host: host.clone(),
        facts: Box::new(facts.clone()),
        clock: Some((NanosecondsI64(0), Nanoseconds(50_000))),
        wall: cluster.clocks.get(host).copied(),
    };
    let events = [started]
        .into_iter()
        .chain(cluster.facts.iter().map(up))
        .chain([Event::Planned { cases: Vec::new() }, Event::Finished]);
    let line = |event| Line { at: "2026-11-21T02:00:00.000Z".into(), event };
    let text =
        |(n, line): (u64, Line)| String::from_utf8(line::encode("r", n, &line.at, &line.event).unwrap()).unwrap();
    (1..).zip(events.map(line)).map(text).collect()
}

/// 256 hosts of eight GPUs and eight NICs, one of them broken; prints how long judging and drawing take.
#[test]
fn two_hundred_and_fifty_six_hosts_judged_and_drawn() {
    let mut hosts = vec![host("roce8"); 256];
    hosts[200] = host("broken");
    let (plan, cluster) = (planned(256, &[WRITE, LATENCY, NCCL].concat()), cluster(hosts));
    let started = Instant::now();
    let found = judge(&plan, &cluster);
    let rows = drift(&cluster.facts);
    let judged = started.elapsed();
    assert!(!found.is_empty() && found.iter().all(|finding| finding.hosts == ["n201"]), "{found:#?}");
    assert!(rows.iter().all(|row| row.decided && row.holders == 255));

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("records.jsonl"), journal(&plan, &cluster)).unwrap();
    let started = Instant::now();
    let written = write(folder.path()).unwrap();
    let drawn = started.elapsed();
    let page = std::fs::read_to_string(written.page).unwrap();
    for words in ["GPUs and NICs", "n[1-200,202-256]", "mlx5_3: PFC is on for priority 4", "Not the same on every host"]
    {
        assert!(page.contains(words), "{words}");
    }
    let (judged, drawn) = (judged.as_secs_f64(), drawn.as_secs_f64());
    println!(
        "256 hosts: judged in {judged:.3} s, judged and drawn in {drawn:.3} s, {} findings, {} facts drift",
        found.len(),
        rows.len()
    );
}
