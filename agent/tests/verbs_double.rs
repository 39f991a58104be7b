//! Verbs on a host without an RDMA device: agents with a double of libibverbs (`examples/verbs_double`).
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests, outside of the test functions

mod controller;
#[path = "../../tests/support/example.rs"]
mod example;

use std::{path::PathBuf, sync::LazyLock};

use controller::{
    Agent, command,
    pair::{Pair, timing},
};
use railgauge_wire::{
    link::{Completion, Knobs, LinkSpec, WriteLatency},
    step::{Checked, Window},
    terms::{Carrier, LinkLayer, Op, Service, TestMetric, Transport},
};

/// The double.
static LIBRARY: LazyLock<PathBuf> =
    LazyLock::new(|| example::folder_with("railgauge-agent", "verbs_double").join("libverbs_double.so"));

/// Two agents on one fabric, each a host with the devices that `settings` make.
struct Fabric {
    pair: Pair,
    _folder: tempfile::TempDir,
}

impl Fabric {
    fn new(settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let agent = |host: &str| {
            let mut command = command();
            command.env("RAILGAUGE_IBVERBS", &*LIBRARY).env("RAILGAUGE_RDMACM", &*LIBRARY);
            command.env("VERBS_DOUBLE_DIR", folder.path()).env("VERBS_DOUBLE_HOST", host);
            Agent::greeted(command.envs(settings.iter().copied()))
        };
        Self { pair: Pair { initiator: agent("1"), responder: agent("2") }, _folder: folder }
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
        let right = Checked { verified: 2 * size, wrong: 0, first_wrong: None };
        assert_eq!(fabric.pair.verify(op, size, 1), right, "{op}");
        let (near, _) = fabric.pair.time(timing(op, TestMetric::Bandwidth, size, Window::Iterations(20)));
        assert_eq!((near.operations, near.bytes), (40, 40 * size), "{op}");
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
            Checked { verified: size, wrong: 0, first_wrong: None },
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
