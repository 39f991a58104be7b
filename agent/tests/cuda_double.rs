//! GPU memory on a host without a GPU: the agent with a double of NVIDIA's driver library (`examples/cuda_double.rs`).
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests, outside of the test functions

mod controller;
#[path = "../../tests/support/example.rs"]
mod example;
#[path = "double/gpu_state.rs"]
mod gpu_state;

use std::{path::Path, sync::LazyLock};

use controller::{
    Agent, command,
    pair::{Pair, opened, spec, timing},
};
use railgauge_wire::{
    failure::{Failure, Kind},
    link::{LinkSpec, Opened, Role},
    message::{Answer, Ask},
    node::{NodeAccount, NodeFlow, NodeSpec, Part},
    step::{Checked, Window},
    terms::{GpuPath, LinkLayer, Memory, Op, TestMetric},
    unit::{Bytes, Nanoseconds},
};

/// The folder that holds the double as `libcuda.so.1`.
fn folder() -> &'static Path {
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let double = example::folder_with("railgauge-agent", "cuda_double").join("libcuda_double.so");
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(double, folder.path().join("libcuda.so.1")).unwrap();
        folder
    });
    FOLDER.path()
}

/// An agent that finds the double, made what `settings` say.
fn agent(settings: &[(&str, &str)]) -> Agent {
    let mut command = command();
    command.env("LD_LIBRARY_PATH", folder()).envs(settings.iter().copied());
    Agent::greeted(&mut command)
}

fn gpu(path: Option<GpuPath>) -> impl Fn(&mut LinkSpec) {
    move |spec| (spec.memory, spec.gpu, spec.gpu_path) = (Memory::Cuda, Some(1), path)
}

/// What opening a link on GPU memory says.
fn open(settings: &[(&str, &str)], change: impl Fn(&mut LinkSpec)) -> Result<Opened, Failure> {
    let mut spec = spec(Role::Initiator, 1, 1 << 20);
    gpu(None)(&mut spec);
    change(&mut spec);
    agent(settings).ask(Ask::Open { link: 1, spec: Box::new(spec) }).map(|answer| opened(Ok(answer)))
}

#[test]
fn bytes_go_from_gpu_to_gpu_through_host_memory_and_are_verified_there() {
    let mut pair = Pair { initiator: agent(&[]), responder: agent(&[]) };
    let (near, far) = pair.open(gpu(Some(GpuPath::Staged)), 2, 1 << 20).unwrap();
    for end in [&near, &far] {
        assert_eq!((end.gpu_path, &*end.settings["gpu"]), (GpuPath::Staged, "1"));
        assert_eq!((&*end.settings["gpu_name"], &*end.settings["gpu_pci"]), ("double of a GPU", "0000:d1:00.0"));
    }
    for (op, size) in [(Op::Write, 7), (Op::Read, 100_003), (Op::Send, 1 << 20)] {
        let right = Checked { verified: Bytes(2 * size), wrong: Bytes::ZERO, first_wrong: None };
        assert_eq!(pair.verify(op, size, 1), right, "{op}");
        let (near, _) = pair.time(timing(op, TestMetric::Bandwidth, size, Window::Iterations(20)));
        assert_eq!((near.operations, near.bytes), (40, Bytes(40 * size)));
        assert_eq!(pair.verify(op, size, 2), right, "{op}");
    }
}

#[test]
fn a_flipped_bit_in_gpu_memory_is_found() {
    let flipping = agent(&[("RAILGAUGE_FAULT", "flip-bit")]);
    let mut pair = Pair { initiator: flipping, responder: agent(&[]) };
    pair.open(gpu(None), 1, 4096).unwrap();
    assert_eq!(
        pair.verify(Op::Write, 4096, 1),
        Checked { verified: Bytes(4096), wrong: Bytes(1), first_wrong: Some(2048) }
    );
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let refused = |settings: &[(&str, &str)], change: &dyn Fn(&mut LinkSpec)| open(settings, change).unwrap_err();
    let failure = refused(&[], &|spec| spec.gpu = Some(5));
    assert!(failure.cause.contains("GPU 5 does not exist: this host has GPUs 0 to 1"), "{failure}");
    let failure = refused(&[("CUDA_DOUBLE_GPUS", "0")], &|_| ());
    assert!(failure.cause.contains("no GPU that CUDA sees"), "{failure}");
    let failure = refused(&[("CUDA_DOUBLE_VERSION", "10020")], &|_| ());
    assert!(failure.cause.contains("too old: 10.2"), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "newer-cuda");
    let failure = refused(&[("CUDA_DOUBLE_FREE", "300000000")], &|spec| spec.max_size = Bytes::from_mib(256));
    assert!(failure.cause.contains("268435456 bytes are wanted, and 300000000 of"), "{failure}");
    let failure = refused(&[("CUDA_DOUBLE_MANAGED", "1")], &|_| ());
    assert_eq!(failure.kind, Kind::Unsupported);
    assert!(failure.cause.contains("managed memory") && failure.cause.contains("moves"), "{failure}");
    let failure = refused(&[], &|spec| spec.gpu_path = Some(GpuPath::GdrPeermem));
    assert!(failure.cause.contains("a socket cannot reach GPU memory"), "{failure}");
}

