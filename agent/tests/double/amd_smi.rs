//! The facts and the state of AMD's GPUs, with a double of AMD SMI (`examples/amdsmi_double.rs`) beside that of HIP.

use std::path::{Path, PathBuf};

use railgauge_wire::{
    AMD_SMI, Answer, Ask, Bytes, GPUS, GpuSeen, HIP as HIP_LIBRARY, Hold, HostFacts, Nanoseconds, NodeAccount, Op,
    RCCL, Range, Window, gpu_state::counter,
};

use super::{
    agent, copied_for,
    hip::{HIP, HIPRTC, rocm, tree, tree_of, with},
    until_read,
};
use crate::{controller::DEADLINE_MS, double::folder_of};

const PASS: Nanoseconds = Nanoseconds::from_millis(600);
/// Versions of ROCm 6.2, 6.3, 6.4 and 7.
const VERSIONS: [&str; 4] = ["24.6", "24.7", "25.5", "26.1"];

fn folder() -> PathBuf {
    folder_of(&[("hip_double", &[HIP, HIPRTC]), ("amdsmi_double", &["libamd_smi.so"])])
}

/// Copies to both GPUs at the same time, where AMD SMI of this version says this.
fn copied(version: &str, says: &str) -> Vec<NodeAccount> {
    let (folder, says) = (folder(), [("AMDSMI_DOUBLE", says), ("AMDSMI_DOUBLE_VERSION", version)]);
    let copy =
        || copied_for(&with(&folder, &says), Op::HostToGpu, &[(0, 0), (1, 1)], Window::Duration(PASS), DEADLINE_MS);
    until_read(copy)
}

fn seen(version: &str, says: &str) -> [GpuSeen; 2] {
    let mut accounts = copied(version, says).into_iter();
    std::array::from_fn(|_| {
        let account = accounts.next().unwrap().account;
        assert_eq!((&account.failure, account.gpus.len()), (&None, 1));
        account.gpus[0].clone()
    })
}

fn facts(folder: &Path, settings: &[(&str, &str)]) -> HostFacts {
    match agent(&with(folder, settings)).ask(Ask::Facts) {
        Ok(Answer::Facts(facts)) => *facts,
        other => panic!("{other:?}"),
    }
}

const fn all(value: f64) -> Option<Range> {
    Some(Range { min: value, median: value, max: value })
}

#[test]
fn a_case_tells_the_state_of_its_gpus_in_every_version() {
    for version in VERSIONS {
        let seen = seen(version, "d1:gfx=1725");
        for (at, seen) in seen.iter().enumerate() {
            assert_eq!((&*seen.pci, seen.index), (["0000:d0:00.0", "0000:d1:00.0"][at], Some(at as u32)), "{version}");
            assert!(seen.failure.is_none(), "{version}: {seen:?}");
            assert_eq!((seen.sm_mhz, seen.memory_mhz), (all([2100.0, 1725.0][at]), all(1300.0)), "{version}");
            assert_eq!((seen.watts, seen.limit_watts, seen.celsius), (all(640.0), Some(750.0), all(62.0)), "{version}");
            assert_eq!((seen.memory_celsius, seen.best_mhz), (all(48.0), Some((2100, 1300))), "{version}");
            let pcie = seen.pcie.unwrap();
            assert_eq!((pcie.generation, pcie.width, pcie.best), ((5, 5), (16, 16), Some((5, 16))), "{version}");
            assert_eq!((seen.held.as_ref().unwrap().len(), &seen.xids, seen.others), (0, &None, Some(0)), "{version}");
            assert!(seen.is_amd, "{version}");
            // What stood still is told as that, and what the GPU does not count is not there.
            assert_eq!((seen.counted[counter::PCIE_REPLAYS], seen.counted[counter::ECC_CORRECTED]), (0, 0));
            assert!(!seen.counted.contains_key(counter::XGMI_ERRORS), "{version}: {seen:?}");
        }
    }
}

#[test]
fn a_throttled_gpu_in_a_narrow_slot_says_so() {
    for version in ["24.7", "26.1"] {
        let [good, bad] = seen(version, "d1:heat=1 d1:power=1 d1:speed=16000 d1:width=8 d1:gfx=900");
        assert_eq!((good.held.unwrap().len(), good.pcie.unwrap().width), (0, (16, 16)));
        let wanted = [(Hold::PowerCap, bad.readings), (Hold::HotHardware, bad.readings)].into();
        assert_eq!(bad.held.unwrap(), wanted, "{version}");
        let pcie = bad.pcie.unwrap();
        assert_eq!((pcie.generation, pcie.width, pcie.best), ((4, 4), (8, 8), Some((5, 16))), "{version}");
    }
}

