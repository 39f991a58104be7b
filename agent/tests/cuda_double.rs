//! GPU memory on a host without a GPU: the agent with a double of NVIDIA's driver library (`examples/cuda_double.rs`), or of AMD's HIP
//! (`examples/hip_double.rs`).

#[path = "double/amd_smi.rs"]
mod amd_smi;
#[path = "double/gpu_state.rs"]
mod gpu_state;
#[path = "double/hip.rs"]
mod hip;
#[path = "double/hipblaslt.rs"]
mod hipblaslt;
#[path = "double/rccl.rs"]
mod rccl;

use std::path::PathBuf;

use railgauge_wire::{
    Answer, Ask, Bytes, Checked, Failure, GpuPath, Kind, LinkLayer, LinkSpec, Memory, Nanoseconds, NodeAccount,
    NodeFlow, NodeSpec, Op, Opened, Part, Precision, Role, TestMetric, Window,
};

use crate::{
    controller::{
        Agent, DEADLINE_MS, command,
        pair::{Pair, opened, spec, timing},
        patiently,
    },
    double::folder_of,
};

/// The folder that holds the doubles as `libcuda.so.1` and `libcublasLt.so.12`.
fn folder() -> PathBuf {
    folder_of(&[("cuda_double", &["libcuda.so.1"]), ("cublaslt_double", &["libcublasLt.so.12"])])
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
    copied_for(settings, op, flows, Window::Iterations(20), DEADLINE_MS)
}

/// The same, in this window and within so many milliseconds.
fn copied_for(
    settings: &[(&str, &str)],
    op: Op,
    flows: &[(u32, u32)],
    window: Window,
    deadline_ms: u64,
) -> Vec<NodeAccount> {
    let gpu = |number: u32| Part::Gpu(format!("0000:{:02x}:00.0", 0xd0 + number));
    let spec = NodeSpec {
        op,
        metric: TestMetric::Bandwidth,
        size: Bytes(100_003),
        window,
        warm_up: Nanoseconds::ZERO,
        verify: Some(7),
        deadline_ms,
        cached: false,
        precision: None,
        flows: flows.iter().map(|(from, to)| NodeFlow { from: gpu(*from), to: gpu(*to) }).collect(),
    };
    match agent(settings).ask(Ask::Node(Box::new(spec))) {
        Ok(Answer::Node(accounts)) => accounts,
        other => panic!("{other:?}"),
    }
}

