use railgauge_model::plan::{
    hostlist::expand,
    model::{Expectation, Limit},
};

use super::*;

const SSH: &str = "[launch]\nvia = \"ssh\"\n";

fn host(name: &str) -> railgauge_wire::facts::HostFacts {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/hosts/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Hosts by name, each as the recorded one, with names and addresses of their own.
fn cluster(hosts: &[(&str, &str)]) -> (Vec<String>, Cluster) {
    let mut cluster = Cluster::default();
    let mut names = Vec::new();
    for (list, recorded) in hosts {
        for name in expand(list).unwrap() {
            let mut facts = host(recorded);
            facts.hostname = name.clone();
            cluster.facts.insert(name.clone(), facts);
            names.push(name);
        }
    }
    (names, cluster)
}

fn result(purpose: Purpose, (names, cluster): &(Vec<String>, Cluster)) -> Result<Draft, DraftError> {
    let lost = BTreeMap::new();
    draft(&Request { purpose, launch: SSH, is_local: false, hosts: names, cluster, lost: &lost, day: "2026-11-25" })
}

fn drafted(purpose: Purpose, hosts: &(Vec<String>, Cluster)) -> Draft {
    let draft = result(purpose, hosts).unwrap_or_else(|error| panic!("{error}"));
    let (_, notes) = plan::parse("plan.toml", &draft.text, Path::new("")).unwrap();
    assert!(notes.list.is_empty(), "{notes}\n{}", draft.text);
    draft
}

#[test]
fn a_cluster_of_gpus_on_roce() {
    let hosts = cluster(&[("gpu[001-016]", "roce8")]);
    for purpose in [Purpose::Acceptance, Purpose::Nightly, Purpose::Tuning] {
        let draft = drafted(purpose, &hosts);
        assert_eq!(draft.findings, (0, 0), "{}", purpose.word());
        insta::assert_snapshot!(format!("roce8-{}", purpose.word()), draft.text);
    }
}

#[test]
fn one_host_is_measured_within() {
    let (names, mut cluster) = cluster(&[("gpu1", "roce8")]);
    cluster.facts.get_mut("gpu1").unwrap().gpus.iter_mut().for_each(|gpu| gpu.name = Some("NVIDIA H200".into()));
    let draft = drafted(Purpose::Acceptance, &(names, cluster));
    assert_eq!(draft.findings, (0, 0));
    insta::assert_snapshot!("one-host-acceptance", draft.text);
    let without = self::cluster(&[("n1", "softroce")]);
    assert!(matches!(result(Purpose::Acceptance, &without), Err(DraftError::TooFew)));
    assert!(matches!(result(Purpose::Nightly, &self::cluster(&[("gpu1", "roce8")])), Err(DraftError::TooFew)));
}

#[test]
fn what_hosts_do_not_agree_on_is_told_and_not_required() {
    let mut hosts = cluster(&[("gpu[1-4]", "roce8")]);
    hosts.1.facts.insert("gpu3".into(), {
        let mut facts = host("broken");
        facts.hostname = "gpu3".into();
        facts
    });
    let draft = drafted(Purpose::Acceptance, &hosts);
    insta::assert_snapshot!("one-broken-acceptance", draft.text);
    let wanted = &draft.plan.preflight.wanted;
    assert_eq!((wanted.mtu, wanted.gpus, wanted.rdma_ports), (None, None, Some(8)));
    assert!(draft.findings.0 > 0);
}

#[test]
fn other_fabrics_and_devices() {
    for (recorded, carrier) in
        [("infiniband", "InfiniBand"), ("softroce", "RoCE"), ("bond", "RoCE"), ("erdma", "iWARP")]
    {
        let draft = drafted(Purpose::Acceptance, &cluster(&[("n[1-4]", recorded)]));
        assert!(draft.found.contains(carrier), "{recorded}: {}", draft.found);
        assert_eq!(draft.findings.0, 0, "{recorded}\n{}", draft.text);
        insta::assert_snapshot!(format!("{recorded}-acceptance"), draft.text);
    }
    // Two networks: the faster one is the fabric.
    let draft = drafted(Purpose::Acceptance, &cluster(&[("n[1-4]", "unused")]));
    assert_eq!(draft.plan.hosts[0].devices, ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]);
    assert!(draft.notes.iter().any(|note| note.contains("mlx5_5")), "{:?}", draft.notes);
}