#[test]
fn errors_of_the_time_between_are_told() {
    let [first, second] =
        seen("26.1", "d1:replays=+7 d0:uncorrected=+1 d1:corrected=+2 d1:xgmi=1 d0:xgmi=0 d1:programs=2");
    assert_eq!((first.counted[counter::ECC_UNCORRECTED], first.counted[counter::PCIE_REPLAYS]), (1, 0));
    assert_eq!((second.counted[counter::ECC_UNCORRECTED], second.counted[counter::ECC_CORRECTED]), (0, 2));
    assert!(second.counted[counter::PCIE_REPLAYS] >= 7, "{second:?}");
    assert_eq!([&first, &second].map(|gpu| gpu.counted[counter::XGMI_ERRORS]), [0, 1]);
    assert_eq!((first.others, second.others), (Some(0), Some(2)));
}

#[test]
fn what_amd_smi_does_not_tell_is_not_made_up() {
    let says = "d1:gfx=none d1:watts=none d1:power=none d1:heat=none d1:width=none d1:replays=none d1:corrected=none d1:programs=none";
    let [_, seen] = seen("26.1", says);
    assert_eq!((seen.sm_mhz, seen.watts, seen.held, seen.pcie, seen.others), (None, None, None, None, None));
    assert!(seen.readings > 0 && seen.celsius.is_some() && seen.counted.is_empty(), "{:?}", seen.counted);
}

#[test]
fn an_uncorrected_error_explains_a_case_that_fails() {
    let says = [("AMDSMI_DOUBLE", "d0:uncorrected=+1"), ("HIP_DOUBLE_FREE", "0")];
    let account = super::copied(&with(&folder(), &says), Op::GpuCopy, &[(0, 0)]).remove(0).account;
    let failure = account.failure.unwrap();
    let words = "; meanwhile an error of the memory of GPU 0 (0000:d0:00.0) could not be corrected";
    assert!(failure.cause.ends_with(words), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "gpu-memory-errors");
}

#[test]
fn the_facts_of_amd_gpus_are_told_in_every_version() {
    let root = tree();
    std::fs::create_dir_all(root.path().join("sys/module/amdgpu")).unwrap();
    for version in VERSIONS {
        let says = [("AMDSMI_DOUBLE_VERSION", version), ("AMDSMI_DOUBLE", "d1:heat=1 bad_pages=3 programs=1")];
        let root = ("RAILGAUGE_ROOT", root.path().to_str().unwrap());
        let facts = facts(&folder(), &[says[0], says[1], root]);
        assert!(!facts.unreadable.contains_key(GPUS), "{version}: {:?}", facts.unreadable);
        assert!(facts.has_amd_gpus() && facts.finds(HIP_LIBRARY) && facts.finds(AMD_SMI), "{:?}", facts.libraries);
        assert!(facts.unfound(RCCL).unwrap().contains("librccl.so.1: cannot open"), "{:?}", facts.libraries);
        for (at, gpu) in facts.gpus.iter().enumerate() {
            let (index, bus) = (at as u32, 0xd0 + at);
            assert_eq!(
                (gpu.index, gpu.pci.clone(), gpu.cuda_device),
                (index, Some(format!("0000:{bus:02x}:00.0")), Some(index))
            );
            let told = [&gpu.name, &gpu.driver, &gpu.part_number, &gpu.cuda].map(Option::as_deref);
            assert_eq!(
                told,
                [Some("double of an AMD Instinct"), Some("6.10.5"), Some("102-G30213-00"), None],
                "{version}"
            );
            assert_eq!((gpu.serial.clone(), gpu.numa), (Some(format!("692345000{bus:02x}")), Some(0)), "{version}");
            assert_eq!(gpu.uuid, Some(format!("{bus:02x}ff74a1-0000-1000-80d6-3d44b0c2f5a1")), "{version}");
            assert_eq!(
                (gpu.pcie, gpu.pcie_max, gpu.memory_bytes),
                (Some((5, 16)), Some((5, 16)), Some(Bytes(192 << 30)))
            );
            assert_eq!(
                (gpu.ecc, gpu.nvlinks, gpu.mig, gpu.fabric.is_some()),
                (Some(true), None, None, false),
                "{version}"
            );
            assert_eq!((gpu.clock_mhz, gpu.memory_clock_mhz), (Some((2100, 2100)), Some((1300, 1300))), "{version}");
            assert_eq!((gpu.temperature, gpu.power_watts, gpu.processes), (Some(62), Some((640.0, 750.0)), Some(1)));
            let held: &[&str] = if at == 1 { &["too hot (hardware)"] } else { &[] };
            assert_eq!(gpu.throttled.clone().unwrap(), held, "{version}");
            let faults = gpu.memory_faults;
            assert_eq!(
                (faults.uncorrected, faults.retired_pages, faults.pending),
                (Some(0), Some(3), None),
                "{version}"
            );
        }
        assert_eq!(facts.gpus.len(), 2);
    }
}

