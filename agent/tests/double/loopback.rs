//! Writes through an RDMA port and back, on one agent: the verbs double has both ends, and with the double of CUDA's driver the memory of a
//! GPU at both.

use railgauge_wire::{
    Answer, Ask, Bytes, Checked, Completion, Failure, GpuOfNic, GpuPath, Kind, Knobs, LinkLayer, LinkSpec, Memory,
    Nanoseconds, NicPort, NodeAccount, NodeFlow, NodeSpec, Op, Part, Role, Service, TestMetric, Window, WriteLatency,
};

use crate::{
    controller::{DEADLINE_MS, ENDLESS, pair::timing},
    double::{Fabric, devices, folder_of, verbs},
};

const SIZE: u64 = 100_003;
const TWENTY: Window = Window::Iterations(20);

/// Port 1 of a device. The threads of the double share this machine's processors with everything else.
fn port(device: &str) -> NicPort {
    let knobs = Knobs { timeout: Some(18), ..Knobs::default() };
    NicPort { device: device.into(), port: 1, gpu: None, gpu_path: None, knobs }
}

fn on_gpu(number: u32, gpu_path: Option<GpuPath>) -> NicPort {
    NicPort { gpu: Some(GpuOfNic { number, pci: None }), gpu_path, ..port("mlx5_0") }
}

fn looped(fabric: &mut Fabric, ports: &[NicPort], window: Window) -> Vec<NodeAccount> {
    let part = |port: &NicPort| Part::Nic(Box::new(port.clone()));
    let spec = NodeSpec {
        op: Op::NicLoopback,
        metric: TestMetric::Bandwidth,
        size: Bytes(SIZE),
        window,
        warm_up: Nanoseconds::from_millis(1),
        verify: Some(7),
        deadline_ms: DEADLINE_MS,
        cached: false,
        precision: None,
        flows: ports.iter().map(|port| NodeFlow { from: part(port), to: part(port) }).collect(),
    };
    match fabric.pair.initiator.ask(Ask::Node(Box::new(spec))) {
        Ok(Answer::Node(accounts)) => accounts,
        other => panic!("{other:?}"),
    }
}

fn one(fabric: &mut Fabric, port: NicPort) -> NodeAccount {
    looped(fabric, &[port], TWENTY).remove(0)
}

fn failed(fabric: &mut Fabric, port: NicPort) -> Failure {
    one(fabric, port).account.failure.expect("it cannot be")
}

fn must_be_right(account: &NodeAccount) {
    assert_eq!(account.account.failure, None);
    let measured = account.account.measured.as_ref().unwrap();
    assert_eq!((measured.operations, measured.bytes), (20, Bytes(20 * SIZE)));
    assert!(measured.elapsed > Nanoseconds::ZERO && measured.lanes.is_empty());
    let right = Checked { verified: Bytes(2 * SIZE), wrong: Bytes::ZERO, first_wrong: None };
    assert_eq!(account.account.checked, right);
}

#[test]
fn a_port_writes_to_itself_and_tells_what_it_is() {
    let mut fabric = Fabric::with_tree("mlx5-roce");
    let account = one(&mut fabric, port("mlx5_0"));
    must_be_right(&account);
    assert_eq!(account.devices, ("mlx5_0".to_owned(), "mlx5_0".to_owned()));
    assert_eq!((account.link_layer, account.software), (Some(LinkLayer::Pcie), false));
    assert_eq!(account.gpu_path, Some(GpuPath::None));
    let told = ["nic_pci", "port_link_layer", "port_rate_gbps", "gid_type", "mtu", "gpu_path"];
    let told = told.map(|name| account.settings.get(name).map_or("-", String::as_str));
    assert_eq!(told[1..], ["roce-v2", "400", "RoCE v2", "4096", "none"], "{:?}", account.settings);
    assert!(told[0].starts_with("0000:"), "{told:?}");
}

#[test]
fn a_loop_has_the_knobs_of_pairs() {
    let mut fabric = Fabric::with_tree("mlx5-roce");
    let knobs = Knobs {
        completion: Some(Completion::Events),
        mtu: Some(1024),
        depth: Some(3),
        gid_index: Some(1),
        ..port("mlx5_0").knobs
    };
    let account = one(&mut fabric, NicPort { knobs, ..port("mlx5_0") });
    let told = ["completion", "mtu", "depth", "gid_index", "joining"].map(|name| account.settings[name].as_str());
    must_be_right(&account);
    assert_eq!(told, ["events", "1024", "3", "1", "exchange"]);
    let knobs = Knobs { gid_index: Some(77), ..Knobs::default() };
    let failure = failed(&mut fabric, NicPort { knobs, ..port("mlx5_0") });
    assert!(failure.cause.contains("GID index 77 is not set"), "{failure}");
}