/// What copies between the GPUs of these numbers come to, all at the same time.
fn copied(settings: &[(&str, &str)], op: Op, flows: &[(u32, u32)]) -> Vec<NodeAccount> {
    let gpu = |number: u32| Part::Gpu(format!("0000:{:02x}:00.0", 0xd0 + number));
    let spec = NodeSpec {
        op,
        size: Bytes(100_003),
        window: Window::Iterations(20),
        warm_up: Nanoseconds::ZERO,
        verify: Some(7),
        deadline_ms: 10_000,
        cached: false,
        flows: flows.iter().map(|(from, to)| NodeFlow { from: gpu(*from), to: gpu(*to) }).collect(),
    };
    match agent(settings).ask(Ask::Node(Box::new(spec))) {
        Ok(Answer::Node(accounts)) => accounts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn copies_of_a_host_are_counted_and_verified_before_and_after() {
    let right = Checked { verified: Bytes(200_006), wrong: Bytes::ZERO, first_wrong: None };
    for (op, flows, layer, gpus) in [
        (Op::HostToGpu, [(0, 0), (1, 1)], LinkLayer::Pcie, [None, Some("0")]),
        (Op::GpuToHost, [(0, 0), (1, 1)], LinkLayer::Pcie, [Some("0"), None]),
        (Op::GpuCopy, [(0, 0), (1, 1)], LinkLayer::Memory, [Some("0"), Some("0")]),
        (Op::GpuToGpu, [(0, 1), (1, 0)], LinkLayer::Unknown, [Some("0"), Some("1")]),
    ] {
        let accounts = copied(&[], op, &flows);
        for account in &accounts {
            assert_eq!(account.account.failure, None, "{op}");
            let measured = account.account.measured.as_ref().unwrap();
            assert_eq!((measured.operations, measured.bytes), (20, Bytes(20 * 100_003)), "{op}");
            assert!(measured.elapsed > Nanoseconds::ZERO && account.account.checked == right, "{op}");
            assert_eq!(account.link_layer, Some(layer), "{op}");
        }
        let told = ["gpu", "gpu_remote"].map(|name| accounts[0].settings.get(name).map(String::as_str));
        assert_eq!(told, gpus, "{op}");
    }
}

#[test]
fn a_gpu_that_cuda_does_not_see_fails_alone() {
    let accounts = copied(&[], Op::GpuCopy, &[(0, 0), (7, 7)]);
    assert_eq!(accounts[0].account.failure, None);
    let failure = accounts[1].account.failure.as_ref().unwrap();
    assert_eq!(failure.kind, Kind::Configuration);
    assert!(failure.cause.contains("0000:d7:00.0") && failure.cause.contains("0000:d0:00.0"), "{failure}");
    let full = copied(&[("CUDA_DOUBLE_FREE", "1000")], Op::HostToGpu, &[(0, 0)]);
    assert_eq!(full[0].account.failure.as_ref().unwrap().kind, Kind::Configuration);
}

#[test]
fn a_wrong_byte_of_a_copy_is_found() {
    for op in [Op::HostToGpu, Op::GpuToHost, Op::GpuToGpu] {
        let flow = if op == Op::GpuToGpu { (0, 1) } else { (0, 0) };
        let accounts = copied(&[("RAILGAUGE_FAULT", "flip-bit")], op, &[flow]);
        assert_eq!(accounts[0].account.checked.wrong, Bytes(2), "{op}");
    }
}
