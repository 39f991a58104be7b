//! Real lldpd in network namespaces: two rails of one host are swapped, and that is found from what the hosts hear, without traffic.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod support;

use railgauge_model::topology::{
    Fabric,
    cabling::{Attached, Finding, judge, plugged},
    lldp,
    told::Told,
};

const HOSTS: usize = 4;

fn heard(arguments: &[&str]) -> Option<Vec<Told>> {
    let place = support::made_by("neighbours.py", arguments)?;
    let read = |host: usize| {
        let name = format!("gpu{host:03}");
        let text = std::fs::read_to_string(place.path().join(format!("{name}.json"))).unwrap();
        lldp::read(&text, &name).unwrap()
    };
    Some((1..=HOSTS).map(read).collect())
}

fn found(told: &[Told]) -> Vec<Finding> {
    let fabric = Fabric::join(told);
    let (at, trunks) = plugged(&fabric);
    let ports: Vec<Attached> = fabric
        .nics
        .iter()
        .zip(at)
        .map(|(nic, plugged)| {
            let device = nic.device.clone().unwrap();
            let rail = device.trim_start_matches("ens").trim_end_matches("np0").parse().unwrap();
            let (at, run) = plugged.unwrap();
            Attached { host: nic.host.clone().unwrap(), device, rail, board: None, at: Some(at), run, is_up: None }
        })
        .collect();
    assert_eq!(ports.len(), 2 * HOSTS);
    judge(&ports, &trunks).findings
}

#[test]
fn a_swap_between_namespaces_is_found() {
    let Some(told) = heard(&["--hosts", "4", "--rails", "2", "--swap", "3"]) else { return };
    let findings = found(&told);
    let [Finding::Swapped { host, rails: [one, other], .. }] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(host, "gpu003");
    let told = [one, other].map(|(rail, device, at)| format!("{rail} {device} {at}"));
    assert_eq!(told, ["0 ens0np0 leaf2 port Ethernet3", "1 ens1np0 leaf1 port Ethernet3"]);
}

#[test]
fn nothing_is_found_between_namespaces_as_they_should_be() {
    let Some(told) = heard(&["--hosts", "4", "--rails", "2"]) else { return };
    assert_eq!(found(&told), []);
}
