//! Small fabrics whose paths can be counted by hand.

use super::*;
use crate::topology::told::{Cable, Device, Plug};

fn switch(key: &str, port: Option<u32>) -> Plug {
    Plug { device: Device::Switch(key.to_owned()), port: port.map(|port| port.to_string()) }
}

fn nic(host: &str, device: Option<&str>, lid: Option<u32>) -> Plug {
    let nic = Nic { host: Some(host.to_owned()), device: device.map(str::to_owned), lid, ..Nic::default() };
    Plug { device: Device::Nic(nic), port: None }
}

fn cable(a: Plug, b: Plug) -> Cable {
    Cable { a, b, rate_gbps: Some(400.0), width: None, speed: None }
}

/// Hosts h0 to h3, two below each of the leaves l0 and l1; spines s0 and s1, with this many cables from each leaf to each. Leaf ports 1
/// and 2 are hosts, then come the spines.
fn tree(parallel: u32) -> Told {
    let mut told = Told { source: "tree".into(), ..Told::default() };
    for key in ["l0", "l1", "s0", "s1"] {
        told.switches.insert(key.into(), Switch { name: key.into(), ..Switch::default() });
    }
    for host in 0..4_u32 {
        let leaf = format!("l{}", host / 2);
        told.cables
            .push(cable(nic(&format!("h{host}"), Some("mlx5_0"), Some(host + 1)), switch(&leaf, Some(host % 2 + 1))));
    }
    for (leaf, spine) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for line in 0..parallel {
            let (up, down) = (3 + spine * parallel + line, 1 + leaf * parallel + line);
            told.cables.push(cable(switch(&format!("l{leaf}"), Some(up)), switch(&format!("s{spine}"), Some(down))));
        }
    }
    told
}

fn place(fabric: &Fabric, host: &str) -> u32 {
    fabric.nics_of(&[host], Some("mlx5_0"), 1, &[])[0]
}

/// The nodes and ports that a path passes: `h0 l0:3 s0:1 …`, each hop by the end that it leaves.
fn words(fabric: &Fabric, path: &[Hop]) -> Vec<String> {
    let told = |end: &End| match end.node {
        Node::Switch(switch) => {
            format!("{}:{}", fabric.switches[switch as usize].name, end.port.as_deref().unwrap_or("?"))
        }
        Node::Nic(nic) => fabric.nics[nic as usize].host.clone().unwrap_or_default(),
    };
    path.iter().map(|hop| format!("{} {}", told(fabric.hop(*hop).1), told(fabric.hop(*hop).2))).collect()
}

#[test]
fn levels_count_from_the_hosts() {
    let fabric = Fabric::join(&[tree(1)]);
    let levels: Vec<_> = fabric.switches.iter().map(|place| (place.name.as_str(), place.level)).collect();
    assert_eq!(levels, [("l0", Some(1)), ("l1", Some(1)), ("s0", Some(2)), ("s1", Some(2))]);
}

#[test]
fn below_one_leaf_there_is_one_path() {
    let fabric = Fabric::join(&[tree(2)]);
    let Route::Known(path) = fabric.route(place(&fabric, "h0"), place(&fabric, "h1")) else { panic!() };
    assert_eq!(words(&fabric, &path), ["h0 l0:1", "l0:2 h1"]);
}

#[test]
fn without_tables_every_shortest_path_is_one_that_may_be() {
    for parallel in [1, 2, 3] {
        let fabric = Fabric::join(&[tree(parallel)]);
        let Route::OneOf(paths) = fabric.route(place(&fabric, "h0"), place(&fabric, "h3")) else { panic!() };
        assert_eq!(paths.len() as u32, 2 * parallel * parallel);
        for path in paths {
            let words = words(&fabric, &path);
            assert_eq!(words.len(), 4);
            assert!(words[0] == "h0 l0:1" && words[3] == "l1:2 h3", "{words:?}");
        }
    }
}

