//! Verbs on a host without an RDMA device: agents with a double of libibverbs (`examples/verbs_double`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests, outside of the test functions

mod controller;
#[path = "../../tests/support/example.rs"]
mod example;
#[path = "../src/facts/tests/tree.rs"]
#[allow(dead_code, missing_docs)] // the facts' own tests use the rest
mod tree;

use std::{path::PathBuf, sync::LazyLock};

use controller::{
    Agent, command,
    pair::{Pair, timing},
};
use railgauge_wire::{
    link::{Completion, Knobs, LinkSpec, Opened, Role, WriteLatency},
    message::{Answer, Ask},
    step::{Checked, Step, Window},
    terms::{Carrier, LinkLayer, Op, Service, TestMetric, Transport},
    unit::{Bytes, GigabitsPerSecond, MegabitsPerSecond, Nanoseconds},
};

/// The double.
static LIBRARY: LazyLock<PathBuf> =
    LazyLock::new(|| example::folder_with("railgauge-agent", "verbs_double").join("libverbs_double.so"));

/// A device of a RoCE profile: profile, name, driver, what sysfs says of its rate, what its interface says.
type Roce = (&'static str, &'static str, &'static str, &'static str, &'static str);

const ROCE: [Roce; 5] = [
    ("mlx5-roce", "mlx5_0", "mlx5_core", "400 Gb/sec (4X NDR)", "400000"),
    ("mlx5-bond", "mlx5_bond_0", "mlx5_core", "400 Gb/sec (4X NDR)", "400000"),
    ("bnxt", "bnxt_re0", "bnxt_en", "100 Gb/sec (4X EDR)", "200000"),
    ("ionic", "ionic_0", "ionic", "100 Gb/sec (4X EDR)", "200000"),
    ("irdma-roce", "irdma0", "ice", "100 Gb/sec (4X EDR)", "100000"),
];

/// Two agents on one fabric, each a host with the devices that `settings` make.
struct Fabric {
    pair: Pair,
    _folder: tempfile::TempDir,
}

impl Fabric {
    fn new(settings: &[(&str, &str)]) -> Self {
        Self::of(settings, None)
    }

    /// As [`new`](Self::new), with the tree of a host (`hosts/double`) and what takes the place of words in it.
    fn with_tree(profile: &str, host: &str, values: &[(&str, &str)]) -> Self {
        Self::of(&[("VERBS_DOUBLE_PROFILE", profile)], Some((host, values)))
    }

    fn of(settings: &[(&str, &str)], tree: Option<(&str, &[(&str, &str)])>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let agent = |host: &str| {
            let mut command = command();
            command.env("RAILGAUGE_IBVERBS", &*LIBRARY).env("RAILGAUGE_RDMACM", &*LIBRARY);
            command.env("VERBS_DOUBLE_DIR", folder.path()).env("VERBS_DOUBLE_HOST", host);
            if let Some((name, values)) = tree {
                let root = folder.path().join(format!("root{host}"));
                let values: Vec<_> = values.iter().copied().chain([("%host", host)]).collect();
                tree::unpack(&format!("double/{name}.host"), &root, &values);
                command.env("RAILGAUGE_ROOT", root);
            }
            Agent::greeted(command.envs(settings.iter().copied()))
        };
        Self { pair: Pair { initiator: agent("1"), responder: agent("2") }, _folder: folder }
    }

    /// A verified message and a few more on a link of one queue pair.
    fn writes(&mut self) -> (Opened, Opened) {
        let ends = self.pair.open(verbs(Service::Rc), 1, 65536).unwrap();
        let right = Checked { verified: Bytes(65536), wrong: Bytes(0), first_wrong: None };
        assert_eq!(self.pair.verify(Op::Write, 65536, 1), right);
        let (near, _) = self.pair.time(timing(Op::Write, TestMetric::Bandwidth, 65536, Window::Iterations(20)));
        assert_eq!(near.operations, 20);
        ends
    }
}

fn verbs(service: Service) -> impl Fn(&mut LinkSpec) {
    move |spec| {
        (spec.transport, spec.service, spec.address) = (Transport::Verbs, service, None);
        // The threads of the double share this machine's processors with everything else.
        spec.knobs = Knobs { timeout: Some(18), write_latency: Some(WriteLatency::Poll), ..Knobs::default() };
    }
}

#[test]
fn every_operation_moves_the_bytes_it_says() {
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_PROFILE", "mlx5-roce")]);
    let (near, _) = fabric.pair.open(verbs(Service::Rc), 2, 1 << 20).unwrap();
    assert_eq!((near.transport, near.link_layer), (Carrier::VerbsRc, LinkLayer::RoceV2));
    for (op, size) in
        [(Op::Write, 7), (Op::Write, 1 << 20), (Op::Read, 100_003), (Op::Send, 65536), (Op::WriteImm, 4096)]
    {
        let right = Checked { verified: Bytes(2 * size), wrong: Bytes(0), first_wrong: None };
        assert_eq!(fabric.pair.verify(op, size, 1), right, "{op}");
        let (near, _) = fabric.pair.time(timing(op, TestMetric::Bandwidth, size, Window::Iterations(20)));
        assert_eq!((near.operations, near.bytes), (40, Bytes(40 * size)), "{op}");
        assert_eq!(fabric.pair.verify(op, size, 2), right, "{op}");
    }
    for op in [Op::AtomicFadd, Op::AtomicCas] {
        let (near, _) = fabric.pair.time(timing(op, TestMetric::Bandwidth, 8, Window::Iterations(20)));
        assert_eq!(near.operations, 40, "{op}");
    }
}

#[test]
fn every_operation_has_a_latency() {
    let mut fabric = Fabric::new(&[]);
    fabric.pair.open(verbs(Service::Rc), 1, 65536).unwrap();
    for (op, size) in [(Op::Write, 8), (Op::WriteImm, 8), (Op::Read, 4096), (Op::Send, 8), (Op::AtomicFadd, 8)] {
        let (near, _) = fabric.pair.time(timing(op, TestMetric::Latency, size, Window::Iterations(20)));
        assert_eq!(near.operations, 20, "{op}: {near:?}");
        assert!(near.latency.is_some(), "{op}");
    }
}

#[test]
fn unreliable_services_move_bytes_too() {
    for (service, carrier, op, size) in
        [(Service::Uc, Carrier::VerbsUc, Op::Write, 65536), (Service::Ud, Carrier::VerbsUd, Op::Send, 4096)]
    {
        let mut fabric = Fabric::new(&[]);
        let (near, _) = fabric.pair.open(verbs(service), 1, size).unwrap();
        assert_eq!(near.transport, carrier);
        assert_eq!(
            fabric.pair.verify(op, size, 1),
            Checked { verified: Bytes(size), wrong: Bytes(0), first_wrong: None },
            "{service}"
        );
        let (near, far) = fabric.pair.time(timing(op, TestMetric::Bandwidth, size, Window::Iterations(20)));
        assert_eq!(near.operations, 20, "{service}: {near:?} {far:?}");
    }
}

#[test]
fn a_sleeping_loop_is_woken_by_events() {
    let mut fabric = Fabric::new(&[]);
    let change = |spec: &mut LinkSpec| {
        verbs(Service::Rc)(spec);
        spec.knobs.completion = Some(Completion::Events);
    };
    fabric.pair.open(change, 2, 65536).unwrap();
    let (near, _) = fabric.pair.time(timing(Op::Write, TestMetric::Bandwidth, 65536, Window::Iterations(20)));
    assert_eq!(near.operations, 40);
}

#[test]
fn roce_devices_of_every_maker_carry_writes() {
    for (profile, device, driver, rate, speed) in ROCE {
        let values = [("%device", device), ("%driver", driver), ("%rate", rate), ("%speed", speed)];
        let (near, _) = Fabric::with_tree(profile, "roce", &values).writes();
        assert_eq!((&*near.device, near.link_layer, near.software), (device, LinkLayer::RoceV2, false), "{profile}");
        assert!(near.rate_gbps.is_some_and(|found| rate.starts_with(&format!("{found} "))), "{profile}: {near:?}");
    }
}

#[test]
fn facts_are_those_of_the_tree_and_of_the_library() {
    for (profile, device, driver, rate, speed) in ROCE {
        let values = [("%device", device), ("%driver", driver), ("%rate", rate), ("%speed", speed)];
        let mut fabric = Fabric::with_tree(profile, "roce", &values);
        let Ok(Answer::Facts(facts)) = fabric.pair.responder.ask(Ask::Facts) else { panic!("{profile}: no facts") };
        assert_eq!((&*facts.hostname, facts.rdma.len()), ("double2", 1), "{profile}");
        let found = &facts.rdma[0];
        assert_eq!((&*found.name, found.driver.as_deref(), found.software), (device, Some(driver), false), "{profile}");
        let port = &found.ports[0];
        assert_eq!((port.mtu, port.netdev.as_deref()), (Some(4096), Some("rail0")), "{profile}");
        let reported = rate.split(' ').next().and_then(|rate| rate.parse().ok()).map(GigabitsPerSecond);
        assert_eq!(port.verbs_rate_gbps, reported, "{profile}");
        // Some of these drivers report a rate that is not the interface's, which is the true one.
        let true_one = speed.parse().ok().map(|megabits| GigabitsPerSecond::from(MegabitsPerSecond(megabits)));
        assert_eq!(port.rate_gbps, true_one, "{profile}");
        assert!(facts.unreadable.keys().all(|what| !what.contains("rail0")), "{profile}: {:?}", facts.unreadable);
    }
}

#[test]
fn infiniband_is_addressed_by_lid() {
    let values = [("%pkey0", "0xffff"), ("%pkey1", "0x0000")];
    let (near, _) = Fabric::with_tree("mlx5-ib", "infiniband", &values).writes();
    assert_eq!((near.link_layer, near.software), (LinkLayer::Infiniband, false));
}

#[test]
fn a_port_that_wants_a_global_route_header_gets_one() {
    let values = [("%pkey0", "0xffff"), ("%pkey1", "0x0000")];
    let (near, _) = Fabric::with_tree("ib-vf", "infiniband", &values).writes();
    assert_eq!(near.link_layer, LinkLayer::Infiniband);
}

#[test]
fn efa_is_refused_by_its_name() {
    let mut fabric = Fabric::with_tree("efa", "efa", &[]);
    let mut spec = controller::pair::spec(Role::Initiator, 1, 65536);
    verbs(Service::Rc)(&mut spec);
    let failure = fabric.pair.initiator.ask(Ask::Open { link: 1, spec: Box::new(spec) }).unwrap_err();
    assert!(failure.cause.contains("EFA"), "{failure}");
}

#[test]
fn iwarp_is_joined_by_rdma_cm_and_has_no_atomics() {
    let mut fabric = Fabric::with_tree("irdma-iwarp", "iwarp", &[]);
    let (near, _) = fabric.writes();
    assert_eq!((near.link_layer, &*near.settings["joining"]), (LinkLayer::Iwarp, "rdma-cm"));
    let serve = Step::Serve { op: Op::AtomicFadd, metric: TestMetric::Bandwidth, size: Bytes(8) };
    let failure = fabric.pair.responder.ask(controller::pair::step(serve)).unwrap_err();
    assert!(failure.cause.contains("no atomics"), "{failure}");
}

#[test]
fn a_service_that_a_device_lacks_is_refused_in_words() {
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_PROFILE", "bnxt")]);
    let mut spec = controller::pair::spec(Role::Initiator, 1, 65536);
    verbs(Service::Uc)(&mut spec);
    // Without a tree of its own the GID's kind comes from the library, and the device counts as software.
    let failure = fabric.pair.initiator.ask(Ask::Open { link: 1, spec: Box::new(spec) }).unwrap_err();
    assert!(failure.cause.contains("creating a queue pair failed") && failure.cause.contains("uc"), "{failure}");
}

/// A fabric with a hostile device at both ends, and a link over it.
fn hostile(words: &str) -> Fabric {
    hostile_to(Service::Rc, words)
}

fn hostile_to(service: Service, words: &str) -> Fabric {
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_HOSTILE", words)]);
    let quick = |spec: &mut LinkSpec| {
        verbs(service)(spec);
        (spec.knobs.timeout, spec.knobs.retry_count) = (Some(10), Some(3));
    };
    fabric.pair.open(quick, 1, 65536).unwrap();
    fabric
}

#[test]
fn a_wrong_byte_is_found() {
    let checked = hostile("wrong-byte=1").pair.verify(Op::Write, 65536, 1);
    assert_eq!((checked.verified, checked.wrong, checked.first_wrong), (Bytes(65536), Bytes(1), Some(32768)));
}

#[test]
fn late_completions_and_late_bytes_cost_time_and_nothing_else() {
    for words in ["late-completions", "last-byte-first"] {
        let mut fabric = hostile(words);
        let (near, _) = fabric.pair.time(timing(Op::Write, TestMetric::Bandwidth, 4096, Window::Iterations(20)));
        assert_eq!((near.operations, near.bytes), (20, Bytes(20 * 4096)), "{words}");
        let right = Checked { verified: Bytes(4096), wrong: Bytes(0), first_wrong: None };
        assert_eq!(fabric.pair.verify(Op::Write, 4096, 2), right, "{words}");
    }
}

#[test]
fn bytes_that_are_under_way_when_their_write_is_complete_are_not_wrong() {
    for service in [Service::Rc, Service::Uc] {
        let checked = hostile_to(service, "ack-before-data").pair.verify(Op::Write, 65536, 1);
        assert_eq!(checked, Checked { verified: Bytes(65536), wrong: Bytes(0), first_wrong: None }, "{service}");
    }
}

#[test]
fn a_port_that_goes_down_ends_a_window_in_words() {
    let mut fabric = hostile("port-down-after=200");
    let window = Window::Duration(Nanoseconds::from_millis(2000));
    let timing = timing(Op::Write, TestMetric::Bandwidth, 4096, window);
    let (near, _) = fabric.pair.served(Op::Write, TestMetric::Bandwidth, 4096, Step::Time(timing));
    let failure = near.unwrap_err();
    assert!(failure.cause.contains("retries exceeded") || failure.cause.contains("port"), "{failure}");
}
