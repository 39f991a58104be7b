//! The state of GPUs while a case uses them, with a double of NVML (`examples/nvml_double.rs`) beside that of CUDA.

use std::path::PathBuf;

use railgauge_wire::{
    Answer, Ask, Bytes, Failure, GpuSeen, Hold, Memory, Nanoseconds, NodeAccount, NodeFlow, NodeSpec, Op, Part, Range,
    Step, Stepped, TestMetric, Window, gpu_state::counter,
};

use crate::{
    controller::{
        Agent, DEADLINE_MS, Outcome, command,
        pair::{Pair, timing},
        patiently,
    },
    double::folder_of,
};

/// The folder that holds both doubles under the names of the libraries.
fn folder() -> PathBuf {
    folder_of(&[("cuda_double", &["libcuda.so.1"]), ("nvml_double", &["libnvidia-ml.so.1"])])
}

const PASS: Nanoseconds = Nanoseconds::from_millis(600);

/// Copies of both GPUs at the same time, or from one to the other, where NVML says this.
fn copied(says: &str, op: Op) -> Vec<NodeAccount> {
    copied_by(&[], says, op)
}

/// As [`copied`], where CUDA is what `settings` make it.
fn copied_by(settings: &[(&str, &str)], says: &str, op: Op) -> Vec<NodeAccount> {
    let gpu = |number: u32| Part::Gpu(format!("0000:{:02x}:00.0", 0xd0 + number));
    let far = u32::from(op == Op::GpuToGpu);
    let spec = NodeSpec {
        op,
        metric: TestMetric::Bandwidth,
        size: Bytes(100_003),
        window: Window::Duration(PASS),
        warm_up: Nanoseconds::ZERO,
        verify: Some(7),
        deadline_ms: DEADLINE_MS,
        cached: false,
        flows: (0..2).map(|number| NodeFlow { from: gpu(number), to: gpu(number ^ far) }).collect(),
        precision: None,
    };
    let mut command = command();
    command.env("LD_LIBRARY_PATH", folder()).env("NVML_DOUBLE", says).envs(settings.iter().copied());
    match Agent::greeted(&mut command).ask(Ask::Node(Box::new(spec))) {
        Ok(Answer::Node(accounts)) => accounts,
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn a_short_pass_has_two_readings() {
    for account in copied("", Op::HostToGpu) {
        let seen = &account.account.gpus[0];
        // Give or take one.
        assert!((1..=4).contains(&seen.readings), "{seen:?}");
    }
}

/// The only GPU of each of both flows.
fn seen(says: &str) -> [GpuSeen; 2] {
    let accounts = copied(says, Op::HostToGpu);
    let one = |account: &NodeAccount| {
        assert_eq!((&account.account.failure, account.account.gpus.len()), (&None, 1));
        account.account.gpus[0].clone()
    };
    [one(&accounts[0]), one(&accounts[1])]
}

const fn all(value: f64) -> Option<Range> {
    Some(Range { min: value, median: value, max: value })
}

#[test]
fn a_case_tells_the_state_of_its_gpus_during_its_pass() {
    let accounts = copied("d1:sm=1725", Op::HostToGpu);
    for (at, account) in accounts.iter().enumerate() {
        let measured = account.account.measured.as_ref().unwrap();
        let seen = &account.account.gpus[0];
        assert_eq!((&*seen.pci, seen.index), (["0000:d0:00.0", "0000:d1:00.0"][at], Some(at as u32)));
        assert_eq!(seen.pass, (measured.started, measured.started + measured.elapsed));
        assert_eq!((seen.sm_mhz, seen.memory_mhz), (all([1980.0, 1725.0][at]), all(2619.0)));
        assert_eq!((seen.watts, seen.limit_watts, seen.celsius), (all(412.0), Some(700.0), all(54.0)));
        assert_eq!((seen.memory_celsius, seen.best_mhz), (all(61.0), Some((1980, 2619))));
        let pcie = seen.pcie.unwrap();
        assert_eq!((pcie.generation, pcie.width, pcie.best), ((5, 5), (16, 16), Some((5, 16))));
        assert_eq!((seen.held.as_ref().unwrap().len(), seen.xids.as_deref(), &seen.failure), (0, Some(&[][..]), &None));
        // What stood still is told as that, and what the GPU does not count is not there.
        assert_eq!(seen.counted[counter::PCIE_REPLAYS], 0);
        assert!(!seen.counted.contains_key(counter::NVLINK_REPLAYS), "{seen:?}");
    }
}

#[test]
fn a_copy_between_gpus_tells_of_both() {
    let accounts = copied("", Op::GpuToGpu);
    let of = |account: &NodeAccount| account.account.gpus.iter().map(|seen| seen.pci.clone()).collect::<Vec<_>>();
    assert_eq!(of(&accounts[0]), ["0000:d0:00.0", "0000:d1:00.0"]);
    assert_eq!(of(&accounts[1]), ["0000:d1:00.0", "0000:d0:00.0"]);
}

#[test]
fn what_holds_clocks_down_and_a_narrow_link_are_told() {
    // SW power cap and hardware thermal slowdown.
    let [good, bad] = seen("d1:held=68 d1:width=8 d1:generation=4");
    assert_eq!(good.held, Some([].into()));
    let held = bad.held.unwrap();
    assert_eq!(held, [(Hold::PowerCap, bad.readings), (Hold::HotHardware, bad.readings)].into());
    let pcie = bad.pcie.unwrap();
    assert_eq!((pcie.generation, pcie.width, pcie.best), ((4, 4), (8, 8), Some((5, 16))));
}

#[test]
fn errors_and_xids_of_the_time_between_are_told() {
    let [first, second] = seen("d1:replays=+7 d0:uncorrected=+1 d1:nvlink_recoveries=+2 xid=79");
    assert_eq!((first.counted[counter::PCIE_REPLAYS], first.counted[counter::ECC_UNCORRECTED]), (0, 1));
    assert_eq!((second.counted[counter::PCIE_REPLAYS], second.counted[counter::ROWS_REMAPPED]), (7, 0));
    assert_eq!(second.counted[counter::NVLINK_RECOVERIES], 2);
    assert_eq!([first.xids.unwrap(), second.xids.unwrap()].concat(), [79]);
}

#[test]
fn programs_beside_the_agent_are_told() {
    let [first, second] = seen("d0:programs=0 d1:programs=2");
    assert_eq!((first.others, second.others), (Some(0), Some(2)));
    // A driver that does not tell is not one that tells of none.
    assert_eq!(seen("").map(|gpu| gpu.others), [None, None]);
}

/// Copies of both GPUs that fail, as none of their memory is free.
fn failed(says: &str) -> [Failure; 2] {
    let mut accounts = copied_by(&[("CUDA_DOUBLE_FREE", "0")], says, Op::GpuCopy).into_iter();
    std::array::from_fn(|_| accounts.next().unwrap().account.failure.unwrap())
}

#[test]
fn a_failed_case_says_what_befell_its_gpu() {
    // Of memory errors the counters alone tell; the Xid is told to whoever asks third, which is GPU 0 at the end.
    let [first, second] = failed("d1:uncorrected=+1 xid=79");
    assert!(first.cause.ends_with("; meanwhile the driver reported Xid 79 of GPU 0 (0000:d0:00.0)"), "{first}");
    assert_eq!(first.remedy.unwrap().id, "xid");
    let words = "; meanwhile an error of the memory of GPU 1 (0000:d1:00.0) could not be corrected";
    assert!(second.cause.contains("are free") && second.cause.ends_with(words), "{second}");
    assert_eq!(second.remedy.unwrap().id, "gpu-memory-errors");
    // A program's own mistake, or nothing.
    for says in ["xid=31", ""] {
        assert!(failed(says).iter().all(|failure| !failure.cause.contains("meanwhile")), "{says}");
    }
}

#[test]
fn a_gpu_that_is_lost_takes_its_last_xid_along() {
    let [lost, well] = failed("d0:lost=2 xid=79");
    let words = "the driver reported Xid 79 of GPU 0 (0000:d0:00.0), NVML lost GPU 0 (0000:d0:00.0)";
    assert!(lost.cause.ends_with(words) && !well.cause.contains("meanwhile"), "{lost}; {well}");
}

#[test]
fn what_nvml_does_not_tell_is_not_made_up() {
    let [_, seen] = seen("d1:sm=none d1:held=none d1:width=none d1:replays=none events=none");
    assert_eq!((seen.sm_mhz, seen.held, seen.pcie, seen.xids), (None, None, None, None));
    assert!(seen.readings > 0 && seen.watts.is_some() && !seen.counted.contains_key(counter::PCIE_REPLAYS));
}

#[test]
fn a_host_without_nvml_measures_and_says_what_is_missing() {
    let accounts = super::copied(&[], Op::GpuCopy, &[(0, 0)]);
    let seen = &accounts[0].account.gpus[0];
    assert!(accounts[0].account.measured.is_some() && seen.readings == 0 && seen.counted.is_empty());
    assert!(seen.failure.as_deref().unwrap().contains("NVML is not there"), "{seen:?}");
}

/// Flows at once are led step by step: each end tells of its GPU with its account.
#[test]
fn a_timed_step_tells_the_state_of_the_gpu_of_its_end() {
    let agent = |says: &str| {
        let mut command = command();
        command.env("LD_LIBRARY_PATH", folder()).env("NVML_DOUBLE", says);
        Agent::greeted(&mut command)
    };
    let mut pair = Pair { initiator: agent("d1:sm=1725"), responder: agent("d1:sm=1500") };
    pair.open(|spec| (spec.memory, spec.gpu) = (Memory::Cuda, Some(1)), 1, 1 << 20).unwrap();
    // Steps that are not timed tell nothing of it.
    pair.verify(Op::Write, 4096, 1);
    let timing = timing(Op::Write, TestMetric::Bandwidth, 1 << 20, Window::Duration(PASS));
    let read = |outcome: Outcome, clock| {
        let Ok(Answer::SteppedOnGpu { stepped: Stepped::Measured(measured), gpus }) = outcome else {
            panic!("{outcome:?}")
        };
        let [seen] = gpus.as_slice() else { panic!("{gpus:?}") };
        assert_eq!(seen.pass, (measured.started, measured.started + measured.elapsed));
        assert_eq!((&*seen.pci, seen.index, &seen.failure), ("0000:d1:00.0", Some(1), &None));
        // Nothing was read in the pass of an end that was very busy.
        assert_eq!(seen.sm_mhz, all(clock).filter(|_| seen.readings > 0));
        seen.readings > 0
    };
    patiently("a reading in both passes", || {
        let (near, far) = pair.served(Op::Write, TestMetric::Bandwidth, 1 << 20, Step::Time(timing));
        [read(near, 1725.0), read(far, 1500.0)].into_iter().all(|read| read).then_some(())
    });
}
