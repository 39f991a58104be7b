use railgauge_wire::facts::Neighbour;

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