#[test]
fn a_port_of_infiniband_writes_to_itself() {
    let account = one(&mut Fabric::with_tree("mlx5-ib"), port("mlx5_0"));
    must_be_right(&account);
    assert_eq!(account.settings["port_link_layer"], "infiniband");
}

#[test]
fn two_ports_loop_at_the_same_time_and_one_that_is_not_there_fails_alone() {
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_DEVICES", "2")]);
    let ports = [port("mlx5_0"), port("mlx5_7"), port("mlx5_1")];
    let window = Nanoseconds::from_millis(600);
    let accounts = looped(&mut fabric, &ports, Window::Duration(window));
    let failure = accounts[1].account.failure.as_ref().unwrap();
    assert!(failure.cause.contains("mlx5_7") && failure.remedy.is_some(), "{failure}");
    let [first, second] = [&accounts[0], &accounts[2]].map(|account| {
        assert_eq!(account.account.failure, None);
        // Nothing lies below a device without a tree.
        assert_eq!((account.link_layer, account.software), (Some(LinkLayer::Memory), true));
        account.account.measured.as_ref().unwrap()
    });
    assert_eq!([&accounts[0], &accounts[2]].map(|account| account.devices.0.as_str()), ["mlx5_0", "mlx5_1"]);
    let until = |measured: &railgauge_wire::measure::Measurement| measured.started + measured.elapsed;
    let together = until(first).min(until(second)).saturating_sub(first.started.max(second.started));
    assert!(!together.is_zero(), "neither begins before the other one ends");
}

#[test]
fn a_wrong_byte_of_a_loop_is_found() {
    let mut flipped = Fabric::new(&[("RAILGAUGE_FAULT", "flip-bit")]);
    let checked = one(&mut flipped, port("mlx5_0")).account.checked;
    assert_eq!(checked, Checked { verified: Bytes(2 * SIZE), wrong: Bytes(2), first_wrong: Some(SIZE / 2) });
    // The device itself changes what it carries.
    let mut wrong = Fabric::new(&[("VERBS_DOUBLE_HOSTILE", "wrong-byte=1")]);
    assert_eq!(one(&mut wrong, port("mlx5_0")).account.checked.wrong, Bytes(2));
}

#[test]
fn a_loop_that_cannot_be_is_refused_in_words() {
    let mut fabric = Fabric::with_tree("irdma-iwarp");
    let failure = failed(&mut fabric, port("irdma0"));
    assert!(failure.cause.contains("irdma0: iWARP joins queue pairs by rdma_cm only"), "{failure}");
    assert_eq!((failure.kind, &*failure.remedy.unwrap().id), (Kind::Unsupported, "leave-tests-out"));
    let failure = failed(&mut Fabric::with_tree("efa"), port("efa_0"));
    assert!(failure.cause.contains("EFA"), "{failure}");
    let failure = failed(&mut Fabric::new(&[]), NicPort { port: 2, ..port("mlx5_0") });
    assert!(failure.cause.contains("mlx5_0:2"), "{failure}");
    let endless = Window::Duration(ENDLESS);
    let mut fabric = Fabric::new(&[("VERBS_DOUBLE_HOSTILE", "port-down-after=200")]);
    let failure = looped(&mut fabric, &[port("mlx5_0")], endless).remove(0).account.failure.unwrap();
    assert!(failure.cause.contains("IBV_EVENT_PORT_ERR"), "{failure}");
    // It stays down.
    let failure = failed(&mut fabric, port("mlx5_0"));
    assert!(failure.cause.contains("mlx5_0:1: the port is down"), "{failure}");
    assert_eq!(&*failure.remedy.unwrap().id, "port-up");
}

