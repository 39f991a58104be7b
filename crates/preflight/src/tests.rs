use std::collections::BTreeMap;

use railgauge_model::plan::{
    Plan,
    model::{Launcher, Slurm},
};
use railgauge_wire::{
    Bytes, Gid, GigabitsPerSecond, Gpu, HostFacts, Interface, MemoryFaults, NanosecondsI64, RdmaDevice, RdmaPort, Xid,
    facts::{GPUS, IOMMUS, LIMITS},
};

use super::*;

mod cabling;
mod containers;
mod gpus;
mod link_errors;
mod locked_memory;

fn host() -> HostFacts {
    HostFacts {
        kernel: "6.12.0".into(),
        rdma: vec![RdmaDevice {
            name: "mlx5_0".into(),
            driver: Some("mlx5_core".into()),
            firmware: Some("28.43.1014".into()),
            pcie: Some((32.0, 16)),
            pcie_max: Some((32.0, 16)),
            ports: vec![RdmaPort {
                number: 1,
                state: Some("ACTIVE".into()),
                link_layer: Some("Ethernet".into()),
                mtu: Some(4096),
                netdev: Some("eth1".into()),
                gids: vec![Gid {
                    index: 3,
                    gid: "0000:0000:0000:0000:0000:ffff:0a4d:0001".into(),
                    kind: Some("RoCE v2".into()),
                    netdev: Some("eth1".into()),
                }],
                ..Default::default()
            }],
            ..Default::default()
        }],
        interfaces: vec![Interface { name: "eth1".into(), mtu: Some(9000), ..Default::default() }],
        ..Default::default()
    }
}

fn plan() -> Plan {
    planned("transport = \"verbs\"\n")
}

/// A plan of one test on four hosts, with further lines.
fn planned(more: &str) -> Plan {
    let text = format!(
        "name = \"t\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"gpu[1-4]\"]\n[[test]]\nop = \"write\"\nmetric = \
         \"bandwidth\"\n{more}"
    );
    railgauge_model::plan::parse("t.toml", &text, std::path::Path::new("."))
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
        .0
}

fn cluster(spoil: impl FnOnce(&mut HostFacts)) -> Cluster {
    let mut facts: BTreeMap<String, HostFacts> = (1..=4).map(|i| (format!("gpu{i}"), host())).collect();
    spoil(facts.get_mut("gpu3").expect("gpu3 is one of them"));
    Cluster { facts, clocks: BTreeMap::new() }
}

fn one(cluster: &Cluster) -> Finding {
    one_of(&plan(), cluster)
}

fn one_of(plan: &Plan, cluster: &Cluster) -> Finding {
    let found = judge(plan, cluster);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].hosts, ["gpu3"]);
    found[0].clone()
}

#[test]
fn equal_healthy_hosts_give_no_finding() {
    assert_eq!(judge(&plan(), &cluster(|_| {})), []);
    assert_eq!(drift(&cluster(|_| {}).facts), []);
}

#[test]
fn a_small_mtu_is_named_with_the_usual_one() {
    let found = one(&cluster(|facts| facts.interfaces[0].mtu = Some(1500)));
    assert_eq!((found.check.as_str(), found.severity), ("mtu", Severity::Warning));
    assert_eq!(found.what, "mlx5_0: MTU of eth1 is 1500 (RDMA MTU 4096), others have 9000");
}

#[test]
fn an_rdma_mtu_below_what_the_interface_carries_is_named() {
    let found = one(&cluster(|facts| facts.rdma[0].ports[0].mtu = Some(1024)));
    assert_eq!(found.what, "mlx5_0: RDMA MTU is 1024, eth1 with MTU 9000 would carry 4096");
    let mut small = cluster(|_| {});
    for facts in small.facts.values_mut() {
        (facts.interfaces[0].mtu, facts.rdma[0].ports[0].mtu) = (Some(1500), Some(1024));
    }
    assert_eq!(judge(&plan(), &small), [], "1500 carries 1024");
}

#[test]
fn a_port_that_is_down_is_a_failure() {
    let found = one(&cluster(|facts| facts.rdma[0].ports[0].state = Some("DOWN".into())));
    assert_eq!((found.check.as_str(), found.severity), ("port-state", Severity::Failure));
}

