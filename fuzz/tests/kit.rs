//! From files of a host to a kit, to a fixture, and back to facts: the same facts come out.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::{collections::BTreeMap, fs, net::IpAddr};

use fixture_of_kit::{fixtures, repeatable};
use railgauge::kit::{
    anonymise::Anonymiser,
    archive::{Item, Items, Manifest},
    tree,
};
use railgauge_agent::parts::{Address, Live, PortAnswer, Tree, collect, interfaces, read_below};
use railgauge_wire::facts::HostFacts;

#[path = "../../tests/support/fixture_of_kit.rs"]
#[allow(dead_code, reason = "an example prints the rest")]
mod fixture_of_kit;

#[path = "../../agent/src/facts/tests/fixture.rs"]
#[allow(missing_docs, dead_code, reason = "the agent's tests use it too")]
mod fixture;

/// A kit with one host.
fn kit(root: &str, facts: &HostFacts, anonymiser: Option<&mut Anonymiser>) -> (Manifest, Items) {
    let mut items = Items::new();
    items.insert("facts.json".into(), tree::facts(facts).unwrap());
    tree::add(&read_below(root, facts.gpus.clone()).0, &[], &mut items).unwrap();
    let anonymized = anonymiser.is_some();
    if let Some(to) = anonymiser {
        to.items(items.clone());
        items = to.items(items);
    }
    let manifest = Manifest { anonymized, hosts: [("h".into(), "h".into())].into(), ..Manifest::default() };
    let of_host = |(path, item)| {
        let item = if let Item::Link(to) = item { Item::Link(format!("hosts/h/{to}")) } else { item };
        (format!("hosts/h/{path}"), item)
    };
    (manifest, items.into_iter().map(of_host).collect())
}

/// The facts of a kit's host, read from its fixture; and those that were recorded.
fn through_a_fixture((manifest, items): (Manifest, Items)) -> (HostFacts, HostFacts) {
    let [made] = &fixtures(&manifest, &items).unwrap()[..] else { panic!("one host") };
    assert!(made.skipped.is_empty(), "{:?}", made.skipped);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("made.host");
    fs::write(&path, &made.text).unwrap();
    (repeatable(fixture::unpack(path.to_str().unwrap()).facts()), made.facts.clone())
}

/// The same, with names replaced: `known` must be gone.
fn anonymised(root: &str, facts: &HostFacts, known: &[String]) -> HostFacts {
    let mut to = Anonymiser::new([3; 32], [(facts.hostname.as_str(), "host-1".to_owned())]).unwrap();
    let (manifest, items) = kit(root, facts, Some(&mut to));
    for (path, item) in &items {
        let text = match item {
            Item::File(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Item::Link(to) => to.clone(),
        };
        let left = known.iter().find(|original| text.contains(*original) || path.contains(*original));
        assert!(left.is_none(), "{left:?} is in {path}");
    }
    let (read, recorded) = through_a_fixture((manifest, items));
    assert_eq!(read, recorded);
    read
}

#[test]
fn facts_of_every_fixture_come_back_through_a_kit() {
    for name in ["roce8", "infiniband", "erdma", "softroce", "broken"] {
        let mut host = fixture::unpack(&format!("{name}.host"));
        host.line("proc/sys/kernel/hostname = tellurium7");
        host.line("proc/cmdline = iommu=pt password=secret");
        let (facts, root) = (host.facts(), host.root.path().to_str().unwrap());
        let (read, recorded) = through_a_fixture(kit(root, &facts, None));
        let mut expected = HostFacts { command_line: Some("iommu=pt".into()), ..repeatable(facts.clone()) };
        // Kits have no names of processes, in no form.
        for xid in expected.xids.iter_mut().flatten() {
            xid.text = xid.text.replace("pid='<unknown>', name=<unknown>, ", "");
        }
        assert_eq!(recorded, expected, "{name}");
        assert_eq!(read, expected, "{name}");
        let gids =
            facts.rdma.iter().flat_map(|device| &device.ports).flat_map(|port| &port.gids).map(|gid| gid.gid.clone());
        let addresses = facts.interfaces.iter().flat_map(|interface| interface.addresses.clone());
        // Every host has the loopback's.
        let addresses = addresses.filter(|address| !address.parse::<IpAddr>().unwrap().is_loopback());
        let guids = facts.rdma.iter().filter_map(|device| device.guid.clone());
        let known: Vec<String> = gids.chain(addresses).chain(guids).chain([facts.hostname.clone()]).collect();
        let hidden = anonymised(root, &facts, &known);
        assert_eq!((hidden.rdma.len(), hidden.interfaces.len()), (facts.rdma.len(), facts.interfaces.len()));
        // What is no name stays.
        let shape = |facts: &HostFacts| {
            facts
                .rdma
                .iter()
                .map(|device| (device.driver.clone(), device.pci.clone(), device.function.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(shape(&hidden), shape(&facts));
        assert_eq!(hidden.cpu, facts.cpu);
    }
}

#[test]
fn facts_of_this_host_come_back_through_a_kit() {
    let tree = Tree::new("/");
    let live = Live::here(&tree);
    let facts = collect(tree, live);
    let (read, recorded) = through_a_fixture(kit("/", &facts, None));
    // Xids and what the machine does meanwhile may differ; what it is does not.
    let still = |facts: HostFacts| HostFacts { xids: None, huge_pages: Vec::new(), ..facts };
    assert_eq!(still(read), still(recorded));
}
