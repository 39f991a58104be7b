//! Generated clusters: in healthy ones nothing is found, and of what is put in, exactly that.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Design {
    /// A leaf for each rail of a unit.
    Rails,
    OneLeaf,
    /// Each NIC has two ports, at the two leaves of a pair, both of one rail.
    Pairs,
    /// Each NIC has two ports in two planes, each a rail.
    Planes,
}

#[derive(Debug, Clone)]
struct Shape {
    design: Design,
    units: usize,
    hosts: usize,
    rails: u32,
    storage: bool,
    /// One host more in each unit, with its last NIC only.
    fewer: bool,
    /// Leaves of the upper half of rails serve all units.
    shared: bool,
    /// Later units have more hosts.
    uneven: bool,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let design = prop_oneof![Just(Design::Rails), Just(Design::OneLeaf), Just(Design::Pairs), Just(Design::Planes)];
    (design, 1..5_usize, 1..9_usize, 1..9_u32, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(design, units, hosts, rails, storage, fewer, shared, uneven)| Shape {
            design,
            units,
            hosts,
            rails,
            storage,
            fewer,
            shared,
            uneven,
        },
    )
}

fn at(name: String, port: usize) -> Option<At> {
    Some(At { key: format!("key of {name}"), name, port: Some(port.to_string()) })
}

fn run() -> Run {
    Run { rate_gbps: Some(400.0), width: Some(4), speed: Some("NDR".into()) }
}

fn cluster(shape: &Shape) -> Vec<Attached> {
    let mut all = Vec::new();
    for unit in 0..shape.units {
        let hosts = shape.hosts + if shape.uneven { 3 * unit } else { 0 };
        for place in 0..hosts + usize::from(shape.fewer) {
            let is_whole = place < hosts;
            let first = if is_whole { 0 } else { shape.rails - 1 };
            let host = format!("u{unit}h{place}");
            for nic in first..shape.rails {
                let world = if shape.shared && nic >= shape.rails / 2 { 9 } else { unit };
                let socket = if world == 9 { unit * 20 + place } else { place };
                let port = |device: String, rail: u32, at| Attached {
                    host: host.clone(),
                    device,
                    rail,
                    board: Some(format!("board{}", nic / 2)),
                    at,
                    run: run(),
                    is_up: None,
                };
                let (device, rail) = (format!("mlx5_{nic}"), nic - first);
                match shape.design {
                    Design::Rails => all.push(port(device, rail, at(format!("leaf{world}r{nic}"), socket))),
                    Design::OneLeaf => {
                        all.push(port(device, rail, at(format!("leaf{unit}"), place * 8 + nic as usize)))
                    }
                    Design::Pairs => all.extend((1..3).map(|side| {
                        port(format!("{device}:{side}"), rail, at(format!("leaf{world}r{nic}side{side}"), socket))
                    })),
                    Design::Planes => all.extend((0..2).map(|plane| {
                        let leaf = at(format!("plane{plane}leaf{world}r{nic}"), socket);
                        port(format!("{device}:{}", plane + 1), rail * 2 + plane, leaf)
                    })),
                }
            }
            if shape.storage && is_whole {
                let rail = 2 * shape.rails;
                let at = at("storage".into(), unit * 20 + place);
                let run = Run { rate_gbps: Some(100.0), width: Some(2), speed: Some("HDR".into()) };
                all.push(Attached {
                    host: host.clone(),
                    device: "mlx5_9".into(),
                    rail,
                    board: None,
                    at,
                    run,
                    is_up: None,
                });
            }
        }
    }
    all
}

fn port<'c>(cluster: &'c mut [Attached], host: &str, rail: u32) -> &'c mut Attached {
    cluster.iter_mut().find(|port| port.host == host && port.rail == rail).unwrap()
}

fn exchange(cluster: &mut [Attached], one: (&str, u32), other: (&str, u32)) {
    let first = port(cluster, one.0, one.1).at.take();
    let second = std::mem::replace(&mut port(cluster, other.0, other.1).at, first);
    port(cluster, one.0, one.1).at = second;
}

fn found(cluster: &[Attached]) -> Vec<Finding> {
    judge(cluster, &[]).findings
}

