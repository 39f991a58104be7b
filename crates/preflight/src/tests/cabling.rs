use railgauge_wire::Neighbour;

use super::*;

/// Four hosts with two NICs each, by these words of `cables` in [topology].
fn found(cables: &[[&str; 2]]) -> Vec<Finding> {
    let cables: Vec<String> = cables.iter().map(|[a, b]| format!("[\"{a}\", \"{b}\"]")).collect();
    let text = format!(
        "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"gpu[1-4]\"] }}\n[topology]\nlink_rate = \"400 Gb/s\"\n\
         cables = [{}]\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"verbs\"\n",
        cables.join(", ")
    );
    let plan = railgauge_model::plan::parse("t.toml", &text, std::path::Path::new("."))
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
        .0;
    let two = || {
        let mut host = host();
        let second = RdmaDevice { name: "mlx5_1".into(), ..host.rdma[0].clone() };
        host.rdma.push(second);
        host
    };
    let facts = (1..=4).map(|i| (format!("gpu{i}"), two())).collect();
    judge(&plan, &Cluster { facts, clocks: BTreeMap::new() })
}

const RIGHT: [[&str; 2]; 8] = [
    ["gpu1 mlx5_0", "leafA:1"],
    ["gpu1 mlx5_1", "leafB:1"],
    ["gpu2 mlx5_0", "leafA:2"],
    ["gpu2 mlx5_1", "leafB:2"],
    ["gpu3 mlx5_0", "leafA:3"],
    ["gpu3 mlx5_1", "leafB:3"],
    ["gpu4 mlx5_0", "leafA:4"],
    ["gpu4 mlx5_1", "leafB:4"],
];

#[test]
fn cables_as_they_should_be_have_no_finding() {
    assert_eq!(found(&RIGHT), []);
}

#[test]
fn swapped_rails_are_found_before_any_traffic() {
    let mut cables = RIGHT;
    (cables[4][1], cables[5][1]) = ("leafB:3", "leafA:3");
    let found: Vec<Finding> = found(&cables).into_iter().filter(|one| one.severity > Severity::Notice).collect();
    let [one] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(
        (one.check.as_str(), one.severity, one.hosts.as_slice()),
        ("cabling", Severity::Warning, &["gpu3".to_owned()][..])
    );
    for word in ["rails 0 and 1 are swapped", "mlx5_0", "leafB port 3", "leafA port 3"] {
        assert!(one.what.contains(word), "{}", one.what);
    }
}

#[test]
fn a_port_without_a_cable_is_told() {
    let missing = found(&RIGHT[..7]);
    assert!(missing.iter().any(|one| one.hosts == ["gpu4"] && one.what.contains("mlx5_1")), "{missing:#?}");
}

#[test]
fn hosts_of_which_only_the_leaf_is_known_are_not_judged() {
    assert_eq!(found(&[["gpu[1-2]", "leafA"], ["gpu[3-4]", "leafB"]]), []);
}

/// Four hosts that hear their switches, as `cables` says, below a plan that has this `[topology]`.
fn heard(cables: &[[&str; 2]], topology: &str) -> (Vec<Finding>, Vec<Demand>) {
    heard_with(cables, topology, |_, _| {})
}

/// The same of hosts with something of their own.
fn heard_with(
    cables: &[[&str; 2]],
    topology: &str,
    spoil: impl Fn(&str, &mut HostFacts),
) -> (Vec<Finding>, Vec<Demand>) {
    let plan = planned(&format!("transport = \"verbs\"\n[preflight]\nescalate = \"cabling\"\n{topology}"));
    let facts = (1..=4).map(|i| {
        let name = format!("gpu{i}");
        let mut host = host();
        let mut second = RdmaDevice { name: "mlx5_1".into(), ..host.rdma[0].clone() };
        second.ports[0].netdev = Some("eth2".into());
        host.rdma.push(second);
        host.interfaces.push(Interface { name: "eth2".into(), mtu: Some(9000), ..Default::default() });
        let mut own = Vec::new();
        for [nic, at] in cables {
            let ((who, device), (switch, port)) = (nic.split_once(' ').unwrap(), at.split_once(':').unwrap());
            if who == name {
                own.push(Neighbour {
                    interface: if device == "mlx5_0" { "eth1" } else { "eth2" }.into(),
                    chassis: switch.to_lowercase(),
                    name: switch.into(),
                    port: Some(port.into()),
                    is_switch: true,
                });
            }
        }
        host.neighbours = Some(own);
        spoil(&name, &mut host);
        (name, host)
    });
    let cluster = Cluster { facts: facts.collect(), clocks: BTreeMap::new() };
    let found = judge(&plan, &cluster);
    let demands = demands(&plan, &cluster, &found);
    (found.into_iter().filter(|one| one.check == "cabling").collect(), demands)
}

