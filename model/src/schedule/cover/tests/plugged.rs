//! From what sources say to rounds.

use std::collections::BTreeMap;

use super::{
    super::{Switches, cover},
    *,
};
use crate::topology::{
    Fabric,
    told::{Cable, Device, Nic, Plug, Switch, Told},
};

/// Two leaves with two hosts each and two spines; LIDs of hosts are 1 to 4. With tables, odd LIDs go over the first spine.
fn told(has_tables: bool) -> Told {
    let mut told = Told::default();
    let plug = |device, port: u32| Plug { device, port: (port > 0).then(|| port.to_string()) };
    let switch = |name: &str| Device::Switch(name.into());
    let mut cable = |a: Plug, b: Plug| {
        told.cables.push(Cable { a, b, rate_gbps: Some(200.0), width: None, speed: None });
    };
    for (host, leaf) in [(1, "l1"), (2, "l1"), (3, "l2"), (4, "l2")] {
        let nic = Nic { host: Some(format!("h{host}")), lid: Some(host), ..Nic::default() };
        cable(plug(Device::Nic(nic), 0), plug(switch(leaf), 2 - host % 2));
    }
    for (leaf, port) in [("l1", 1), ("l2", 2)] {
        cable(plug(switch(leaf), 3), plug(switch("s1"), port));
        cable(plug(switch(leaf), 4), plug(switch("s2"), port));
    }
    let table = |ports: [u32; 4]| if has_tables { (1..).zip(ports).collect() } else { BTreeMap::new() };
    for (name, ports) in [("l1", [1, 2, 3, 4]), ("l2", [3, 4, 1, 2]), ("s1", [1, 1, 2, 2]), ("s2", [1, 1, 2, 2])] {
        told.switches.insert(name.into(), Switch { name: name.into(), lid: None, routes: table(ports) });
    }
    told
}

fn switches(has_tables: bool, places: [Option<u32>; 4]) -> Switches {
    Switches::new(&Fabric::join(&[told(has_tables)]), &[0, 1, 2, 3].map(|host| (host, places[host as usize])))
}

#[test]
fn tables_give_the_ways() {
    let found = switches(true, [0, 1, 2, 3].map(Some));
    assert_eq!((found.hops.len(), found.is_hashed), (8, false));
    assert_eq!(found.network.path(0, 1), Some(&[][..]));
    assert_eq!(found.network.path(0, 2).map(<[Link]>::len), Some(2));
    let cover = cover(&found.network, wanted());
    assert_valid(&found.network, &cover);
    assert_eq!((cover.rounds.len(), cover.loaded.len()), (2, 8));
}

#[test]
fn without_tables_no_way_over_equal_paths_is_known() {
    let found = switches(false, [0, 1, 2, 3].map(Some));
    assert!(found.is_hashed);
    let cover = cover(&found.network, wanted());
    assert_eq!((cover.rounds.len(), cover.not_loaded.len()), (0, 8));
}

#[test]
fn an_end_that_no_source_knows_is_in_no_round() {
    let found = switches(true, [Some(0), None, Some(2), None]);
    let cover = cover(&found.network, wanted());
    assert!(cover.rounds.iter().flatten().all(|(from, to)| from % 2 == 0 && to % 2 == 0));
    assert_eq!((cover.rounds.len(), cover.loaded.len()), (2, 4));
}