/// Copies whose windows are so long that the state of every GPU is read in them, on a machine that is not very busy: where it was not, they are
/// done again.
fn until_read(copy: impl Fn() -> Vec<NodeAccount>) -> Vec<NodeAccount> {
    let is_read = |account: &NodeAccount| account.account.gpus.iter().all(|gpu| gpu.readings > 0);
    patiently("a reading in every window", || Some(copy()).filter(|accounts| accounts.iter().all(is_read)))
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
fn patterns_are_compared_in_the_window_and_a_stuck_bit_is_found_in_those_that_clear_it() {
    let accounts = copied(&[], Op::GpuMemoryTest, &[(0, 0), (1, 1)]);
    for account in accounts {
        let (measured, checked) = (account.account.measured.unwrap(), account.account.checked);
        assert_eq!((account.account.failure, measured.operations, measured.bytes), (None, 20, Bytes(20 * 100_003)));
        // Before, in the window, and after.
        assert_eq!(checked, Checked { verified: Bytes(22 * 100_003), wrong: Bytes::ZERO, first_wrong: None });
        assert_eq!((&*account.settings["patterns"], account.link_layer), ("10", Some(LinkLayer::Memory)));
    }
    let checked = copied(&[("CUDA_DOUBLE_STUCK", "4097")], Op::GpuMemoryTest, &[(0, 0)]).remove(0).account.checked;
    // Of every ten patterns four clear the bit for certain, of plain words; of random ones one of each two does, by its complement.
    assert!((8 + 2..=8 + 2 + 2).contains(&checked.wrong.0) && checked.first_wrong == Some(4097), "{checked:?}");
}

#[test]
fn what_a_test_of_memory_found_is_told_when_it_is_given_up() {
    let stuck = [("CUDA_DOUBLE_STUCK", "4097")];
    let endless = Window::Iterations(u64::MAX);
    let account = copied_for(&stuck, Op::GpuMemoryTest, &[(0, 0)], endless, 2_000).remove(0).account;
    assert_eq!(account.failure.unwrap().kind, Kind::Deadline);
    assert!(account.measured.is_none());
    let (checked, one) = (account.checked, 100_003);
    // More than the pass before the window.
    assert!(checked.wrong.0 > 2 && checked.first_wrong == Some(4097), "{checked:?}");
    assert!(checked.verified.0 > 2 * one && checked.verified.0.is_multiple_of(one), "{checked:?}");
}

#[test]
fn a_wrong_byte_of_a_copy_is_found() {
    for op in [Op::HostToGpu, Op::GpuToHost, Op::GpuToGpu, Op::GpuMemoryTest] {
        let flow = if op == Op::GpuToGpu { (0, 1) } else { (0, 0) };
        let accounts = copied(&[("RAILGAUGE_FAULT", "flip-bit")], op, &[flow]);
        assert_eq!(accounts[0].account.checked.wrong, Bytes(2), "{op}");
    }
}

/// What 20 products of matrices of 32 rows come to on one GPU.
fn multiplied(precision: Precision, settings: &[(&str, &str)]) -> NodeAccount {
    let gpu = Part::Gpu("0000:d0:00.0".into());
    let spec = NodeSpec {
        op: Op::Matmul,
        metric: TestMetric::Compute,
        size: precision.square(32),
        window: Window::Iterations(20),
        warm_up: Nanoseconds::ZERO,
        verify: Some(7),
        deadline_ms: DEADLINE_MS,
        cached: false,
        precision: Some(precision),
        flows: vec![NodeFlow { from: gpu.clone(), to: gpu }],
    };
    match agent(settings).ask(Ask::Node(Box::new(spec))) {
        Ok(Answer::Node(mut accounts)) => accounts.remove(0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn matrix_products_are_counted_and_verified_before_and_after() {
    for precision in Precision::ALL {
        let account = multiplied(*precision, &[]);
        assert_eq!(account.account.failure, None, "{precision}");
        let measured = account.account.measured.as_ref().unwrap();
        assert_eq!((measured.operations, measured.flops), (20, 20 * 2 * 32 * 32 * 32), "{precision}");
        assert!(measured.elapsed > Nanoseconds::ZERO);
        let verified = Bytes(2 * precision.square(32).0);
        assert_eq!(account.account.checked, Checked { verified, wrong: Bytes::ZERO, first_wrong: None }, "{precision}");
        let told = ["precision", "shape", "library", "gpu_pci"].map(|name| account.settings[name].as_str());
        assert_eq!(told, [precision.word(), "32x32x32", "libcublasLt.so.12 (120900)", "0000:d0:00.0"]);
        let algorithm = &account.settings["algorithm"];
        assert!(algorithm.starts_with("id 20,") || algorithm.starts_with("id 21,"), "{algorithm}");
    }
}

#[test]
fn a_wrong_element_of_a_product_is_found() {
    for precision in Precision::ALL {
        let width = precision.result();
        let checked = |fault: &str| multiplied(*precision, &[("CUBLASLT_DOUBLE", fault)]).account.checked;
        // The third row of the double's columns: element 5 * 32 + 3.
        let wrong = Checked {
            verified: Bytes(2 * precision.square(32).0),
            wrong: Bytes(2 * width.0),
            first_wrong: Some((5 * 32 + 3) * width.0),
        };
        assert_eq!(checked("wrong"), wrong, "{precision}");
        // Nothing is written, and what was there before is no result.
        assert_eq!(checked("lazy").wrong, wrong.verified, "{precision}");
        assert!(checked("part").wrong > Bytes(wrong.verified.0 / 2), "{precision}");
        let flipped = multiplied(*precision, &[("RAILGAUGE_FAULT", "flip-bit")]).account.checked;
        assert_eq!(flipped.wrong, Bytes(2 * width.0), "{precision}");
    }
}

#[test]
fn a_product_that_goes_wrong_later_is_found() {
    let gpu = Part::Gpu("0000:d0:00.0".into());
    let spec = NodeSpec {
        op: Op::Matmul,
        metric: TestMetric::Compute,
        size: Precision::Bf16.square(16),
        window: Window::Iterations(200),
        warm_up: Nanoseconds::ZERO,
        verify: Some(7),
        deadline_ms: DEADLINE_MS,
        cached: false,
        precision: Some(Precision::Bf16),
        flows: vec![NodeFlow { from: gpu.clone(), to: gpu }],
    };
    let Ok(Answer::Node(accounts)) = agent(&[("CUBLASLT_DOUBLE", "late")]).ask(Ask::Node(Box::new(spec))) else {
        panic!("no accounts");
    };
    assert_eq!(accounts[0].account.checked.wrong, Bytes(2));
}

#[test]
fn products_that_cannot_be_are_refused_in_words() {
    let refused = |precision, settings: &[(&str, &str)]| {
        let failure = multiplied(precision, settings).account.failure.unwrap();
        (failure.kind, failure.cause.clone(), failure.remedy.map(|remedy| remedy.id.to_string()))
    };
    let (kind, cause, remedy) = refused(Precision::Fp8, &[("CUDA_DOUBLE_CAPABILITY", "80")]);
    assert_eq!((kind, remedy.as_deref()), (Kind::Unsupported, Some("other-precision")));
    assert!(cause.contains("FP8 needs compute capability 8.9; GPU 0 (double of a GPU) has 8.0"), "{cause}");
    let (_, cause, _) = refused(Precision::Bf16, &[("CUDA_DOUBLE_CAPABILITY", "75")]);
    assert!(cause.contains("BF16 needs compute capability 8.0"), "{cause}");
    let (kind, cause, remedy) = refused(Precision::Bf16, &[("CUBLASLT_DOUBLE", "dead")]);
    assert_eq!((kind, remedy.as_deref()), (Kind::Unsupported, Some("install-cublaslt")));
    assert!(
        cause.contains("libcublasLt.so.13: cannot open") && cause.contains("starting libcublasLt.so.12"),
        "{cause}"
    );
    let (_, cause, remedy) = refused(Precision::Tf32, &[("CUBLASLT_DOUBLE", "none")]);
    assert_eq!(remedy.as_deref(), Some("other-precision"));
    assert!(cause.contains("looking for an algorithm: said by a double"), "{cause}");
    let (_, cause, _) = refused(Precision::Fp16, &[("CUBLASLT_DOUBLE", "fails")]);
    assert!(cause.contains("GPU 0: multiplying: said by a double"), "{cause}");
}

#[test]
fn a_host_without_cublaslt_says_so() {
    let folder = folder_of(&[("cuda_double", &["libcuda.so.1"])]);
    let account = multiplied(Precision::Bf16, &[("LD_LIBRARY_PATH", folder.to_str().unwrap())]);
    let failure = account.account.failure.unwrap();
    assert!(
        failure.cause.contains("cuBLASLt cannot be used") && failure.cause.contains("libcublasLt.so.11"),
        "{failure}"
    );
    assert_eq!(failure.remedy.unwrap().id, "install-cublaslt");
}