#[test]
fn swapped_rails_are_found_without_any_file() {
    assert_eq!(heard(&RIGHT, "").0, []);
    let mut cables = RIGHT;
    (cables[4][1], cables[5][1]) = ("leafB:3", "leafA:3");
    let (found, _) = heard(&cables, "");
    assert!(
        found.iter().any(|one| one.hosts == ["gpu3"] && one.what.contains("rails 0 and 1 are swapped")),
        "{found:#?}"
    );
    // What the plan tells of a port counts before what is heard there.
    let all = RIGHT.map(|[a, b]| format!("[\"{a}\", \"{b}\"]")).join(", ");
    let (found, _) = heard(&cables, &format!("[topology]\ncables = [{all}]\n"));
    assert!(!found.iter().any(|one| one.what.contains("swapped")), "{found:#?}");
}

#[test]
fn hosts_that_hear_nothing_are_no_proof_of_good_cables() {
    let (found, demands) = heard(&[], "");
    assert!(found.is_empty() || found.iter().all(|one| one.unread), "{found:#?}");
    let cabling = demands.iter().find(|demand| demand.check == "cabling").unwrap();
    assert_eq!(cabling.held(), Held::Unread);
}

/// What is said of cables is about the hosts that it names, once, and no cable is missing where a link is up.
#[test]
fn a_port_that_hears_nobody_has_a_cable_where_its_link_is_up() {
    let silent: Vec<[&str; 2]> = RIGHT.into_iter().filter(|[nic, _]| *nic != "gpu3 mlx5_0").collect();
    let (found, _) = heard(&silent, "");
    let [one] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((one.severity, one.unread, one.hosts.as_slice()), (Severity::Notice, true, &["gpu3".to_owned()][..]));
    assert!(one.what.contains("mlx5_0") && !one.what.contains("no cable"), "{}", one.what);
    let (found, _) = heard_with(&silent, "", |name, host| {
        if name == "gpu3" {
            host.rdma[0].ports[0].state = Some("DOWN".into());
        }
    });
    let [one] = found.iter().filter(|one| one.severity == Severity::Failure).collect::<Vec<_>>()[..] else {
        panic!("{found:#?}")
    };
    assert!(one.hosts == ["gpu3"] && one.what.contains("no cable is seen at mlx5_0"), "{one:#?}");
    assert!(!one.meaning.contains("cross switches"), "{one:#?}");
}

#[test]
fn hosts_of_a_notice_are_those_that_were_not_judged() {
    let others: Vec<[&str; 2]> = RIGHT.into_iter().filter(|[nic, _]| !nic.starts_with("gpu3")).collect();
    let (found, _) = heard(&others, "");
    let [one] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(one.hosts, ["gpu3"]);
    // Two units of two hosts: nobody has two fellows, and that is said once.
    let units = [
        ["gpu1 mlx5_0", "leafA:1"],
        ["gpu1 mlx5_1", "leafB:1"],
        ["gpu2 mlx5_0", "leafA:2"],
        ["gpu2 mlx5_1", "leafB:2"],
        ["gpu3 mlx5_0", "leafC:1"],
        ["gpu3 mlx5_1", "leafD:1"],
        ["gpu4 mlx5_0", "leafC:2"],
        ["gpu4 mlx5_1", "leafD:2"],
    ];
    for one in heard(&units, "").0 {
        assert_eq!(one.what.matches("not judged").count(), 1, "{}", one.what);
        assert!(!one.what.contains("gpu"), "hosts stand beside it: {}", one.what);
    }
}

#[test]
fn swapped_rails_are_found_by_their_leaves_alone() {
    let mut cables = RIGHT;
    (cables[4][1], cables[5][1]) = ("leafB:3", "leafA:3");
    let (found, _) = heard_with(&cables, "", |_, host| {
        host.neighbours.iter_mut().flatten().for_each(|neighbour| neighbour.port = None);
    });
    assert!(
        found.iter().any(|one| one.hosts == ["gpu3"] && one.what.contains("rails 0 and 1 are swapped")),
        "{found:#?}"
    );
}