#[test]
fn hosts_without_rdma_are_measured_over_tcp() {
    let mut hosts = cluster(&[("n[1-4]", "softroce")]);
    for facts in hosts.1.facts.values_mut() {
        facts.rdma.clear();
        facts.surroundings.virtual_machine = Some(false);
        facts
            .interfaces
            .iter_mut()
            .for_each(|one| one.speed_mbps = Some(railgauge_wire::unit::MegabitsPerSecond(25_000)));
    }
    let draft = drafted(Purpose::Acceptance, &hosts);
    assert!(
        draft.text.contains("transport = \"tcp\"") && draft.text.contains("percent_of_ceiling = 80"),
        "{}",
        draft.text
    );
    // What the interface of a virtual machine reports is not what its provider allows.
    let is_virtual = |hosts: &mut (Vec<String>, Cluster), is: bool| {
        hosts.1.facts.values_mut().for_each(|facts| facts.surroundings.virtual_machine = Some(is));
    };
    is_virtual(&mut hosts, true);
    let draft = drafted(Purpose::Acceptance, &hosts);
    assert!(draft.plan.tests.iter().all(|test| test.expect.is_empty()), "{}", draft.text);
    is_virtual(&mut hosts, false);
    // A virtual interface has no speed.
    hosts.1.facts.values_mut().flat_map(|facts| &mut facts.interfaces).for_each(|one| one.speed_mbps = None);
    let draft = drafted(Purpose::Acceptance, &hosts);
    assert!(draft.plan.tests.iter().all(|test| test.expect.is_empty()), "{}", draft.text);
}

/// The limits of speed in a test of a plan.
fn limits(draft: &Draft, test: &str) -> usize {
    draft.plan.tests.iter().find(|one| one.name == test).map_or(0, |test| test.expect.len())
}

#[test]
fn ports_that_share_a_narrow_slot_have_no_limits() {
    let mut hosts = cluster(&[("gpu[1-4]", "roce8")]);
    // A card of two ports of 400 Gb/s: its slot of generation 5 with 16 lanes carries about 500.
    let two_ports = |hosts: &mut (Vec<String>, Cluster), pcie: (f64, u32)| {
        for facts in hosts.1.facts.values_mut() {
            let first = facts.rdma[0].pci.clone().unwrap();
            facts.rdma[1].pci = Some(first.replace(".0", ".1"));
            facts.rdma.iter_mut().take(2).for_each(|device| device.pcie = Some(pcie));
        }
    };
    two_ports(&mut hosts, (32.0, 16));
    let draft = drafted(Purpose::Acceptance, &hosts);
    assert_eq!(limits(&draft, "write-bandwidth"), 0, "{}", draft.text);
    assert!(draft.text.contains("mlx5_[0-1] share a PCIe slot"), "{}", draft.text);
    // Generation 6 is wide enough.
    two_ports(&mut hosts, (64.0, 16));
    assert!(limits(&drafted(Purpose::Acceptance, &hosts), "write-bandwidth") > 0);
}

/// Tests of a plan that stay within hosts, each with the number of its limits by peers.
fn within(draft: &Draft) -> Vec<(&str, usize)> {
    let within = draft.plan.tests.iter().take_while(|test| test.transport.is_within_host());
    let by_peers = |one: &&Expectation| matches!(one.limit, Limit::WithinPercentOfPeers(_));
    within.map(|test| (test.name.as_str(), test.expect.iter().filter(by_peers).count())).collect()
}

