//! A fabric of 64 hosts that OpenSM brought up in ibsim, as the tools of infiniband-diags describe it: every host, switch and cable is
//! read, and every route ends where it should.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod support;

use std::time::Instant;

use railgauge_model::topology::{
    Fabric,
    cabling::{At, Attached, Finding, Run, judge, plugged},
    fabric::{Node, Route},
    ibnetdiscover,
    told::{Nic, Told},
};

/// What the tools say of a fat tree with these arguments. `None` where they are not installed.
fn subnet(arguments: &[&str]) -> Option<(Told, Told)> {
    let place = support::made_by("subnet.py", arguments)?;
    let text = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    let fabric = ibnetdiscover::read(&text("fabric.txt")).unwrap();
    Some((fabric, ibnetdiscover::read_routes(&text("lfts.txt")).unwrap()))
}

/// Hosts, leaves, spines of a fabric, and that each way between two hosts is one of that many links at most.
fn judged(told: (Told, Told), hosts: usize, switches: usize, links: usize, longest: usize) {
    let (topology, tables) = told;
    assert_eq!(topology.remarks, Vec::<String>::new());
    assert_eq!(tables.switches.len(), switches);
    for (key, switch) in &tables.switches {
        assert_eq!((&switch.name, switch.lid), (&topology.switches[key].name, topology.switches[key].lid), "{key}");
    }
    let fabric = Fabric::join(&[topology, tables]);
    assert_eq!((fabric.nics.len(), fabric.switches.len(), fabric.links.len()), (hosts, switches, links));
    for number in 1..=hosts {
        let host = format!("gpu{number:04}");
        assert_eq!(fabric.nics_of(&[&host], Some("mlx5_0"), 1, &[]).len(), 1, "{host}");
    }
    let rates: Vec<_> = fabric.links.iter().filter(|link| link.rate_gbps != Some(200.0)).collect();
    assert!(rates.is_empty(), "{rates:?}");
    let nics = || 0..u32::try_from(hosts).unwrap();
    for (from, to) in nics().flat_map(|from| nics().map(move |to| (from, to))).filter(|(from, to)| from != to) {
        let Route::Known(path) = fabric.route(from, to) else { panic!("{from} {to}: {:?}", fabric.route(from, to)) };
        assert!(path.len() <= longest, "{from} {to}: {path:?}");
        let mut here = Node::Nic(from);
        for hop in &path {
            let [one, other] = &fabric.links[(hop / 2) as usize].ends;
            let (leave, arrive) = if hop % 2 == 0 { (one, other) } else { (other, one) };
            assert_eq!(leave.node, here, "{from} {to}");
            here = arrive.node;
        }
        assert_eq!(here, Node::Nic(to), "{from} {to}");
    }
}

#[test]
fn a_tree_of_two_levels_is_read_with_its_routes() {
    let Some(told) = subnet(&["--hosts", "64", "--radix", "16"]) else { return };
    // Eight leaves of eight hosts, four spines; as many cables upwards as down.
    judged(told, 64, 12, 128, 4);
}

#[test]
fn a_tree_of_three_levels_is_read_with_its_routes() {
    let Some(told) = subnet(&["--hosts", "64", "--radix", "8", "--levels", "3", "--engine", "updn"]) else { return };
    // Four pods of four leaves and four spines; four groups of two cores.
    judged(told, 64, 40, 192, 6);
}

/// The NIC ports with their rails: the number in `mlx5_3`.
fn ports(fabric: &Fabric, at: Vec<Option<(At, Run)>>) -> Vec<Attached> {
    let port = |(nic, at): (&Nic, Option<(At, Run)>)| {
        let ((at, run), device) = (at.unwrap(), nic.device.clone().unwrap());
        let rail = device.trim_start_matches("mlx5_").parse().unwrap();
        Attached { host: nic.host.clone().unwrap(), device, rail, at: Some(at), run, board: None, is_up: None }
    };
    fabric.nics.iter().zip(at).map(port).collect()
}

#[test]
fn a_swap_and_a_narrow_link_are_found_in_what_the_tools_say() {
    let faults = ["--swap", "gpu0005", "1", "gpu0005", "3", "--slow", "leaf6", "9", "--slow", "leaf2", "4"];
    let shape = ["--hosts", "32", "--rails", "4", "--radix", "16"];
    let Some(told) = subnet(&[&shape[..], &faults].concat()) else { return };
    let fabric = Fabric::join(&[told.0]);
    let (at, trunks) = plugged(&fabric);
    assert_eq!(trunks.len(), 128);
    let cabling = judge(&ports(&fabric, at), &trunks);
    let [Finding::Swapped { host, rails, .. }, Finding::Slower { ends: nic, .. }, Finding::Slower { ends: trunk, .. }] =
        cabling.findings.as_slice()
    else {
        panic!("{:?}", cabling.findings)
    };
    assert_eq!((host.as_str(), rails[0].0, rails[1].0), ("gpu0005", 1, 3));
    assert_eq!(*nic, ["gpu0004 mlx5_1".to_owned(), "leaf2 port 4".to_owned()]);
    assert!(trunk.contains(&"leaf6 port 9".to_owned()), "{trunk:?}");
    assert_eq!(cabling.unjudged, []);
}

/// A thousand hosts are read, joined and judged within the patience of somebody who checks a plan.
#[test]
fn a_thousand_hosts_are_read_soon() {
    let Some(told) = subnet(&["--hosts", "1024", "--radix", "64", "--engine", "updn"]) else { return };
    let began = Instant::now();
    let fabric = Fabric::join(&[told.0, told.1]);
    let (at, trunks) = plugged(&fabric);
    let ports = ports(&fabric, at);
    let cabling = judge(&ports, &trunks);
    eprintln!("joined and judged in {:.2} s", began.elapsed().as_secs_f64());
    assert_eq!((fabric.nics.len(), fabric.links.len(), cabling.findings), (1024, 2048, Vec::new()));
}