proptest! {
    #[test]
    fn nothing_is_found_in_a_healthy_cluster(shape in shapes()) {
        let cabling = judge(&cluster(&shape), &[]);
        prop_assert!(cabling.findings.is_empty(), "{:?}", cabling.findings);
    }

    #[test]
    fn every_swap_is_found_and_nothing_else(shape in shapes(), one in 0..16_u32, other in 1..16_u32, hosts in 3..9_usize) {
        let design = if shape.design == Design::OneLeaf { Design::Rails } else { shape.design };
        let shape = Shape { design, hosts, rails: shape.rails.max(2), ..shape };
        let count = if shape.design == Design::Planes { 2 * shape.rails } else { shape.rails };
        let (one, other) = (one % count, (one % count + 1 + other % (count - 1)) % count);
        let mut cluster = cluster(&shape);
        // One host of each unit.
        for unit in 0..shape.units {
            let host = format!("u{unit}h{}", unit % hosts);
            exchange(&mut cluster, (&host, one), (&host, other));
        }
        let findings = found(&cluster);
        prop_assert_eq!(findings.len(), shape.units, "{:?}", findings);
        for (unit, finding) in findings.iter().enumerate() {
            let Finding::Swapped { host, rails: [first, second], .. } = finding else { panic!("{finding:?}") };
            prop_assert_eq!(host, &format!("u{unit}h{}", unit % hosts));
            prop_assert_eq!((first.0, second.0), (one.min(other), one.max(other)));
        }
    }

    #[test]
    fn cables_in_the_wrong_unit_are_found(shape in shapes(), rail in 0..8_u32, hosts in 3..9_usize, rails in 3..9_u32) {
        let shape = Shape { design: Design::Rails, hosts, rails, units: shape.units.max(2), shared: false, ..shape };
        let (mut cluster, rail) = (cluster(&shape), rail % rails);
        exchange(&mut cluster, ("u0h0", rail), ("u1h1", rail));
        let findings = found(&cluster);
        prop_assert_eq!(findings.len(), 2, "{:?}", findings);
        for (finding, (wanted, leaf)) in findings.iter().zip([("u0h0", "leaf0"), ("u1h1", "leaf1")]) {
            let Finding::WrongLeaf { host, rail: at, expected, like, .. } = finding else { panic!("{finding:?}") };
            prop_assert_eq!((host.as_str(), *at, expected.clone()), (wanted, rail, format!("{leaf}r{rail}")));
            prop_assert_eq!(*like, None);
        }
    }

    #[test]
    fn any_disorder_is_judged_without_panic(shape in shapes(), moves in prop::collection::vec((0..999_usize, 0..999_usize, 0..4_u8), 0..30)) {
        let mut cluster = cluster(&shape);
        let count = cluster.len();
        for (one, other, how) in moves {
            let (one, other) = (one % count, other % count);
            match how {
                0 => cluster[one].at = None,
                1 => cluster[one].at = cluster[other].at.clone(),
                2 => cluster[one].rail = cluster[other].rail,
                _ => cluster[one].run = Run::default(),
            }
        }
        let cabling = judge(&cluster, &[]);
        prop_assert!(cabling.findings.iter().all(|finding| !finding.hosts().is_empty() && !finding.to_string().is_empty()));
    }

    #[test]
    fn a_slow_or_missing_cable_is_found(shape in shapes(), rail in 0..8_u32, hosts in 3..9_usize, slow: bool) {
        let shape = Shape { design: Design::Rails, hosts, rails: shape.rails.max(2), ..shape };
        let (mut cluster, rail) = (cluster(&shape), rail % shape.rails);
        let hit = port(&mut cluster, "u0h2", rail);
        if slow {
            hit.run = Run { rate_gbps: Some(100.0), width: Some(1), ..run() };
        } else {
            hit.at = None;
        }
        let findings = found(&cluster);
        prop_assert_eq!(findings.len(), 1, "{:?}", findings);
        prop_assert_eq!(findings[0].hosts(), ["u0h2"]);
        let is_right = if slow { matches!(findings[0], Finding::Slower { .. }) } else { matches!(findings[0], Finding::Uncabled { .. }) };
        prop_assert!(is_right, "{:?}", findings);
    }
}

const SMALL: Shape = Shape {
    design: Design::Rails,
    units: 2,
    hosts: 4,
    rails: 4,
    storage: false,
    fewer: false,
    shared: false,
    uneven: false,
};