#[test]
fn hosts_with_gpus_are_measured_by_themselves_first() {
    use railgauge_wire::HostFacts;
    let of = |list: &str, change: &dyn Fn(&mut HostFacts)| {
        let mut hosts = cluster(&[(list, "roce8")]);
        hosts.1.facts.values_mut().for_each(change);
        drafted(Purpose::Acceptance, &hosts)
    };
    let gpus = ["host-to-gpu", "gpu-to-host", "gpu-memory", "gpu-to-gpu", "matrix-products", "gpu-memory-test"];
    let all = || gpus.into_iter().chain(["memory-read", "memory-latency"]);
    // Wrong bytes fail without a limit.
    let held = |is: &dyn Fn(&str) -> bool| -> Vec<(&str, usize)> {
        all().map(|name| (name, usize::from(is(name) && name != "gpu-memory-test"))).collect()
    };
    assert_eq!(within(&of("gpu[1-4]", &|_| ())), held(&|_| true));
    // The same way on three hosts, six NUMA nodes.
    assert_eq!(within(&of("gpu[1-3]", &|_| ())), held(&|name| name != "gpu-to-gpu"));
    // What cannot run is left out, and what is missing is reported.
    let single = of("gpu[1-2]", &|facts| {
        facts.gpus.truncate(1);
        facts.libraries.retain(|name, path| !(name.starts_with("libcublasLt") && path.starts_with('/')));
    });
    let left = ["host-to-gpu", "gpu-to-host", "gpu-memory", "gpu-memory-test"].map(|name| (name, 0));
    let left: Vec<_> = left.into_iter().chain([("memory-read", 1), ("memory-latency", 1)]).collect();
    assert_eq!(within(&single), left);
    assert!(single.notes.iter().any(|note| note.starts_with("gpu[1-2] have no cuBLASLt")), "{:?}", single.notes);
    assert!(single.text.contains("# Fewer than four to compare"), "{}", single.text);
    // Other products are not peers, and CUDA must show what is measured.
    let mut hosts = cluster(&[("gpu[1-4]", "roce8")]);
    hosts.1.facts.get_mut("gpu4").unwrap().gpus[0].name = Some("NVIDIA H100".into());
    let mixed = drafted(Purpose::Acceptance, &hosts);
    assert_eq!(within(&mixed), held(&|name| name.starts_with("memory-")));
    let hidden = of("gpu[1-4]", &|facts| {
        facts.gpus.iter_mut().take(4).zip(0..).for_each(|(gpu, number)| gpu.cuda_device = Some(number));
    });
    assert!(within(&hidden).is_empty(), "{}", hidden.text);
    assert!(hidden.notes.iter().any(|note| note.contains("GPUs that CUDA or HIP does not show")), "{:?}", hidden.notes);
    // Nor is there anything of the kind for hosts without GPUs.
    assert!(within(&drafted(Purpose::Acceptance, &cluster(&[("n[1-4]", "infiniband")]))).is_empty());
}

#[test]
fn rails_far_from_gpus_have_no_limit_of_gpu_memory() {
    use railgauge_wire::Distance;
    let mut hosts = cluster(&[("gpu[1-4]", "roce8")]);
    assert!(limits(&drafted(Purpose::Acceptance, &hosts), "gpu-write-bandwidth") > 0);
    for distance in [Distance::Phb, Distance::Node] {
        let far = hosts.1.facts.values_mut().flat_map(|facts| &mut facts.gpu_distances);
        far.for_each(|row| row.distance = distance);
        let draft = drafted(Purpose::Acceptance, &hosts);
        assert_eq!(limits(&draft, "gpu-write-bandwidth"), 0, "{}", draft.text);
        assert!(limits(&draft, "write-bandwidth") > 0, "{}", draft.text);
    }
}

#[test]
fn mixed_clusters_keep_all_hosts() {
    // One host with other devices has its own list; one without RDMA stays in and is named.
    let mut hosts = cluster(&[("n[1-3]", "roce8"), ("n4", "infiniband"), ("login", "softroce")]);
    if let Some(facts) = hosts.1.facts.get_mut("login") {
        facts.rdma.clear();
    }
    let mut other = host("bond");
    other.hostname = "n4".into();
    hosts.1.facts.insert("n4".into(), other);
    let draft = drafted(Purpose::Acceptance, &hosts);
    assert_eq!(draft.plan.hosts[3].devices, ["mlx5_bond_0"]);
    assert!(draft.notes.iter().any(|note| note.starts_with("login has no active RDMA port")), "{:?}", draft.notes);
    assert!(!draft.plan.tests.iter().any(|test| test.collective.is_some()), "{}", draft.text);
}

