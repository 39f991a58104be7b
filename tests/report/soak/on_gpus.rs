//! GPUs whose memory the flows of a soak used.

use std::{path::Path, sync::Arc};

use railgauge_analysis::{journal::Journal, status::Status};
use railgauge_model::{journal::event::SoakedGpu, plan::per_end::PerEnd};
use railgauge_report::draw;
use railgauge_wire::{
    failure::{Failure, Kind as Why, Stage},
    gpu_state::{GpuSeen, Hold, Range, counter},
    remedy,
    terms::Memory,
};

use super::made::{Made, judged, status};

/// A soak in which GPU 0 of gpu003 is well, and GPU 1 is in this state in part so many.
fn soak(change: impl Fn(usize, &mut GpuSeen)) -> Journal {
    of_windows(|part, gpu| {
        change(part, &mut gpu.seen);
        gpu.unread = if gpu.seen.readings == 0 { gpu.windows } else { 0 };
    })
}

/// The same by its record.
fn of_windows(change: impl Fn(usize, &mut SoakedGpu)) -> Journal {
    let mut journal = Made::healthy().journal();
    for (part, soaked) in journal.soaked.iter_mut().filter(|part| part.from < part.until).enumerate() {
        let well = |index: u32| GpuSeen {
            pci: format!("0000:1{index}:00.0"),
            index: Some(index),
            readings: 10,
            watts: Some(Range { min: 300.0, median: 350.0, max: 400.0 }),
            held: Some([(Hold::PowerCap, 10)].into()),
            counted: [(counter::PCIE_REPLAYS.to_owned(), 0)].into(),
            xids: Some(Vec::new()),
            ..GpuSeen::default()
        };
        let record = |seen| SoakedGpu { host: "gpu003".into(), windows: 6, seen, ..SoakedGpu::default() };
        let mut other = record(well(1));
        change(part, &mut other);
        soaked.gpus = vec![record(well(0)), other];
    }
    journal
}

/// The verdict on them, its reason and its remedy.
fn told(change: impl Fn(usize, &mut GpuSeen)) -> (Status, String, Option<String>) {
    let (_, all) = judged(&soak(change));
    let remedy = all.verdicts.iter().find(|verdict| verdict.key.as_deref() == Some("gpus")).unwrap().remedy.clone();
    let (found, reason) = status(&all, "gpus");
    (found, reason, remedy.map(|remedy| remedy.id.into_owned()))
}

#[test]
fn gpus_that_are_well_pass_and_without_any_nothing_is_said() {
    assert_eq!(told(|_, _| ()), (Status::Pass, "2 GPUs without an error".to_owned(), None));
    let (_, all) = Made::healthy().found();
    assert!(all.verdicts.iter().all(|verdict| verdict.key.as_deref() != Some("gpus")));
}

#[test]
fn an_error_of_a_gpu_fails_the_soak_and_names_it() {
    let (failed, reason, remedy) = told(|part, seen| seen.xids = Some(if part == 3 { vec![79] } else { Vec::new() }));
    assert_eq!((failed, remedy.as_deref()), (Status::Fail, Some("xid")));
    assert_eq!(reason, "gpu003 GPU 1: the driver reported Xid 79 of it");
    let (failed, reason, remedy) = told(|part, seen| seen.lost = part == 2);
    assert_eq!((failed, remedy.as_deref()), (Status::Fail, Some("look-at-gpu")), "{reason}");
    let rows = |part: usize, seen: &mut GpuSeen| {
        seen.counted.insert(counter::ROWS_REMAPPED.into(), u64::from(part < 2));
    };
    let (failed, reason, _) = told(rows);
    assert!(failed == Status::Fail && reason.contains(", in "), "{reason}");
}

/// Single packets are sent again on healthy links: days of them are no error, several in one window are.
#[test]
fn what_healthy_gpus_do_now_and_then_does_not_add_up() {
    let replays =
        |most: u64| move |_: usize, seen: &mut GpuSeen| _ = seen.counted.insert(counter::PCIE_REPLAYS.into(), most);
    assert_eq!(told(replays(3)).0, Status::Pass);
    assert_eq!((told(replays(4)).0, told(replays(4)).2.as_deref()), (Status::Fail, Some("reseat-gpu")));
    assert_eq!(told(|_, seen| seen.xids = Some(vec![31])).0, Status::Pass);
}