/// An agent with both doubles, on a host that has nvidia-peermem or not.
fn with_gpus(peer_memory: bool, settings: &[(&str, &str)]) -> Fabric {
    let cuda = folder_of(&[("cuda_double", &["libcuda.so.1"])]);
    let of_doubles = [("LD_LIBRARY_PATH", cuda.to_str().unwrap()), ("VERBS_DOUBLE_PROFILE", "mlx5-roce")];
    let all: Vec<_> = of_doubles.iter().chain(settings).copied().collect();
    let fabric = Fabric::of(&all, Some(devices::named("mlx5-roce")));
    if peer_memory {
        let module = fabric.folder.path().join("root1/sys/module/nvidia_peermem");
        std::fs::create_dir_all(&module).unwrap();
        std::fs::write(module.join("version"), "1.3-double\n").unwrap();
    }
    fabric
}

#[test]
fn a_port_writes_from_the_memory_of_its_gpu_to_the_memory_of_its_gpu() {
    let mut fabric = with_gpus(true, &[]);
    let account = one(&mut fabric, on_gpu(1, Some(GpuPath::GdrPeermem)));
    must_be_right(&account);
    assert_eq!((account.gpu_path, account.link_layer), (Some(GpuPath::GdrPeermem), Some(LinkLayer::Pcie)));
    let told = ["gpu", "gpu_remote", "gpu_pci", "gpu_pci_remote", "peer_memory"];
    let told = told.map(|name| account.settings[name].as_str());
    assert_eq!(told, ["1", "1", "0000:d1:00.0", "0000:d1:00.0", "nvidia_peermem 1.3-double"]);
    // Where the plan names no path, dma-buf comes first.
    let account = one(&mut fabric, on_gpu(0, None));
    must_be_right(&account);
    assert_eq!(account.gpu_path, Some(GpuPath::GdrDmabuf));
    assert!(!account.settings.contains_key("data_direct"));
    let flipped = one(&mut with_gpus(true, &[("RAILGAUGE_FAULT", "flip-bit")]), on_gpu(0, None));
    assert_eq!(flipped.account.checked.wrong, Bytes(2));
}

/// The GPU of each end, or none for host memory.
type Gpus = [Option<u32>; 2];

/// A link between the memories of two agents; whether each end has the GPU and the path that it was given.
fn between(fabric: &mut Fabric, gpus: Gpus, path: GpuPath) {
    let of = |spec: &mut LinkSpec| {
        verbs(Service::Rc)(spec);
        spec.gpu = gpus[usize::from(spec.role == Role::Responder)];
        spec.memory = if spec.gpu.is_some() { Memory::Cuda } else { Memory::Host };
        (spec.gpu_path, spec.knobs.write_latency) = (Some(path), Some(WriteLatency::Immediate));
    };
    let (near, far) = fabric.pair.open(of, 1, 1 << 20).unwrap();
    for (end, gpu) in [near, far].iter().zip(gpus) {
        let number = end.settings.get("gpu").map(|number| number.parse().unwrap());
        assert_eq!((number, end.gpu_path), (gpu, gpu.map_or(GpuPath::None, |_| path)));
    }
}

#[test]
fn each_end_of_a_link_has_the_memory_it_was_given() {
    let direct = [(Op::Write, 7), (Op::Write, 1 << 20), (Op::Read, 100_003), (Op::Send, 65536), (Op::WriteImm, 4096)];
    let (dma_buf, staged) = ((GpuPath::GdrDmabuf, &direct[..]), (GpuPath::Staged, &direct[3..]));
    for (gpus, (path, all)) in [
        ([None, Some(1)], dma_buf),
        ([Some(1), None], dma_buf),
        ([Some(0), Some(1)], dma_buf),
        ([None, Some(1)], staged),
        ([Some(1), None], staged),
    ] {
        let mut fabric = with_gpus(false, &[]);
        between(&mut fabric, gpus, path);
        for (op, size) in all.iter().copied() {
            let right = Checked { verified: Bytes(size), wrong: Bytes::ZERO, first_wrong: None };
            assert_eq!(fabric.pair.verify(op, size, 1), right, "{gpus:?} {path} {op}");
            let (near, _) = fabric.pair.time(timing(op, TestMetric::Bandwidth, size, TWENTY));
            assert_eq!((near.operations, near.bytes), (20, Bytes(20 * size)), "{gpus:?} {path} {op}");
            assert_eq!(fabric.pair.verify(op, size, 2), right, "{gpus:?} {path} {op}");
        }
        assert_eq!(["1", "2"].map(|host| fabric.misuses(host)).concat(), "", "{gpus:?} {path}");
    }
}