#[test]
fn gids_of_the_wrong_type_or_reach_are_named() {
    let found = one(&cluster(|facts| facts.rdma[0].ports[0].gids[0].kind = Some("IB/RoCE v1".into())));
    assert_eq!(found.what, "mlx5_0: it has only IB/RoCE v1 GIDs");
    let link_local = "fe80:0000:0000:0000:5054:00ff:fe77:0101";
    let found = one(&cluster(|facts| facts.rdma[0].ports[0].gids[0].gid = link_local.into()));
    assert_eq!(found.what, "mlx5_0: it has only link-local GIDs");
    let found = one(&cluster(|facts| facts.rdma[0].ports[0].gids.clear()));
    assert_eq!(found.severity, Severity::Failure);
}

#[test]
fn limits_slots_and_missing_devices_are_named() {
    let found = one(&cluster(|facts| facts.memlock_bytes = Some(Bytes::from_kib(64))));
    assert_eq!(found.check, "locked-memory");
    let found = one(&cluster(|facts| facts.rdma[0].pcie = Some((16.0, 16))));
    assert_eq!(found.what, "mlx5_0: PCIe 16 GT/s x16, but it supports 32 GT/s x16");
    let found = one(&cluster(|facts| facts.rdma.clear()));
    assert_eq!((found.check.as_str(), found.severity), ("device-count", Severity::Failure));
}

#[test]
fn few_processors_are_named_and_half_of_them_are_not() {
    let allow = |count| cluster(move |facts| (facts.cpu.threads, facts.processors_allowed) = (128, Some(count)));
    let found = one(&allow(1));
    assert_eq!((found.check.as_str(), found.severity), ("cpu-mask", Severity::Warning));
    assert_eq!(found.what, "the agent may run on 1 of 128 processors");
    assert_eq!(found.remedy.id, "cpu-mask");
    assert_eq!(one(&allow(64)).severity, Severity::Notice);
}

#[test]
fn limits_of_a_step_of_slurm_are_those_of_slurmd() {
    let mut plan = planned("sizes = [\"1 MiB\"]\n");
    plan.launch.via = Launcher::Slurm(Slurm::default());
    let found = one_of(&plan, &cluster(|facts| facts.memlock_bytes = Some(Bytes(64 << 10))));
    assert_eq!(found.remedy.id, "slurm-locked-memory");
    let few = cluster(|facts| (facts.cpu.threads, facts.processors_allowed) = (128, Some(1)));
    assert_eq!(one_of(&plan, &few).remedy.id, "slurm-processors");
}

#[test]
fn a_clock_that_is_off_is_named() {
    let mut cluster = cluster(|_| {});
    cluster.clocks = [("gpu1", 40_000_000), ("gpu3", 3_020_000_000)]
        .map(|(host, offset)| (host.to_owned(), NanosecondsI64(offset)))
        .into();
    assert_eq!(one(&cluster).what, "its clock differs from the controller's by +3.0 s");
}

#[test]
fn drift_names_the_majority_and_who_differs() {
    let found = drift(&cluster(|facts| facts.rdma[0].firmware = Some("28.39.1002".into())).facts);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].fact.as_str(), found[0].majority.as_str(), found[0].holders),
        ("mlx5_0 firmware", "28.43.1014", 3)
    );
    assert_eq!(found[0].others, [("gpu3".to_owned(), "28.39.1002".to_owned())].into());
    assert!(found[0].decided);
}

#[test]
fn what_changed_between_two_looks_is_named_once_for_all_hosts() {
    let before = cluster(|_| {}).facts;
    let mut after = before.clone();
    for name in ["gpu2", "gpu3"] {
        after.get_mut(name).expect("it is one of them").rdma[0].firmware = Some("28.39.1002".into());
    }
    after.get_mut("gpu4").expect("it is one of them").rdma[0].firmware = None;
    after.remove("gpu1");
    let change = |after: Option<&str>, hosts: &[&str]| Change {
        fact: "mlx5_0 firmware".into(),
        before: Some("28.43.1014".into()),
        after: after.map(str::to_owned),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
    };
    assert_eq!(between(&before, &after), [change(None, &["gpu4"]), change(Some("28.39.1002"), &["gpu2", "gpu3"])]);
    assert_eq!(between(&before, &before), []);
}