#[test]
fn what_slows_a_gpu_down_is_told_and_fails_nothing() {
    let hot = |part: usize, seen: &mut GpuSeen| {
        if part < 5 {
            seen.held = Some([(Hold::HotDriver, 2)].into());
        }
    };
    let (passed, reason, remedy) = told(hot);
    assert_eq!((passed, remedy), (Status::Pass, None));
    assert!(reason.contains("gpu003 GPU 1") && reason.contains("too hot (driver)"), "{reason}");
    let drawn = draw(&soak(hot), Path::new("records.jsonl")).unwrap();
    let rows = drawn.view.soak.unwrap().gpus.table.rows;
    assert_eq!(rows.len(), 2);
    assert!(rows[0][0] == "gpu003 GPU 1" && rows[0][5].contains("in 5 parts") && rows[1][5].is_empty(), "{rows:?}");
}

#[test]
fn a_gpu_that_tells_nothing_has_not_been_well() {
    let silent = |_: usize, seen: &mut GpuSeen| {
        *seen = GpuSeen { pci: seen.pci.clone(), failure: Some("NVML is not there".into()), ..GpuSeen::default() };
    };
    let (open, reason, _) = told(silent);
    assert_eq!(open, Status::Inconclusive);
    assert!(reason.contains("GPU at 0000:11:00.0") && reason.contains("NVML is not there"), "{reason}");
    // Unread for a while: of that time nothing is known. One window of hundreds is too little to say so.
    let (open, reason, _) = told(|part, seen| {
        if part == 0 {
            silent(part, seen);
        }
    });
    assert!(open == Status::Inconclusive && reason.contains("not read in 6 of "), "{reason}");
    let judged_with = |change: fn(usize, &mut SoakedGpu)| status(&judged(&of_windows(change)).1, "gpus");
    let (passed, reason) = judged_with(|part, gpu| (gpu.windows, gpu.unread) = (200, u64::from(part == 0)));
    assert_eq!(passed, Status::Pass, "{reason}");
    // What tells of no errors has not been without any.
    let (open, reason) = judged_with(|_, gpu| (gpu.seen.counted, gpu.seen.xids) = Default::default());
    assert!(open == Status::Inconclusive && reason.contains("neither errors nor Xids"), "{reason}");
    let (passed, reason) = judged_with(|_, gpu| (gpu.seen.xids, gpu.without_xids) = (None, 6));
    assert!(passed == Status::Pass && reason.contains("Xids of 1 GPU could not be read"), "{reason}");
}

/// Hosts of flows in GPU memory that tell of no GPU.
#[test]
fn hosts_whose_gpus_nobody_told_of_are_open() {
    let mut journal = soak(|_, _| ());
    journal.plan.tests.iter_mut().for_each(|test| test.memory = PerEnd::same(Memory::Cuda));
    journal.cases.iter_mut().for_each(|case| Arc::make_mut(&mut case.cell).memory = PerEnd::same(Memory::Cuda));
    let (open, reason) = status(&judged(&journal).1, "gpus");
    assert!(open == Status::Inconclusive && reason.contains("3 hosts reported no GPU: gpu001"), "{reason}");
}

/// What is told several times in one part was there in one, and every error is kept by its host.
#[test]
fn errors_are_counted_by_parts_and_kept_by_hosts() {
    let journal = soak(|part, seen| seen.xids = Some(if part == 3 { vec![48, 79, 48] } else { Vec::new() }));
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    assert_eq!(status(&drawn.verdicts, "gpus").1, "gpu003 GPU 1: the driver reported Xid 48 of it");
    let soak = drawn.verdicts.soak.unwrap();
    assert_eq!((soak.gpus[0].host.as_str(), soak.gpus[0].bad.len()), ("gpu003", 2));
}

/// A window that fails has no sample: the GPU that fell off the bus is known by the failure alone.
#[test]
fn a_window_that_failed_by_an_ill_gpu_fails_the_soak_whatever_the_others_tell() {
    let mut journal = soak(|_, _| ());
    let lost = Failure::new(Stage::Measure, Why::Unsupported, "NVML has lost the GPU at 0000:11:00.0")
        .at("gpu003")
        .remedy(remedy::LOOK_AT_GPU);
    let part = journal.soaked.iter_mut().find(|part| !part.flows.is_empty()).unwrap();
    (part.flows[0].failed, part.flows[0].failure) = (1, Some(lost));
    let (_, all) = judged(&journal);
    let (failed, reason) = status(&all, "gpus");
    assert!(failed == Status::Fail && reason.contains("gpu003") && reason.contains("lost the GPU"), "{reason}");
    let verdict = all.verdicts.iter().find(|verdict| verdict.key.as_deref() == Some("gpus")).unwrap();
    assert_eq!(verdict.remedy.as_ref().unwrap().id, "look-at-gpu");
}
