//! Tests within hosts on GPUs of AMD: the agent with doubles of HIP and HIPRTC (`examples/hip_double.rs`).

use std::path::{Path, PathBuf};

use railgauge_wire::{
    Bytes, Carrier, Checked, Failure, GpuPath, Kind, LinkLayer, Nanoseconds, NodeAccount, Op, Window,
};

use super::{copied, copied_for, open};
use crate::double::folder_of;

pub const HIP: &str = "libamdhip64.so.6";
pub const HIPRTC: &str = "libhiprtc.so.6";

/// The folder that holds the doubles of ROCm's libraries.
pub fn rocm() -> PathBuf {
    folder_of(&[("hip_double", &[HIP, HIPRTC])])
}

/// These settings, with ROCm's doubles in the way of the loader.
pub fn with<'s>(folder: &'s Path, settings: &[(&'s str, &'s str)]) -> Vec<(&'s str, &'s str)> {
    let path = ("LD_LIBRARY_PATH", folder.to_str().unwrap());
    settings.iter().copied().chain([path]).collect()
}

fn on_amd(settings: &[(&str, &str)], op: Op, flows: &[(u32, u32)]) -> Vec<NodeAccount> {
    copied(&with(&rocm(), settings), op, flows)
}

fn failure(mut accounts: Vec<NodeAccount>) -> Failure {
    accounts.remove(0).account.failure.unwrap()
}

/// The tree of a host with two accelerators of AMD.
pub fn tree() -> tempfile::TempDir {
    tree_of(&[("0000:d0:00.0", "0x1002", "0x120000"), ("0000:d1:00.0", "0x1002", "0x120000")])
}