#[test]
fn words_name_cable_leaf_and_port() {
    let mut cluster = cluster(&SMALL);
    exchange(&mut cluster, ("u0h1", 0), ("u0h1", 3));
    let text = found(&cluster)[0].to_string();
    for word in ["u0h1", "rails 0 and 3", "mlx5_0 is at leaf0r3 port 1", "mlx5_3 at leaf0r0 port 1", "3 of 4 hosts"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn two_rails_of_two_hosts_exchanged_are_told_with_whose_leaf_it_is() {
    let mut cluster = cluster(&SMALL);
    exchange(&mut cluster, ("u0h1", 0), ("u0h2", 3));
    let like: Vec<_> = found(&cluster)
        .into_iter()
        .map(|finding| match finding {
            Finding::WrongLeaf { host, rail, like, .. } => (host, rail, like),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(like, [("u0h1".into(), 0, Some(3)), ("u0h2".into(), 3, Some(0))]);
}

#[test]
fn where_fellows_do_not_agree_nothing_is_found_and_that_is_said() {
    let two = Shape { hosts: 2, units: 1, ..SMALL };
    let mut few = cluster(&two);
    exchange(&mut few, ("u0h0", 0), ("u0h0", 1));
    let cabling = judge(&few, &[]);
    assert_eq!((cabling.findings.len(), cabling.unjudged.is_empty()), (0, false));
    let mut halves = cluster(&SMALL);
    for host in ["u0h0", "u0h1"] {
        exchange(&mut halves, (host, 0), (host, 1));
    }
    let cabling = judge(&halves, &[]);
    assert!(cabling.findings.is_empty(), "{:?}", cabling.findings);
    assert_eq!(cabling.unjudged.len(), 2, "{:?}", cabling.unjudged);
}

#[test]
fn boards_at_unlike_ports_and_sockets_claimed_twice() {
    let mut cluster = cluster(&SMALL);
    port(&mut cluster, "u1h2", 1).at = at("leaf1r1".into(), 3);
    let findings = found(&cluster);
    let [Finding::UnlikePorts { host, board, agree, .. }, Finding::Claimed { at, by }] = findings.as_slice() else {
        panic!("{findings:?}");
    };
    assert_eq!((host.as_str(), board.as_str(), *agree), ("u1h2", "board0", Agree { agree: 3, of: 4 }));
    assert_eq!((at.to_string().as_str(), by.len()), ("leaf1r1 port 3", 2));
}

#[test]
fn a_host_that_no_source_saw_is_not_called_uncabled() {
    let mut cluster = cluster(&SMALL);
    cluster.iter_mut().filter(|port| port.host == "u0h0").for_each(|port| port.at = None);
    let cabling = judge(&cluster, &[]);
    assert_eq!((cabling.findings, cabling.unjudged.len()), (Vec::new(), 1));
}

/// Leaves l0 to l3 with two links to each of the spines s0 and s1, and a slower link from each spine to each of two gateways.
fn trunks() -> Vec<Trunk> {
    let end = |name: String, port: usize| At { key: name.clone(), name, port: Some(port.to_string()) };
    let mut all = Vec::new();
    for spine in 0..2 {
        for leaf in 0..4 {
            for line in 0..2 {
                let ends = [end(format!("l{leaf}"), 10 + spine * 2 + line), end(format!("s{spine}"), leaf * 2 + line)];
                all.push(Trunk { ends, run: run() });
            }
        }
        for gateway in 0..2 {
            let ends = [end(format!("s{spine}"), 30 + gateway), end(format!("g{gateway}"), spine)];
            all.push(Trunk { ends, run: Run { rate_gbps: Some(100.0), ..run() } });
        }
    }
    all
}

#[test]
fn a_trunk_is_judged_by_those_at_both_ends() {
    let healthy = trunks();
    assert_eq!(judge(&[], &healthy).findings, []);
    for hit in (0..healthy.len()).filter(|hit| healthy[*hit].run == run()) {
        let mut trunks = healthy.clone();
        trunks[hit].run = Run { rate_gbps: Some(200.0), width: Some(2), ..run() };
        let findings = judge(&[], &trunks).findings;
        let [Finding::Slower { ends, agree, .. }] = findings.as_slice() else { panic!("{findings:?}") };
        assert_eq!(*ends, [healthy[hit].ends[0].to_string(), healthy[hit].ends[1].to_string()]);
        assert_eq!(*agree, Agree { agree: 3, of: 4 });
    }
}