#[test]
fn every_number_of_hosts_makes_a_plan() {
    for count in [2, 3, 4, 5, 8, 33, 64, 200] {
        let hosts = cluster(&[(&format!("gpu[1-{count}]"), "roce8")]);
        for purpose in [Purpose::Acceptance, Purpose::Nightly, Purpose::Tuning] {
            drafted(purpose, &hosts);
        }
    }
    let large = drafted(Purpose::Acceptance, &cluster(&[("r[1-4]n[1-16]", "roce8")]));
    assert!(large.text.contains("[hosts.groups]") && large.text.contains("rounds = 32"), "{}", large.text);
}

#[test]
fn hosts_that_are_one_machine_are_recognised() {
    let (names, mut cluster) = cluster(&[("n[1-4]", "roce8")]);
    cluster.facts.values_mut().for_each(|facts| facts.hostname = "same".into());
    let draft = drafted(Purpose::Acceptance, &(names, cluster));
    assert!(draft.text.contains("waive = [\"all\"]") && !draft.text.contains("percent_of_ceiling"), "{}", draft.text);
}

#[test]
fn lost_hosts_are_left_out_by_reason_and_nothing_is_made_of_too_few() {
    use railgauge_wire::{Kind, Stage};
    let (_, cluster) = cluster(&[("n[1-2]", "infiniband")]);
    let hosts = expand("n[1-5]").unwrap();
    let failure = |cause: &str| Failure::new(Stage::Connect, Kind::Lost, cause);
    let lost: BTreeMap<String, Failure> = [
        ("n3".into(), failure("ssh to n3: connection refused\nby sshd")),
        ("n4".into(), failure("no such host")),
        ("n5".into(), failure("ssh to n5: connection refused\nby sshd")),
    ]
    .into();
    let request = Request {
        purpose: Purpose::Nightly,
        launch: SSH,
        is_local: false,
        hosts: &hosts,
        cluster: &cluster,
        lost: &lost,
        day: "2026-11-25",
    };
    let text = draft(&request).unwrap().text;
    assert!(
        text.contains("#   n[3,5]: connect: ssh to HOST: connection refused by sshd\n#   n4: connect: no such host\n"),
        "{text}"
    );
    let all: BTreeMap<String, Failure> = hosts[1..].iter().map(|host| (host.clone(), failure("gone"))).collect();
    assert!(matches!(draft(&Request { lost: &all, ..request }), Err(DraftError::TooFew)));
}

#[test]
fn without_facts_nothing_is_required() {
    let hosts = expand("gpu[1-4]").unwrap();
    let (cluster, lost) = (Cluster::default(), BTreeMap::new());
    let request = Request {
        purpose: Purpose::Acceptance,
        launch: SSH,
        is_local: false,
        hosts: &hosts,
        cluster: &cluster,
        lost: &lost,
        day: "2026-11-25",
    };
    let draft = draft(&request).unwrap();
    assert!(draft.plan.tests.iter().all(|test| test.expect.is_empty()), "{}", draft.text);
    insta::assert_snapshot!("offline-acceptance", draft.text);
}

/// A round of pairs leaves one of three hosts out; whether the setting helps a host that was not measured is unknown.
#[test]
fn tuning_measures_every_host_of_an_odd_number() {
    use railgauge_model::schedule::{Inventory, schedule};
    for list in ["gpu[1-3]", "gpu[1-4]", "gpu[1-7]"] {
        let draft = drafted(Purpose::Tuning, &cluster(&[(list, "roce8")]));
        let scheduled = schedule(&draft.plan, &Inventory::of_plan(&draft.plan)).unwrap();
        let cases = railgauge_model::journal::event::Case::planned(&draft.plan, &scheduled);
        let mut measured: Vec<String> =
            cases.iter().flat_map(|case| case.flow.hosts().into_iter().map(|host| host.to_string())).collect();
        measured.sort_unstable();
        measured.dedup();
        assert_eq!(measured, expand(list).unwrap(), "{}", draft.text);
    }
}