/// The tree of a host with these PCI functions: address, vendor and class.
pub fn tree_of(functions: &[(&str, &str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (address, vendor, class) in functions {
        let place = root.path().join("sys/bus/pci/devices").join(address);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("vendor"), format!("{vendor}\n")).unwrap();
        std::fs::write(place.join("class"), format!("{class}\n")).unwrap();
        std::fs::write(place.join("numa_node"), "0\n").unwrap();
    }
    root
}

#[test]
fn copies_by_hip_are_counted_and_verified_before_and_after() {
    let right = Checked { verified: Bytes(200_006), wrong: Bytes::ZERO, first_wrong: None };
    for (op, flows, layer, gpus) in [
        (Op::HostToGpu, [(0, 0), (1, 1)], LinkLayer::Pcie, [None, Some("0")]),
        (Op::GpuToHost, [(0, 0), (1, 1)], LinkLayer::Pcie, [Some("0"), None]),
        (Op::GpuCopy, [(0, 0), (1, 1)], LinkLayer::Memory, [Some("0"), Some("0")]),
        (Op::GpuToGpu, [(0, 1), (1, 0)], LinkLayer::Xgmi, [Some("0"), Some("1")]),
    ] {
        let accounts = on_amd(&[], op, &flows);
        for account in &accounts {
            assert_eq!(account.account.failure, None, "{op}");
            let measured = account.account.measured.as_ref().unwrap();
            assert_eq!((measured.operations, measured.bytes), (20, Bytes(20 * 100_003)), "{op}");
            assert!(measured.elapsed > Nanoseconds::ZERO && account.account.checked == right, "{op}");
            assert_eq!((account.link_layer, account.carrier), (Some(layer), Some(Carrier::HipCopy)), "{op}");
        }
        let told = ["gpu", "gpu_remote"].map(|name| accounts[0].settings.get(name).map(String::as_str));
        assert_eq!(told, gpus, "{op}");
    }
    let by_pcie = on_amd(&[("HIP_DOUBLE_LINK", "2")], Op::GpuToGpu, &[(0, 1)]);
    assert_eq!((by_pcie[0].link_layer, &*by_pcie[0].settings["peer_access"]), (Some(LinkLayer::Pcie), "true"));
    let unknown = on_amd(&[("HIP_DOUBLE_LINK", "0")], Op::GpuToGpu, &[(0, 1)]);
    assert_eq!(unknown[0].link_layer, Some(LinkLayer::Unknown));
}

#[test]
fn patterns_are_compared_by_the_kernels_that_hiprtc_compiles() {
    for account in on_amd(&[], Op::GpuMemoryTest, &[(0, 0), (1, 1)]) {
        let (measured, checked) = (account.account.measured.unwrap(), account.account.checked);
        assert_eq!((account.account.failure, measured.operations), (None, 20));
        assert_eq!(checked, Checked { verified: Bytes(22 * 100_003), wrong: Bytes::ZERO, first_wrong: None });
        assert_eq!((account.link_layer, account.carrier), (Some(LinkLayer::Memory), Some(Carrier::HipKernel)));
    }
    let checked = on_amd(&[("HIP_DOUBLE_STUCK", "4097")], Op::GpuMemoryTest, &[(0, 0)]).remove(0).account.checked;
    // As on a GPU of NVIDIA: of every ten patterns four clear the bit for certain.
    assert!((8 + 2..=8 + 2 + 2).contains(&checked.wrong.0) && checked.first_wrong == Some(4097), "{checked:?}");
}

#[test]
fn a_wrong_byte_is_found_by_hip_too() {
    for op in [Op::HostToGpu, Op::GpuToHost, Op::GpuToGpu, Op::GpuMemoryTest] {
        let flow = if op == Op::GpuToGpu { (0, 1) } else { (0, 0) };
        let accounts = on_amd(&[("RAILGAUGE_FAULT", "flip-bit")], op, &[flow]);
        assert_eq!(accounts[0].account.checked.wrong, Bytes(2), "{op}");
    }
}

#[test]
fn what_hip_cannot_do_is_said_in_its_own_words() {
    let accounts = on_amd(&[], Op::GpuCopy, &[(0, 0), (7, 7)]);
    assert_eq!(accounts[0].account.failure, None);
    let failure_of = accounts[1].account.failure.as_ref().unwrap();
    assert!(failure_of.cause.contains("0000:d7:00.0") && failure_of.cause.contains("that HIP sees"), "{failure_of}");
    let none = failure(on_amd(&[("HIP_DOUBLE_GPUS", "0")], Op::GpuCopy, &[(0, 0)]));
    assert!(none.cause.contains("no GPU that HIP sees"), "{none}");
    let full = failure(on_amd(&[("HIP_DOUBLE_FREE", "1000")], Op::HostToGpu, &[(0, 0)]));
    assert_eq!((full.kind, &*full.remedy.unwrap().id), (Kind::Configuration, "free-amd-gpu-memory"));
    let managed = failure(on_amd(&[("HIP_DOUBLE_MANAGED", "1")], Op::GpuCopy, &[(0, 0)]));
    assert!(managed.cause.contains("managed memory"), "{managed}");
}

#[test]
fn kernels_that_cannot_be_compiled_fail_the_case() {
    let alone = folder_of(&[("hip_double", &[HIP])]);
    let failed = failure(copied(&with(&alone, &[]), Op::GpuCopy, &[(0, 0)]));
    assert!(
        failed.cause.contains("GPU 0: this host has no HIPRTC") && failed.cause.contains("libhiprtc.so.7: cannot"),
        "{failed}"
    );
    assert_eq!(failed.remedy.unwrap().id, "install-hiprtc");
    let failed = failure(on_amd(&[("HIPRTC_DOUBLE", "refuses")], Op::GpuMemoryTest, &[(0, 0)]));
    assert!(failed.cause.contains("HIPRTC_ERROR_COMPILATION: kernels.hip:1: refused by a double"), "{failed}");
}

#[test]
fn a_host_with_amd_gpus_and_no_hip_says_so() {
    let (root, nothing) = (tree(), tempfile::tempdir().unwrap());
    let settings = with(nothing.path(), &[("RAILGAUGE_ROOT", root.path().to_str().unwrap())]);
    let failed = failure(copied(&settings, Op::GpuCopy, &[(0, 0)]));
    assert!(failed.cause.contains("no HIP runtime for its AMD GPUs: libamdhip64.so.7: cannot"), "{failed}");
    assert_eq!(failed.remedy.unwrap().id, "install-hip");
    // A double of CUDA's driver has no function of HIP.
    let wrong = folder_of(&[("cuda_double", &[HIP])]);
    let failed = failure(copied(&with(&wrong, &[]), Op::GpuCopy, &[(0, 0)]));
    assert!(failed.cause.contains("libamdhip64.so.6) is too old: it has no hipInit"), "{failed}");
    assert_eq!(failed.remedy.unwrap().id, "newer-hip");
}

#[test]
fn cudas_driver_comes_first_and_a_driver_without_a_gpu_does_not_hide_hip() {
    let both = folder_of(&[("cuda_double", &["libcuda.so.1"]), ("hip_double", &[HIP, HIPRTC])]);
    let account = copied(&with(&both, &[]), Op::GpuCopy, &[(0, 0)]).remove(0);
    assert_eq!((account.account.failure, account.carrier), (None, Some(Carrier::CudaCopy)));
    let old = copied(&with(&both, &[("CUDA_DOUBLE_VERSION", "10020")]), Op::GpuCopy, &[(0, 0)]).remove(0);
    assert_eq!((old.account.failure, old.carrier), (None, Some(Carrier::HipCopy)));
}

#[test]
fn a_broken_driver_of_nvidia_is_told_beside_graphics_of_amd() {
    const NVIDIA: (&str, &str, &str) = ("0000:1b:00.0", "0x10de", "0x030200");
    const GRAPHICS: (&str, &str, &str) = ("0000:d0:00.0", "0x1002", "0x030000");
    let old = folder_of(&[("cuda_double", &["libcuda.so.1"])]);
    let said = |folder: &Path, functions: &[(&str, &str, &str)]| {
        let root = tree_of(functions);
        let settings = [("CUDA_DOUBLE_VERSION", "10020"), ("RAILGAUGE_ROOT", root.path().to_str().unwrap())];
        copied(&with(folder, &settings), Op::GpuCopy, &[(0, 0)]).remove(0)
    };
    let remedy = |functions: &[(&str, &str, &str)]| said(&old, functions).account.failure.unwrap().remedy.unwrap().id;
    assert_eq!(remedy(&[NVIDIA, GRAPHICS]), "newer-cuda");
    // The same graphics as a display function, as where another card has the console; and beside an accelerator.
    assert_eq!(remedy(&[NVIDIA, ("0000:d0:00.0", "0x1002", "0x038000")]), "newer-cuda");
    assert_eq!(remedy(&[NVIDIA, ("0000:d0:00.0", "0x1002", "0x120000")]), "newer-cuda");
    assert_eq!(remedy(&[GRAPHICS]), "newer-cuda");
    // CUDA's driver without a GPU of NVIDIA, as in some containers.
    assert_eq!(remedy(&[("0000:d0:00.0", "0x1002", "0x120000")]), "install-hip");
    // Nor does HIP measure the graphics in place of the GPUs of NVIDIA.
    let both = folder_of(&[("cuda_double", &["libcuda.so.1"]), ("hip_double", &[HIP, HIPRTC])]);
    assert_eq!(said(&both, &[NVIDIA, GRAPHICS]).account.failure.unwrap().remedy.unwrap().id, "newer-cuda");
    assert_eq!(said(&both, &[("0000:d0:00.0", "0x1002", "0x120000")]).carrier, Some(Carrier::HipCopy));
}

#[test]
fn links_to_memory_of_amd_gpus_are_staged_or_refused() {
    let staged = open(&with(&rocm(), &[]), |spec| spec.gpu_path = Some(GpuPath::Staged)).unwrap();
    assert_eq!((staged.gpu_path, &*staged.settings["gpu_name"]), (GpuPath::Staged, "double of a GPU"));
    let failed = open(&with(&rocm(), &[]), |spec| spec.gpu_path = Some(GpuPath::GdrPeermem)).unwrap_err();
    assert!(failed.cause.contains("a socket cannot reach GPU memory"), "{failed}");
}

#[test]
fn a_case_that_is_given_up_leaves_nothing_under_way() {
    let endless = Window::Iterations(u64::MAX);
    let account = copied_for(&with(&rocm(), &[]), Op::GpuToGpu, &[(0, 1)], endless, 500).remove(0).account;
    assert_eq!(account.failure.unwrap().kind, Kind::Deadline);
}
