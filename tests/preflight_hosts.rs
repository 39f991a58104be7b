//! Whole hosts judged: the documents in tests/hosts, which the agent's tests make from texts (agent/tests/hosts).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Instant,
};

use railgauge_frame::Parquet;
use railgauge_model::{
    journal::{
        event::{Event, Line},
        line,
    },
    plan::{self, Plan},
};
use railgauge_preflight::{CHECKS, Cluster, Finding, Severity, drift, judge};
use railgauge_report::write;
use railgauge_wire::{
    facts::{GpuFabric, HostFacts},
    unit::{Bytes, Nanoseconds, NanosecondsI64},
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
const EXCHANGE: &str = "[[test]]\nname = \"exchange\"\nop = \"write\"\nmetric = \"bandwidth\"\n\
                        knobs = { joining = \"exchange\" }\n";
const ALL_REDUCE: &str = "[[test]]\nname = \"all-reduce\"\nop = \"all_reduce\"\nmetric = \"bandwidth\"\n\
                          transport = \"verbs\"\n";
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

/// Real NICs of other makers, bonds and virtual functions, as they should be.
#[test]
fn healthy_hosts_of_other_devices_give_no_alarm() {
    for name in ["bond", "bnxt", "irdma", "ionic", "vf", "softroce-old", "unused"] {
        let cluster = four(name);
        let found = judge(&planned(4, &[WRITE, LATENCY].concat()), &cluster);
        assert!(serious(&found).is_empty(), "{name}: {:#?}", serious(&found));
        assert_eq!(drift(&cluster.facts), [], "{name}");
    }
}

#[test]
fn a_bond_with_a_member_down_is_named_with_it() {
    let cluster = cluster(vec![host("bond"), host("bond-degraded"), host("bond"), host("bond")]);
    let found = judge(&planned(4, WRITE), &cluster);
    assert!(serious(&found).iter().all(|finding| finding.hosts == ["n2"]), "{:#?}", serious(&found));
    let what: Vec<(&str, &str)> =
        serious(&found).iter().map(|finding| (finding.check.as_str(), finding.what.as_str())).collect();
    assert_eq!(
        what,
        [
            ("bond", "mlx5_bond_0: eth1 of bond0 (802.3ad) is down: 1 of 2 members carry traffic"),
            // Settings of Ethernet are read from the members.
            ("ecn", "mlx5_bond_0: eth0 of bond0: ECN notification is off for priority 4, which has PFC"),
            ("ecn", "mlx5_bond_0: eth0 of bond0: ECN reaction is off for priority 4, which has PFC"),
            ("link-rate", "mlx5_bond_0: the link runs at 200 Gb/s, others have 400 Gb/s"),
            ("pfc", "mlx5_bond_0: eth0 of bond0: PFC is on for priority 4, others have priority 3"),
        ]
    );
}

/// The plan names no devices.
#[test]
fn ports_that_no_run_uses_are_no_failure() {
    let found = judge(&planned(4, WRITE), &four("unused"));
    assert!(serious(&found).is_empty(), "{:#?}", serious(&found));
    let told: Vec<&str> =
        found.iter().filter(|finding| finding.check == "port-state").map(|finding| finding.what.as_str()).collect();
    assert_eq!(told, ["mlx5_4: the port is DOWN, physically Disabled, as on most hosts: no test uses it"]);
    // One that is down on one host only was meant to be used.
    let mut hosts = vec![host("unused"); 4];
    hosts[2].rdma[0].ports[0].state = Some("DOWN".into());
    let found = judge(&planned(4, WRITE), &cluster(hosts));
    let names: Vec<(&str, &[String])> =
        serious(&found).iter().map(|finding| (finding.check.as_str(), finding.hosts.as_slice())).collect();
    assert_eq!(names, [("port-state", ["n3".to_owned()].as_slice())]);
    // One that the plan names is used.
    let named = "[[test]]\nname = \"write\"\nop = \"write\"\nmetric = \"bandwidth\"\n";
    let text = format!(
        "name = \"t\"\nlaunch = {{ via = \"local\" }}\n[hosts]\nnames = [\"n[1-4]\"]\ndevices = [\"mlx5_0\", \"mlx5_4\"]\n{named}"
    );
    let plan = plan::parse("t.toml", &text, Path::new(".")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
    let found = judge(&plan, &four("unused"));
    assert!(
        found.iter().any(|finding| finding.check == "port-state" && finding.severity == Severity::Failure),
        "{found:#?}"
    );
}

#[test]
fn mtus_of_ipoib_are_nothing_to_verbs() {
    let mut hosts = vec![host("infiniband"); 4];
    for interface in &mut hosts[1].interfaces {
        interface.mtu = Some(2044);
    }
    let found = judge(&planned(4, WRITE), &cluster(hosts));
    assert!(serious(&found).is_empty(), "{:#?}", serious(&found));
}

#[test]
fn saturated_counters_are_named_with_their_remedy() {
    let found = judge(&planned(4, WRITE), &four("saturated"));
    let of_check: Vec<&Finding> = found.iter().filter(|finding| finding.check == "saturated-counters").collect();
    let what: Vec<&str> = of_check.iter().map(|finding| finding.what.as_str()).collect();
    assert_eq!(
        what,
        [
            "mlx5_1: counters/link_downed, counters/port_xmit_discards have reached the largest value",
            "mlx5_2: counters/local_link_integrity_errors has reached the largest value",
        ]
    );
    assert!(of_check[0].remedy.text().contains("perfquery -C mlx5_1 -P 1 -R"), "{}", of_check[0].remedy.text());
}

/// GPU and NIC share a switch: what the root port does with traffic of others is nothing to them.
#[test]
fn redirection_counts_only_between_gpu_and_nic() {
    let with = |place: usize| {
        let mut hosts = vec![host("roce8"); 4];
        hosts[0].rdma[0].function.bridges[place].acs = Some(vec!["request redirect".into()]);
        let found = judge(&planned(4, NCCL), &cluster(hosts));
        found.iter().filter(|finding| finding.check == "acs").map(|finding| finding.what.clone()).collect::<Vec<_>>()
    };
    assert_eq!(with(0), Vec::<String>::new());
    assert_eq!(
        with(2),
        ["mlx5_0: ACS redirects on the bridge 0000:17:01.0 between it and the GPUs (request redirect)"]
    );
    // The GPU's own port of the switch.
    let mut hosts = vec![host("roce8"); 4];
    hosts[0].gpus[0].function.bridges[2].acs = Some(vec!["upstream forwarding".into()]);
    let found = judge(&planned(4, NCCL), &cluster(hosts));
    assert!(found.iter().any(|finding| finding.what.contains("0000:17:00.0 between it and the GPUs")), "{found:#?}");
}

/// As the agent registers it: once, and beyond the cache four times as much as that on each side.
#[test]
fn locked_memory_is_asked_for_as_it_is_registered() {
    let short = |tests: &str| {
        let mut hosts = vec![host("infiniband"); 4];
        // On each of four rails two areas of 8 MiB with a page for the walk and a line, and the queues.
        hosts[0].memlock_bytes = Some(Bytes(4 * 2 * ((8 << 20) + (8 << 10)) + (1 << 20)));
        let found = judge(&planned(4, tests), &cluster(hosts));
        found.iter().any(|finding| finding.check == "locked-memory")
    };
    let sizes = "sizes = [\"8MiB\"]\n";
    assert!(!short(&format!("{WRITE}{sizes}knobs = {{ relaxed_ordering = true }}\n")));
    assert!(!short(&format!("{LATENCY}{sizes}")));
    assert!(!short(&format!("{LATENCY}{sizes}knobs = {{ write_latency = \"immediate\", relaxed_ordering = true }}\n")));
    assert!(short(&format!("{WRITE}{sizes}qps = 2\n")));
    assert!(short(&format!("{WRITE}{sizes}knobs = {{ footprint = \"dram\" }}\n")));
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
        "gpu-fabric",
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
fn tests_whose_queue_pairs_rdma_cm_cannot_join_are_named() {
    let tests = [WRITE, EXCHANGE, ALL_REDUCE].concat();
    let mut hosts = four("erdma");
    // eRDMA in compatibility mode exchanges, but collectives have to ask for it.
    let found = judge(&planned(4, &tests), &hosts);
    let [finding] = serious(&found)[..] else { panic!("{found:#?}") };
    assert_eq!((finding.check.as_str(), finding.severity), ("iwarp", Severity::Failure));
    assert!(finding.what.ends_with("joined by rdma_cm only: all-reduce"), "{}", finding.what);
    for host in hosts.facts.values_mut() {
        host.rdma.iter_mut().for_each(|device| device.driver = Some("siw".into()));
    }
    let found = judge(&planned(4, &tests), &hosts);
    let of_check = serious(&found).into_iter().filter(|finding| finding.check == "iwarp");
    let named: Vec<&str> = of_check.map(|finding| finding.what.as_str()).collect();
    assert!(!named.is_empty() && named.iter().all(|what| what.ends_with(": exchange, all-reduce")), "{named:?}");
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

#[test]
fn gpus_that_are_not_well_in_their_nvlink_fabric() {
    let mut hosts = vec![host("roce8"); 4];
    let mut change = |host: usize, gpu: usize, change: fn(&mut GpuFabric)| {
        change(hosts[host].gpus[gpu].fabric.as_mut().unwrap());
    };
    change(1, 2, |fabric| fabric.error = Some(999));
    change(2, 0, |fabric| fabric.troubles = vec!["degraded bandwidth".into()]);
    // Two parts of one cluster: no NVLink between them.
    for gpu in 0..8 {
        change(3, gpu, |fabric| fabric.cluster = Some("50f12b3c-0000-4000-8000-00000000ab01".into()));
    }
    change(3, 5, |fabric| fabric.clique = 1);
    let found = judge(&planned(4, NCCL), &cluster(hosts));
    let found = serious(&found);
    assert!(found.iter().all(|finding| finding.check == "gpu-fabric"), "{found:#?}");
    let of = |host: &str| {
        let mut of = found.iter().filter(|finding| finding.hosts == [host]);
        let only = of.next().unwrap();
        assert!(of.next().is_none(), "{found:#?}");
        only.what.as_str()
    };
    let has = |host, words: [&str; 2]| assert!(words.iter().all(|word| of(host).contains(word)), "{}", of(host));
    has("n2", ["GPU 2", "NVML error 999"]);
    has("n3", ["GPU 0", "degraded bandwidth"]);
    has("n4", ["-00000000ab01.0", "-00000000ab01.1"]);
    // A host whose driver tells nothing of it is no trouble, and is said where the check is escalated.
    let mut silent = vec![host("roce8"); 4];
    silent[0].gpus.iter_mut().for_each(|gpu| gpu.fabric = None);
    assert!(serious(&judge(&planned(4, NCCL), &cluster(silent))).is_empty());
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
fn the_table_of_what_was_tested_counts_the_checks() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/dev/proven.md");
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
    let written = write(folder.path(), &Parquet).unwrap();
    let drawn = started.elapsed();
    let page = std::fs::read_to_string(written.page).unwrap();
    for words in ["GPUs and NICs", "n[1-200,202-256]", "mlx5_3: PFC is on for priority 4", "Different between hosts"] {
        assert!(page.contains(words), "{words}");
    }
    let (judged, drawn) = (judged.as_secs_f64(), drawn.as_secs_f64());
    println!(
        "256 hosts: judged in {judged:.3} s, judged and drawn in {drawn:.3} s, {} findings, {} facts drift",
        found.len(),
        rows.len()
    );
}