#[test]
fn tables_say_which_path_it_is() {
    let mut told = tree(2);
    // To h3, LID 4: l0 sends by port 6 (the second cable to s1), s1 by port 3 (its first to l1), l1 by port 2.
    for (key, port) in [("l0", 6), ("s1", 3), ("l1", 2)] {
        told.switches.get_mut(key).unwrap().routes.insert(4, port);
    }
    let fabric = Fabric::join(&[told.clone()]);
    let Route::Known(path) = fabric.route(place(&fabric, "h0"), place(&fabric, "h3")) else { panic!() };
    assert_eq!(words(&fabric, &path), ["h0 l0:1", "l0:6 s1:2", "s1:3 l1:5", "l1:2 h3"]);
    // A table that has nothing for the LID, one that leads in a circle, one that leads to a port without a cable.
    for (key, lid, port, why) in
        [("s1", 4, None, "no port"), ("s1", 4, Some(1), "circle"), ("s1", 4, Some(99), "no cable")]
    {
        let mut wrong = told.clone();
        let routes = &mut wrong.switches.get_mut(key).unwrap().routes;
        match port {
            None => drop(routes.remove(&lid)),
            Some(port) => drop(routes.insert(lid, port)),
        }
        routes.insert(77, 1);
        let fabric = Fabric::join(&[wrong]);
        let Route::Unknown(said) = fabric.route(place(&fabric, "h0"), place(&fabric, "h3")) else { panic!() };
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn what_knows_ports_and_nics_counts_before_what_does_not() {
    let mut coarse = Told { source: "slurm".into(), ..Told::default() };
    for key in ["l0", "l1", "top"] {
        coarse.switches.insert(key.into(), Switch { name: key.into(), ..Switch::default() });
    }
    for host in 0..4 {
        coarse
            .cables
            .push(cable(nic(&format!("h{host}.example"), None, None), switch(&format!("l{}", host / 2), None)));
    }
    for leaf in ["l0", "l1"] {
        coarse.cables.push(cable(switch(leaf, None), switch("top", None)));
    }
    let alone = Fabric::join(std::slice::from_ref(&coarse));
    let Route::Known(path) = alone.route(place(&alone, "h0"), place(&alone, "h3")) else { panic!() };
    assert_eq!(path.len(), 4);
    let both = Fabric::join(&[tree(1), coarse]);
    // The hosts' places give way to their NICs' cables; no other source has `top`.
    assert_eq!((both.nics.len(), both.links.len(), both.switches.len()), (4, 10, 5));
}

#[test]
fn a_host_is_found_by_guid_by_name_and_device_and_by_name() {
    let mut told = tree(1);
    let with_guid = Nic { guid: Some("0123456789abcdef".into()), ..Nic::default() };
    told.cables.push(cable(Plug { device: Device::Nic(with_guid), port: None }, switch("l1", Some(9))));
    let fabric = Fabric::join(&[told]);
    let host_of = |found: &[u32]| found.iter().map(|nic| fabric.nics[*nic as usize].host.clone()).collect::<Vec<_>>();
    assert_eq!(host_of(&fabric.nics_of(&["H2.rack.example"], Some("mlx5_0"), 1, &[])), [Some("h2".to_owned())]);
    assert_eq!(host_of(&fabric.nics_of(&["h2"], Some("mlx5_0"), 1, &["0123456789abcdef".into()])), [None]);
    assert!(fabric.nics_of(&["h2"], Some("mlx5_7"), 1, &[]).is_empty());
    assert!(fabric.nics_of(&["h22"], Some("mlx5_0"), 1, &[]).is_empty());
}

/// Slurm knows that a host is below a switch, and a cable with its port knows more.
#[test]
fn a_cable_with_its_port_counts_before_a_host_below_a_switch() {
    let source = |cables: &[(&str, &str, Option<&str>)]| {
        let mut told = Told::default();
        for (host, switch, port) in cables {
            told.switches.insert((*switch).into(), Switch { name: (*switch).into(), ..Switch::default() });
            let nic = Nic { host: Some((*host).into()), ..Nic::default() };
            let a = Plug { device: Device::Nic(nic), port: None };
            let b = Plug { device: Device::Switch((*switch).into()), port: port.map(str::to_owned) };
            told.cables.push(Cable { a, b, rate_gbps: None, width: None, speed: None });
        }
        told
    };
    let slurm = source(&[("n1", "leaf1", None), ("n2", "leaf1", None), ("n3", "leaf2", None)]);
    let cables = source(&[("n1", "leaf2", Some("1")), ("n2", "leaf1", Some("2"))]);
    for told in [[slurm.clone(), cables.clone()], [cables, slurm]] {
        let fabric = Fabric::join(&told);
        let leaf = |host: &str| {
            let nic = fabric.nics_of(&[host], None, 1, &[]);
            let [nic] = nic.as_slice() else { panic!("{host} is at {nic:?}") };
            let (_, switch) = fabric.leaf(*nic).unwrap();
            fabric.switches[switch as usize].name.clone()
        };
        assert_eq!(["n1", "n2", "n3"].map(leaf), ["leaf2", "leaf1", "leaf2"]);
        // One contradiction, and one that agrees.
        let [remark] = fabric.remarks.as_slice() else { panic!("{:?}", fabric.remarks) };
        assert!(remark.contains("n1") && remark.contains("leaf1"), "{remark}");
    }
}