#[test]
fn graphics_of_amd_are_no_gpus_of_the_host() {
    const GRAPHICS: (&str, &str, &str) = ("0000:d0:00.0", "0x1002", "0x030000");
    const ACCELERATOR: (&str, &str, &str) = ("0000:d1:00.0", "0x1002", "0x120000");
    const NVIDIA: (&str, &str, &str) = ("0000:1b:00.0", "0x10de", "0x030200");
    // AMD SMI knows both.
    let told = |functions: &[(&str, &str, &str)]| {
        let root = tree_of(functions);
        std::fs::create_dir_all(root.path().join("sys/module/amdgpu")).unwrap();
        facts(&folder(), &[("RAILGAUGE_ROOT", root.path().to_str().unwrap())])
    };
    let places = |facts: &HostFacts| facts.gpus.iter().filter_map(|gpu| gpu.pci.clone()).collect::<Vec<_>>();
    let beside_nvidia = told(&[NVIDIA, GRAPHICS]);
    assert!(places(&beside_nvidia).is_empty() && !beside_nvidia.has_amd_gpus(), "{:?}", beside_nvidia.gpus);
    assert!(!beside_nvidia.unreadable.contains_key(GPUS), "{:?}", beside_nvidia.unreadable);
    // Nor does it matter what AMD SMI is there.
    let root = tree_of(&[NVIDIA, GRAPHICS]);
    let old = [("RAILGAUGE_ROOT", root.path().to_str().unwrap()), ("AMDSMI_DOUBLE_VERSION", "24.5")];
    let old = facts(&folder(), &old);
    assert!(old.gpus.is_empty() && !old.unreadable.contains_key(GPUS), "{:?}", old.unreadable);
    let console = told(&[GRAPHICS, ACCELERATOR]);
    assert_eq!((places(&console), console.has_amd_gpus()), (vec!["0000:d1:00.0".to_owned()], true));
    assert_eq!(console.gpus[0].index, 0);
}

#[test]
fn errors_of_other_parts_of_a_gpu_are_no_errors_of_its_memory() {
    // All parts together, of which the memory has none.
    let [first, _] = seen("26.1", "d0:uncorrected_all=+9 d0:corrected_all=+9");
    assert_eq!((first.counted[counter::ECC_UNCORRECTED], first.counted[counter::ECC_CORRECTED]), (0, 0));
    // Where the memory has no ECC its counters stand at 0, and mean nothing.
    let root = tree();
    let settings = [("RAILGAUGE_ROOT", root.path().to_str().unwrap()), ("AMDSMI_DOUBLE", "d0:ecc=6 d1:ecc=none")];
    let gpus = facts(&folder(), &settings).gpus;
    assert_eq!(gpus.iter().map(|gpu| gpu.ecc).collect::<Vec<_>>(), [Some(false), None]);
    assert!(gpus.iter().all(|gpu| gpu.memory_faults.uncorrected.is_none()), "{gpus:?}");
    for gpu in seen("24.7", "d0:ecc=6 d1:ecc=none") {
        assert!(!gpu.counted.contains_key(counter::ECC_UNCORRECTED), "{:?}", gpu.counted);
        assert!(!gpu.counted.contains_key(counter::ECC_CORRECTED), "{:?}", gpu.counted);
    }
}

#[test]
fn a_library_is_told_under_the_name_by_which_it_is_opened() {
    let root = tree();
    let settings = [("RAILGAUGE_ROOT", root.path().to_str().unwrap()), ("AMDSMI_DOUBLE_VERSION", "24.6")];
    // As the run-time packages of ROCm 6.2 and 6.3 install it.
    for name in ["libamd_smi.so.24", "libamd_smi.so.25", "libamd_smi.so.26"] {
        let alone = folder_of(&[("amdsmi_double", &[name])]);
        let told = facts(&alone, &settings);
        assert!(told.finds(AMD_SMI) && told.libraries[name].starts_with('/'), "{:?}", told.libraries);
        assert_eq!(told.gpus[0].driver.as_deref(), Some("6.10.5"), "{name}: {:?}", told.unreadable);
    }
    let nothing = tempfile::tempdir().unwrap();
    let told = facts(nothing.path(), &settings);
    for (part, last) in [(AMD_SMI, "/opt/rocm/lib/libamd_smi.so"), (RCCL, "/opt/rocm/lib/librccl.so.1")] {
        assert!(told.unfound(part).unwrap().contains(last), "{:?}", told.libraries);
    }
}