#[test]
fn plans_name_every_check_there_is() {
    let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(names, railgauge_model::plan::CHECKS);
    assert!(names.is_sorted(), "{names:?}");
}

#[test]
fn what_the_plan_wants_comes_before_what_others_have() {
    let plan = planned("[preflight]\nmtu = 9000\nfirmware = { mlx5_core = \"28.43.1014\" }\n");
    assert_eq!(judge(&plan, &cluster(|_| {})), []);
    let found = one_of(&plan, &cluster(|facts| facts.interfaces[0].mtu = Some(1500)));
    assert_eq!(found.severity, Severity::Failure);
    assert_eq!(found.what, "mlx5_0: MTU of eth1 is 1500 (RDMA MTU 4096), the plan requires 9000");
    let found = one_of(&plan, &cluster(|facts| facts.rdma[0].firmware = None));
    assert_eq!((found.check.as_str(), found.severity), ("firmware", Severity::Warning));
}

#[test]
fn a_waived_check_is_a_notice_and_an_escalated_one_a_failure() {
    let small = cluster(|facts| facts.interfaces[0].mtu = Some(1500));
    let found = one_of(&planned("[preflight]\nwaive = [\"mtu\"]\n"), &small);
    assert_eq!((found.severity, found.waived), (Severity::Notice, true));
    let found = one_of(&planned("[preflight]\nescalate = \"mtu\"\n"), &small);
    assert_eq!((found.severity, found.waived), (Severity::Failure, false));
}

#[test]
fn names_that_hosts_tell_are_words_of_a_command_and_no_commands() {
    let evil = "eth1; touch $(id)";
    let spoiled = |facts: &mut HostFacts| {
        facts.interfaces[0].name = evil.to_owned();
        facts.rdma[0].ports[0].netdev = Some(evil.to_owned());
        facts.interfaces[0].mtu = Some(1500);
        facts.modules.insert(evil.to_owned(), "1".to_owned());
    };
    let found = judge(&plan(), &cluster(spoiled));
    let with = |command: &str| found.iter().map(|found| found.remedy.text()).find(|text| text.contains(command));
    for command in ["ip link set ", "modinfo "] {
        let remedy = with(command).unwrap_or_else(|| panic!("{command}: {found:#?}"));
        assert!(remedy.contains(&format!("{command}'{evil}'")), "{remedy}");
    }
}

#[test]
fn equal_findings_of_devices_and_hosts_are_one() {
    let mut cluster = cluster(|_| {});
    for facts in cluster.facts.values_mut() {
        let second = RdmaDevice { name: "mlx5_1".into(), ..facts.rdma[0].clone() };
        facts.rdma.push(second);
        for device in &mut facts.rdma {
            device.function.max_read_request = Some(512);
        }
    }
    let found = judge(&plan(), &cluster);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].hosts.len(), 4);
    assert_eq!(found[0].what, "mlx5_[0-1]: PCIe read requests are at most 512 B, recommended: 4096 B");
}