/// In the memory where the bytes arrive: those of a read at the end that asks for them.
#[test]
fn a_wrong_byte_is_found_in_the_memory_of_either_end() {
    for gpus in [[None, Some(1)], [Some(1), None]] {
        let mut fabric = with_gpus(false, &[("RAILGAUGE_FAULT", "flip-bit")]);
        between(&mut fabric, gpus, GpuPath::GdrDmabuf);
        for op in [Op::Write, Op::Read] {
            assert_eq!(fabric.pair.verify(op, 4096, 1).wrong, Bytes(1), "{gpus:?} {op}");
        }
    }
}

#[test]
fn latency_is_measured_between_a_host_and_a_gpu() {
    for gpus in [[None, Some(1)], [Some(1), None]] {
        let mut fabric = with_gpus(false, &[]);
        between(&mut fabric, gpus, GpuPath::GdrDmabuf);
        for op in [Op::Write, Op::Send, Op::Read] {
            let (near, _) = fabric.pair.time(timing(op, TestMetric::Latency, 8, TWENTY));
            assert_eq!(near.operations, 20, "{gpus:?} {op}");
        }
    }
}

/// A ConnectX-8 reaches GPUs by a second PCI function, unless the plan says otherwise.
#[test]
fn data_direct_is_used_where_the_nic_has_it() {
    for (profile, wanted, used) in
        [("cx8", None, Some("true")), ("cx8", Some(false), Some("false")), ("mlx5-roce", Some(true), None)]
    {
        let doubles: [(&str, &[&str]); 2] = [("cuda_double", &["libcuda.so.1"]), ("verbs_double", &["libmlx5.so.1"])];
        let folder = folder_of(&doubles);
        let settings = [("LD_LIBRARY_PATH", folder.to_str().unwrap()), ("VERBS_DOUBLE_PROFILE", profile)];
        let mut fabric = Fabric::of(&settings, Some(devices::named(profile)));
        let mut port = on_gpu(0, Some(GpuPath::GdrDmabuf));
        port.knobs.data_direct = wanted;
        let account = one(&mut fabric, port);
        must_be_right(&account);
        assert_eq!(account.settings.get("data_direct").map(String::as_str), used, "{profile} {wanted:?}");
        let registered = fabric.noted("data-direct", "1");
        assert_eq!(registered.iter().any(|flag| flag == "1"), used == Some("true"), "{registered:?}");
    }
}

#[test]
fn a_loop_through_memory_of_an_amd_gpu_is_refused_with_what_to_do() {
    let hip = folder_of(&[("hip_double", &["libamdhip64.so.6", "libhiprtc.so.6"])]);
    let settings = [("LD_LIBRARY_PATH", hip.to_str().unwrap()), ("VERBS_DOUBLE_PROFILE", "mlx5-roce")];
    let mut fabric = Fabric::of(&settings, Some(devices::named("mlx5-roce")));
    for path in [None, Some(GpuPath::GdrDmabuf), Some(GpuPath::GdrPeermem)] {
        let failure = failed(&mut fabric, on_gpu(0, path));
        assert!(failure.cause.contains("is AMD's: RDMA with its memory is not supported"), "{path:?}: {failure}");
        let remedy = failure.remedy.unwrap();
        assert_eq!((failure.kind, &*remedy.id), (Kind::Unsupported, "loop-amd-gpu-memory"), "{path:?}");
        let words = remedy.text();
        assert!(
            words.contains("memory = \"host\"") && !words.contains("nvidia") && !words.contains("staged"),
            "{words}"
        );
    }
}

#[test]
fn a_gpu_that_a_port_does_not_reach_is_told_with_what_to_do() {
    let mut fabric = with_gpus(false, &[]);
    let failure = failed(&mut fabric, on_gpu(0, Some(GpuPath::GdrPeermem)));
    assert!(failure.cause.contains("nvidia_peermem is not loaded"), "{failure}");
    let failure = failed(&mut fabric, on_gpu(5, None));
    assert!(failure.cause.contains("GPU 5 does not exist: this host has GPUs 0 to 1"), "{failure}");
    let failure = failed(&mut fabric, on_gpu(0, Some(GpuPath::Staged)));
    assert_eq!(failure.kind, Kind::Unsupported, "{failure}");
    let failure = failed(&mut with_gpus(false, &[("CUDA_DOUBLE_GPUS", "0")]), on_gpu(0, None));
    assert!(failure.cause.contains("no GPU that CUDA sees"), "{failure}");
}