#[test]
fn the_agents_own_programs_are_not_told_as_users_of_a_gpu() {
    let root = tree();
    let settings = [("RAILGAUGE_ROOT", root.path().to_str().unwrap()), ("AMDSMI_DOUBLE", "d1:programs=2")];
    let users: Vec<_> = facts(&folder(), &settings).gpus.iter().map(|gpu| gpu.processes).collect();
    assert_eq!(users, [Some(0), Some(2)]);
}

#[test]
fn a_version_whose_layouts_are_not_known_is_refused_in_words() {
    let root = tree();
    let root = root.path().to_str().unwrap();
    for version in ["24.5", "24.8", "27.0"] {
        let facts = facts(&folder(), &[("AMDSMI_DOUBLE_VERSION", version), ("RAILGAUGE_ROOT", root)]);
        let why = &facts.unreadable[GPUS];
        assert!(why.starts_with("of 2 AMD GPUs only the PCI addresses are known: AMD SMI "), "{why}");
        assert!(why.contains(version) && why.contains("is not used: known are 24.6, 24.7, 25 and 26"), "{why}");
        // They are there all the same, and HIP's numbers of them.
        let gpus: Vec<_> = facts.gpus.iter().map(|gpu| (gpu.pci.as_deref().unwrap(), gpu.cuda_device)).collect();
        assert_eq!(gpus, [("0000:d0:00.0", Some(0)), ("0000:d1:00.0", Some(1))]);
        assert!(facts.gpus.iter().all(|gpu| gpu.name.is_none() && gpu.serial.is_none()));
        let seen = &super::copied(&with(&folder(), &[("AMDSMI_DOUBLE_VERSION", version)]), Op::GpuCopy, &[(0, 0)])[0]
            .account
            .gpus[0];
        assert!(seen.failure.as_deref().unwrap().contains("is not used") && seen.readings == 0, "{seen:?}");
    }
}

#[test]
fn amd_gpus_without_a_library_are_told_as_such() {
    let root = tree();
    let root = root.path().to_str().unwrap();
    let nothing = tempfile::tempdir().unwrap();
    let told = facts(nothing.path(), &[("RAILGAUGE_ROOT", root)]);
    let why = &told.unreadable[GPUS];
    assert!(why.contains("AMD SMI is not there: libamd_smi.so: cannot open"), "{why}");
    assert_eq!((told.gpus.len(), told.gpus[0].cuda_device), (2, None));
    let one = tree_of(&[("0000:d1:00.0", "0x1002", "0x120000")]);
    let told = facts(nothing.path(), &[("RAILGAUGE_ROOT", one.path().to_str().unwrap())]);
    let why = &told.unreadable[GPUS];
    assert!(why.starts_with("of 1 AMD GPU only the PCI address is known: AMD SMI is not there: "), "{why}");
    let dead = facts(&folder(), &[("RAILGAUGE_ROOT", root), ("AMDSMI_DOUBLE_DEAD", "1")]);
    assert!(dead.unreadable[GPUS].contains("AMD SMI does not start: said by a double"), "{:?}", dead.unreadable);
    // Where there is no such GPU nothing is said.
    let none = facts(&folder(), &[("AMDSMI_DOUBLE_DEAD", "1")]);
    assert!(none.gpus.is_empty() && !none.unreadable.contains_key(GPUS), "{:?}", none.unreadable);
    let account = super::copied(&with(&rocm(), &[]), Op::GpuCopy, &[(0, 0)]).remove(0).account;
    let seen = &account.gpus[0];
    assert!(account.measured.is_some() && seen.counted.is_empty(), "{seen:?}");
    assert!(seen.failure.as_deref().unwrap().contains("AMD SMI is not there: libamd_smi.so: cannot"), "{seen:?}");
}

#[test]
fn the_library_that_does_not_answer_is_named() {
    let seen = |settings: &[(&str, &str)]| {
        super::copied(settings, Op::GpuCopy, &[(0, 0)]).remove(0).account.gpus.remove(0).failure.unwrap()
    };
    let nvidia = folder_of(&[("cuda_double", &["libcuda.so.1"]), ("nvml_double", &["libnvidia-ml.so.1"])]);
    std::thread::scope(|scope| {
        let of_nvidia = scope.spawn(|| seen(&with(&nvidia, &[("NVML_DOUBLE_HANGS", "1")])));
        let of_amd = seen(&with(&folder(), &[("AMDSMI_DOUBLE_HANGS", "1")]));
        assert!(of_amd.starts_with("AMD SMI has not answered within "), "{of_amd}");
        let of_nvidia = of_nvidia.join().unwrap();
        assert!(of_nvidia.starts_with("NVML has not answered within "), "{of_nvidia}");
    });
}