/// The one demand of a plan with these lines in `[preflight]`, on the cluster with one spoiled host.
fn demand(wanted: &str, spoil: impl FnOnce(&mut HostFacts)) -> Demand {
    let mut all = demands(&planned(&format!("transport = \"tcp\"\n[preflight]\n{wanted}\n")), &cluster(spoil), &[]);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

/// Hosts of the demand whose answer is this one.
fn with(demand: &Demand, state: Held) -> Vec<&str> {
    demand.holdings.iter().filter(|one| one.state == state).map(|one| one.host.as_str()).collect()
}

#[test]
fn every_wanted_value_is_answered_for_every_host_whatever_the_transport() {
    type Spoil = fn(&mut HostFacts);
    let without: Spoil = |facts| facts.rdma.clear();
    // What the healthy host has, one that has something else, and one that does not tell.
    let cases: &[(&str, Spoil, Option<Spoil>)] = &[
        ("mtu = 9000", |facts| facts.interfaces[0].mtu = Some(1500), Some(|facts| facts.interfaces[0].mtu = None)),
        ("rdma_ports = 1", without, None),
        ("kernel = \"6.12.0\"", |facts| facts.kernel = "6.1".into(), Some(|facts| facts.kernel.clear())),
        (
            "firmware = { mlx5_core = \"28.43.1014\" }",
            |facts| facts.rdma[0].firmware = Some("1".into()),
            Some(|facts| facts.rdma[0].firmware = None),
        ),
        ("firmware = { mlx5_0 = \"28.43.1014\" }", without, Some(|facts| facts.rdma[0].name = "mlx5_7".into())),
        ("iommu = \"off\"", |facts| facts.rdma[0].function.iommu = Some("DMA".into()), Some(|facts| facts.iommus = 1)),
    ];
    for (wanted, unmet, unread) in cases {
        assert_eq!(demand(wanted, |_| {}).held(), Held::Met, "{wanted}");
        let other = demand(wanted, unmet);
        assert_eq!((other.held(), with(&other, Held::Unmet)), (Held::Unmet, vec!["gpu3"]), "{wanted}: {other:#?}");
        if let Some(unread) = unread {
            let unknown = demand(wanted, unread);
            let found = (unknown.held(), with(&unknown, Held::Unread));
            assert_eq!(found, (Held::Unread, vec!["gpu3"]), "{wanted}: {unknown:#?}");
        }
    }
    // Nobody has these, or tells them.
    for (wanted, held) in [
        ("gpus = 8", Held::Unmet),
        ("link_rate = \"400 Gb/s\"", Held::Unread),
        ("pfc_priority = [3]", Held::Unread),
        ("trust = \"dscp\"", Held::Unread),
        ("max_read_request = 4096", Held::Unread),
        ("governor = \"performance\"", Held::Unread),
        ("gpu_driver = \"580\"", Held::Unmet),
        ("modules = { nvidia_peermem = \"*\" }", Held::Unmet),
        ("firmware = { nothing_is_called_so = \"1\" }", Held::Unread),
    ] {
        let found = demand(wanted, |_| {});
        assert_eq!((found.held(), with(&found, held).len()), (held, 4), "{wanted}: {found:#?}");
    }
}

#[test]
fn a_host_without_rdma_ports_has_nothing_that_is_wanted_of_them() {
    for wanted in ["link_rate = \"1 Gb/s\"", "pfc_priority = [3]", "max_read_request = 512", "iommu = \"off\""] {
        let found = demand(wanted, |facts| facts.rdma.clear());
        assert_eq!(with(&found, Held::Unmet), ["gpu3"], "{wanted}: {found:#?}");
    }
    // Its MTU is that of what it has.
    let interface = |name: &str, mtu| Interface {
        name: name.into(),
        mtu: Some(mtu),
        addresses: vec!["10.0.0.1".into()],
        ..Default::default()
    };
    for (interfaces, held) in [
        (vec![interface("eth0", 9000), interface("lo", 65536)], Held::Met),
        (vec![interface("eth0", 1500), interface("eth1", 1500)], Held::Unmet),
        (vec![interface("eth0", 9000), interface("eth1", 1500)], Held::Unread),
        (Vec::new(), Held::Unmet),
    ] {
        let found = demand("mtu = 9000", |facts| (facts.rdma, facts.interfaces) = (Vec::new(), interfaces));
        assert_eq!(found.held(), held, "{found:#?}");
    }
}

#[test]
fn a_host_that_did_not_answer_is_not_as_wanted_for_all_one_knows() {
    let mut cluster = cluster(|_| {});
    cluster.facts.remove("gpu2");
    let plan = planned("transport = \"tcp\"\n[preflight]\nmtu = 9000\nescalate = [\"mtu\"]\n");
    let all = demands(&plan, &cluster, &judge(&plan, &cluster));
    assert_eq!(all.iter().map(|demand| demand.key.as_str()).collect::<Vec<_>>(), ["mtu", "escalate.mtu"]);
    for demand in &all {
        assert_eq!((demand.held(), with(demand, Held::Unread)), (Held::Unread, vec!["gpu2"]), "{demand:#?}");
    }
}

#[test]
fn what_is_not_as_wanted_is_a_finding_too_and_waived_alike() {
    let wanted = "transport = \"tcp\"\n[preflight]\nrdma_ports = 2\nmtu = 9000\n";
    let spoiled = || cluster(|facts| facts.interfaces[0].mtu = Some(1500));
    let found = judge(&planned(wanted), &spoiled());
    let failures = found.iter().filter(|finding| finding.severity == Severity::Failure);
    assert_eq!(failures.map(|finding| finding.check.as_str()).collect::<Vec<_>>(), ["device-count", "mtu"]);
    let waived = planned(&format!("{wanted}waive = [\"mtu\", \"device-count\"]\n"));
    assert!(judge(&waived, &spoiled()).iter().all(|finding| finding.severity == Severity::Notice && finding.waived));
    assert!(demands(&waived, &spoiled(), &[]).iter().all(|demand| demand.waived && demand.held() == Held::Unmet));
}

/// A value that is wanted and cannot be read is no more wrong for its check being escalated.
#[test]
fn what_cannot_be_read_is_not_unmet_where_its_check_is_escalated() {
    let plan = planned("transport = \"verbs\"\n[preflight]\nlink_rate = \"400 Gb/s\"\nescalate = \"link-rate\"\n");
    let mut cluster = cluster(|_| {});
    for facts in cluster.facts.values_mut() {
        facts.rdma[0].ports[0].rate_gbps = Some(GigabitsPerSecond(400.0));
    }
    cluster.facts.get_mut("gpu3").expect("gpu3 is one of them").rdma[0].ports[0].rate_gbps = None;
    let findings = judge(&plan, &cluster);
    for demand in demands(&plan, &cluster, &findings) {
        assert_eq!((demand.held(), with(&demand, Held::Unread)), (Held::Unread, vec!["gpu3"]), "{demand:#?}");
    }
    assert!(findings.iter().all(|finding| finding.severity < Severity::Failure), "{findings:?}");
}

#[test]
fn an_escalated_check_fails_where_it_finds_something() {
    let plan = planned("transport = \"verbs\"\n[preflight]\nescalate = [\"mtu\"]\n");
    let spoiled = cluster(|facts| facts.interfaces[0].mtu = Some(1500));
    let all = demands(&plan, &spoiled, &judge(&plan, &spoiled));
    assert_eq!((all[0].held(), with(&all[0], Held::Unmet)), (Held::Unmet, vec!["gpu3"]));
}

#[test]
fn a_check_that_could_not_look_has_not_found_that_all_is_well() {
    let plan = planned("transport = \"tcp\"\n[preflight]\nescalate = [\"governor\", \"gpu-memory\"]\n");
    let seeing = |facts: &mut HostFacts| {
        facts.cpu.governor = Some("performance".into());
        let memory_faults = MemoryFaults { uncorrected: Some(0), pending: Some(false), ..MemoryFaults::default() };
        facts.gpus = vec![Gpu { memory_faults, ..Gpu::default() }];
    };
    let mut cluster = cluster(|_| {});
    cluster.facts.values_mut().for_each(seeing);
    let held = |cluster: &Cluster| -> Vec<Held> {
        demands(&plan, cluster, &judge(&plan, cluster)).iter().map(Demand::held).collect()
    };
    assert_eq!(held(&cluster), [Held::Met, Held::Met]);
    let blind = cluster.facts.get_mut("gpu2").expect("gpu2 is one of them");
    blind.cpu.governor = None;
    blind.unreadable.insert(GPUS.into(), "no NVML".into());
    assert_eq!(held(&cluster), [Held::Unread, Held::Unread]);
}

/// Facts that name devices and GPUs and tell nothing else of them.
fn untold(link_layer: &str) -> Cluster {
    let port = RdmaPort { number: 1, link_layer: Some(link_layer.into()), ..RdmaPort::default() };
    let device = RdmaDevice { name: "mlx5_0".into(), ports: vec![port], ..RdmaDevice::default() };
    let facts = HostFacts { rdma: vec![device], gpus: vec![Gpu::default()], ..HostFacts::default() };
    let mut cluster = cluster(|_| {});
    cluster.facts.values_mut().for_each(|host| *host = facts.clone());
    cluster.clocks.clear();
    cluster
}

#[test]
fn no_check_passes_a_host_that_tells_it_nothing() {
    // What is counted was read, or is among what was not; that no limit holds is told by saying none; and no test asks
    // for huge pages.
    let answered = ["device-count", "gpu-count", "iommu", "locked-memory", "huge-pages"];
    for check in CHECKS.iter().filter(|check| !answered.contains(&check.name)) {
        let layer = if check.rule.subject == Subject::InfiniBand { "InfiniBand" } else { "Ethernet" };
        let plan = planned(&format!("transport = \"tcp\"\n[preflight]\nescalate = \"{}\"\n", check.name));
        let cluster = untold(layer);
        for demand in demands(&plan, &cluster, &judge(&plan, &cluster)) {
            assert!(demand.holdings.iter().all(|one| one.state != Held::Met), "{demand:#?}");
        }
    }
}

#[test]
fn a_limit_and_gpus_that_cannot_be_read_are_not_as_wanted() {
    let plan = planned("transport = \"tcp\"\n[preflight]\nescalate = [\"locked-memory\", \"gpu-count\", \"iommu\"]\n");
    let mut cluster = untold("Ethernet");
    for facts in cluster.facts.values_mut() {
        facts.unreadable.insert(LIMITS.into(), "not there".into());
        facts.unreadable.insert(GPUS.into(), "no NVML".into());
        facts.unreadable.insert(IOMMUS.into(), "not permitted".into());
    }
    for demand in demands(&plan, &cluster, &judge(&plan, &cluster)) {
        assert_eq!(demand.held(), Held::Unread, "{demand:#?}");
    }
}

#[test]
fn a_check_that_had_nothing_to_look_at_has_not_found_that_all_is_well() {
    let checks = ["acs", "gpu-xid", "link-rate", "pcie-errors", "pfc", "subnet-manager"];
    let plan = planned(&format!("transport = \"tcp\"\n[preflight]\nescalate = {checks:?}\n"));
    let cluster = cluster(|facts| (facts.rdma, facts.gpus) = (Vec::new(), Vec::new()));
    for demand in demands(&plan, &cluster, &judge(&plan, &cluster)) {
        let without = demand.holdings.iter().find(|one| one.host == "gpu3").expect("gpu3 is one of them");
        assert_eq!(without.state, Held::Unread, "{demand:#?}");
    }
}

#[test]
fn an_escalated_check_looks_also_at_what_no_test_uses() {
    let xid = Xid { pci: "0000:01:00".into(), code: 79, text: "GPU has fallen off the bus".into(), at: 5 };
    let cluster = cluster(|facts| facts.xids = Some(vec![xid.clone()]));
    let plan = planned("transport = \"tcp\"\n[preflight]\nescalate = \"gpu-xid\"\n");
    let all = demands(&plan, &cluster, &judge(&plan, &cluster));
    assert_eq!(with(&all[0], Held::Unmet), ["gpu3"]);
}

#[test]
fn a_module_that_agents_do_not_look_for_is_not_called_unloaded() {
    assert_eq!(demand("modules = { overlay = \"*\" }", |_| {}).held(), Held::Unread);
}

#[test]
fn findings_carry_the_values_they_compare() {
    let json = |found: &Finding| serde_json::to_value(&found.observed).expect("values are JSON");
    let small = cluster(|facts| facts.interfaces[0].mtu = Some(1500));
    let of = |wanted_by| serde_json::json!({"fact": "mtu", "unit": "B", "seen": 1500, "wanted": 9000, "wanted_by": wanted_by});
    assert_eq!(json(&one(&small)), of("others"));
    assert_eq!(json(&one_of(&planned("[preflight]\nmtu = 9000\n"), &small)), of("plan"));
    let limited = cluster(|facts| facts.memlock_bytes = Some(Bytes(64 << 10)));
    let found = one_of(&planned("sizes = [\"1 MiB\"]\n"), &limited);
    assert_eq!(
        json(&found),
        serde_json::json!({"fact": "memlock", "unit": "KiB", "seen": 64, "wanted": 3088, "wanted_by": "check"})
    );
    let blind = cluster(|facts| facts.rdma[0].firmware = None);
    let found = one_of(&planned("[preflight]\nfirmware = { mlx5_core = \"28.43.1014\" }\n"), &blind);
    assert_eq!((found.observed, found.key.as_deref()), (None, Some("firmware.mlx5_core")));
    let narrow = cluster(|facts| facts.rdma[0].pcie = Some((32.0, 8)));
    let found = one(&narrow);
    assert_eq!(
        json(&found),
        serde_json::json!({"fact": "pcie_width", "unit": "lanes", "seen": 8, "wanted": 16, "wanted_by": "check"})
    );
    let read: Option<Observation> = serde_json::from_value(json(&found)).expect("it reads what it writes");
    assert_eq!(read, found.observed);
}
